// The Computer that trains: runs Work on a model::StageModel.
#ifndef RESBM_STAGE_SERVER_COMPUTE_MODEL_COMPUTER_H_
#define RESBM_STAGE_SERVER_COMPUTE_MODEL_COMPUTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/stage_model.h"
#include "stage_server/core/work.h"

namespace resbm::stage_server {

class ModelComputer : public Computer {
 public:
  struct Options {
    // "cpu", "cuda:0": as StageModel::ResolveDevice gave it.
    std::string device = "cpu";
    // For LibTorch's tensors; 0 = none.
    std::uint64_t memory_limit_bytes = 0;
  };
  using Create = std::function<absl::StatusOr<std::unique_ptr<model::StageModel>>(const model::StageSpec&,
                                                                                  const model::ComputeOptions&)>;

  // `create`: StageModel::Create, or a test's.
  explicit ModelComputer(Options options, Create create = &model::StageModel::Create);

  WorkResult Run(const Work& work) override;

 private:
  absl::Status Do(const Load& load, WorkResult* result);
  absl::Status Do(const Forward& forward, WorkResult* result);
  absl::Status Do(const Backward& backward, WorkResult* result);
  absl::Status Do(const Finish& finish, WorkResult* result);
  absl::Status Do(const Apply& apply, WorkResult* result);
  absl::Status Do(const Drop& drop, WorkResult* result);
  absl::Status Do(const EvaluateForward& evaluate, WorkResult* result);
  absl::Status Do(const SaveShard& save, WorkResult* result);
  absl::Status Do(const Unload& unload, WorkResult* result);

  void ReportMemory(WorkResult* result);

  const Options options_;
  const Create create_;
  const bool ranges_;  // for a profiler
  std::unique_ptr<model::StageModel> model_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_COMPUTE_MODEL_COMPUTER_H_
