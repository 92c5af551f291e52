// The coordinator as outer neighbour: inputs down link 0, targets up link P.
#ifndef RESBM_COORDINATOR_RUN_FEED_H_
#define RESBM_COORDINATOR_RUN_FEED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "proto/data/batch_source.h"
#include "proto/resbm/v1/link.pb.h"

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
    // Whether the coordinator feeds that end; otherwise the stage has a copy of the data.
    bool inputs = true;
    bool targets = true;
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    // A link has failed for good; any thread.
    std::function<void(absl::Status)> on_error;
  };

  // `source` outlives the feed.
  Feed(Options options, const data::BatchSource* source);
  ~Feed();  // Close

  // Dials both links. Once.
  void Open(const v1::Fence& fence);
  void SendStep(std::int64_t step);
  void SendEvaluation(std::uint64_t evaluation);
  // Until then the tensors are kept, should a link break.
  void ReleaseStep(std::int64_t step);
  void ReleaseEvaluation();
  void Close();

 private:
  class Line;

  const Options options_;
  const data::BatchSource* const source_;
  std::unique_ptr<Line> inputs_;
  std::unique_ptr<Line> targets_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_FEED_H_
