#include "stage_server/core/runner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"

namespace resbm::stage_server {
namespace {

// Whether `end` brings what the coordinator sends (inputs, targets), which may be prefetched.
bool FromCoordinator(const StageShape& shape, End end) { return end == End::kUp ? shape.is_first() : shape.is_last(); }

}  // namespace

Runner::Runner(const StageShape& shape, Task task, Inbox* inbox, StageLinks* links, const Clock& clock)
    : shape_(shape), task_(std::move(task)), inbox_(inbox), links_(links), clock_(clock), started_(clock.Now()) {
  if (task_.trace) spans_ = std::make_unique<SpanLog>();
}

absl::StatusOr<std::unique_ptr<Runner>> Runner::Create(const StageShape& shape, Task task, Inbox* inbox,
                                                       StageLinks* links, const Clock& clock) {
  const Program& program = task.program;
  if (program.evaluation != task.id.evaluation) {
    return absl::InvalidArgumentError(program.evaluation ? "a step with a program for evaluation"
                                                         : "an evaluation with a program for training");
  }
  if (task.samples.size() != program.micro_batches) {
    return absl::InvalidArgumentError(
        absl::StrCat(task.samples.size(), " micro-batches for a program of ", program.micro_batches));
  }
  const std::uint32_t window = shape.window_of(shape.stage);
  if (window > 0 && program.most_in_flight > window) {
    return absl::InvalidArgumentError(absl::StrCat("the program puts ", program.most_in_flight,
                                                   " micro-batches in flight, the window of stage ", shape.stage,
                                                   " is ", window));
  }
  const bool was_announced = !task.id.evaluation && task.announced.step == task.id.number && !task.announced.samples.empty();
  if (was_announced && (shape.is_first() || shape.is_last()) && task.announced.samples != task.samples) {
    return absl::InvalidArgumentError(absl::StrCat("micro-batches of [", absl::StrJoin(task.samples, ", "),
                                                   "] samples; prefetch announced [",
                                                   absl::StrJoin(task.announced.samples, ", "), "]"));
  }
  auto runner = std::unique_ptr<Runner>(new Runner(shape, std::move(task), inbox, links, clock));
  const Task& t = runner->task_;
  for (std::uint32_t mb = 0; mb < t.samples.size(); ++mb) {
    const auto made = [&](auto make, End end) { return make(shape, end, t.id, mb, t.samples[mb], t.max_tensor_bytes); };
    RESBM_RETURN_IF_ERROR(Append(made(ExpectedTensors, End::kUp), runner->expected_up_));
    if (shape.is_last() || !t.id.evaluation) {
      RESBM_RETURN_IF_ERROR(Append(made(ExpectedTensors, End::kDown), runner->expected_down_));
    }
    if (!shape.is_first()) RESBM_RETURN_IF_ERROR(Append(made(OutgoingTensors, End::kUp), runner->outgoing_up_.emplace_back()));
    if (!shape.is_last()) {
      RESBM_RETURN_IF_ERROR(Append(made(OutgoingTensors, End::kDown), runner->outgoing_down_.emplace_back()));
    }
  }
  for (End end : kEnds) {
    if (was_announced && FromCoordinator(shape, end)) {
      (end == End::kUp ? runner->expected_up_ : runner->expected_down_).clear();
    }
    if (!FromCoordinator(shape, end)) continue;
    for (std::uint32_t mb = 0; mb < t.next.samples.size(); ++mb) {
      RESBM_RETURN_IF_ERROR(Append(
          ExpectedTensors(shape, end, WorkId{false, t.next.step}, mb, t.next.samples[mb], t.max_tensor_bytes),
          end == End::kUp ? runner->expected_up_ : runner->expected_down_));
    }
  }
  return runner;
}

absl::Status Runner::Append(absl::StatusOr<std::vector<v1::TensorHeader>> headers, std::vector<v1::TensorHeader>& to) {
  RESBM_RETURN_IF_ERROR(headers.status());
  std::move(headers->begin(), headers->end(), std::back_inserter(to));
  return absl::OkStatus();
}

void Runner::SetInboxLimits() {
  const auto micro_batches = static_cast<std::uint32_t>(task_.samples.size());
  const auto prefetched = static_cast<std::uint32_t>(task_.next.samples.size());
  for (End end : kEnds) {
    const std::uint32_t count = ExpectedCount(shape_, end);
    if (task_.id.evaluation) {
      // What was prefetched for the next step lies in the inbox until that begins.
      const auto lying = FromCoordinator(shape_, end) ? static_cast<std::uint32_t>(task_.announced.samples.size()) : 0;
      links_->SetInboxLimit(end, task_.program.window * count + lying, /*hard=*/false);
    } else if (FromCoordinator(shape_, end)) {
      links_->SetInboxLimit(end, micro_batches + prefetched, /*hard=*/true);
    } else {
      // Nobody has more micro-batches under way than the upstream stage has in flight.
      links_->SetInboxLimit(end, count * shape_.window_of(end == End::kUp ? shape_.stage - 1 : shape_.stage), /*hard=*/true);
    }
  }
}

void Runner::Open() {
  for (End end : kEnds) counters_at_start_[static_cast<int>(end)] = links_->Counters(end);
  inbox_->ResetPeak();
  SetInboxLimits();
  for (End end : kEnds) links_->RecordTransfers(end, traced());
  for (const v1::TensorHeader& header : expected_up_) links_->Expect(End::kUp, header);
  for (const v1::TensorHeader& header : expected_down_) links_->Expect(End::kDown, header);
  expected_up_.clear();
  expected_down_.clear();
}

std::uint32_t Runner::micro_batch() const {
  const std::vector<ProgramAction>& actions = task_.program.actions;
  return actions[std::min(cursor_, actions.size() - 1)].micro_batch;
}

std::optional<End> Runner::Missing() const {
  const ProgramAction& action = task_.program.actions[cursor_];
  const auto has = [&](End end) {
    return inbox_->Has(end, task_.id, action.micro_batch, ExpectedCount(shape_, end));
  };
  if (action.backward) {
    if (!shape_.is_last() && !has(End::kDown)) return End::kDown;
    return std::nullopt;
  }
  if (task_.id.evaluation && !links_->AllSent(End::kDown)) return End::kDown;
  if (!has(End::kUp)) return End::kUp;
  if (shape_.is_last() && !has(End::kDown)) return End::kDown;
  return std::nullopt;
}

void Runner::StopWaiting() {
  if (!waiting_.has_value()) return;
  // The rest of the sending after the last action is no time lost to computing.
  if (stage_ != Stage::kComputed) {
    const absl::Duration now = clock_.Now();
    waited_[static_cast<int>(*waiting_)] += now - waiting_since_;
    if (traced()) spans_->AddWait(*waiting_, micro_batch(), waiting_since_, now);
  }
  waiting_.reset();
}

void Runner::Wait(End end) {
  if (waiting_ == end) return;
  StopWaiting();
  waiting_ = end;
  waiting_since_ = clock_.Now();
}

std::optional<Work> Runner::Next() {
  if (working_) return std::nullopt;
  if (stage_ == Stage::kComputed) {
    if (finished()) {
      StopWaiting();
    } else {
      Wait(links_->AllSent(End::kUp) ? End::kDown : End::kUp);
    }
    return std::nullopt;
  }
  if (stage_ == Stage::kFinish) {
    working_ = true;
    return Work(Finish{task_.id.number});
  }
  if (const std::optional<End> missing = Missing(); missing.has_value()) {
    Wait(*missing);
    return std::nullopt;
  }
  StopWaiting();
  working_ = true;
  const ProgramAction& action = task_.program.actions[cursor_];
  const std::uint32_t mb = action.micro_batch;
  const auto take = [&](End end) {
    EncodedTensors tensors = inbox_->Take(end, task_.id, mb);
    for (std::size_t i = 0; i < tensors.size(); ++i) links_->Consumed(end);
    return tensors;
  };
  if (action.backward) {
    Backward work;
    work.micro_batch = mb;
    work.loss_scale = task_.loss_scale;
    work.step = task_.id.number;
    if (!shape_.is_last()) work.gradients = take(End::kDown);
    return Work(std::move(work));
  }
  EncodedTensors input = take(End::kUp);
  std::optional<EncodedTensor> target;
  if (shape_.is_last()) target = std::move(take(End::kDown).front());
  if (task_.id.evaluation) return Work(EvaluateForward{mb, std::move(input), std::move(target)});
  Forward work{mb, std::move(input), std::move(target), task_.epoch, {}, task_.id.number};
  if (mb < task_.sample_indices.size()) work.sample_indices = task_.sample_indices[mb];
  return Work(std::move(work));
}

absl::Status Runner::OnDone(WorkResult result, const std::vector<ParameterSize>& parameters) {
  working_ = false;
  memory_ = result.memory;
  for (const NonFiniteValues& values : result.non_finite) non_finite_[values.where] += values.count;
  std::move(result.signals.begin(), result.signals.end(), std::back_inserter(signals_));

  if (stage_ == Stage::kFinish) {
    if (result.squared_norms.size() != parameters.size()) {
      return absl::InternalError(
          absl::StrCat(result.squared_norms.size(), " squared norms for ", parameters.size(), " parameters"));
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!std::isfinite(result.squared_norms[i])) ++non_finite_[parameters[i].name];
    }
    squared_norms_ = std::move(result.squared_norms);
    if (traced()) spans_->AddWork(v1::Span::FINISH, 0, result.began, result.seconds);
    stage_ = Stage::kComputed;
    return absl::OkStatus();
  }

  const ProgramAction action = task_.program.actions[cursor_];
  if (traced()) {
    spans_->AddWork(action.backward ? v1::Span::BACKWARD : v1::Span::FORWARD, action.micro_batch, result.began,
                    result.seconds);
  }
  if (action.backward ? !shape_.is_first() : !shape_.is_last()) {
    RESBM_RETURN_IF_ERROR(SendOutputs(action, std::move(result.outputs)));
  }
  if (action.backward) {
    ++backwards_;
    backward_seconds_ += result.seconds;
  } else {
    ++forwards_;
    forward_seconds_ += result.seconds;
    if (shape_.is_last()) {
      loss_sum_ += result.loss_sum;
      weight_ += result.weight;
      if (metric_sums_.size() < result.metric_sums.size()) metric_sums_.resize(result.metric_sums.size());
      for (std::size_t i = 0; i < result.metric_sums.size(); ++i) metric_sums_[i] += result.metric_sums[i];
    }
  }
  peak_retained_bytes_ = std::max(peak_retained_bytes_, RetainedBytes());
  if (++cursor_ == task_.program.actions.size()) {
    total_ = clock_.Now() - started_;
    stage_ = task_.id.evaluation ? Stage::kComputed : Stage::kFinish;
  }
  return absl::OkStatus();
}

absl::Status Runner::SendOutputs(const ProgramAction& action, EncodedTensors outputs) {
  const End end = action.backward ? End::kUp : End::kDown;
  const std::vector<v1::TensorHeader>& headers =
      (action.backward ? outgoing_up_ : outgoing_down_)[action.micro_batch];
  if (outputs.size() != headers.size()) {
    return absl::InternalError(absl::StrCat("micro-batch ", action.micro_batch, ": ", outputs.size(), " ",
                                            v1::TensorKind_Name(headers.front().kind()), " tensors were computed, ",
                                            headers.size(), " cross"));
  }
  for (std::size_t i = 0; i < headers.size(); ++i) RESBM_RETURN_IF_ERROR(CheckOutgoing(headers[i], outputs[i]));
  if (task_.id.evaluation && links_->RetainedBytes(end) > task_.max_retained_bytes) links_->ReleaseAll(end);
  for (std::size_t i = 0; i < headers.size(); ++i) links_->Send(end, headers[i], std::move(outputs[i]));
  return absl::OkStatus();
}

v1::WorkTimes Runner::Times() const {
  v1::WorkTimes times;
  times.set_forward_seconds(forward_seconds_);
  times.set_backward_seconds(backward_seconds_);
  times.set_waiting_up_seconds(absl::ToDoubleSeconds(waited_[static_cast<int>(End::kUp)]));
  times.set_waiting_down_seconds(absl::ToDoubleSeconds(waited_[static_cast<int>(End::kDown)]));
  times.set_total_seconds(absl::ToDoubleSeconds(total_));
  return times;
}

v1::LinkBytes Runner::Bytes() const {
  const auto since = [&](End end) {
    const LinkCounters now = links_->Counters(end);
    const LinkCounters& start = counters_at_start_[static_cast<int>(end)];
    return LinkCounters{now.payload_bytes - start.payload_bytes, now.metadata_bytes - start.metadata_bytes,
                        now.messages - start.messages, now.moved_bytes - start.moved_bytes};
  };
  const LinkCounters up = since(End::kUp);
  const LinkCounters down = since(End::kDown);
  v1::LinkBytes bytes;
  bytes.set_up_payload(up.payload_bytes);
  bytes.set_up_metadata(up.metadata_bytes);
  bytes.set_up_messages(up.messages);
  bytes.set_down_payload(down.payload_bytes);
  bytes.set_down_metadata(down.metadata_bytes);
  bytes.set_down_messages(down.messages);
  return bytes;
}

v1::MemoryUse Runner::Memory() const {
  const std::uint64_t link_buffers = inbox_->peak_bytes() + peak_retained_bytes_;
  v1::MemoryUse use;
  use.set_live_bytes(memory_.live_bytes + inbox_->bytes() + RetainedBytes());
  use.set_peak_bytes(memory_.peak_bytes + link_buffers);
  use.set_weights_bytes(memory_.weights_bytes);
  use.set_optimizer_bytes(memory_.optimizer_bytes);
  use.set_buffers_bytes(memory_.gradients_bytes + link_buffers);
  const std::uint64_t rest = use.weights_bytes() + use.optimizer_bytes() + use.buffers_bytes();
  use.set_activations_bytes(use.peak_bytes() > rest ? use.peak_bytes() - rest : 0);
  return use;
}

v1::Computed Runner::MakeComputed() {
  v1::Computed computed;
  computed.set_loss_sum(loss_sum_);
  computed.set_weight(weight_);
  computed.mutable_metric_sums()->Assign(metric_sums_.begin(), metric_sums_.end());
  computed.mutable_squared_norms()->Assign(squared_norms_.begin(), squared_norms_.end());
  for (const auto& [where, count] : non_finite_) {
    v1::NonFinite* entry = computed.add_non_finite();
    entry->set_where(where);
    entry->set_count(count);
  }
  computed.mutable_signals()->Assign(signals_.begin(), signals_.end());
  if (traced()) {
    for (End end : kEnds) spans_->AddTransfers(end, links_->TakeTransfers(end, task_.id.number));
    computed.mutable_spans()->Assign(spans_->spans().begin(), spans_->spans().end());
  }
  *computed.mutable_times() = Times();
  *computed.mutable_bytes() = Bytes();
  *computed.mutable_memory() = Memory();
  return computed;
}

v1::Evaluated Runner::MakeEvaluated() const {
  v1::Evaluated evaluated;
  evaluated.set_evaluation(task_.id.number);
  evaluated.set_loss_sum(loss_sum_);
  evaluated.set_weight(weight_);
  evaluated.mutable_metric_sums()->Assign(metric_sums_.begin(), metric_sums_.end());
  for (const auto& [where, count] : non_finite_) {
    v1::NonFinite* entry = evaluated.add_non_finite();
    entry->set_where(where);
    entry->set_count(count);
  }
  *evaluated.mutable_times() = Times();
  *evaluated.mutable_bytes() = Bytes();
  *evaluated.mutable_memory() = Memory();
  return evaluated;
}

v1::Progress Runner::MakeProgress() const {
  v1::Progress progress;
  if (!task_.id.evaluation) progress.set_step(task_.id.number);
  progress.set_forwards(forwards_);
  progress.set_backwards(backwards_);
  progress.set_inbox_bytes(inbox_->bytes());
  progress.set_retained_bytes(RetainedBytes());
  progress.set_moved_bytes(links_->Counters(End::kUp).moved_bytes + links_->Counters(End::kDown).moved_bytes);
  if (waiting_.has_value()) {
    v1::WaitingFor* waiting = progress.mutable_waiting_for();
    waiting->set_direction(DirectionOf(*waiting_));
    waiting->set_micro_batch(micro_batch());
    waiting->set_seconds(absl::ToDoubleSeconds(clock_.Now() - waiting_since_));
    waiting->set_link_connected(links_->Connected(*waiting_));
  }
  return progress;
}

}  // namespace resbm::stage_server
