// Resume, programs, and weights in pieces.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/wire/fence.h"
#include "stage_server/core/stage_machine.h"

namespace resbm::stage_server {
namespace {

constexpr std::size_t kMaxPrograms = 256;

// The part of a spec that what was loaded depends on; links and windows may change between fences.
std::string ComputedPart(v1::StageSpec spec) {
  spec.clear_windows();
  spec.clear_up();
  spec.clear_down();
  spec.clear_link_key();
  return spec.SerializeAsString();
}

}  // namespace

void StageMachine::HandleResume(const v1::Resume& resume) {
  StageShape shape;
  absl::Status status = state_ == State::kFenced
                            ? CheckResume(resume, &shape)
                            : absl::FailedPreconditionError(
                                  absl::StrCat("Resume in state ", StateName(state_), "; it follows Attached, once"));
  if (!status.ok()) {
    EmitFailed(v1::Attempt(), status, StateName(state_), v1::LOCAL);
    return;
  }
  resume_ = resume;
  shape_ = std::move(shape);
  if (resume.has_keep()) {
    if (computed_.has_value()) {
      CleanUp(Drop{});
      ++counters_.dropped_steps;
    }
    computed_.reset();
    OpenLinks();
    BecomeReady();
    return;
  }
  // From here on the old state is gone, whatever happens.
  state_ = State::kLoading;
  state_id_ = 0;
  step_ = 0;
  computed_.reset();
  last_commit_.reset();
  loaded_.reset();
  OpenLinks();
  if (resume.has_init()) {
    load_ = Load{resume.stage(), resume.init().seed()};
  } else {
    receiver_.emplace(resume.restore().bytes(), resume.restore().hash());
  }
}

absl::Status StageMachine::CheckResume(const v1::Resume& resume, StageShape* shape) const {
  if (resume.kind_case() == v1::Resume::KIND_NOT_SET) return absl::InvalidArgumentError("a Resume of no known kind");
  if (resume.has_apply()) {
    return absl::UnimplementedError("Resume with APPLY is not implemented in this release; restore all stages");
  }
  if (resume.has_restore() && resume.restore().optimizer()) {
    return absl::UnimplementedError(
        "Resume with RESTORE of the optimizer's state is not implemented in this release; restore weights alone");
  }
  if (resume.state_id() == 0) return absl::InvalidArgumentError("Resume.state_id is 0, which means no state");
  const v1::StageSpec& spec = resume.stage();
  if (spec.stage() != tenancy_.stage() || spec.stages() != tenancy_.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("Resume is for stage ", spec.stage(), " of ", spec.stages(),
                                                   ", Attach was for stage ", tenancy_.stage(), " of ",
                                                   tenancy_.stages()));
  }
  if (spec.threads() == 0) return absl::InvalidArgumentError("threads is 0; give at least 1");
  if (options_.max_threads > 0 && spec.threads() > options_.max_threads) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job asks for ", spec.threads(), " threads, this stage server was started with --threads ",
                     options_.max_threads, "; make them equal"));
  }
  RESBM_ASSIGN_OR_RETURN(*shape, StageShape::FromSpec(spec));
  const std::uint64_t planned = TotalBytes(PlanMemory(spec));
  if (options_.memory_limit_bytes > 0 && planned > options_.memory_limit_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "weights, gradients and optimizer need ", planned, " bytes, --memory-limit is ", options_.memory_limit_bytes,
        "; use more stages, a smaller model, or raise the limit"));
  }
  if (resume.has_restore() &&
      (resume.restore().bytes() == 0 || resume.restore().bytes() > options_.max_shard_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("a shard of ", resume.restore().bytes(), " bytes; 1 to ",
                                                   options_.max_shard_bytes, " are allowed"));
  }
  if (resume.has_keep()) {
    if (state_id_ == 0 || resume.state_id() != state_id_ || resume.step() != step_) {
      return absl::FailedPreconditionError(absl::StrCat("asked to keep state ", resume.state_id(), " of step ",
                                                        resume.step(), ", has state ", state_id_, " of step ", step_));
    }
    if (ComputedPart(spec) != ComputedPart(*loaded_)) {
      return absl::FailedPreconditionError("asked to keep its state with another spec than it was loaded with");
    }
  }
  return absl::OkStatus();
}

void StageMachine::OpenLinks() {
  const v1::StageSpec& spec = resume_.stage();
  links_->Open({tenancy_.job_id(), tenancy_.fence(), spec.link_key(), spec.stage(), spec.stages(), spec.up(),
                spec.down(), spec.local_data().inputs(), spec.local_data().targets()});
  links_open_ = true;
}

void StageMachine::HandleDefineProgram(const v1::DefineProgram& definition) {
  absl::StatusOr<Program> program = Program::FromProto(definition);
  if (program.ok() && programs_.size() >= kMaxPrograms && programs_.count(definition.program_id()) == 0) {
    program = absl::ResourceExhaustedError(
        absl::StrCat("program ", definition.program_id(), ": a fence may define at most ", kMaxPrograms));
  }
  if (!program.ok()) {
    EmitFailed(v1::Attempt(), program.status(), StateName(state_), v1::DIRECTION_UNSPECIFIED);
    return;
  }
  programs_.insert_or_assign(definition.program_id(), *std::move(program));
}

void StageMachine::OnLoaded(WorkResult result) {
  if (result.status.ok()) {
    memory_plan_.set_weights_bytes(result.memory.weights_bytes);
    memory_plan_.set_gradients_bytes(result.memory.gradients_bytes);
    memory_plan_.set_optimizer_bytes(result.memory.optimizer_bytes);
    const std::uint64_t total = TotalBytes(memory_plan_);
    if (options_.memory_limit_bytes > 0 && total > options_.memory_limit_bytes) {
      result.status = absl::ResourceExhaustedError(
          absl::StrCat("the loaded stage has ", total, " bytes, --memory-limit is ", options_.memory_limit_bytes));
    }
  }
  if (!result.status.ok()) {
    FailLoading(result.status);
    return;
  }
  loaded_ = resume_.stage();
  parameters_ = std::move(result.parameters);
  unused_tensors_ = std::move(result.unused_tensors);
  seeded_parameters_ = std::move(result.seeded_parameters);
  state_id_ = resume_.state_id();
  step_ = resume_.step();
  if (restore_done_) {
    v1::PutShardReply reply;
    reply.set_received_bytes(resume_.restore().bytes());
    std::exchange(restore_done_, nullptr)(reply);
  }
  BecomeReady();
}

void StageMachine::BecomeReady() {
  state_ = State::kReady;
  v1::ControlEvent event;
  v1::Ready* ready = event.mutable_ready();
  ready->set_state_id(state_id_);
  ready->set_step(step_);
  *ready->mutable_memory() = memory_plan_;
  for (const ParameterSize& parameter : parameters_) {
    ready->add_parameter_names(parameter.name);
    ready->add_parameter_sizes(parameter.values);
  }
  for (std::string& name : std::exchange(unused_tensors_, {})) ready->add_unused_tensors(std::move(name));
  for (std::string& name : std::exchange(seeded_parameters_, {})) ready->add_seeded_parameters(std::move(name));
  Emit(std::move(event));
  FailIfLinkBroke();
}

void StageMachine::FailLoading(const absl::Status& status) {
  if (restore_done_) std::exchange(restore_done_, nullptr)(status);
  receiver_.reset();
  links_->Close(status);
  links_open_ = false;
  link_error_.reset();
  inbox_.Clear();
  BecomeEmpty();
  EmitFailed(v1::Attempt(), status, StateName(State::kLoading), v1::LOCAL);
}

absl::Status StageMachine::CheckShardRequest(const std::string& job_id, const v1::Fence& fence) const {
  if (tenancy_.free() || job_id != tenancy_.job_id() || !wire::SameFence(fence, tenancy_.fence())) {
    return absl::FailedPreconditionError(absl::StrCat("asked for job ", job_id, " at fence ", wire::FenceText(fence),
                                                      ", the stage is ",
                                                      tenancy_.free() ? "free" : "held by job " + tenancy_.job_id(),
                                                      " at fence ", wire::FenceText(tenancy_.fence())));
  }
  return absl::OkStatus();
}

void StageMachine::GetShard(const v1::GetShardRequest& request, GetShardDone done) {
  absl::Status status = CheckShardRequest(request.job_id(), request.fence());
  if (status.ok() && (state_ != State::kReady || request.state_id() != state_id_)) {
    status = absl::FailedPreconditionError(absl::StrCat("asked for the weights of state ", request.state_id(),
                                                        ", the stage is ", StateName(state_), " with state ", state_id_));
  }
  if (!status.ok()) {
    done(status);
    return;
  }
  if (shard_ == nullptr) {
    shard_waiters_.emplace_back(request, std::move(done));
    Advance();
    return;
  }
  absl::StatusOr<v1::GetShardReply> piece = ShardPiece(*shard_, shard_hash_, request.offset(), request.max_bytes());
  const bool last = piece.ok() && request.offset() + piece->data().size() == shard_->size();
  // The copy's memory is given back once it was read; who asks again has it made again.
  if (last) shard_.reset();
  done(std::move(piece));
}

void StageMachine::OnSaved(WorkResult result) {
  if (!result.status.ok()) {
    FailShardWaiters(result.status);
    return;
  }
  shard_ = std::move(result.shard);
  shard_hash_ = ShardHash(*shard_);
  const std::shared_ptr<const std::string> shard = shard_;
  if (state_ != State::kReady) shard_.reset();
  for (auto& [request, done] : std::exchange(shard_waiters_, {})) {
    absl::StatusOr<v1::GetShardReply> piece = ShardPiece(*shard, shard_hash_, request.offset(), request.max_bytes());
    if (piece.ok() && request.offset() + piece->data().size() == shard->size()) shard_.reset();
    done(std::move(piece));
  }
}

void StageMachine::FailShardWaiters(const absl::Status& status) {
  for (auto& [request, done] : std::exchange(shard_waiters_, {})) done(status);
}

void StageMachine::PutShard(const v1::PutShardRequest& request, PutShardDone done) {
  absl::Status status = CheckShardRequest(request.job_id(), request.fence());
  if (status.ok() && (state_ != State::kLoading || !receiver_.has_value())) {
    status = absl::FailedPreconditionError(
        absl::StrCat("the stage is ", StateName(state_), " and waits for no weights; send Resume with restore first"));
  }
  if (status.ok()) {
    status = receiver_->Add(request.offset(), request.data());
    if (absl::IsDataLoss(status)) FailLoading(status);
  }
  if (!status.ok()) {
    done(status);
    Advance();
    return;
  }
  if (receiver_->complete()) {
    load_ = Load{resume_.stage(), receiver_->Take()};
    if (resume_.restore().has_seed()) load_->seed = resume_.restore().seed();
    receiver_.reset();
    restore_done_ = std::move(done);
    Advance();
    return;
  }
  v1::PutShardReply reply;
  reply.set_received_bytes(receiver_->received());
  done(reply);
}

}  // namespace resbm::stage_server
