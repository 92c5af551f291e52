// One step or one evaluation at this stage: which tensors are expected, which action is next, what is sent,
// what it all adds up to. Driven by the state machine; computes nothing itself.
//
//   Open --> { Next -> work -> OnDone }* --> computed() --> (everything sent) --> finished()
#ifndef RESBM_STAGE_SERVER_CORE_RUNNER_H_
#define RESBM_STAGE_SERVER_CORE_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/link.pb.h"
#include "stage_server/core/inbox.h"
#include "stage_server/core/program.h"
#include "stage_server/core/span_log.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/core/stage_shape.h"
#include "stage_server/core/tensor_plan.h"
#include "stage_server/core/work.h"

namespace resbm::stage_server {

// Inputs and targets of a step that may come before its Begin. Only the end stages receive any.
struct Prefetch {
  std::uint64_t step = 0;
  std::vector<std::int64_t> samples;  // of each micro-batch; empty = none
};

class Runner {
 public:
  struct Task {
    WorkId id;
    Program program;
    std::vector<std::int64_t> samples;  // of each micro-batch
    // Training: which samples these are, of each micro-batch; empty where the coordinator does not say.
    std::uint64_t epoch = 0;
    std::vector<std::vector<std::uint64_t>> sample_indices;
    double loss_scale = 1;
    bool trace = false;                 // Computed brings spans
    Prefetch announced;                 // by the Begin before
    Prefetch next;
    std::uint64_t max_tensor_bytes = 0;
    // Evaluation: sent tensors are kept for a broken link up to this; beyond it they are released, and a
    // link that breaks then fails the evaluation.
    std::uint64_t max_retained_bytes = 0;
  };

  // `shape`, `inbox` and `links` outlive it. INVALID_ARGUMENT (nothing was done): another number of
  // micro-batches than the program's, or other samples than announced; a program of the other mode; a bad
  // or too large micro-batch; more in flight than the stage's window.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(const StageShape& shape, Task task, Inbox* inbox,
                                                        StageLinks* links, const Clock& clock);

  // Tells the links what to expect.
  void Open();

  // The next piece of work if its tensors are here (evaluating: and all was sent), else nullopt. A step's
  // last is Finish. Not again before OnDone.
  std::optional<Work> Next();
  // The result of what Next gave, status OK. INTERNAL: not what the spec announced.
  absl::Status OnDone(WorkResult result, const std::vector<ParameterSize>& parameters);

  bool computed() const { return stage_ == Stage::kComputed; }
  // Computed, and handed to the links.
  bool finished() const { return computed() && links_->AllSent(End::kUp) && links_->AllSent(End::kDown); }

  const WorkId& id() const { return task_.id; }
  // That the present or next action is about.
  std::uint32_t micro_batch() const;

  bool traced() const { return spans_ != nullptr; }

  // After finished(), once. Attempt, base_state_id, commit_seconds and the span of the commit before are the
  // caller's to set.
  v1::Computed MakeComputed();
  v1::Evaluated MakeEvaluated() const;
  v1::Progress MakeProgress() const;

 private:
  enum class Stage { kActions, kFinish, kComputed };

  Runner(const StageShape& shape, Task task, Inbox* inbox, StageLinks* links, const Clock& clock);

  static absl::Status Append(absl::StatusOr<std::vector<v1::TensorHeader>> headers, std::vector<v1::TensorHeader>& to);
  absl::Status SendOutputs(const ProgramAction& action, EncodedTensors outputs);
  void SetInboxLimits();
  std::optional<End> Missing() const;
  void StopWaiting();
  void Wait(End end);
  v1::WorkTimes Times() const;
  v1::LinkBytes Bytes() const;
  v1::MemoryUse Memory() const;
  std::uint64_t RetainedBytes() const { return links_->RetainedBytes(End::kUp) + links_->RetainedBytes(End::kDown); }

  const StageShape& shape_;
  const Task task_;
  Inbox* const inbox_;
  StageLinks* const links_;
  const Clock& clock_;

  // Validated by Create, in the order of arrival; by micro-batch.
  std::vector<v1::TensorHeader> expected_up_, expected_down_;
  std::vector<std::vector<v1::TensorHeader>> outgoing_up_, outgoing_down_;

  Stage stage_ = Stage::kActions;
  std::size_t cursor_ = 0;
  bool working_ = false;
  std::uint32_t forwards_ = 0;
  std::uint32_t backwards_ = 0;

  // Sums.
  double loss_sum_ = 0;
  double weight_ = 0;
  std::vector<double> metric_sums_;
  std::vector<double> squared_norms_;
  std::map<std::string, std::uint64_t> non_finite_;
  std::vector<v1::Signal> signals_;

  // Times and traffic.
  absl::Duration started_;
  absl::Duration total_ = absl::ZeroDuration();
  double forward_seconds_ = 0;
  double backward_seconds_ = 0;
  absl::Duration waited_[2] = {absl::ZeroDuration(), absl::ZeroDuration()};  // by End
  std::optional<End> waiting_;
  absl::Duration waiting_since_ = absl::ZeroDuration();
  LinkCounters counters_at_start_[2];
  std::uint64_t peak_retained_bytes_ = 0;
  ComputeMemory memory_;
  std::unique_ptr<SpanLog> spans_;  // null: not asked for
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_RUNNER_H_
