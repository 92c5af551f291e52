#include "coordinator/run/run_driver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "coordinator/run/state_id.h"
#include "proto/base/status.h"
#include "proto/wire/fence.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::coordinator {
namespace {

// One program per mode and number of micro-batches.
std::uint32_t ProgramId(bool train, std::size_t micro_batches) {
  return static_cast<std::uint32_t>(2 * micro_batches + (train ? 0 : 1));
}

void AddMicroBatches(const std::vector<std::int64_t>& sizes, google::protobuf::RepeatedPtrField<v1::MicroBatch>* out) {
  for (std::int64_t n : sizes) out->Add()->set_samples(n);
}

}  // namespace

std::int64_t StepShape::samples() const {
  return std::accumulate(micro_batches.begin(), micro_batches.end(), std::int64_t{0});
}

double StepReport::waiting_share() const {
  double waiting = 0, total = 0;
  for (const v1::Computed& c : computed) {
    waiting += c.times().waiting_up_seconds() + c.times().waiting_down_seconds();
    total += c.times().total_seconds();
  }
  return total > 0 ? waiting / total : 0;
}

RunDriver::RunDriver(RunPlan plan, const Clock* clock, Environment* environment)
    : plan_(std::move(plan)), clock_(clock), environment_(environment), scaler_(plan_.scale_loss) {
  stages_.resize(plan_.stages.size());
  attached_.resize(plan_.stages.size());
  ready_.resize(plan_.stages.size());
}

std::string RunDriver::Name(int stage) const { return absl::StrFormat("stage %d", stage); }

void RunDriver::Send(int stage, v1::ControlRequest request) {
  *request.mutable_fence() = fence_;
  environment_->SendControl(stage, request);
}

void RunDriver::Broadcast(const v1::ControlRequest& request) {
  for (int s = 0; s < stages(); ++s) Send(s, request);
}

void RunDriver::Fail(const absl::Status& status) {
  if (finished()) return;
  phase_ = Phase::kFailed;
  result_ = status;
}

bool RunDriver::AllAnswered() const {
  return std::all_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.answered; });
}

void RunDriver::Start() {
  const absl::Duration now = clock_->Now();
  for (Stage& s : stages_) s.heard = now;
  fence_.set_epoch(plan_.coordinator_epoch);
  fence_.set_generation(1);
  phase_ = Phase::kAttaching;
  ExpectAnswers(plan_.timeouts.attach);
  for (int s = 0; s < stages(); ++s) {
    v1::ControlRequest request;
    v1::Attach& attach = *request.mutable_attach();
    attach.set_min_protocol_version(wire::kProtocolVersion);
    attach.set_max_protocol_version(wire::kProtocolVersion);
    attach.set_job_id(plan_.job_id);
    attach.set_stage(s);
    attach.set_stages(stages());
    attach.set_lease_seconds(absl::ToDoubleSeconds(plan_.timeouts.lease));
    Send(s, std::move(request));
  }
}

void RunDriver::OnEvent(int stage, const v1::ControlEvent& event) {
  if (finished()) return;
  if (event.kind_case() == v1::ControlEvent::kRefused) {
    const v1::Refused& r = event.refused();
    std::string holder;
    if (!r.holder_job_id().empty()) {
      holder = absl::StrFormat(" (held by job \"%s\", fence %s)", r.holder_job_id(), wire::FenceText(r.holder_fence()));
    }
    Fail(absl::FailedPreconditionError(absl::StrFormat("%s refused this run: %s%s", Name(stage), r.reason(), holder)));
    return;
  }
  if (!wire::SameFence(event.fence(), fence_)) return;  // of an older generation
  Stage& s = stages_[stage];
  s.heard = clock_->Now();
  switch (event.kind_case()) {
    case v1::ControlEvent::kAttached: return OnAttached(stage, event.attached());
    case v1::ControlEvent::kReady: return OnReady(stage, event.ready());
    case v1::ControlEvent::kComputed: return OnComputed(stage, event.computed());
    case v1::ControlEvent::kCommitted: return OnCommitted(stage, event.committed());
    case v1::ControlEvent::kEvaluated: return OnEvaluated(stage, event.evaluated());
    case v1::ControlEvent::kFailed: return OnFailed(stage, event.failed());
    case v1::ControlEvent::kProgress: {
      const v1::Progress& p = event.progress();
      if (p.has_waiting_for()) {
        s.waiting_for = p.waiting_for();
      } else {
        s.waiting_for.reset();
      }
      const std::uint64_t actions = std::uint64_t{p.forwards()} + p.backwards();
      // A large tensor on a slow link may take longer than a stall: its bytes are a sign of life, too.
      if (actions != s.actions || p.moved_bytes() > s.moved_bytes) {
        s.actions = actions;
        s.moved_bytes = p.moved_bytes();
        progressed_ = clock_->Now();
      }
      environment_->OnProgress(stage, p);
      return;
    }
    default: return;
  }
}

void RunDriver::OnAttached(int stage, const v1::Attached& attached) {
  if (phase_ != Phase::kAttaching || stages_[stage].answered) return;
  if (attached.protocol_version() != wire::kProtocolVersion) {
    Fail(absl::FailedPreconditionError(
        absl::StrFormat("%s speaks protocol version %d, this coordinator version %d; use the same release on both",
                        Name(stage), attached.protocol_version(), wire::kProtocolVersion)));
    return;
  }
  attached_[stage] = attached;
  stages_[stage].answered = true;
  if (AllAnswered()) LoadStages();
}

void RunDriver::LoadStages() {
  phase_ = Phase::kLoading;
  state_id_ = InitialStateId(plan_.origin);
  ExpectAnswers(plan_.timeouts.load);
  for (int s = 0; s < stages(); ++s) {
    v1::ControlRequest request;
    v1::Resume& resume = *request.mutable_resume();
    *resume.mutable_stage() = plan_.stages[s];
    resume.set_state_id(state_id_);
    resume.set_step(0);
    if (plan_.restore.empty()) {
      resume.mutable_init()->set_seed(plan_.seed);
    } else {
      *resume.mutable_restore() = plan_.restore[s];
    }
    Send(s, std::move(request));
    if (!plan_.restore.empty()) environment_->UploadWeights(s, fence_);
  }
}

void RunDriver::OnReady(int stage, const v1::Ready& ready) {
  if (phase_ != Phase::kLoading || stages_[stage].answered) return;
  if (ready.state_id() != state_id_) {
    Fail(absl::InternalError(absl::StrFormat("%s is ready with state %016x, not with %016x as it was told", Name(stage),
                                             ready.state_id(), state_id_)));
    return;
  }
  ready_[stage] = ready;
  stages_[stage].answered = true;
  if (!AllAnswered()) return;
  if (plan_.check_ready) {
    if (absl::Status status = plan_.check_ready(ready_); !status.ok()) return Fail(status);
  }
  environment_->OpenFeed(fence_);
  NextTask();
}

void RunDriver::DefinePrograms(bool train, std::uint32_t micro_batches) {
  if (!defined_.insert({train, micro_batches}).second) return;
  const auto programs = train ? plan_.train_programs(micro_batches) : plan_.evaluation_programs(micro_batches);
  for (int s = 0; s < stages(); ++s) {
    v1::ControlRequest request;
    *request.mutable_define_program() = programs[s];
    request.mutable_define_program()->set_program_id(ProgramId(train, micro_batches));
    Send(s, std::move(request));
  }
}

bool RunDriver::EvaluationFollows(std::int64_t step) const {
  if (plan_.evaluation_micro_batches.empty() || evaluated_after_ >= step) return false;
  if (step == 0) return plan_.total_steps == 0;
  if (step >= plan_.total_steps) return true;
  return plan_.step_shape(step + 1).epoch != plan_.step_shape(step).epoch;
}

v1::Begin RunDriver::MakeBegin(std::int64_t step, std::uint64_t base_state_id) {
  const StepShape shape = plan_.step_shape(step);
  v1::Begin begin;
  *begin.mutable_attempt()->mutable_fence() = fence_;
  begin.mutable_attempt()->set_step(step);
  begin.set_epoch(shape.epoch);
  begin.set_base_state_id(base_state_id);
  begin.set_program_id(ProgramId(true, shape.micro_batches.size()));
  AddMicroBatches(shape.micro_batches, begin.mutable_micro_batches());
  auto index = shape.sample_indices.begin();
  for (v1::MicroBatch& m : *begin.mutable_micro_batches()) {
    for (std::int64_t i = 0; i < m.samples() && index != shape.sample_indices.end(); ++i) {
      m.add_sample_indices(*index++);
    }
  }
  begin.set_total_weight(shape.total_weight());
  if (plan_.scale_loss) begin.set_loss_scale(scaler_.scale());
  begin.set_trace(plan_.trace_steps < 0 || step <= plan_.trace_steps);
  begin.set_stall_seconds(absl::ToDoubleSeconds(StallLimit()));
  if (step < plan_.total_steps && !EvaluationFollows(step)) {
    AddMicroBatches(plan_.step_shape(step + 1).micro_batches, begin.mutable_prefetch());
  }
  return begin;
}

void RunDriver::FeedThrough(std::int64_t step) {
  while (fed_ < step) {
    ++fed_;
    environment_->FeedStep(fed_, plan_.step_shape(fed_));
  }
}

void RunDriver::NextTask() {
  const absl::Duration now = clock_->Now();
  progressed_ = now;
  task_began_ = now;
  if (interrupted_) {
    phase_ = Phase::kDone;
    return;
  }
  if ((plan_.total_steps == 0 && evaluation_ == 0) || (committed_ > 0 && EvaluationFollows(committed_))) {
    if (!plan_.evaluation_micro_batches.empty()) return StartEvaluation();
  }
  if (committed_ >= plan_.total_steps) {
    phase_ = Phase::kDone;
    return;
  }
  phase_ = Phase::kStepping;
  answers_due_ = plan_.timeouts.step == absl::ZeroDuration() ? absl::InfiniteDuration() : now + plan_.timeouts.step;
  step_began_ = now;
  step_ = committed_ + 1;
  DefinePrograms(true, static_cast<std::uint32_t>(plan_.step_shape(step_).micro_batches.size()));
  v1::ControlRequest request;
  *request.mutable_begin() = MakeBegin(step_, state_id_);
  const bool prefetch = request.begin().prefetch_size() > 0;
  Broadcast(request);
  for (Stage& s : stages_) s.computed.reset();
  FeedThrough(step_ + (prefetch ? 1 : 0));
}

void RunDriver::OnComputed(int stage, const v1::Computed& computed) {
  if (phase_ != Phase::kStepping || computed.attempt().step() != static_cast<std::uint64_t>(step_)) return;
  if (stages_[stage].computed.has_value()) return;
  if (computed.base_state_id() != state_id_) {
    Fail(absl::InternalError(absl::StrFormat("%s computed step %d from state %016x, the run is at %016x", Name(stage),
                                             step_, computed.base_state_id(), state_id_)));
    return;
  }
  stages_[stage].computed = computed;
  stages_[stage].waiting_for.reset();
  progressed_ = clock_->Now();
  DecideStep();
}

// Also called when the last Committed of the step before arrives: a decision needs both.
void RunDriver::DecideStep() {
  if (decided_ == step_ || committed_ != step_ - 1) return;
  for (const Stage& s : stages_) {
    if (!s.computed.has_value()) return;
  }
  report_ = StepReport();
  report_.step = step_;
  report_.shape = plan_.step_shape(step_);
  report_.fence = fence_;
  for (Stage& s : stages_) {
    report_.computed.push_back(*std::move(s.computed));
    s.computed.reset();
  }
  const absl::Status counted = CheckWeight(report_.computed, report_.shape.total_weight());
  if (!counted.ok()) return Fail(Annotate(counted, absl::StrFormat("step %d", step_)));
  report_.decision = Decide(report_.computed, report_.shape.total_weight(), plan_.clip_norm, scaler_.scale());
  scaler_.OnStep(report_.decision.decision == v1::Commit::SKIP);
  report_.learning_rate = plan_.learning_rate(step_);

  v1::ControlRequest request;
  v1::Commit& commit = *request.mutable_commit();
  *commit.mutable_attempt()->mutable_fence() = fence_;
  commit.mutable_attempt()->set_step(step_);
  commit.set_decision(report_.decision.decision);
  commit.set_gradient_scale(report_.decision.gradient_scale);
  commit.set_learning_rate(report_.learning_rate);
  commit.set_base_state_id(state_id_);
  state_id_ = NextStateId(state_id_, commit.attempt(), commit.decision());
  commit.set_new_state_id(state_id_);
  decided_ = step_;
  const bool goes_on = step_ < plan_.total_steps && !EvaluationFollows(step_) && !interrupted_;
  if (goes_on) {
    DefinePrograms(true, static_cast<std::uint32_t>(plan_.step_shape(step_ + 1).micro_batches.size()));
    *commit.mutable_next() = MakeBegin(step_ + 1, state_id_);
  }
  Broadcast(request);
  environment_->ReleaseStep(decided_);
  if (plan_.timeouts.step != absl::ZeroDuration()) answers_due_ = clock_->Now() + plan_.timeouts.step;
  if (goes_on) {
    ++step_;
    for (Stage& s : stages_) s.actions = 0;
    FeedThrough(step_ + (commit.next().prefetch_size() > 0 ? 1 : 0));
  }
}

void RunDriver::OnCommitted(int stage, const v1::Committed& committed) {
  if (phase_ != Phase::kStepping || committed.step() != static_cast<std::uint64_t>(decided_)) return;
  if (stages_[stage].committed >= decided_) return;
  if (committed.state_id() != state_id_) {
    Fail(absl::InternalError(absl::StrFormat("%s committed step %d to state %016x, not to %016x", Name(stage),
                                             decided_, committed.state_id(), state_id_)));
    return;
  }
  stages_[stage].committed = decided_;
  progressed_ = clock_->Now();
  for (const Stage& s : stages_) {
    if (s.committed < decided_) return;
  }
  committed_ = decided_;
  report_.ended = clock_->Now();
  report_.duration = report_.ended - step_began_;
  step_began_ = report_.ended;
  durations_.push_back(report_.duration);
  environment_->OnStep(report_);
  if (finished()) return;  // OnStep may have reported an error
  if (step_ == committed_) {
    NextTask();
  } else {
    DecideStep();
  }
}

void RunDriver::StartEvaluation() {
  phase_ = Phase::kEvaluating;
  ExpectAnswers(absl::ZeroDuration());
  ++evaluation_;
  const auto count = static_cast<std::uint32_t>(plan_.evaluation_micro_batches.size());
  DefinePrograms(false, count);
  v1::ControlRequest request;
  v1::Evaluate& evaluate = *request.mutable_evaluate();
  evaluate.set_evaluation(evaluation_);
  evaluate.set_program_id(ProgramId(false, count));
  AddMicroBatches(plan_.evaluation_micro_batches, evaluate.mutable_micro_batches());
  for (Stage& s : stages_) {
    s.evaluated.reset();
    s.actions = 0;
  }
  Broadcast(request);
  environment_->FeedEvaluation(evaluation_);
}

void RunDriver::OnEvaluated(int stage, const v1::Evaluated& evaluated) {
  if (phase_ != Phase::kEvaluating || evaluated.evaluation() != evaluation_ || stages_[stage].answered) return;
  stages_[stage].evaluated = evaluated;
  stages_[stage].answered = true;
  progressed_ = clock_->Now();
  if (!AllAnswered()) return;
  environment_->ReleaseEvaluation(evaluation_);
  EvaluationReport report;
  report.after_step = committed_;
  report.duration = clock_->Now() - task_began_;
  for (Stage& s : stages_) report.evaluated.push_back(*std::move(s.evaluated));
  const v1::Evaluated& last = report.evaluated.back();
  report.samples = static_cast<std::int64_t>(std::llround(last.weight()));
  report.loss = last.loss_sum() / last.weight();
  report.top1 = last.metric_sums_size() > 0 ? last.metric_sums(0) / last.weight() : 0;
  evaluated_after_ = committed_;
  environment_->OnEvaluation(report);
  if (!finished()) NextTask();
}

void RunDriver::OnFailed(int stage, const v1::Failed& failed) {
  std::string where = failed.phase();
  if (failed.has_attempt() && failed.attempt().step() > 0) {
    where += absl::StrFormat(", step %d, micro-batch %d", failed.attempt().step(), failed.micro_batch());
  }
  std::string blame;
  if (failed.blame() == v1::UP) {
    blame = stage == 0 ? " (over the link from the coordinator)" : absl::StrFormat(" (over the link from stage %d)", stage - 1);
  } else if (failed.blame() == v1::DOWN) {
    blame = stage + 1 == stages() ? " (over the link to the coordinator)" : absl::StrFormat(" (over the link to stage %d)", stage + 1);
  }
  Fail(absl::Status(static_cast<absl::StatusCode>(failed.code()),
                    absl::StrFormat("%s failed (%s)%s: %s", Name(stage), where, blame, failed.text())));
}

void RunDriver::OnLost(int stage, const absl::Status& status) {
  if (finished()) return;
  const char* when = phase_ == Phase::kAttaching ? "cannot be reached" : "was lost";
  Fail(absl::Status(status.code(), absl::StrFormat("%s %s: %s%s", Name(stage), when, status.message(), StandstillNote())));
}

void RunDriver::OnError(const absl::Status& status) { Fail(status); }

void RunDriver::Interrupt() {
  if (finished()) return;
  interrupted_ = true;
  if (phase_ == Phase::kAttaching || phase_ == Phase::kLoading) phase_ = Phase::kDone;
  // A stage hands out its weights only when it is READY. Without a step there are none worth waiting for.
  if (phase_ == Phase::kEvaluating && committed_ == 0) phase_ = Phase::kDone;
}

}  // namespace resbm::coordinator
