// Stages in one process, joined by function calls: what coordinator, schedule and links do, without them.
#ifndef RESBM_TESTS_MODEL_SUPPORT_PIPELINE_H_
#define RESBM_TESTS_MODEL_SUPPORT_PIPELINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/stage_model.h"
#include "tests/model/support/models.h"

namespace resbm::model {

enum class Order { kGpipe, kOneFOneB };

struct Batch {
  std::vector<EncodedTensor> images;  // one per micro-batch
  std::vector<EncodedTensor> labels;
  std::vector<SampleIds> ids;  // one per micro-batch, or none for a model without dropout
  std::int64_t samples = 0;
};

// Random images and labels, the same for the same seed however they are split; sizes as torch.tensor_split.
Batch MakeBatch(const WholeModel& model, int samples, int micro_batches, std::uint32_t seed);

struct StepResult {
  double loss_sum = 0;
  double weight = 0;
  double norm = 0;  // of the mean loss's gradient, before clipping
  std::vector<NonFiniteCount> non_finite;
  std::vector<int> peak_graphs;  // per stage
};

class Pipeline {
 public:
  // Fails the test with the status on error, as every method here.
  Pipeline(const WholeModel& model, const std::vector<int>& cuts, const ComputeOptions& options = {});

  void Initialise(std::uint64_t seed);
  void LoadWeights(const std::string& safetensors);
  // Forward and backward of all micro-batches.
  StepResult Compute(const Batch& batch, Order order);
  // Divides by the weight, clips by the global norm (0 = not), applies everywhere.
  void Apply(const StepResult& step, double clip_norm, double learning_rate);
  double EvaluateLoss(const Batch& batch);
  // Name to the tensor's bytes, of all stages.
  std::map<std::string, std::string> Weights() const;
  std::map<std::string, std::string> Gradients() const;
  std::vector<std::string> ParameterNames() const;

  std::vector<std::unique_ptr<StageModel>>& stages() { return stages_; }

 private:
  std::vector<std::unique_ptr<StageModel>> stages_;
};

std::map<std::string, std::string> BytesByName(const std::string& safetensors);
std::vector<float> Floats(const std::string& bytes);

}  // namespace resbm::model

#endif  // RESBM_TESTS_MODEL_SUPPORT_PIPELINE_H_
