// The two ways in which a neighbour's stream meets the stage: we dial it, or it says Hello to us.
#ifndef RESBM_STAGE_SERVER_GRPC_LINK_ADAPTERS_H_
#define RESBM_STAGE_SERVER_GRPC_LINK_ADAPTERS_H_

#include <functional>
#include <memory>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "proto/wire/grpc_link.h"
#include "stage_server/host/endpoint_links.h"
#include "stage_server/host/stage.h"

namespace resbm::stage_server {

class GrpcDiallers : public DiallerFactory {
 public:
  explicit GrpcDiallers(std::shared_ptr<grpc::ChannelCredentials> credentials) : credentials_(std::move(credentials)) {}

  std::unique_ptr<Dialler> Dial(const v1::Neighbour& neighbour, std::shared_ptr<wire::LinkEndpoint> endpoint) override {
    return std::make_unique<GrpcDialler>(neighbour.address(), credentials_, std::move(endpoint));
  }

 private:
  struct GrpcDialler : Dialler {
    GrpcDialler(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials,
                std::shared_ptr<wire::LinkEndpoint> endpoint)
        : dialler(std::move(address), std::move(credentials), std::move(endpoint)) {
      dialler.Start();
    }
    wire::LinkDialler dialler;
  };

  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

class StageLinkDirectory : public wire::LinkDirectory {
 public:
  // `stage` outlives the server.
  explicit StageLinkDirectory(Stage* stage) : stage_(stage) {}

  void Find(const v1::Hello& hello,
            std::function<void(absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>>)> found) override {
    stage_->FindLink(hello, std::move(found));
  }

 private:
  Stage* const stage_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_GRPC_LINK_ADAPTERS_H_
