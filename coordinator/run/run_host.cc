#include "coordinator/run/run_host.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "coordinator/run/local_data.h"
#include "coordinator/run/run_loop.h"
#include "coordinator/run/weights.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"

namespace resbm::coordinator {

RunHost::RunHost(RunSetup* setup, Fleet* fleet, std::vector<std::string> shards, RunObserver* observer)
    : setup_(setup),
      fleet_(fleet),
      shards_(std::move(shards)),
      observer_(observer),
      events_(std::make_shared<EventQueue>()) {
  std::vector<std::string> addresses;
  for (int s = 0; s < fleet_->size(); ++s) addresses.push_back(fleet_->neighbour_address(s));
  const std::string key = RandomKey();
  ConnectStages(addresses, key, &setup_->plan.stages);
  // Those that we start have no copy of their own.
  if (!fleet_->local()) AskForLocalData(setup_);
  driver_.reset(new RunDriver(setup_->plan, &Clock::Real(), this));  // the base is private: no make_unique

  Feed::Options feed;
  feed.job_id = setup_->plan.job_id;
  feed.link_key = key;
  feed.stages = fleet_->size();
  feed.first_address = fleet_->stage(0).address();
  feed.last_address = fleet_->stage(fleet_->size() - 1).address();
  feed.inputs = !setup_->plan.stages.front().local_data().inputs();
  feed.targets = !setup_->plan.stages.back().local_data().targets();
  feed.credentials = grpc::InsecureChannelCredentials();
  // Events run only inside Run, while the driver lives.
  feed.on_error = [events = events_, this](absl::Status status) {
    events->Post([this, status] { driver_->OnError(status); });
  };
  feed_ = std::make_unique<Feed>(std::move(feed), setup_->batches.get());
}

RunHost::~RunHost() = default;

absl::Status RunHost::Run() {
  for (int s = 0; s < fleet_->size(); ++s) {
    StageClient::Handlers handlers;
    handlers.on_event = [events = events_, this, s](v1::ControlEvent event) {
      events->Post([this, s, event = std::move(event)] { driver_->OnEvent(s, event); });
    };
    handlers.on_closed = [events = events_, this, s](absl::Status status) {
      if (status.ok()) status = absl::UnavailableError("the stage server ended the session");
      events->Post([this, s, status] { driver_->OnLost(s, status); });
    };
    fleet_->stage(s).OpenSession(std::move(handlers));
  }
  driver_->Start();
  RunUntilFinished(events_.get(), Clock::Real(), driver_.get());
  uploads_.clear();
  return driver_->result();
}

void RunHost::Interrupt() {
  events_->Post([this] { driver_->Interrupt(); });
}

void RunHost::Stop() {
  events_->Post([this] { driver_->OnError(absl::CancelledError("stopped by the user")); });
}

absl::StatusOr<std::string> RunHost::CollectWeights() {
  std::vector<std::string> shards;
  for (int s = 0; s < fleet_->size(); ++s) {
    auto shard = fleet_->stage(s).DownloadWeights(setup_->plan.job_id, driver_->fence(), driver_->state_id());
    if (!shard.ok()) return Annotate(shard.status(), absl::StrFormat("weights of stage %d", s));
    shards.push_back(*std::move(shard));
  }
  return MergeShards(shards);
}

void RunHost::Release() {
  // In this order: to a stage that is not released, links that end are an accident.
  fleet_->Release(driver_->fence());
  feed_->Close();
}

void RunHost::SendControl(int stage, const v1::ControlRequest& request) { fleet_->stage(stage).Send(request); }

void RunHost::UploadWeights(int stage, const v1::Fence& fence) {
  uploads_.push_back(fleet_->stage(stage).UploadWeights(
      setup_->plan.job_id, fence, shards_[stage], [events = events_, this, stage](const absl::Status& status) {
        if (status.ok()) return;
        const absl::Status error = Annotate(status, absl::StrFormat("weights for stage %d", stage));
        events->Post([this, error] { driver_->OnError(error); });
      }));
}

void RunHost::OpenFeed(const v1::Fence& fence) { feed_->Open(fence); }
void RunHost::FeedStep(std::int64_t step, const StepShape&) { feed_->SendStep(step); }
void RunHost::FeedEvaluation(std::uint64_t evaluation) { feed_->SendEvaluation(evaluation); }
void RunHost::ReleaseStep(std::int64_t step) { feed_->ReleaseStep(step); }
void RunHost::ReleaseEvaluation(std::uint64_t) { feed_->ReleaseEvaluation(); }

void RunHost::OnStep(const StepReport& report) {
  const absl::Status status = observer_->OnStep(report);
  if (!status.ok()) driver_->OnError(status);
}

void RunHost::OnEvaluation(const EvaluationReport& report) {
  const absl::Status status = observer_->OnEvaluation(report);
  if (!status.ok()) driver_->OnError(status);
}

void RunHost::OnProgress(int stage, const v1::Progress& progress) { observer_->OnProgress(stage, progress); }

}  // namespace resbm::coordinator
