#include "model/parameters/initialise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <xxhash.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace resbm::model {
namespace {

at::Tensor Normal(at::IntArrayRef shape, double deviation, std::uint64_t seed) {
  at::Tensor drawn = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  return drawn.normal_(0, deviation, at::detail::createCPUGenerator(seed));
}

// [rows, columns], rows <= columns. Gram-Schmidt, twice over so that rounding does not show; by hand and in
// double, so that it is the same with every LAPACK.
at::Tensor OrthonormalRows(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  at::Tensor matrix = Normal({rows, columns}, 1, seed).to(at::kDouble);
  double* values = matrix.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < rows; ++i) {
    double* row = values + i * columns;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < i; ++j) {
        const double* other = values + j * columns;
        double product = 0;
        for (std::int64_t k = 0; k < columns; ++k) product += row[k] * other[k];
        for (std::int64_t k = 0; k < columns; ++k) row[k] -= product * other[k];
      }
    }
    double square = 0;
    for (std::int64_t k = 0; k < columns; ++k) square += row[k] * row[k];
    for (std::int64_t k = 0; k < columns; ++k) row[k] /= std::sqrt(square);
  }
  return matrix.to(at::kFloat);
}

}  // namespace

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
    case Start::Kind::kNormal:
      tensor.copy_(Normal(tensor.sizes(), parameter.start.gain,
                          SeedOf(job_seed, parameter.origin, parameter.local_name)));
      return;
    case Start::Kind::kOrthogonal:
    case Start::Kind::kTransposed: {
      const bool transposed = parameter.start.kind == Start::Kind::kTransposed;
      // Not of the parameter's name: the two halves of a boundary draw the same.
      const std::uint64_t seed = SeedOf(job_seed, parameter.origin, "orthogonal");
      at::Tensor rows =
          OrthonormalRows(tensor.size(transposed ? 1 : 0), tensor.size(transposed ? 0 : 1), seed);
      tensor.copy_((transposed ? rows.t() : rows).reshape(tensor.sizes()));
      return;
    }
    case Start::Kind::kKaimingFanOut:
    case Start::Kind::kKaimingFanIn: break;
  }
  double fan = static_cast<double>(tensor.size(parameter.start.kind == Start::Kind::kKaimingFanIn ? 1 : 0));
  for (std::int64_t i = 2; i < tensor.dim(); ++i) fan *= static_cast<double>(tensor.size(i));
  tensor.copy_(Normal(tensor.sizes(), parameter.start.gain / std::sqrt(fan),
                      SeedOf(job_seed, parameter.origin, parameter.local_name)));
}

}  // namespace resbm::model
