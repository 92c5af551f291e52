// The coordinator's step protocol for one run: attach, load, begin, computed, commit, evaluate. Decides
// everything and does nothing by itself: events come in, effects go out through Environment, time is asked
// of a Clock. The same class runs over gRPC and in the seeded simulation.
//
//                       all Attached        all Ready             all Committed, epoch over
//   Start -> ATTACHING -------------> LOADING -------> STEPPING <-------------------------> EVALUATING
//                                                         |  last step committed, evaluated   |
//                                                         +-------------> DONE <--------------+
//   from anywhere: Refused, Failed, a lost stage, a deadline -> FAILED
//
// Not thread-safe: for one thread.
#ifndef RESBM_COORDINATOR_RUN_RUN_DRIVER_H_
#define RESBM_COORDINATOR_RUN_RUN_DRIVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/run/blame.h"
#include "coordinator/run/loss_scaler.h"
#include "coordinator/run/step_decision.h"
#include "proto/base/clock.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// How a step's samples are split.
struct StepShape {
  std::int64_t epoch = 0;  // of the data, from 0
  std::vector<std::int64_t> micro_batches;
  // What the step's sums are divided by; 0 = the samples.
  double weight = 0;
  // Of the samples in their order, for models that draw dropout from them; else empty.
  std::vector<std::uint64_t> sample_indices;

  std::int64_t samples() const;
  double total_weight() const { return weight > 0 ? weight : static_cast<double>(samples()); }
};

// What a run is, fixed before it starts.
struct RunPlan {
  std::string job_id;
  std::uint64_t coordinator_epoch = 1;  // of the fence
  // With neighbours, windows and link key.
  std::vector<v1::StageSpec> stages;
  // What the initial weights come from.
  std::uint64_t seed = 1;
  std::string origin;  // for the first state_id
  // Set: weights come from shards (one each stage, in `stages` order) instead of the seed.
  std::vector<v1::Resume::Restore> restore;
  // When every stage is ready, before the first step: an error ends the run. May be empty.
  std::function<absl::Status(const std::vector<v1::Ready>&)> check_ready;

  std::int64_t total_steps = 0;
  // A pure function of the step, from 1.
  std::function<StepShape(std::int64_t step)> step_shape;
  std::function<double(std::int64_t step)> learning_rate;
  double clip_norm = 0;
  // Whether the loss is scaled so that fp16 gradients keep in range.
  bool scale_loss = false;
  // Steps 1 to this one bring the spans of every stage; below 0: all.
  std::int64_t trace_steps = 0;
  // Programs of all stages for a number of micro-batches; the driver gives them their ids.
  std::function<std::vector<v1::DefineProgram>(std::uint32_t micro_batches)> train_programs;
  std::function<std::vector<v1::DefineProgram>(std::uint32_t micro_batches)> evaluation_programs;
  // Empty: no evaluation. Otherwise after each epoch and after the last step.
  std::vector<std::int64_t> evaluation_micro_batches;

  struct Timeouts {
    absl::Duration attach = absl::Seconds(30);
    absl::Duration load = absl::Minutes(10);
    absl::Duration stall = absl::ZeroDuration();  // 0: max(60 s, 10 x the median step)
    absl::Duration step = absl::ZeroDuration();   // 0: no limit
    absl::Duration lease = absl::Minutes(30);
  } timeouts;
};

struct StepReport {
  std::int64_t step = 0;
  StepShape shape;
  StepDecision decision;
  double learning_rate = 0;
  absl::Duration ended;     // when, on the driver's clock
  absl::Duration duration;  // from the end of the step before (the first: from its Begin)
  v1::Fence fence;
  std::vector<v1::Computed> computed;  // by stage

  // Of the stages' time, what they were idle for want of a tensor.
  double waiting_share() const;
};

struct EvaluationReport {
  std::int64_t after_step = 0;
  std::int64_t samples = 0;  // of text: bytes that were predicted
  double loss = 0;
  double top1 = 0;  // fraction
  absl::Duration duration;
  std::vector<v1::Evaluated> evaluated;  // by stage
};

class RunDriver {
 public:
  class Environment {
   public:
    virtual ~Environment() = default;
    virtual void SendControl(int stage, const v1::ControlRequest& request) = 0;
    // Resume with restore was sent: the stage takes its weights now.
    virtual void UploadWeights(int stage, const v1::Fence& fence) = 0;
    // Every stage is ready: links 0 and P may be dialled.
    virtual void OpenFeed(const v1::Fence& fence) = 0;
    // Inputs and targets go out, each step once, in order; the stages expect them or soon will.
    virtual void FeedStep(std::int64_t step, const StepShape& shape) = 0;
    virtual void FeedEvaluation(std::uint64_t evaluation) = 0;
    // A step was decided, or an evaluation is over: what was sent for it is not needed again.
    virtual void ReleaseStep(std::int64_t step) = 0;
    virtual void ReleaseEvaluation(std::uint64_t evaluation) = 0;
    // Every stage has committed.
    virtual void OnStep(const StepReport& report) = 0;
    virtual void OnEvaluation(const EvaluationReport& report) = 0;
    // For the progress display: a stage said where it is.
    virtual void OnProgress(int stage, const v1::Progress& progress) = 0;
  };

  RunDriver(RunPlan plan, const Clock* clock, Environment* environment);

  void Start();
  void OnEvent(int stage, const v1::ControlEvent& event);
  // The session with a stage ended.
  void OnLost(int stage, const absl::Status& status);
  // Something outside the sessions went wrong: a feed link, an upload, a file.
  void OnError(const absl::Status& status);
  // For `lost` the owner did not look at its events (the process was stopped): that time counts against nobody.
  void OnStandstill(absl::Duration lost);
  // Call when NextDeadline has come, after all events that have come in; also harmless earlier.
  void OnTimer();
  absl::Duration NextDeadline() const;
  // Finish the step or the evaluation in work, then stop: every stage can be asked for its weights then. An
  // evaluation of weights that no step of this run has changed stops at once.
  void Interrupt();

  bool finished() const { return phase_ == Phase::kDone || phase_ == Phase::kFailed; }
  bool interrupted() const { return interrupted_; }
  // OK when done. Otherwise what stopped the run, by code: UNAVAILABLE and DEADLINE_EXCEEDED a peer,
  // FAILED_PRECONDITION refused (held by another, version), others as the stage reported them.
  const absl::Status& result() const { return result_; }
  const v1::Fence& fence() const { return fence_; }
  std::uint64_t state_id() const { return state_id_; }
  std::int64_t committed_steps() const { return committed_; }
  const std::vector<v1::Ready>& ready() const { return ready_; }
  const std::vector<v1::Attached>& attached() const { return attached_; }

 private:
  enum class Phase { kIdle, kAttaching, kLoading, kStepping, kEvaluating, kDone, kFailed };

  // One stage, as far as it is known.
  struct Stage {
    bool answered = false;  // to what the phase waits for: Attached, Ready, Evaluated
    std::optional<v1::Computed> computed;
    std::optional<v1::Evaluated> evaluated;
    std::int64_t committed = 0;
    absl::Duration heard = absl::ZeroDuration();
    std::optional<v1::WaitingFor> waiting_for;
    // What it has done in this step, and what has moved on its links in this fence: to notice a stall.
    std::uint64_t actions = 0;
    std::uint64_t moved_bytes = 0;
  };

  int stages() const { return static_cast<int>(stages_.size()); }
  void Send(int stage, v1::ControlRequest request);
  void Broadcast(const v1::ControlRequest& request);
  void Fail(const absl::Status& status);
  std::string Name(int stage) const;
  void ExpectAnswers(absl::Duration within);
  bool AllAnswered() const;

  void OnAttached(int stage, const v1::Attached& attached);
  void OnReady(int stage, const v1::Ready& ready);
  void OnComputed(int stage, const v1::Computed& computed);
  void OnCommitted(int stage, const v1::Committed& committed);
  void OnEvaluated(int stage, const v1::Evaluated& evaluated);
  void OnFailed(int stage, const v1::Failed& failed);

  void LoadStages();
  void DefinePrograms(bool train, std::uint32_t micro_batches);
  v1::Begin MakeBegin(std::int64_t step, std::uint64_t base_state_id);
  void FeedThrough(std::int64_t step);
  void NextTask();
  void DecideStep();
  bool EvaluationFollows(std::int64_t step) const;
  void StartEvaluation();
  void Stalled();
  absl::Duration StallLimit() const;
  std::string StandstillNote() const;

  const RunPlan plan_;
  const Clock* const clock_;
  Environment* const environment_;

  Phase phase_ = Phase::kIdle;
  absl::Status result_;
  v1::Fence fence_;
  std::uint64_t state_id_ = 0;
  std::vector<Stage> stages_;
  std::vector<v1::Attached> attached_;
  std::vector<v1::Ready> ready_;
  std::set<std::pair<bool, std::uint32_t>> defined_;  // programs: (train, micro-batches)

  std::int64_t step_ = 0;       // begun
  std::int64_t decided_ = 0;    // commit sent
  LossScaler scaler_;
  std::int64_t committed_ = 0;  // every stage answered
  std::int64_t fed_ = 0;
  std::int64_t evaluated_after_ = 0;
  std::uint64_t evaluation_ = 0;
  bool interrupted_ = false;
  StepReport report_;  // of the decided step
  std::vector<absl::Duration> durations_;
  absl::Duration task_began_ = absl::ZeroDuration();
  absl::Duration step_began_ = absl::ZeroDuration();
  absl::Duration progressed_ = absl::ZeroDuration();
  absl::Duration answers_due_ = absl::InfiniteDuration();
  // The last one, and when it ended.
  absl::Duration standstill_ = absl::ZeroDuration();
  absl::Duration standstill_end_ = absl::ZeroDuration();
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_RUN_DRIVER_H_
