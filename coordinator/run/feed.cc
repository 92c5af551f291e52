#include "coordinator/run/feed.h"

#include "absl/strings/str_format.h"
#include "proto/base/status.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/link_endpoint.h"

namespace resbm::coordinator {

// One outer link: nothing comes back on it.
class Feed::Line : public wire::LinkEndpoint::Listener {
 public:
  Line(const Options& options, const v1::Fence& fence, int link, v1::Side side, const std::string& address)
      : name_(absl::StrFormat("link %d from the coordinator to %s", link, address)), on_error_(options.on_error) {
    wire::LinkEndpoint::Options endpoint;
    endpoint.job_id = options.job_id;
    endpoint.fence = fence;
    endpoint.link_key = options.link_key;
    endpoint.link = static_cast<std::uint32_t>(link);
    endpoint.side = side;
    endpoint_ = std::make_shared<wire::LinkEndpoint>(std::move(endpoint), this);
    dialler_ = std::make_unique<wire::LinkDialler>(address, options.credentials, endpoint_);
    dialler_->Start();
  }

  ~Line() override {
    dialler_->Stop();
    endpoint_->Shutdown(absl::CancelledError("the run is over"));
  }

  void Send(v1::TensorHeader header, int micro_batch, EncodedTensor tensor) {
    header.set_micro_batch(static_cast<std::uint32_t>(micro_batch));
    header.set_tensor_count(1);
    endpoint_->Send(std::move(header), std::move(tensor));
  }
  wire::LinkEndpoint& endpoint() { return *endpoint_; }

  void OnTensor(wire::ReceivedTensor) override {}
  void OnAllSent() override {}
  void OnConnected() override {}
  void OnDisconnected(const absl::Status&) override {}  // dialled again; a stage that waits says so
  void OnError(const absl::Status& status) override { on_error_(Annotate(status, name_)); }

 private:
  const std::string name_;
  const std::function<void(absl::Status)> on_error_;
  std::shared_ptr<wire::LinkEndpoint> endpoint_;
  std::unique_ptr<wire::LinkDialler> dialler_;
};

Feed::Feed(Options options, const data::BatchSource* source) : options_(std::move(options)), source_(source) {}

Feed::~Feed() { Close(); }

void Feed::Open(const v1::Fence& fence) {
  // The coordinator is upstream of the first stage and downstream of the last.
  if (options_.inputs) inputs_ = std::make_unique<Line>(options_, fence, 0, v1::UPSTREAM, options_.first_address);
  if (options_.targets) {
    targets_ = std::make_unique<Line>(options_, fence, options_.stages, v1::DOWNSTREAM, options_.last_address);
  }
}

void Feed::SendStep(std::int64_t step) {
  const data::StepBatch batch = source_->Plan(step);
  v1::TensorHeader input, target;
  input.set_kind(v1::INPUT);
  target.set_kind(v1::TARGET);
  input.set_step(static_cast<std::uint64_t>(step));
  target.set_step(static_cast<std::uint64_t>(step));
  for (int m = 0; m < static_cast<int>(batch.micro_batch_sizes.size()); ++m) {
    if (inputs_ != nullptr) inputs_->Send(input, m, source_->Inputs(batch, m));
    if (targets_ != nullptr) targets_->Send(target, m, source_->Targets(batch, m));
  }
}

void Feed::SendEvaluation(std::uint64_t evaluation) {
  v1::TensorHeader input, target;
  input.set_kind(v1::INPUT);
  target.set_kind(v1::TARGET);
  input.set_evaluation(evaluation);
  target.set_evaluation(evaluation);
  for (int m = 0; m < static_cast<int>(source_->evaluation_sizes().size()); ++m) {
    if (inputs_ != nullptr) inputs_->Send(input, m, source_->EvaluationInputs(m));
    if (targets_ != nullptr) targets_->Send(target, m, source_->EvaluationTargets(m));
  }
}

void Feed::ReleaseStep(std::int64_t step) {
  if (inputs_ != nullptr) inputs_->endpoint().ReleaseThroughStep(static_cast<std::uint64_t>(step));
  if (targets_ != nullptr) targets_->endpoint().ReleaseThroughStep(static_cast<std::uint64_t>(step));
}

void Feed::ReleaseEvaluation() {
  if (inputs_ != nullptr) inputs_->endpoint().ReleaseAll();
  if (targets_ != nullptr) targets_->endpoint().ReleaseAll();
}

void Feed::Close() {
  inputs_.reset();
  targets_.reset();
}

}  // namespace resbm::coordinator
