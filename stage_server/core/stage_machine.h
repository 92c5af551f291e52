// One stage's life: protocol.md's state machine, complete, without threads, transport or LibTorch.
//
// The owner calls the On* methods one at a time (under its mutex, or from one thread) and carries out what
// the machine asks of StageEffects and StageLinks; none of these may call back into the machine from within.
//
//            Attach                INIT, RESTORE            done                Begin
//   EMPTY ----------> FENCED ---------------------> LOADING ----> READY <-------------------- . . .
//     ^                 |  ^                           |          | ^ |                             |
//     |                 |  | Attach, from anywhere     |          | | | Begin (base is mine)        |
//     |                 |  | (APPLYING finishes first) |          | | v                             |
//     |                 |  '-- READY, RUNNING, FAILED, COMPUTED   | | RUNNING --error--> FAILED     |
//     |                 |      EVALUATING, LOADING     |          | |  | program done,     ^        |
//     |                 '--------- KEEP -------------->|--------->| |  v everything sent   |        |
//     |                                                |          | | COMPUTED             |        |
//     |<------------------------ error ----------------'          | |  | Commit            |        |
//     |<------------------------------------- error while applying|-|- APPLYING --done--> READY, or RUNNING
//     |                                                           | |                      |  with the next
//     '-- Release or end of the lease, from anywhere     Evaluate v | done                 |  Begin aboard
//                                                            EVALUATING -----error---------'
//
// FENCED may hold a computed step: COMPUTED is a promise that survives the loss of the stream. FAILED has
// its weights intact and leaves only by Attach or Release. A link that breaks the protocol while READY or
// after a computed step leads to FAILED as soon as no step is promised.
#ifndef RESBM_STAGE_SERVER_CORE_STAGE_MACHINE_H_
#define RESBM_STAGE_SERVER_CORE_STAGE_MACHINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/link.pb.h"
#include "stage_server/core/inbox.h"
#include "stage_server/core/program.h"
#include "stage_server/core/runner.h"
#include "stage_server/core/shard.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/core/stage_shape.h"
#include "stage_server/core/tenancy.h"
#include "stage_server/core/work.h"

namespace resbm::stage_server {

enum class State { kEmpty, kFenced, kLoading, kReady, kRunning, kFailed, kComputed, kApplying, kEvaluating };

// "EMPTY", "FENCED", ...
const char* StateName(State state);

// What the machine does to its surroundings, links apart.
class StageEffects {
 public:
  virtual ~StageEffects() = default;
  // To one control session (of which OnSessionClosed was not called yet).
  virtual void Emit(SessionId session, const v1::ControlEvent& event) = 0;
  // Ends the stream, after what was emitted. OnSessionClosed may follow or not.
  virtual void EndSession(SessionId session, const absl::Status& status) = 0;
  // Gives the compute thread its next work; OnWorkDone follows, later. Never a second before that.
  virtual void Start(Work work) = 0;
};

struct StageMachineOptions {
  // Differs for every start of the process.
  std::uint64_t incarnation = 0;
  // A spec that asks for more is refused; 0 = any.
  std::uint32_t max_threads = 0;
  // Of weights, gradients and optimizer together, a spec that plans more is refused; with what the links may hold
  // during a step, a Begin that needs more; 0 = any.
  std::uint64_t memory_limit_bytes = 0;
  // Largest payload of one tensor.
  std::uint64_t max_tensor_bytes = std::uint64_t{1} << 30;
  // Largest shard that PutShard takes.
  std::uint64_t max_shard_bytes = std::uint64_t{16} << 30;
  // See Runner::Task.
  std::uint64_t max_evaluation_retained_bytes = std::uint64_t{64} << 20;
  absl::Duration progress_interval = absl::Seconds(1);
};

class StageMachine {
 public:
  // The pointers outlive the machine.
  StageMachine(StageMachineOptions options, const Clock& clock, StageEffects* effects, StageLinks* links);

  // ---- events
  void OnRequest(SessionId session, const v1::ControlRequest& request);
  void OnSessionClosed(SessionId session);
  // A whole tensor, as the endpoint gives it.
  void OnTensor(End end, const v1::TensorHeader& header, EncodedTensor tensor);
  // Something was sent, or a connection came or went: look again.
  void OnLinkChanged();
  void OnLinkError(const v1::Fence& fence, End end, const absl::Status& status);
  void OnWorkDone(WorkResult result);
  // Time has passed; a few times a second.
  void OnTick();
  // The process ends: links close and whoever waits for a shard gets `status`. Nothing may follow but
  // OnWorkDone and OnSessionClosed.
  void OnShutdown(const absl::Status& status);

  // `done` is called once, now or later. Errors as control.proto says.
  void GetShard(const v1::GetShardRequest& request, GetShardDone done);
  void PutShard(const v1::PutShardRequest& request, PutShardDone done);

  // Fills job_id, fence and state, where it is in the job, and the progress of the step or evaluation in work.
  void Describe(v1::DescribeReply* reply) const;

  State state() const { return state_; }
  std::uint64_t state_id() const { return state_id_; }
  // Last step committed.
  std::uint64_t step() const { return step_; }
  const Tenancy& tenancy() const { return tenancy_; }
  // From Resume until an Attach, a Release, the lease's end, or an error that empties the stage.
  bool links_open() const { return links_open_; }
  // What was loaded last; null when the stage has nothing.
  const v1::StageSpec* loaded() const { return loaded_.has_value() ? &*loaded_ : nullptr; }
  // Of what is loaded.
  const v1::MemoryPlan& memory_plan() const { return memory_plan_; }
  // Payload of the tensors that came and were not used yet.
  std::uint64_t inbox_bytes() const { return inbox_.bytes(); }

  struct Counters {
    std::uint64_t stale_messages = 0;  // dropped: of an old fence, or of a session that is not the present one
    std::uint64_t refused_attaches = 0;
    std::uint64_t dropped_steps = 0;  // unfinished work that a newer fence stopped
    std::uint64_t skipped_steps = 0;
    std::uint64_t applied_steps = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  // What the running work is for, so that its result is understood, or thrown away.
  enum class Purpose { kNone, kLoad, kRun, kApply, kSave, kCleanup, kDiscarded };

  // stage_machine.cc: who may speak, and what is done next.
  void HandleAttach(SessionId session, const v1::Fence& fence, const v1::Attach& attach);
  void AnswerAttach();
  void HandleRelease();
  // Stops what goes on and forgets fence-bound things. The running work's result is thrown away unless it
  // is an apply and keep_apply.
  void Interrupt(const absl::Status& why, bool keep_apply);
  void BecomeEmpty();
  void FreeIfLeaseOver();
  // Starts whatever can be started now. Every event ends with it.
  void Advance();
  void StartWork(Purpose purpose, Work work);
  void CleanUp(Work work) { cleanup_.push_back(std::move(work)); }
  void Emit(v1::ControlEvent event);
  void EmitFailed(const v1::Attempt& attempt, const absl::Status& status, const char* phase, v1::Direction blame,
                  std::uint32_t micro_batch = 0);

  // stage_machine_load.cc: Resume, shards.
  void HandleResume(const v1::Resume& resume);
  absl::Status CheckResume(const v1::Resume& resume, StageShape* shape) const;
  void HandleDefineProgram(const v1::DefineProgram& definition);
  void OpenLinks();
  void OnLoaded(WorkResult result);
  void BecomeReady();
  void FailLoading(const absl::Status& status);
  absl::Status CheckShardRequest(const std::string& job_id, const v1::Fence& fence) const;
  void OnSaved(WorkResult result);
  void FailShardWaiters(const absl::Status& status);

  // stage_machine_step.cc: Begin, Commit, Evaluate.
  void HandleBegin(const v1::Begin& begin);
  absl::Status CheckBegin(const v1::Begin& begin) const;
  absl::Status CheckBuffers(const Runner::Task& task) const;
  void HandleCommit(const v1::Commit& commit);
  absl::Status CheckCommit(const v1::Commit& commit) const;
  void FinishCommit(absl::Duration began, double seconds);
  void HandleEvaluate(const v1::Evaluate& evaluate);
  void LeaveReady();
  absl::StatusOr<Program> FindProgram(std::uint32_t id) const;
  void OnRunResult(WorkResult result);
  void OnApplied(WorkResult result);
  void FinishRun();
  void Fail(const absl::Status& status, v1::Direction blame);
  void FailIfLinkBroke();
  // Whose fault it is when an end breaks: the neighbour's there, or ours where that end reads our copy of the data.
  v1::Direction BlameOf(End end) const;

  const StageMachineOptions options_;
  const Clock& clock_;
  StageEffects* const effects_;
  StageLinks* const links_;

  State state_ = State::kEmpty;
  Tenancy tenancy_;
  bool attach_unanswered_ = false;
  // Weights, optimizer state and buffers; 0 = none.
  std::uint64_t state_id_ = 0;
  std::uint64_t step_ = 0;
  std::optional<v1::Attempt> computed_;
  std::optional<v1::Commit> last_commit_;

  // The compute thread.
  Purpose purpose_ = Purpose::kNone;
  std::deque<Work> cleanup_;  // goes before anything else

  // Of this fence.
  bool links_open_ = false;
  std::map<std::uint32_t, Program> programs_;
  Inbox inbox_;
  Prefetch announced_;
  std::optional<std::pair<End, absl::Status>> link_error_;

  // Loading, and what was loaded.
  v1::Resume resume_;
  std::optional<Load> load_;                // not started yet
  std::optional<ShardReceiver> receiver_;   // RESTORE: pieces are missing
  PutShardDone restore_done_;               // the last piece's answer waits for the load
  std::optional<v1::StageSpec> loaded_;
  StageShape shape_;
  std::vector<ParameterSize> parameters_;
  std::vector<std::string> unused_tensors_, seeded_parameters_;  // until Ready says them, once
  v1::MemoryPlan memory_plan_;

  // Handing out weights of state_id_.
  std::shared_ptr<const std::string> shard_;
  std::uint64_t shard_hash_ = 0;
  std::vector<std::pair<v1::GetShardRequest, GetShardDone>> shard_waiters_;

  // A step or evaluation.
  std::unique_ptr<Runner> run_;
  v1::Attempt attempt_;
  std::optional<v1::Commit> commit_;  // APPLYING
  double commit_seconds_ = 0;
  absl::Duration commit_began_ = absl::ZeroDuration();
  absl::Duration last_progress_ = absl::ZeroDuration();

  Counters counters_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_STAGE_MACHINE_H_
