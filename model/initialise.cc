#include "model/initialise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <xxhash.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace resbm::model {

std::uint64_t SeedOf(std::uint64_t job_seed, const Origin& origin, absl::string_view local_name) {
  const std::string key = absl::StrCat(origin.boundary ? "boundary" : "layer", "/", origin.layer, "/", local_name);
  return XXH3_64bits_withSeed(key.data(), key.size(), job_seed);
}

void Initialise(std::uint64_t job_seed, const Parameter& parameter) {
  c10::NoGradGuard no_grad;
  at::Tensor tensor = parameter.tensor;
  switch (parameter.start.kind) {
    case Start::Kind::kZero: tensor.zero_(); return;
    case Start::Kind::kOne: tensor.fill_(1); return;
    case Start::Kind::kKaiming: break;
  }
  double fan_out = static_cast<double>(tensor.size(0));
  for (std::int64_t i = 2; i < tensor.dim(); ++i) fan_out *= static_cast<double>(tensor.size(i));
  const at::Generator generator =
      at::detail::createCPUGenerator(SeedOf(job_seed, parameter.origin, parameter.local_name));
  at::Tensor drawn = at::empty(tensor.sizes(), at::TensorOptions().dtype(at::kFloat));
  drawn.normal_(0, parameter.start.gain / std::sqrt(fan_out), generator);
  tensor.copy_(drawn);
}

}  // namespace resbm::model
