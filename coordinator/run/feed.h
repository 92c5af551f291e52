// The coordinator as outer neighbour: inputs down link 0, targets up link P.
#ifndef RESBM_COORDINATOR_RUN_FEED_H_
#define RESBM_COORDINATOR_RUN_FEED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "coordinator/data/batch_source.h"
#include "coordinator/run/run_driver.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/link_endpoint.h"

namespace resbm::coordinator {

// Methods: for one thread, the driver's. The tensors leave on gRPC's threads.
class Feed {
 public:
  struct Options {
    std::string job_id;
    std::string link_key;
    int stages = 1;
    std::string first_address;
    std::string last_address;
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    // A link failed for good; any thread.
    std::function<void(absl::Status)> on_error;
  };

  // `train` and `test` outlive the feed; test may be null where nothing is evaluated.
  Feed(Options options, const BatchSource* train, const BatchSource* test);
  ~Feed();  // Close

  void Open(const v1::Fence& fence);
  void SendStep(std::int64_t step);
  void SendEvaluation(std::uint64_t evaluation);
  void ReleaseStep(std::int64_t step);
  void ReleaseEvaluation();
  void Close();

 private:
  class Line;

  void Send(const BatchSource& source, const StepBatch& batch, const v1::TensorHeader& work);

  const Options options_;
  const BatchSource* const train_;
  const BatchSource* const test_;
  std::unique_ptr<Line> inputs_;
  std::unique_ptr<Line> targets_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_FEED_H_
