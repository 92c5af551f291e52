#include "tests/integration/simulation/fake_computer.h"

#include <algorithm>

#include <xxhash.h>

#include "absl/strings/str_format.h"

namespace resbm::simulation {
namespace {

using stage_server::WorkResult;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t both[2] = {a, b};
  return XXH3_64bits(both, sizeof(both));
}

std::uint64_t Hash(const EncodedTensor& tensor) {
  std::uint64_t h = XXH3_64bits(tensor.payload.data(), tensor.payload.size());
  return Mix(h, static_cast<std::uint64_t>(tensor.scale_exponent));
}

// A small positive double made of some bits of a hash: exact sums, whatever their order.
double Number(std::uint64_t hash) { return static_cast<double>(hash >> 44) + 1; }

std::uint64_t Hash(const EncodedTensors& tensors) {
  std::uint64_t h = 0;
  for (const EncodedTensor& tensor : tensors) h = Mix(h, Hash(tensor));
  return h;
}

}  // namespace

EncodedTensors FakeComputer::Make(const v1::BoundarySpec& boundary, bool gradients, std::int64_t samples,
                                  std::uint64_t hash) const {
  EncodedTensors tensors;
  for (const v1::WireTensor& spec : boundary.wire()) {
    if (spec.activation_codec() == v1::CODEC_RAW && gradients) continue;
    const auto codec = static_cast<WireCodec>(gradients ? spec.gradient_codec() : spec.activation_codec());
    const WireDtype dtype = PayloadDtypeOf(codec).value_or(static_cast<WireDtype>(spec.dtype()));
    tensors.push_back(MakeOne(spec, codec, dtype, samples, Mix(hash, tensors.size())));
  }
  return tensors;
}

EncodedTensor FakeComputer::MakeOne(const v1::WireTensor& spec, WireCodec codec, WireDtype dtype, std::int64_t samples,
                                    std::uint64_t hash) {
  EncodedTensor tensor;
  tensor.codec = codec;
  tensor.dtype = dtype;
  tensor.dims = {samples};
  std::size_t values = static_cast<std::size_t>(samples);
  for (std::int64_t d : spec.shape()) {
    tensor.dims.push_back(d);
    values *= static_cast<std::size_t>(d);
  }
  std::string bytes(values * SizeOf(tensor.dtype), '\0');
  std::uint64_t state = hash;
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::size_t n = std::min<std::size_t>(8, bytes.size() - i);
    std::memcpy(bytes.data() + i, &state, n);
  }
  tensor.scale_exponent = codec == WireCodec::kFp16 ? static_cast<int>(hash % 20) - 10 : 0;
  tensor.payload = SharedBytes::CopyOf(bytes);
  return tensor;
}

WorkResult FakeComputer::Run(const stage_server::Work& work) {
  WorkResult result;
  result.seconds = 0.001;
  if (const auto* load = std::get_if<stage_server::Load>(&work)) {
    spec_ = load->spec;
    weights_ = Mix(std::get<std::uint64_t>(load->weights), 17);
    gradient_ = 0;
    graphs_.clear();
    next_forward_ = next_backward_ = 0;
    for (const v1::LayerSpec& layer : spec_.layers()) {
      weights_ = Mix(weights_, layer.index());
      result.parameters.push_back({layer.name() + ".weight", layer.parameters()});
    }
  } else if (const auto* forward = std::get_if<stage_server::Forward>(&work)) {
    Forward(*forward, &result);
  } else if (const auto* backward = std::get_if<stage_server::Backward>(&work)) {
    Backward(*backward, &result);
  } else if (std::holds_alternative<stage_server::Finish>(work)) {
    if (!graphs_.empty()) violations_.push_back("finish with live graphs");
    for (int i = 0; i < spec_.layers_size(); ++i) result.squared_norms.push_back(Number(Mix(gradient_, i)));
  } else if (const auto* apply = std::get_if<stage_server::Apply>(&work)) {
    std::uint64_t scale = 0;
    std::memcpy(&scale, &apply->gradient_scale, sizeof(apply->gradient_scale));
    weights_ = Mix(Mix(weights_, gradient_), Mix(scale, static_cast<std::uint64_t>(apply->learning_rate * 1e9)));
    gradient_ = 0;
    next_forward_ = next_backward_ = 0;
    ++applied_;
  } else if (std::holds_alternative<stage_server::Drop>(work)) {
    gradient_ = 0;
    graphs_.clear();
    next_forward_ = next_backward_ = 0;
  } else if (const auto* evaluate = std::get_if<stage_server::EvaluateForward>(&work)) {
    const std::uint64_t h = Mix(weights_, Hash(evaluate->input));
    if (spec_.stage() + 1 < spec_.stages()) {
      const v1::BoundarySpec& b = spec_.boundaries(spec_.boundaries_size() - 1);
      result.outputs = Make(b, /*gradients=*/false, evaluate->input[0].dims[0], h);
    } else {
      result.loss_sum = Number(Mix(h, Hash(*evaluate->target)));
      result.weight = static_cast<double>(evaluate->input[0].dims[0]);
      result.metric_sums = {1};
    }
  }
  return result;
}

void FakeComputer::Forward(const stage_server::Forward& work, WorkResult* result) {
  if (static_cast<int>(work.micro_batch) != next_forward_) {
    violations_.push_back(absl::StrFormat("forward of %d, not of %d", work.micro_batch, next_forward_));
  }
  ++next_forward_;
  std::uint64_t h = Mix(Mix(weights_, Hash(work.input)), work.micro_batch);
  const std::int64_t samples = work.input[0].dims[0];
  if (spec_.stage() + 1 < spec_.stages()) {
    const v1::BoundarySpec& b = spec_.boundaries(spec_.boundaries_size() - 1);
    result->outputs = Make(b, /*gradients=*/false, samples, h);
  } else {
    h = Mix(h, Hash(*work.target));
    result->loss_sum = Number(h);
    result->weight = static_cast<double>(samples);
    result->metric_sums = {1};
  }
  graphs_.push_back({work.micro_batch, samples, h});
  most_live_graphs_ = std::max(most_live_graphs_, live_graphs());
}

void FakeComputer::Backward(const stage_server::Backward& work, WorkResult* result) {
  if (static_cast<int>(work.micro_batch) != next_backward_) {
    violations_.push_back(absl::StrFormat("backward of %d, not of %d", work.micro_batch, next_backward_));
  }
  ++next_backward_;
  const auto graph = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const Graph& g) { return g.micro_batch == work.micro_batch; });
  if (graph == graphs_.end()) {
    violations_.push_back(absl::StrFormat("backward of %d without its forward", work.micro_batch));
    result->status = absl::InternalError("no graph");
    return;
  }
  std::uint64_t h = graph->hash;
  if (!work.gradients.empty()) h = Mix(h, Hash(work.gradients));
  gradient_ = Mix(gradient_, h);  // the order counts
  if (spec_.stage() > 0) {
    result->outputs = Make(spec_.boundaries(0), /*gradients=*/true, graph->samples, h);
  }
  if (poison_) {
    poison_ = false;
    result->non_finite.push_back({"gradient", 1});
  }
  graphs_.erase(graph);
}

}  // namespace resbm::simulation
