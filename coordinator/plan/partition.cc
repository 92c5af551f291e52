#include "coordinator/plan/partition.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/data/normalization.h"
#include "coordinator/job/nearest_name.h"
#include "coordinator/plan/partition_balance.h"
#include "proto/base/encoded_tensor.h"

namespace resbm::coordinator {
namespace {

// The payload of that many values. What no number holds counts as the largest.
std::uint64_t BytesOf(v1::Codec codec, std::uint64_t values) {
  const auto wire = static_cast<WireCodec>(codec);
  const WireDtype dtype = PayloadDtypeOf(wire).value_or(WireDtype::kFloat32);
  return PayloadBytesOf(wire, dtype, values).value_or(~std::uint64_t{0});
}

// Between boundaries a and b (-1 and their number: the ends of the model), both cut.
StageRange RangeBetween(const ModelPlan& model, int a, int b) {
  const int count = static_cast<int>(model.boundaries.size());
  const int first = a < 0 ? 0 : static_cast<int>(model.boundaries[a].after_layer()) + 1;
  const int last =
      b < count ? static_cast<int>(model.boundaries[b].after_layer()) : static_cast<int>(model.layers.size()) - 1;
  return {first, last};
}

// Forward FLOPs of every possible stage, each in constant time.
class FlopsTable {
 public:
  explicit FlopsTable(const ModelPlan& model) : model_(model) {
    std::uint64_t sum = 0;
    std::size_t layer = 0;
    for (const v1::BoundarySpec& b : model.boundaries) {
      for (; layer <= b.after_layer(); ++layer) sum += model.layers[layer].forward_flops();
      until_.push_back(sum);
      sum += b.encoder_flops() + b.decoder_flops();
    }
    for (; layer < model.layers.size(); ++layer) sum += model.layers[layer].forward_flops();
    until_.push_back(sum);
  }

  // As RangeBetween, with the decoder of a and the encoder of b.
  std::uint64_t Between(int a, int b) const {
    const bool at_end = b == static_cast<int>(model_.boundaries.size());
    const std::uint64_t encoder = at_end ? 0 : model_.boundaries[b].encoder_flops();
    const std::uint64_t before = a < 0 ? 0 : until_[a] + model_.boundaries[a].encoder_flops();
    return until_[b] + encoder - before;
  }

 private:
  const ModelPlan& model_;
  // Of all before boundary i, at last of the whole model.
  std::vector<std::uint64_t> until_;
};

PartitionPlan PlanOf(const ModelPlan& model, std::vector<int> cuts) {
  const FlopsTable flops(model);
  PartitionPlan plan;
  plan.cuts = std::move(cuts);
  for (std::size_t s = 0; s <= plan.cuts.size(); ++s) {
    const int a = s == 0 ? -1 : plan.cuts[s - 1];
    const int b = s == plan.cuts.size() ? static_cast<int>(model.boundaries.size()) : plan.cuts[s];
    plan.stages.push_back(RangeBetween(model, a, b));
    plan.stage_flops.push_back(flops.Between(a, b));
  }
  return plan;
}

bool IsHostAndPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 && absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 1 &&
         port <= 65535;
}

void CheckAddresses(const v1::Partition& partition, FieldErrors& errors) {
  int given = 0;
  for (int s = 0; s < partition.stage_size(); ++s) {
    const v1::Partition::Stage& stage = partition.stage(s);
    if (!stage.has_address()) continue;
    ++given;
    if (!IsHostAndPort(stage.address())) {
      errors.Add(absl::StrCat("partition.stage[", s, "].address"), "\"", stage.address(),
                 "\" is not host:port, such as host-a:50051");
    }
  }
  if (given != 0 && given != partition.stage_size()) {
    errors.Add("partition.stage", given, " of ", partition.stage_size(), " stages have an address; give all or none");
  }
}

std::optional<std::vector<int>> CutsByHand(const v1::Partition& partition, const ModelPlan& model,
                                           FieldErrors& errors) {
  std::vector<std::string> names;
  for (const v1::BoundarySpec& b : model.boundaries) names.push_back(b.cut_point());
  const std::size_t before = errors.errors().size();
  std::vector<int> cuts;
  for (int s = 0; s < partition.stage_size(); ++s) {
    const std::string path = absl::StrCat("partition.stage[", s, "].cut_after");
    const std::string& after = partition.stage(s).cut_after();
    if (s + 1 == partition.stage_size()) {
      if (!after.empty()) errors.Add(path, "the last stage goes to the end of the model; leave it out");
      continue;
    }
    if (after.empty()) {
      errors.Add(path, "says no cut point after which the stage ends; ", SuggestName(after, names));
      continue;
    }
    int cut = 0;
    while (cut < static_cast<int>(names.size()) && names[cut] != after) ++cut;
    if (cut == static_cast<int>(names.size())) {
      errors.Add(path, "no cut point \"", after, "\"; ",
                 names.empty() ? "declare it: cut_point { after: ... }" : SuggestName(after, names));
    } else if (!cuts.empty() && cut <= cuts.back()) {
      errors.Add(path, "\"", after, "\" is not after \"", names[cuts.back()], "\", where the stage before it ends");
    } else {
      cuts.push_back(cut);
    }
  }
  if (errors.errors().size() > before) return std::nullopt;
  return cuts;
}

void SetAdamW(const v1::Optimizer::AdamW& adamw, v1::AdamWOptions* out) {
  out->set_beta1(adamw.beta1());
  out->set_beta2(adamw.beta2());
  out->set_epsilon(adamw.epsilon());
  out->set_weight_decay(adamw.weight_decay());
}

void SetMuon(const v1::Optimizer::Muon& muon, v1::MuonOptions* out) {
  out->set_momentum(muon.momentum());
  out->set_nesterov(muon.nesterov());
  out->set_weight_decay(muon.weight_decay());
  out->set_ns_steps(static_cast<std::uint32_t>(muon.ns_steps()));
  out->set_adjust(muon.adjust() == v1::Optimizer::Muon::ORIGINAL ? v1::MuonOptions::ORIGINAL
                                                                 : v1::MuonOptions::MATCH_RMS_ADAMW);
  SetAdamW(muon.adamw(), out->mutable_adamw());
  out->set_adamw_rate_ratio(muon.adamw().learning_rate() / muon.learning_rate());
}

v1::OptimizerSpec OptimizerOf(const v1::Optimizer& optimizer) {
  v1::OptimizerSpec spec;
  for (const v1::Optimizer::ParameterGroup& group : optimizer.group()) {
    v1::ParameterGroup& out = *spec.add_groups();
    out.set_pattern(group.match());
    out.set_rate_ratio(group.rate_ratio());
    if (group.has_weight_decay()) out.set_weight_decay(group.weight_decay());
  }
  if (optimizer.has_sgd()) {
    spec.mutable_sgd()->set_momentum(optimizer.sgd().momentum());
    spec.mutable_sgd()->set_nesterov(optimizer.sgd().nesterov());
    spec.mutable_sgd()->set_weight_decay(optimizer.sgd().weight_decay());
    spec.mutable_sgd()->set_dampening(optimizer.sgd().dampening());
  } else if (optimizer.has_adamw()) {
    SetAdamW(optimizer.adamw(), spec.mutable_adamw());
  } else if (optimizer.has_muon()) {
    SetMuon(optimizer.muon(), spec.mutable_muon());
  }
  return spec;
}

}  // namespace

std::uint64_t CrossingBytes(const v1::BoundarySpec& boundary) {
  std::uint64_t bytes = 0;
  for (const v1::WireTensor& tensor : boundary.wire()) {
    std::uint64_t values = 1;
    for (const std::int64_t dim : tensor.shape()) values *= dim;
    if (tensor.activation_codec() == v1::CODEC_RAW) {
      bytes += values * SizeOf(static_cast<WireDtype>(tensor.dtype()));
    } else {
      bytes += BytesOf(tensor.activation_codec(), values) + BytesOf(tensor.gradient_codec(), values);
    }
  }
  return bytes;
}

int StageCount(const v1::Job& job, std::optional<int> requested) {
  if (requested) return *requested;
  if (job.partition().stage_size() > 0) return job.partition().stage_size();
  return job.partition().auto_().stages();
}

std::optional<PartitionPlan> PlanPartition(const v1::Job& job, const ModelPlan& model, std::optional<int> requested,
                                           FieldErrors& errors) {
  const v1::Partition& partition = job.partition();
  const bool by_hand = partition.stage_size() > 0;
  const int stages = StageCount(job, requested);
  const std::string path = requested ? "" : by_hand ? "partition.stage" : "partition.auto.stages";
  if (by_hand && partition.has_auto_()) {
    errors.Add("partition", "has both auto and stage; keep one of them");
    return std::nullopt;
  }
  if (stages < 1) {
    errors.Add(path, stages, " stages; at least 1 is needed");
    return std::nullopt;
  }
  const int cut_points = static_cast<int>(model.boundaries.size());
  if (stages - 1 > cut_points) {
    errors.Add(path, stages, " stages need ", stages - 1, stages == 2 ? " cut" : " cuts", ", the job declares ",
               cut_points, cut_points == 1 ? " cut point" : " cut points", "; declare more (cut_point { after: ... })",
               " or use at most ", cut_points + 1, cut_points == 0 ? " stage" : " stages");
    return std::nullopt;
  }
  if (by_hand) {
    const std::size_t before = errors.errors().size();
    CheckAddresses(partition, errors);
    std::optional<std::vector<int>> cuts = CutsByHand(partition, model, errors);
    if (stages != partition.stage_size()) {
      errors.Add("partition.stage", "lists ", partition.stage_size(), " stages, but ", stages,
                 " were asked for; make the numbers equal, or use partition { auto {} }");
    }
    if (errors.errors().size() > before) return std::nullopt;
    return PlanOf(model, *std::move(cuts));
  }
  const FlopsTable flops(model);
  return PlanOf(model, BalancedCuts(
                           cut_points, stages - 1, [&](int a, int b) { return flops.Between(a, b); },
                           [&](int cut) { return CrossingBytes(model.boundaries[cut]); }));
}

absl::StatusOr<PartitionPlan> PlanPartition(const v1::Job& job, const ModelPlan& model, std::optional<int> requested) {
  FieldErrors errors;
  std::optional<PartitionPlan> plan = PlanPartition(job, model, requested, errors);
  if (!plan) return absl::InvalidArgumentError(errors.ToString());
  return *std::move(plan);
}

v1::StageSpec MakeStageSpec(const v1::Job& job, const ModelPlan& model, const PartitionPlan& partition, int stage,
                            absl::Span<const int> windows) {
  const int stages = static_cast<int>(partition.stages.size());
  const StageRange range = partition.stages[stage];
  const int before = stage == 0 ? -1 : partition.cuts[stage - 1];
  v1::StageSpec spec;
  spec.set_stage(stage);
  spec.set_stages(stages);
  for (int i = range.first_layer; i <= range.last_layer; ++i) *spec.add_layers() = model.layers[i];
  const int last = stage + 1 == stages ? static_cast<int>(model.boundaries.size()) - 1 : partition.cuts[stage];
  for (int i = before < 0 ? 0 : before; i <= last; ++i) *spec.add_boundaries() = model.boundaries[i];
  *spec.mutable_optimizer() = OptimizerOf(job.optimizer());
  const bool is_text = job.model().has_transformer();
  spec.set_input(is_text ? v1::StageSpec::TOKENS : v1::StageSpec::IMAGES);
  spec.set_loss(is_text ? v1::StageSpec::TOKEN_CROSS_ENTROPY : v1::StageSpec::CROSS_ENTROPY);
  spec.set_precision(static_cast<v1::StageSpec::Precision>(job.precision()));  // the same numbers
  spec.set_seed(job.seed());
  spec.set_signals(job.run().signals());
  spec.set_threads(job.run().threads_per_stage());
  spec.set_deterministic(job.run().deterministic());
  spec.set_channels_last(job.run().channels_last());
  if (stage == 0) {
    const data::Normalization scale = data::NormalizationOf(job.data());
    spec.mutable_input_mean()->Assign(scale.mean.begin(), scale.mean.end());
    spec.mutable_input_std()->Assign(scale.standard_deviation.begin(), scale.standard_deviation.end());
    *spec.mutable_input_shape() = model.layers.front().input_shape();
  } else {
    *spec.mutable_input_shape() = model.boundaries[before].wire(0).shape();
  }
  for (const int window : windows) spec.add_windows(window);
  return spec;
}

}  // namespace resbm::coordinator
