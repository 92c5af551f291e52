// Steps: Begin, the run, Commit; evaluations.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/wire/fence.h"
#include "stage_server/core/buffer_plan.h"
#include "stage_server/core/stage_machine.h"

namespace resbm::stage_server {
namespace {

std::string AttemptText(const v1::Attempt& attempt) {
  return absl::StrCat("step ", attempt.step(), " at fence ", wire::FenceText(attempt.fence()));
}

bool SameAttempt(const v1::Attempt& a, const v1::Attempt& b) {
  return a.step() == b.step() && wire::SameFence(a.fence(), b.fence());
}

std::vector<std::int64_t> Samples(const google::protobuf::RepeatedPtrField<v1::MicroBatch>& micro_batches) {
  std::vector<std::int64_t> samples;
  samples.reserve(micro_batches.size());
  for (const v1::MicroBatch& micro_batch : micro_batches) samples.push_back(micro_batch.samples());
  return samples;
}

}  // namespace

absl::StatusOr<Program> StageMachine::FindProgram(std::uint32_t id) const {
  const auto found = programs_.find(id);
  if (found == programs_.end()) {
    return absl::FailedPreconditionError(absl::StrCat("program ", id, " is not defined at fence ",
                                                      wire::FenceText(tenancy_.fence()),
                                                      "; programs are forgotten by an Attach"));
  }
  return found->second;
}

absl::Status StageMachine::CheckBegin(const v1::Begin& begin) const {
  if (state_ != State::kReady) {
    return absl::FailedPreconditionError(absl::StrCat("Begin in state ", StateName(state_), "; it must be READY"));
  }
  if (!wire::SameFence(begin.attempt().fence(), tenancy_.fence())) {
    return absl::InvalidArgumentError(absl::StrCat("Begin of ", AttemptText(begin.attempt()), " came at fence ",
                                                   wire::FenceText(tenancy_.fence())));
  }
  if (begin.base_state_id() != state_id_) {
    return absl::FailedPreconditionError(absl::StrCat("Begin of step ", begin.attempt().step(), " builds on state ",
                                                      begin.base_state_id(), ", the stage has ", state_id_, " of step ",
                                                      step_));
  }
  int exponent = 0;
  if (begin.loss_scale() != 0 && !(begin.loss_scale() >= 1 && std::frexp(begin.loss_scale(), &exponent) == 0.5)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Begin of step ", begin.attempt().step(), ": loss_scale ", begin.loss_scale(),
                     " is no power of two from 1 up"));
  }
  if (begin.attempt().step() != step_ + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Begin of step ", begin.attempt().step(), ", the last committed is ", step_));
  }
  return absl::OkStatus();
}

absl::Status StageMachine::CheckBuffers(const Runner::Task& task) const {
  if (options_.memory_limit_bytes == 0) return absl::OkStatus();
  RESBM_ASSIGN_OR_RETURN(const BufferPlan buffers,
                         PlanBuffers(shape_, task.samples, task.next.samples, options_.max_tensor_bytes));
  const std::uint64_t loaded = TotalBytes(memory_plan_);
  if (loaded + buffers.total() <= options_.memory_limit_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "step ", task.id.number, ": tensors that wait to be used may take ", buffers.inbox_bytes,
      " bytes and those kept for a broken link ", buffers.retained_bytes, ", beside ", loaded,
      " of weights, gradients and optimizer; --memory-limit is ", options_.memory_limit_bytes,
      "; use smaller micro-batches or windows, or raise the limit"));
}

void StageMachine::HandleBegin(const v1::Begin& begin) {
  const auto start = [&]() -> absl::Status {
    RESBM_RETURN_IF_ERROR(CheckBegin(begin));
    Runner::Task task;
    RESBM_ASSIGN_OR_RETURN(task.program, FindProgram(begin.program_id()));
    task.id = {false, begin.attempt().step()};
    task.samples = Samples(begin.micro_batches());
    task.epoch = begin.epoch();
    if (begin.loss_scale() != 0) task.loss_scale = begin.loss_scale();
    task.trace = begin.trace();
    for (const v1::MicroBatch& micro_batch : begin.micro_batches()) {
      task.sample_indices.emplace_back(micro_batch.sample_indices().begin(), micro_batch.sample_indices().end());
    }
    task.announced = announced_;
    task.next = {begin.attempt().step() + 1, Samples(begin.prefetch())};
    task.max_tensor_bytes = options_.max_tensor_bytes;
    if (begin.prefetch_size() > kMaxActions) return absl::InvalidArgumentError("prefetch of too many micro-batches");
    RESBM_RETURN_IF_ERROR(CheckBuffers(task));
    RESBM_ASSIGN_OR_RETURN(run_, Runner::Create(shape_, std::move(task), &inbox_, links_, clock_));
    return absl::OkStatus();
  };
  if (const absl::Status status = start(); !status.ok()) {
    EmitFailed(begin.attempt(), status, StateName(state_), v1::DIRECTION_UNSPECIFIED);
    return;
  }
  LeaveReady();
  attempt_ = begin.attempt();
  announced_ = {begin.attempt().step() + 1, Samples(begin.prefetch())};
  state_ = State::kRunning;
  run_->Open();
}

void StageMachine::HandleEvaluate(const v1::Evaluate& evaluate) {
  const auto start = [&]() -> absl::Status {
    if (state_ != State::kReady) {
      return absl::FailedPreconditionError(absl::StrCat("Evaluate in state ", StateName(state_), "; it must be READY"));
    }
    Runner::Task task;
    RESBM_ASSIGN_OR_RETURN(task.program, FindProgram(evaluate.program_id()));
    task.id = {true, evaluate.evaluation()};
    task.samples = Samples(evaluate.micro_batches());
    task.announced = announced_;
    task.max_tensor_bytes = options_.max_tensor_bytes;
    task.max_retained_bytes = options_.max_evaluation_retained_bytes;
    RESBM_ASSIGN_OR_RETURN(run_, Runner::Create(shape_, std::move(task), &inbox_, links_, clock_));
    return absl::OkStatus();
  };
  if (const absl::Status status = start(); !status.ok()) {
    EmitFailed(v1::Attempt(), status, StateName(state_), v1::DIRECTION_UNSPECIFIED);
    return;
  }
  LeaveReady();
  attempt_.Clear();
  state_ = State::kEvaluating;
  run_->Open();
}

void StageMachine::LeaveReady() {
  last_progress_ = clock_.Now();
  shard_.reset();
  // A copy that is being made is of the right state still; one not begun would not be.
  if (purpose_ != Purpose::kSave) FailShardWaiters(absl::FailedPreconditionError("the stage has gone on to other work"));
  // All stages have what the work before this sent, or nobody would have begun.
  for (End end : kEnds) links_->ReleaseAll(end);
}

void StageMachine::OnRunResult(WorkResult result) {
  absl::Status status = result.status;
  if (status.ok()) status = run_->OnDone(std::move(result), parameters_);
  if (!status.ok()) Fail(status, v1::LOCAL);
}

void StageMachine::FinishRun() {
  v1::ControlEvent event;
  if (state_ == State::kEvaluating) {
    state_ = State::kReady;
    *event.mutable_evaluated() = run_->MakeEvaluated();
  } else {
    state_ = State::kComputed;
    computed_ = attempt_;
    v1::Computed* computed = event.mutable_computed();
    *computed = run_->MakeComputed();
    *computed->mutable_attempt() = attempt_;
    computed->set_base_state_id(state_id_);
    computed->mutable_times()->set_commit_seconds(commit_seconds_);
    // None comes before what was loaded.
    if (run_->traced() && last_commit_.has_value()) {
      SpanLog commit;
      commit.AddWork(v1::Span::COMMIT, 0, commit_began_, commit_seconds_);
      *computed->add_spans() = commit.spans().front();
    }
  }
  run_.reset();
  Emit(std::move(event));
}

void StageMachine::Fail(const absl::Status& status, v1::Direction blame) {
  const char* phase = StateName(state_);
  const std::uint32_t micro_batch = run_ != nullptr ? run_->micro_batch() : 0;
  if (state_ == State::kRunning) CleanUp(Drop{});  // weights stay
  if (purpose_ == Purpose::kRun) purpose_ = Purpose::kDiscarded;
  const v1::Attempt attempt = state_ == State::kRunning ? attempt_ : v1::Attempt();
  run_.reset();
  state_ = State::kFailed;
  FailShardWaiters(absl::FailedPreconditionError("the stage has failed"));
  EmitFailed(attempt, status, phase, blame, micro_batch);
}

void StageMachine::FailIfLinkBroke() {
  if (state_ == State::kReady && link_error_.has_value()) Fail(link_error_->second, BlameOf(link_error_->first));
}

absl::Status StageMachine::CheckCommit(const v1::Commit& commit) const {
  if (state_ != State::kComputed) {
    return absl::FailedPreconditionError(
        absl::StrCat("Commit of ", AttemptText(commit.attempt()), " in state ", StateName(state_)));
  }
  if (!SameAttempt(commit.attempt(), *computed_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("Commit of ", AttemptText(commit.attempt()), ", the stage has computed ", AttemptText(*computed_)));
  }
  if (commit.base_state_id() != state_id_) {
    return absl::FailedPreconditionError(absl::StrCat("Commit of ", AttemptText(commit.attempt()), " builds on state ",
                                                      commit.base_state_id(), ", the stage has ", state_id_));
  }
  if (commit.new_state_id() == 0) return absl::InvalidArgumentError("Commit.new_state_id is 0, which means no state");
  if (commit.snapshot()) {
    return absl::UnimplementedError("Commit with a snapshot is not implemented in this release; read it by GetShard");
  }
  if (commit.decision() == v1::Commit::APPLY) {
    if (!std::isfinite(commit.gradient_scale()) || !std::isfinite(commit.learning_rate())) {
      return absl::InvalidArgumentError(absl::StrCat("Commit with gradient_scale ", commit.gradient_scale(),
                                                     " and learning_rate ", commit.learning_rate()));
    }
  } else if (commit.decision() != v1::Commit::SKIP) {
    return absl::InvalidArgumentError("Commit.decision is neither APPLY nor SKIP");
  }
  return absl::OkStatus();
}

void StageMachine::HandleCommit(const v1::Commit& commit) {
  // Again, while it is applied: the answer comes when it is.
  if (state_ == State::kApplying && SameAttempt(commit.attempt(), commit_->attempt())) return;
  if (state_id_ != 0 && commit.attempt().step() <= step_ && state_ != State::kFenced) {
    const bool last = last_commit_.has_value() && commit.attempt().step() == last_commit_->attempt().step();
    if (last && commit.new_state_id() != last_commit_->new_state_id()) {
      EmitFailed(commit.attempt(),
                 absl::FailedPreconditionError(absl::StrCat("Commit of step ", step_, " to state ",
                                                            commit.new_state_id(), ", it was committed to ", state_id_)),
                 StateName(state_), v1::DIRECTION_UNSPECIFIED);
      return;
    }
    v1::ControlEvent event;
    event.mutable_committed()->set_step(step_);
    event.mutable_committed()->set_state_id(state_id_);
    Emit(std::move(event));
    return;
  }
  if (const absl::Status status = CheckCommit(commit); !status.ok()) {
    EmitFailed(commit.attempt(), status, StateName(state_), v1::DIRECTION_UNSPECIFIED);
    return;
  }
  commit_ = commit;
  state_ = State::kApplying;
  for (End end : kEnds) links_->ReleaseThroughStep(end, commit.attempt().step());
}

void StageMachine::OnApplied(WorkResult result) {
  if (!result.status.ok()) {
    // Half a step may be in the weights: they are worth nothing.
    const v1::Attempt attempt = commit_->attempt();
    if (links_open_) links_->Close(result.status);
    links_open_ = false;
    inbox_.Clear();
    BecomeEmpty();
    if (attach_unanswered_) {
      state_ = State::kFenced;
      return;
    }
    EmitFailed(attempt, result.status, StateName(State::kApplying), v1::LOCAL);
    return;
  }
  FinishCommit(result.began, result.seconds);
}

void StageMachine::FinishCommit(absl::Duration began, double seconds) {
  const v1::Commit commit = *std::move(commit_);
  commit_.reset();
  commit_began_ = began;
  commit_seconds_ = seconds;
  step_ = commit.attempt().step();
  state_id_ = commit.new_state_id();
  computed_.reset();
  last_commit_ = commit;
  last_commit_->clear_next();
  ++(commit.decision() == v1::Commit::SKIP ? counters_.skipped_steps : counters_.applied_steps);
  if (attach_unanswered_) {
    // A newer fence waits for this: it learns of the commit from Attached.
    state_ = State::kFenced;
    return;
  }
  state_ = State::kReady;
  v1::ControlEvent event;
  event.mutable_committed()->set_step(step_);
  event.mutable_committed()->set_state_id(state_id_);
  Emit(std::move(event));
  FailIfLinkBroke();
  if (commit.has_next() && state_ == State::kReady) HandleBegin(commit.next());
}

}  // namespace resbm::stage_server
