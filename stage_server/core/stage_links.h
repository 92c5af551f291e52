// The stage's two links, as the state machine sees them. The host puts wire::LinkEndpoints and diallers
// behind it; the simulation puts endpoints over fake connections.
#ifndef RESBM_STAGE_SERVER_CORE_STAGE_LINKS_H_
#define RESBM_STAGE_SERVER_CORE_STAGE_LINKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/transfer_log.h"

namespace resbm::stage_server {

// kUp: towards the input (link `stage`, where this stage is the DOWNSTREAM side). kDown: towards the output
// (link `stage` + 1, UPSTREAM side).
enum class End { kUp, kDown };
inline constexpr End kEnds[] = {End::kUp, End::kDown};

inline v1::Direction DirectionOf(End end) { return end == End::kUp ? v1::UP : v1::DOWN; }
inline v1::Side SideAt(End end) { return end == End::kUp ? v1::DOWNSTREAM : v1::UPSTREAM; }

struct LinkSetup {
  std::string job_id;
  v1::Fence fence;
  std::string link_key;  // 16 bytes
  std::uint32_t stage = 0;
  std::uint32_t stages = 1;
  // Whose address is not empty is dialled by this stage; the other dials us.
  v1::Neighbour up;
  v1::Neighbour down;
  // The end stages: these come from a copy of the data here, and nobody dials.
  bool local_inputs = false;
  bool local_targets = false;
};

// Totals since Open.
struct LinkCounters {
  std::uint64_t payload_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  std::uint64_t messages = 0;
  // Payload sent and received, each byte once (the others count every sending).
  std::uint64_t moved_bytes = 0;
};

// Called with the machine's owner in charge of exclusion; must not call back into the machine from within.
// See wire::LinkEndpoint for what each call means. Calls on links that are not open do nothing.
class StageLinks {
 public:
  virtual ~StageLinks() = default;
  // Both ends, for one fence; closes what was open.
  virtual void Open(const LinkSetup& setup) = 0;
  // Nothing of these links reaches the machine any more.
  virtual void Close(const absl::Status& status) = 0;

  virtual void Expect(End end, const v1::TensorHeader& header) = 0;
  virtual void SetInboxLimit(End end, std::uint32_t tensors, bool hard) = 0;
  virtual void Consumed(End end) = 0;
  virtual void Send(End end, const v1::TensorHeader& header, EncodedTensor tensor) = 0;
  virtual void ReleaseMicroBatch(End end, std::uint64_t step, std::uint32_t micro_batch) = 0;
  virtual void ReleaseThroughStep(End end, std::uint64_t step) = 0;
  virtual void ReleaseAll(End end) = 0;

  virtual bool AllSent(End end) const = 0;
  virtual bool Connected(End end) const = 0;
  virtual std::uint64_t RetainedBytes(End end) const = 0;
  virtual LinkCounters Counters(End end) const = 0;

  // Whether it is written down when tensors cross, by the machine's clock; off at Open.
  virtual void RecordTransfers(End end, bool on) = 0;
  virtual std::vector<wire::Transfer> TakeTransfers(End end, std::uint64_t step) = 0;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_STAGE_LINKS_H_
