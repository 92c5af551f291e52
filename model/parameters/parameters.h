// The trainable tensors of a stage under their PyTorch state_dict names, with how each starts.
#ifndef RESBM_MODEL_PARAMETERS_PARAMETERS_H_
#define RESBM_MODEL_PARAMETERS_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/torch/torch_headers.h"

namespace resbm::model {

// How a parameter starts.
struct Start {
  // kOrthogonal, kTransposed: of a matrix or a 1x1 convolution; all of one module share one random matrix of
  // orthonormal rows (those of kOrthogonal) or columns.
  enum class Kind { kZero, kOne, kNormal, kKaimingFanOut, kKaimingFanIn, kOrthogonal, kTransposed };
  Kind kind = Kind::kZero;
  double gain = 1;  // of Kaiming's; of kNormal, the standard deviation

  static Start Zero() { return {Kind::kZero, 1}; }
  static Start One() { return {Kind::kOne, 1}; }
  static Start Normal(double deviation) { return {Kind::kNormal, deviation}; }
  static Start Kaiming(double gain) { return {Kind::kKaimingFanOut, gain}; }
  static Start KaimingFanIn(double gain) { return {Kind::kKaimingFanIn, gain}; }
  static Start Orthogonal() { return {Kind::kOrthogonal, 1}; }
  static Start Transposed() { return {Kind::kTransposed, 1}; }
};

// What a parameter's random numbers derive from, beside the job's seed and its name within the module: never
// where the model is cut.
struct Origin {
  bool boundary = false;
  int layer = 0;  // global index; of a boundary, that of the layer before it
};

struct Parameter {
  std::string name;        // of the model, "group0.0.conv1.weight"
  std::string local_name;  // of the module, "conv1.weight"
  Origin origin;
  Start start;
  at::Tensor tensor;  // fp32; a leaf that requires a gradient, unless it is a buffer
  // Saved and loaded with the weights, but not trained.
  bool buffer = false;
  // A buffer that training changes: as the present step has it so far. It becomes `tensor` when the step is applied,
  // and `tensor` again when the step is dropped.
  at::Tensor staged;
  // Made orthonormal again after each step of the optimizer (rows, or columns where they are fewer).
  bool orthonormal = false;
};

// A buffer that training changes.
struct StagedBuffer {
  at::Tensor committed;
  at::Tensor staged;
};

struct ParameterOptions {
  bool orthonormal = false;
};

// Parameters in the order in which modules add them. Module and list share each tensor.
class ParameterList {
 public:
  ParameterList(c10::Device device, bool channels_last) : device_(device), channels_last_(channels_last) {}

  // Opens a module: what is added from now on is named prefix + "." + local name.
  void Begin(std::string prefix, Origin origin) {
    prefix_ = std::move(prefix);
    origin_ = origin;
  }
  // Not initialised. With channels_last, four-dimensional tensors are laid out so. Throws c10::Error.
  at::Tensor Add(const std::string& local_name, at::IntArrayRef shape, Start start, ParameterOptions options = {});
  // The same, for what is not trained: no gradient.
  at::Tensor AddBuffer(const std::string& local_name, at::IntArrayRef shape, Start start);
  StagedBuffer AddStagedBuffer(const std::string& local_name, at::IntArrayRef shape, Start start);

  const std::vector<Parameter>& all() const { return parameters_; }
  c10::Device device() const { return device_; }

 private:
  at::Tensor Make(at::IntArrayRef shape) const;

  const c10::Device device_;
  const bool channels_last_;
  std::string prefix_;
  Origin origin_;
  std::vector<Parameter> parameters_;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_PARAMETERS_PARAMETERS_H_
