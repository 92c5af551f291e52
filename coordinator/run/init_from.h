// A job's init_from: weights of a file to start from, whole or in part, cut for the stages.
//
// Here it is known which layers and boundaries there are, so a tensor of none is noticed before any stage is asked.
// What parameters these have, and of which shapes, the stages know: they refuse what does not fit, and report what
// they did not use.
#ifndef RESBM_COORDINATOR_RUN_INIT_FROM_H_
#define RESBM_COORDINATOR_RUN_INIT_FROM_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/run/run_driver.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

class InitialWeights {
 public:
  // NOT_FOUND: the file cannot be read. INVALID_ARGUMENT: not a safetensors file; strict and a tensor belongs to
  // no layer or boundary.
  static absl::StatusOr<InitialWeights> Read(const v1::InitFrom& init_from, absl::Span<const v1::StageSpec> stages);

  // The plan restores these weights instead of drawing them; its first state_id derives from the file's hash.
  void AddTo(RunPlan* plan) const;
  // For RunHost.
  const std::vector<std::string>& shards() const { return shards_; }

  // From what the stages said when they were ready: a line about what came from where, or INVALID_ARGUMENT: no
  // parameter is called as a tensor of the file (strict: some tensor; otherwise: any).
  absl::StatusOr<std::string> Check(absl::Span<const v1::Ready> ready) const;

 private:
  std::string path_;
  bool strict_ = true;
  std::uint64_t hash_ = 0;  // XXH3-64 of the file
  std::vector<std::string> shards_;
  std::map<std::string, int> sent_;  // tensor: to how many stages
  std::size_t left_out_ = 0;         // tensors of no layer or boundary
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_INIT_FROM_H_
