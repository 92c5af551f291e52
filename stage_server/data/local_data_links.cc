#include "stage_server/data/local_data_links.h"

namespace resbm::stage_server {

void LocalDataLinks::Open(const LinkSetup& setup) {
  for (auto& line : lines_) line.reset();
  inner_->Open(setup);
  const auto local = [&](End end) {
    return end == End::kUp ? setup.local_inputs && setup.stage == 0
                           : setup.local_targets && setup.stage + 1 == setup.stages;
  };
  for (const End end : kEnds) {
    if (local(end)) lines_[static_cast<int>(end)] = std::make_unique<LocalLine>(end, setup.fence, data_, events_);
  }
}

void LocalDataLinks::Close(const absl::Status& status) {
  for (auto& line : lines_) line.reset();
  inner_->Close(status);
}

void LocalDataLinks::Expect(End end, const v1::TensorHeader& header) {
  if (LocalLine* local = line(end)) return local->Expect(header);
  inner_->Expect(end, header);
}

void LocalDataLinks::SetInboxLimit(End end, std::uint32_t tensors, bool hard) {
  if (LocalLine* local = line(end)) return local->SetInboxLimit(tensors);
  inner_->SetInboxLimit(end, tensors, hard);
}

void LocalDataLinks::Consumed(End end) {
  if (LocalLine* local = line(end)) return local->Consumed();
  inner_->Consumed(end);
}

}  // namespace resbm::stage_server
