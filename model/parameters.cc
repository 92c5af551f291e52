#include "model/parameters.h"

namespace resbm::model {

at::Tensor ParameterList::Add(const std::string& local_name, at::IntArrayRef shape, Start start) {
  const auto format =
      channels_last_ && shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device_);
  at::Tensor tensor = at::empty(shape, options, format);
  tensor.requires_grad_(true);
  parameters_.push_back({prefix_ + "." + local_name, local_name, origin_, start, tensor});
  return tensor;
}

}  // namespace resbm::model
