// Runs a RunDriver over real stage servers: brings their events to it, carries out what it asks for, feeds
// the pipeline's ends.
#ifndef RESBM_COORDINATOR_RUN_RUN_HOST_H_
#define RESBM_COORDINATOR_RUN_RUN_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/run/event_queue.h"
#include "coordinator/run/feed.h"
#include "coordinator/run/fleet.h"
#include "coordinator/run/run_driver.h"
#include "coordinator/run/run_setup.h"
#include "coordinator/run/shard_upload.h"

namespace resbm::coordinator {

// What a run tells the one who watches it. Called on the thread of Run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // An error stops the run.
  virtual absl::Status OnStep(const StepReport& report) = 0;
  virtual absl::Status OnEvaluation(const EvaluationReport& report) = 0;
  virtual void OnProgress(int stage, const v1::Progress& progress) = 0;
};

class RunHost : private RunDriver::Environment {
 public:
  // `shards`: with setup.plan.restore, the weights of each stage. All outlive the host.
  RunHost(RunSetup* setup, Fleet* fleet, std::vector<std::string> shards, RunObserver* observer);
  ~RunHost() override;

  // Until the driver has finished: to the end of training, or as soon as it cannot go on or was interrupted, also
  // while weights are on their way. The result is the driver's.
  absl::Status Run();
  // Finish the step in work and return from Run. Any thread, any number of times.
  void Interrupt();
  // Return from Run now. Any thread.
  void Stop();

  // After Run ended well: the whole model as a safetensors file.
  absl::StatusOr<std::string> CollectWeights();
  // Lets the stages go. After Run, once.
  void Release();

  const RunDriver& driver() const { return *driver_; }

 private:
  void SendControl(int stage, const v1::ControlRequest& request) override;
  void UploadWeights(int stage, const v1::Fence& fence) override;
  void OpenFeed(const v1::Fence& fence) override;
  void FeedStep(std::int64_t step, const StepShape& shape) override;
  void FeedEvaluation(std::uint64_t evaluation) override;
  void ReleaseStep(std::int64_t step) override;
  void ReleaseEvaluation(std::uint64_t evaluation) override;
  void OnStep(const StepReport& report) override;
  void OnEvaluation(const EvaluationReport& report) override;
  void OnProgress(int stage, const v1::Progress& progress) override;

  RunSetup* const setup_;
  Fleet* const fleet_;
  const std::vector<std::string> shards_;
  RunObserver* const observer_;
  // Shared with the handlers of sessions and links, which may come late.
  const std::shared_ptr<EventQueue> events_;
  std::unique_ptr<RunDriver> driver_;
  std::unique_ptr<Feed> feed_;
  std::vector<std::unique_ptr<ShardUpload>> uploads_;  // only during Run
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_RUN_HOST_H_
