// A stage's links, of which the outer ones may be served by its own copy of the data.
#ifndef RESBM_STAGE_SERVER_DATA_LOCAL_DATA_LINKS_H_
#define RESBM_STAGE_SERVER_DATA_LOCAL_DATA_LINKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "stage_server/core/link_events.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/data/local_data.h"
#include "stage_server/data/local_line.h"

namespace resbm::stage_server {

// For one thread, the stage's. What is not local is the inner links'. On an outer link nothing is sent, so what asks
// about sending has one answer there.
class LocalDataLinks : public StageLinks {
 public:
  // All outlive it.
  LocalDataLinks(StageLinks* inner, const LocalData* data, LinkEvents* events)
      : inner_(inner), data_(data), events_(events) {}

  bool IsLocal(End end) const { return line(end) != nullptr; }

  void Open(const LinkSetup& setup) override;
  void Close(const absl::Status& status) override;
  void Expect(End end, const v1::TensorHeader& header) override;
  void SetInboxLimit(End end, std::uint32_t tensors, bool hard) override;
  void Consumed(End end) override;
  bool AllSent(End end) const override { return IsLocal(end) || inner_->AllSent(end); }
  bool Connected(End end) const override { return IsLocal(end) || inner_->Connected(end); }

  void Send(End end, const v1::TensorHeader& header, EncodedTensor tensor) override {
    inner_->Send(end, header, std::move(tensor));
  }
  void ReleaseMicroBatch(End end, std::uint64_t step, std::uint32_t micro_batch) override {
    inner_->ReleaseMicroBatch(end, step, micro_batch);
  }
  void ReleaseThroughStep(End end, std::uint64_t step) override { inner_->ReleaseThroughStep(end, step); }
  void ReleaseAll(End end) override { inner_->ReleaseAll(end); }
  std::uint64_t RetainedBytes(End end) const override { return inner_->RetainedBytes(end); }
  LinkCounters Counters(End end) const override { return inner_->Counters(end); }
  void RecordTransfers(End end, bool on) override { inner_->RecordTransfers(end, on); }
  std::vector<wire::Transfer> TakeTransfers(End end, std::uint64_t step) override {
    return inner_->TakeTransfers(end, step);
  }

 private:
  LocalLine* line(End end) const { return lines_[static_cast<int>(end)].get(); }

  StageLinks* const inner_;
  const LocalData* const data_;
  LinkEvents* const events_;
  std::unique_ptr<LocalLine> lines_[2];
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_DATA_LOCAL_DATA_LINKS_H_
