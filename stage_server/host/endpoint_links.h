// The stage's links made of wire::LinkEndpoints: two per fence, with a dialler each where this stage dials.
#ifndef RESBM_STAGE_SERVER_HOST_ENDPOINT_LINKS_H_
#define RESBM_STAGE_SERVER_HOST_ENDPOINT_LINKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/base/encoded_tensor.h"
#include "proto/wire/link_endpoint.h"
#include "stage_server/core/link_events.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/metrics/link_totals.h"

namespace resbm::stage_server {

// Dials a neighbour for as long as the Dialler lives.
class Dialler {
 public:
  virtual ~Dialler() = default;
};
class DiallerFactory {
 public:
  virtual ~DiallerFactory() = default;
  virtual std::unique_ptr<Dialler> Dial(const v1::Neighbour& neighbour, std::shared_ptr<wire::LinkEndpoint> endpoint) = 0;
};

// For one thread, the stage's; the endpoints themselves are for any.
class EndpointLinks : public StageLinks {
 public:
  // All outlive it. `clock` is the machine's.
  EndpointLinks(const Clock& clock, DiallerFactory* diallers, LinkEvents* events);
  ~EndpointLinks() override;

  void Open(const LinkSetup& setup) override;
  // No event of these endpoints begins after it.
  void Close(const absl::Status& status) override;
  void Expect(End end, const v1::TensorHeader& header) override;
  void SetInboxLimit(End end, std::uint32_t tensors, bool hard) override;
  void Consumed(End end) override;
  void Send(End end, const v1::TensorHeader& header, EncodedTensor tensor) override;
  void ReleaseMicroBatch(End end, std::uint64_t step, std::uint32_t micro_batch) override;
  void ReleaseThroughStep(End end, std::uint64_t step) override;
  void ReleaseAll(End end) override;
  bool AllSent(End end) const override;
  bool Connected(End end) const override;
  std::uint64_t RetainedBytes(End end) const override;
  LinkCounters Counters(End end) const override;
  void RecordTransfers(End end, bool on) override;
  std::vector<wire::Transfer> TakeTransfers(End end, std::uint64_t step) override;

  // Of all fences so far.
  LinkTotals Totals(End end) const;
  // Of the present fence; absent when closed.
  std::optional<v1::LinkState> Describe(End end) const;
  // For the neighbour's Hello; null when closed.
  std::shared_ptr<wire::LinkEndpoint> endpoint(End end) const;

 private:
  struct Line;

  Line* line(End end) const { return lines_[static_cast<int>(end)].get(); }

  const Clock& clock_;
  DiallerFactory* const diallers_;
  LinkEvents* const events_;
  std::shared_ptr<Line> lines_[2];
  LinkTotals closed_[2];
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_ENDPOINT_LINKS_H_
