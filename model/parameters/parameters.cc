#include "model/parameters/parameters.h"

namespace resbm::model {

at::Tensor ParameterList::Make(at::IntArrayRef shape) const {
  const auto format =
      channels_last_ && shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return at::empty(shape, at::TensorOptions().dtype(at::kFloat).device(device_), format);
}

at::Tensor ParameterList::Add(const std::string& local_name, at::IntArrayRef shape, Start start,
                              ParameterOptions options) {
  at::Tensor tensor = Make(shape);
  tensor.requires_grad_(true);
  parameters_.push_back({.name = prefix_ + "." + local_name,
                         .local_name = local_name,
                         .origin = origin_,
                         .start = start,
                         .tensor = tensor,
                         .orthonormal = options.orthonormal});
  return tensor;
}

at::Tensor ParameterList::AddBuffer(const std::string& local_name, at::IntArrayRef shape, Start start) {
  at::Tensor tensor = Make(shape);
  parameters_.push_back({.name = prefix_ + "." + local_name,
                         .local_name = local_name,
                         .origin = origin_,
                         .start = start,
                         .tensor = tensor,
                         .buffer = true});
  return tensor;
}

StagedBuffer ParameterList::AddStagedBuffer(const std::string& local_name, at::IntArrayRef shape, Start start) {
  const at::Tensor committed = AddBuffer(local_name, shape, start);
  parameters_.back().staged = Make(shape);
  return {committed, parameters_.back().staged};
}

}  // namespace resbm::model
