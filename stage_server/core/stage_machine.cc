// Who may speak to the stage, and what is done next. See stage_machine_load.cc and stage_machine_step.cc.
#include "stage_server/core/stage_machine.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/fence.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server {

const char* StateName(State state) {
  switch (state) {
    case State::kEmpty: return "EMPTY";
    case State::kFenced: return "FENCED";
    case State::kLoading: return "LOADING";
    case State::kReady: return "READY";
    case State::kRunning: return "RUNNING";
    case State::kFailed: return "FAILED";
    case State::kComputed: return "COMPUTED";
    case State::kApplying: return "APPLYING";
    case State::kEvaluating: return "EVALUATING";
  }
  return "?";
}

StageMachine::StageMachine(StageMachineOptions options, const Clock& clock, StageEffects* effects, StageLinks* links)
    : options_(options), clock_(clock), effects_(effects), links_(links) {}

void StageMachine::OnRequest(SessionId session, const v1::ControlRequest& request) {
  FreeIfLeaseOver();
  if (request.has_attach()) {
    HandleAttach(session, request.fence(), request.attach());
    Advance();
    return;
  }
  if (request.kind_case() == v1::ControlRequest::KIND_NOT_SET) {
    effects_->EndSession(session, absl::InvalidArgumentError(
                                      "a ControlRequest of no known kind; is the coordinator of a newer release?"));
    OnSessionClosed(session);
    return;
  }
  if (!tenancy_.Speaks(session, request.fence())) {
    ++counters_.stale_messages;
    return;
  }
  if (request.has_renew()) {
    tenancy_.Renew(request.renew().lease_seconds());
  } else if (request.has_release()) {
    HandleRelease();
  } else if (attach_unanswered_) {
    EmitFailed(v1::Attempt(), absl::FailedPreconditionError("wait for Attached before anything else"),
               StateName(state_), v1::DIRECTION_UNSPECIFIED);
  } else if (request.has_resume()) {
    HandleResume(request.resume());
  } else if (request.has_define_program()) {
    HandleDefineProgram(request.define_program());
  } else if (request.has_begin()) {
    HandleBegin(request.begin());
  } else if (request.has_commit()) {
    HandleCommit(request.commit());
  } else if (request.has_evaluate()) {
    HandleEvaluate(request.evaluate());
  }
  Advance();
}

void StageMachine::HandleAttach(SessionId session, const v1::Fence& fence, const v1::Attach& attach) {
  if (const absl::Status status = Tenancy::Check(attach); !status.ok()) {
    effects_->EndSession(session, status);
    OnSessionClosed(session);
    return;
  }
  if (std::optional<v1::Refused> refused = tenancy_.Refuse(fence, attach); refused.has_value()) {
    ++counters_.refused_attaches;
    v1::ControlEvent event;
    // With the fence that was refused, so that its sender knows the answer as its own.
    *event.mutable_fence() = fence;
    *event.mutable_refused() = *std::move(refused);
    effects_->Emit(session, event);
    return;
  }
  const absl::Status why = absl::AbortedError(absl::StrCat("fence ", wire::FenceText(fence), " has attached"));
  if (tenancy_.attached() && tenancy_.session() != session) effects_->EndSession(tenancy_.session(), why);
  Interrupt(why, /*keep_apply=*/true);
  tenancy_.Accept(session, fence, attach);
  attach_unanswered_ = true;
  if (state_ != State::kApplying) state_ = State::kFenced;
}

void StageMachine::AnswerAttach() {
  attach_unanswered_ = false;
  v1::ControlEvent event;
  v1::Attached* attached = event.mutable_attached();
  attached->set_protocol_version(wire::kProtocolVersion);
  attached->set_incarnation(options_.incarnation);
  attached->set_state_id(state_id_);
  attached->set_step(step_);
  if (computed_.has_value()) *attached->mutable_computed() = *computed_;
  if (last_commit_.has_value()) *attached->mutable_last_commit() = *last_commit_;
  Emit(std::move(event));
}

void StageMachine::HandleRelease() {
  Interrupt(absl::CancelledError("the stage was released"), /*keep_apply=*/false);
  // While it still knows its step: for the log.
  effects_->EndSession(tenancy_.session(), absl::OkStatus());
  BecomeEmpty();
  tenancy_.Free();
}

void StageMachine::Interrupt(const absl::Status& why, bool keep_apply) {
  if (links_open_) links_->Close(why);
  links_open_ = false;
  link_error_.reset();
  programs_.clear();
  inbox_.Clear();
  announced_ = Prefetch();
  shard_.reset();
  FailShardWaiters(why);
  receiver_.reset();
  load_.reset();
  attach_unanswered_ = false;
  if (restore_done_) std::exchange(restore_done_, nullptr)(why);

  if (state_ == State::kApplying && keep_apply) {
    commit_->clear_next();
    return;
  }
  if (purpose_ != Purpose::kNone && purpose_ != Purpose::kCleanup) purpose_ = Purpose::kDiscarded;
  if (state_ == State::kRunning || state_ == State::kFailed || state_ == State::kEvaluating) ++counters_.dropped_steps;
  if (state_ == State::kRunning) CleanUp(Drop{});
  if (state_ == State::kLoading) BecomeEmpty();
  run_.reset();
}

void StageMachine::BecomeEmpty() {
  state_ = State::kEmpty;
  state_id_ = 0;
  step_ = 0;
  computed_.reset();
  last_commit_.reset();
  commit_.reset();
  loaded_.reset();
  parameters_.clear();
  CleanUp(Unload{});
}

void StageMachine::FreeIfLeaseOver() {
  if (!tenancy_.LeaseOver(clock_.Now())) return;
  Interrupt(absl::DeadlineExceededError("the lease of the stage's job has ended"), /*keep_apply=*/false);
  BecomeEmpty();
  tenancy_.Free();
}

void StageMachine::OnSessionClosed(SessionId session) {
  if (session != 0 && session == tenancy_.session()) tenancy_.Lose(clock_.Now());
  Advance();
}

void StageMachine::OnTensor(End end, const v1::TensorHeader& header, EncodedTensor tensor) {
  if (!links_open_ || !wire::SameFence(header.fence(), tenancy_.fence())) return;
  const bool evaluation = header.work_case() == v1::TensorHeader::kEvaluation;
  const WorkId id{evaluation, evaluation ? header.evaluation() : header.step()};
  // Its activation is not asked for again.
  if (header.kind() == v1::GRADIENT) links_->ReleaseMicroBatch(End::kDown, header.step(), header.micro_batch());
  inbox_.Put(end, id, header.micro_batch(), std::move(tensor));
  Advance();
}

void StageMachine::OnLinkChanged() { Advance(); }

void StageMachine::OnLinkError(const v1::Fence& fence, End end, const absl::Status& status) {
  if (!links_open_ || !wire::SameFence(fence, tenancy_.fence()) || link_error_.has_value()) return;
  link_error_.emplace(end, status);
  if (state_ == State::kRunning || state_ == State::kEvaluating || state_ == State::kReady) {
    Fail(status, BlameOf(end));
  }
  Advance();
}

v1::Direction StageMachine::BlameOf(End end) const {
  const v1::LocalData& local = resume_.stage().local_data();
  const bool here = end == End::kUp ? shape_.is_first() && local.inputs() : shape_.is_last() && local.targets();
  return here ? v1::LOCAL : DirectionOf(end);
}

void StageMachine::OnTick() {
  FreeIfLeaseOver();
  const bool works = state_ == State::kRunning || state_ == State::kEvaluating;
  if (works && clock_.Now() - last_progress_ >= options_.progress_interval) {
    last_progress_ = clock_.Now();
    v1::ControlEvent event;
    *event.mutable_progress() = run_->MakeProgress();
    Emit(std::move(event));
  }
  Advance();
}

void StageMachine::OnShutdown(const absl::Status& status) {
  Interrupt(status, /*keep_apply=*/false);
  BecomeEmpty();
  tenancy_.Free();
}

void StageMachine::Advance() {
  if (purpose_ != Purpose::kNone) return;
  if (!cleanup_.empty()) {
    Work work = std::move(cleanup_.front());
    cleanup_.pop_front();
    StartWork(Purpose::kCleanup, std::move(work));
    return;
  }
  // Only now: no compute call of the old fence goes on.
  if (attach_unanswered_ && state_ == State::kFenced) AnswerAttach();
  switch (state_) {
    case State::kLoading:
      if (load_.has_value()) {
        Load load = *std::move(load_);
        load_.reset();
        StartWork(Purpose::kLoad, std::move(load));
      }
      break;
    case State::kRunning:
    case State::kEvaluating:
      if (std::optional<Work> work = run_->Next(); work.has_value()) {
        StartWork(Purpose::kRun, *std::move(work));
      } else if (run_->finished()) {
        FinishRun();
        Advance();
      }
      break;
    case State::kApplying:
      if (commit_->decision() == v1::Commit::SKIP) {
        StartWork(Purpose::kApply, Drop{});
      } else {
        StartWork(Purpose::kApply,
                  Apply{commit_->gradient_scale(), commit_->learning_rate(), commit_->attempt().step()});
      }
      break;
    case State::kReady:
      if (!shard_waiters_.empty()) StartWork(Purpose::kSave, SaveShard{});
      break;
    default: break;
  }
}

void StageMachine::StartWork(Purpose purpose, Work work) {
  purpose_ = purpose;
  effects_->Start(std::move(work));
}

void StageMachine::OnWorkDone(WorkResult result) {
  switch (std::exchange(purpose_, Purpose::kNone)) {
    case Purpose::kLoad: OnLoaded(std::move(result)); break;
    case Purpose::kRun: OnRunResult(std::move(result)); break;
    case Purpose::kApply: OnApplied(std::move(result)); break;
    case Purpose::kSave: OnSaved(std::move(result)); break;
    // What a discarded or cleaning call says concerns nobody any more.
    case Purpose::kCleanup:
    case Purpose::kDiscarded:
    case Purpose::kNone: break;
  }
  Advance();
}

void StageMachine::Emit(v1::ControlEvent event) {
  if (!tenancy_.attached()) return;
  *event.mutable_fence() = tenancy_.fence();
  effects_->Emit(tenancy_.session(), event);
}

void StageMachine::EmitFailed(const v1::Attempt& attempt, const absl::Status& status, const char* phase,
                              v1::Direction blame, std::uint32_t micro_batch) {
  v1::ControlEvent event;
  v1::Failed* failed = event.mutable_failed();
  *failed->mutable_attempt() = attempt;
  if (!attempt.has_fence()) *failed->mutable_attempt()->mutable_fence() = tenancy_.fence();
  failed->set_code(static_cast<std::uint32_t>(status.code()));
  failed->set_phase(phase);
  failed->set_micro_batch(micro_batch);
  failed->set_blame(blame);
  // Whoever reads it in the coordinator's log must see where it comes from; the model may have said so.
  const std::string prefix = absl::StrCat("stage ", tenancy_.stage(), ": ");
  const bool said = absl::StartsWith(status.message(), prefix);
  failed->set_text(absl::StrCat(said ? "" : prefix, status.message()));
  Emit(std::move(event));
}

void StageMachine::Describe(v1::DescribeReply* reply) const {
  reply->set_job_id(tenancy_.job_id());
  *reply->mutable_fence() = tenancy_.fence();
  reply->set_state(StateName(state_));
  reply->set_stage(tenancy_.stage());
  reply->set_stages(tenancy_.stages());
  reply->set_step(step_);
  if (run_ != nullptr) *reply->mutable_progress() = run_->MakeProgress();
}

}  // namespace resbm::stage_server
