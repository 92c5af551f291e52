#include "stage_server/compute/model_computer.h"

#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "model/profiler_range.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "stage_server/compute/range_name.h"
#include "stage_server/compute/spec_from_proto.h"

namespace resbm::stage_server {
namespace {

void AddNonFinite(const std::vector<model::NonFiniteCount>& counts, WorkResult* result) {
  for (const model::NonFiniteCount& count : counts) result->non_finite.push_back({count.where, count.count});
}

void AddSignals(const std::vector<model::Signal>& signals, WorkResult* result) {
  for (const model::Signal& signal : signals) {
    v1::Signal& added = result->signals.emplace_back();
    added.set_cut_point(signal.cut_point);
    added.set_name(signal.name);
    added.set_value(signal.value);
  }
}

void TakeForward(model::ForwardResult forward, WorkResult* result) {
  result->outputs = std::move(forward.activations);
  result->loss_sum = forward.loss_sum;
  result->weight = forward.weight;
  result->metric_sums = std::move(forward.metric_sums);
  AddNonFinite(forward.non_finite, result);
  AddSignals(forward.signals, result);
}

}  // namespace

ModelComputer::ModelComputer(Options options, Create create)
    : options_(std::move(options)),
      create_(std::move(create)),
      ranges_(absl::StartsWith(options_.device, "cuda") && model::ProfilerRange::Available()) {}

WorkResult ModelComputer::Run(const Work& work) {
  WorkResult result;
  const absl::Duration start = Clock::Real().Now();
  std::optional<model::ProfilerRange> range;
  if (ranges_) range.emplace(RangeName(work).c_str());
  const bool needs_model = !std::holds_alternative<Load>(work) && !std::holds_alternative<Unload>(work);
  if (needs_model && model_ == nullptr) {
    result.status = absl::FailedPreconditionError("nothing is loaded");
    return result;
  }
  // The model reports its errors; what is thrown all the same (an allocation of our own) must not end the
  // process either.
  try {
    result.status = std::visit([&](const auto& w) { return Do(w, &result); }, work);
  } catch (const std::bad_alloc&) {
    result.status = absl::ResourceExhaustedError("out of memory; use more stages, smaller micro-batches or a smaller window");
  } catch (const std::exception& error) {
    result.status = absl::InternalError(absl::StrCat("unexpected exception: ", error.what()));
  }
  if (!result.status.ok()) {
    absl::Status status = std::move(result.status);
    result = WorkResult();
    result.status = std::move(status);
    if (std::holds_alternative<Load>(work) || std::holds_alternative<Apply>(work)) model_.reset();
  }
  ReportMemory(&result);
  if (model_ != nullptr && (std::holds_alternative<Load>(work) || std::holds_alternative<Finish>(work))) {
    model_->ResetPeakMemory();
  }
  result.seconds = absl::ToDoubleSeconds(Clock::Real().Now() - start);
  return result;
}

absl::Status ModelComputer::Do(const Load& load, WorkResult* result) {
  model_.reset();
  RESBM_ASSIGN_OR_RETURN(model::StageSpec spec, SpecFromProto(load.spec));
  model::ComputeOptions compute;
  compute.device = options_.device;
  compute.threads = static_cast<int>(load.spec.threads());
  compute.deterministic = load.spec.deterministic();
  compute.channels_last = load.spec.channels_last();
  compute.memory_limit_bytes = options_.memory_limit_bytes;
  RESBM_ASSIGN_OR_RETURN(model_, create_(spec, compute));
  if (const auto* seed = std::get_if<std::uint64_t>(&load.weights)) {
    RESBM_RETURN_IF_ERROR(model_->Initialise(*seed));
  } else {
    RESBM_ASSIGN_OR_RETURN(
        model::RestoreReport report,
        model_->Restore(*std::get<std::shared_ptr<const std::string>>(load.weights), load.seed));
    result->unused_tensors = std::move(report.unused_tensors);
    result->seeded_parameters = std::move(report.seeded_parameters);
  }
  for (const model::ParameterInfo& parameter : model_->parameters()) {
    result->parameters.push_back({parameter.name, parameter.size});
  }
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const Forward& forward, WorkResult* result) {
  RESBM_ASSIGN_OR_RETURN(model::ForwardResult done,
                         model_->Forward(static_cast<int>(forward.micro_batch), forward.input,
                                         forward.target.has_value() ? &*forward.target : nullptr,
                                         model::SampleIds{forward.epoch, forward.sample_indices}));
  TakeForward(std::move(done), result);
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const Backward& backward, WorkResult* result) {
  RESBM_ASSIGN_OR_RETURN(model::BackwardResult done,
                         model_->Backward(static_cast<int>(backward.micro_batch), backward.gradients, backward.loss_scale));
  result->outputs = std::move(done.gradients);
  AddNonFinite(done.non_finite, result);
  AddSignals(done.signals, result);
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const Finish&, WorkResult* result) {
  RESBM_ASSIGN_OR_RETURN(result->squared_norms, model_->SquaredNorms());
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const Apply& apply, WorkResult*) {
  return model_->ApplyStep(apply.gradient_scale, apply.learning_rate);
}

absl::Status ModelComputer::Do(const Drop&, WorkResult*) {
  model_->DropStep();
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const EvaluateForward& evaluate, WorkResult* result) {
  RESBM_ASSIGN_OR_RETURN(model::ForwardResult done,
                         model_->Evaluate(evaluate.input, evaluate.target.has_value() ? &*evaluate.target : nullptr));
  TakeForward(std::move(done), result);
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const SaveShard&, WorkResult* result) {
  RESBM_ASSIGN_OR_RETURN(std::string shard, model_->SaveWeights());
  result->shard = std::make_shared<const std::string>(std::move(shard));
  return absl::OkStatus();
}

absl::Status ModelComputer::Do(const Unload&, WorkResult*) {
  model_.reset();
  return absl::OkStatus();
}

void ModelComputer::ReportMemory(WorkResult* result) {
  if (model_ == nullptr) return;
  const model::MemoryUse use = model_->Memory();
  result->memory = {use.live_bytes, use.peak_bytes, use.weights_bytes, use.gradients_bytes, use.optimizer_bytes};
}

}  // namespace resbm::stage_server
