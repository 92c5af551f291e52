#include "model/boundaries/top_k.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <tuple>

namespace resbm::model {

TopKEncoder::TopKEncoder(const BoundarySpec& spec)
    : kept_(spec.kept),
      positions_(spec.input_shape.size() == 2 ? spec.input_shape[0] : 1),
      index_type_(spec.wire.at(1).dtype == WireDtype::kInt16 ? at::kShort : at::kInt) {}

Tensors TopKEncoder::Forward(const at::Tensor& x, const Pass&) const {
  // contiguous: with channels innermost the flattened order would be another.
  const at::Tensor flat = x.contiguous().flatten(1);
  at::Tensor indices;
  {
    c10::NoGradGuard no_grad;
    const at::Tensor magnitudes = flat.abs().view({flat.size(0), positions_, flat.size(1) / positions_});
    indices = std::get<1>(at::topk(magnitudes, kept_ / positions_, 2, /*largest=*/true, /*sorted=*/false));
    indices = std::get<0>(at::sort(indices, 2));
    const at::Tensor starts = at::arange(0, flat.size(1), magnitudes.size(2), indices.options());
    indices = indices.add(starts.view({-1, 1})).flatten(1);
  }
  return {at::gather(flat, 1, indices), indices.to(index_type_)};
}

at::Tensor TopKDecoder::Forward(const Tensors& crossed, const Pass&) const {
  const at::Tensor& values = crossed[0];
  const at::Tensor indices = crossed[1].to(at::kLong);
  std::vector<std::int64_t> dims = {values.size(0)};
  std::int64_t size = 1;
  for (const std::int64_t dim : shape_) {
    dims.push_back(dim);
    size *= dim;
  }
  if (indices.numel() > 0) {
    // On a GPU an index out of range would end the process.
    const auto [low, high] = at::aminmax(indices);
    TORCH_CHECK_INDEX(low.item<std::int64_t>() >= 0 && high.item<std::int64_t>() < size, "top-k index from ",
                      low.item<std::int64_t>(), " to ", high.item<std::int64_t>(), " in a sample of ", size, " values");
  }
  return at::zeros({values.size(0), size}, values.options()).scatter(1, indices, values).view(dims);
}

}  // namespace resbm::model
