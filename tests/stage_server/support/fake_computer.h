// A Computer whose weights are one 64-bit hash: what went into them, in which order, decides every bit, and
// a tensor is a hash repeated. It keeps the rules of a real one (a backward needs its forward, nothing
// happens before a Load), and fails where a test tells it to.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_FAKE_COMPUTER_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_FAKE_COMPUTER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <xxhash.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "stage_server/core/work.h"

namespace resbm::stage_server::testing {

// "Load", "Forward 2", ...
inline std::string WorkName(const Work& work) {
  return std::visit(
      [](const auto& w) -> std::string {
        using T = std::decay_t<decltype(w)>;
        if constexpr (std::is_same_v<T, Load>) return "Load";
        if constexpr (std::is_same_v<T, Forward>) return absl::StrCat("Forward ", w.micro_batch);
        if constexpr (std::is_same_v<T, Backward>) return absl::StrCat("Backward ", w.micro_batch);
        if constexpr (std::is_same_v<T, Finish>) return "Finish";
        if constexpr (std::is_same_v<T, Apply>) return "Apply";
        if constexpr (std::is_same_v<T, Drop>) return "Drop";
        if constexpr (std::is_same_v<T, EvaluateForward>) return absl::StrCat("Evaluate ", w.micro_batch);
        if constexpr (std::is_same_v<T, SaveShard>) return "SaveShard";
        if constexpr (std::is_same_v<T, Unload>) return "Unload";
      },
      work);
}

class FakeComputer : public Computer {
 public:
  WorkResult Run(const Work& work) override {
    WorkResult result;
    if (const auto failure = fail_.find(WorkName(work)); failure != fail_.end()) {
      result.status = failure->second;
      fail_.erase(failure);
      if (std::holds_alternative<Load>(work) || std::holds_alternative<Apply>(work)) weights_.reset();
      return result;
    }
    if (!weights_.has_value() && !std::holds_alternative<Load>(work) && !std::holds_alternative<Unload>(work)) {
      result.status = absl::FailedPreconditionError(absl::StrCat(WorkName(work), " before a Load"));
      return result;
    }
    std::visit([&](const auto& w) { Do(w, &result); }, work);
    result.seconds = 0.25;
    result.memory.weights_bytes = 80;
    result.memory.peak_bytes = 1000;
    return result;
  }

  // The next work of that name fails so.
  void FailNext(const std::string& work, absl::Status status) { fail_[work] = std::move(status); }
  // Is added to every result of that work.
  void ReportNonFinite(const std::string& work, NonFiniteValues values) { non_finite_[work] = std::move(values); }

  std::optional<std::uint64_t> weights() const { return weights_; }
  // Of the last Load of a file.
  std::optional<std::uint64_t> seed_of_rest() const { return seed_of_rest_; }
  // Of what it computes, instead of the spec's; 0 = the spec's.
  void set_width(std::int64_t width) { width_ = width; }
  std::size_t live_graphs() const { return graphs_.size(); }
  std::size_t most_live_graphs() const { return most_live_graphs_; }
  std::uint64_t gradients() const { return gradients_; }

  template <typename... Values>
  static std::uint64_t Hash(const Values&... values) {
    const std::uint64_t all[] = {static_cast<std::uint64_t>(values)...};
    return XXH3_64bits(all, sizeof(all));
  }
  static std::uint64_t HashOf(const EncodedTensor& tensor) {
    return XXH3_64bits(tensor.payload.data(), tensor.payload.size());
  }
  static std::uint64_t HashOf(const EncodedTensors& tensors) {
    std::uint64_t value = 0;
    for (const EncodedTensor& tensor : tensors) value = Hash(value, HashOf(tensor));
    return value;
  }

 private:
  struct Graph {
    std::uint64_t value = 0;
    std::int64_t samples = 0;
  };

  void Do(const Load& load, WorkResult* result) {
    spec_ = load.spec;
    if (const auto* seed = std::get_if<std::uint64_t>(&load.weights)) {
      weights_ = Hash(*seed, spec_.stage());
    } else {
      const std::string& shard = *std::get<std::shared_ptr<const std::string>>(load.weights);
      std::uint64_t weights = 0;
      if (shard.size() != sizeof(weights)) {
        result->status = absl::InvalidArgumentError("not a shard");
        weights_.reset();
        return;
      }
      std::memcpy(&weights, shard.data(), sizeof(weights));
      weights_ = weights;
      seed_of_rest_ = load.seed;
      if (load.seed.has_value()) {
        result->unused_tensors = {"other.weight"};
        result->seeded_parameters = {absl::StrCat("fc", spec_.stage(), ".bias")};
      }
    }
    graphs_.clear();
    gradients_ = 0;
    result->parameters = {{absl::StrCat("fc", spec_.stage(), ".weight"), 16}, {absl::StrCat("fc", spec_.stage(), ".bias"), 4}};
  }
  void Do(const Forward& forward, WorkResult* result) {
    const std::uint64_t value = Value(forward.input, forward.target);
    if (!graphs_.insert({forward.micro_batch, Graph{value, forward.input[0].dims[0]}}).second) {
      result->status = absl::InvalidArgumentError(absl::StrCat("micro-batch ", forward.micro_batch, " twice"));
      return;
    }
    most_live_graphs_ = std::max(most_live_graphs_, graphs_.size());
    Output(forward.input, value, result);
    Count(absl::StrCat("Forward ", forward.micro_batch), result);
  }
  void Do(const Backward& backward, WorkResult* result) {
    const auto graph = graphs_.find(backward.micro_batch);
    if (graph == graphs_.end()) {
      result->status = absl::InvalidArgumentError(absl::StrCat("micro-batch ", backward.micro_batch, " was not forwarded"));
      return;
    }
    const std::uint64_t value = Hash(*weights_, graph->second.value, HashOf(backward.gradients));
    const std::int64_t samples = graph->second.samples;
    graphs_.erase(graph);
    gradients_ = Hash(gradients_, value);
    if (spec_.stage() > 0) result->outputs = Tensors(spec_.boundaries(0), /*gradients=*/true, samples, value);
    Count(absl::StrCat("Backward ", backward.micro_batch), result);
  }
  void Do(const Finish&, WorkResult* result) {
    result->squared_norms = {static_cast<double>(gradients_ % 1000), 1.0};
    Count("Finish", result);
  }
  void Do(const Apply& apply, WorkResult*) {
    std::uint32_t scale = 0;
    std::uint64_t rate = 0;
    std::memcpy(&scale, &apply.gradient_scale, sizeof(scale));
    std::memcpy(&rate, &apply.learning_rate, sizeof(rate));
    weights_ = Hash(*weights_, gradients_, scale, rate);
    gradients_ = 0;
  }
  void Do(const Drop&, WorkResult*) {
    graphs_.clear();
    gradients_ = 0;
  }
  void Do(const EvaluateForward& evaluate, WorkResult* result) {
    Output(evaluate.input, Value(evaluate.input, evaluate.target), result);
    Count(absl::StrCat("Evaluate ", evaluate.micro_batch), result);
  }
  void Do(const SaveShard&, WorkResult* result) {
    result->shard = std::make_shared<const std::string>(reinterpret_cast<const char*>(&*weights_), sizeof(*weights_));
  }
  void Do(const Unload&, WorkResult*) {
    weights_.reset();
    graphs_.clear();
    gradients_ = 0;
  }

  std::uint64_t Value(const EncodedTensors& input, const std::optional<EncodedTensor>& target) const {
    return Hash(*weights_, HashOf(input), target ? HashOf(*target) : 0);
  }
  void Output(const EncodedTensors& input, std::uint64_t value, WorkResult* result) {
    const std::int64_t samples = input[0].dims[0];
    if (spec_.stage() + 1 < spec_.stages()) {
      result->outputs = Tensors(spec_.boundaries(spec_.boundaries_size() - 1), /*gradients=*/false, samples, value);
    } else {
      result->loss_sum = static_cast<double>(value % 1000);
      result->weight = static_cast<double>(samples);
      result->metric_sums = {static_cast<double>(value % 2)};
    }
  }
  // Of fp32 and integers, made of the value and the place.
  EncodedTensors Tensors(const v1::BoundarySpec& boundary, bool gradients, std::int64_t samples,
                         std::uint64_t value) const {
    EncodedTensors tensors;
    for (const v1::WireTensor& spec : boundary.wire()) {
      const bool raw = spec.activation_codec() == v1::CODEC_RAW;
      if (raw && gradients) continue;
      EncodedTensor tensor;
      tensor.codec = raw ? WireCodec::kRaw : WireCodec::kFp32;
      tensor.dtype = raw ? static_cast<WireDtype>(spec.dtype()) : WireDtype::kFloat32;
      tensor.dims = {samples};
      tensor.dims.insert(tensor.dims.end(), spec.shape().begin(), spec.shape().end());
      if (width_ > 0) tensor.dims.back() = width_;
      std::uint64_t size = SizeOf(tensor.dtype);
      for (const std::int64_t dim : tensor.dims) size *= static_cast<std::uint64_t>(dim);
      const std::uint64_t word = Hash(value, tensors.size());
      std::string bytes;
      while (bytes.size() < size) bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
      tensor.payload = SharedBytes::CopyOf(bytes.substr(0, size));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }
  void Count(const std::string& work, WorkResult* result) {
    if (const auto found = non_finite_.find(work); found != non_finite_.end()) result->non_finite.push_back(found->second);
  }

  v1::StageSpec spec_;
  std::optional<std::uint64_t> weights_;
  std::optional<std::uint64_t> seed_of_rest_;
  std::map<std::uint32_t, Graph> graphs_;
  std::size_t most_live_graphs_ = 0;
  std::uint64_t gradients_ = 0;
  std::int64_t width_ = 0;
  std::map<std::string, absl::Status> fail_;
  std::map<std::string, NonFiniteValues> non_finite_;
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_FAKE_COMPUTER_H_
