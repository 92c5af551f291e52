#include "model/torch/precision.h"

#include <ATen/autocast_mode.h>

namespace resbm::model {

PrecisionScope::PrecisionScope(Precision precision, c10::DeviceType device)
    : active_(precision != Precision::kFp32), device_(device) {
  if (!active_) return;
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  cache_before_ = at::autocast::is_autocast_cache_enabled();
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_cache_enabled(false);
  at::autocast::set_autocast_dtype(device_, precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(device_, true);
}

PrecisionScope::~PrecisionScope() {
  if (!active_) return;
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_cache_enabled(cache_before_);
}

}  // namespace resbm::model
