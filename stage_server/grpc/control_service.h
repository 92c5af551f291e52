// StageControl over gRPC: a thin adapter between streams and a Stage. Callback API, no thread of its own.
#ifndef RESBM_STAGE_SERVER_GRPC_CONTROL_SERVICE_H_
#define RESBM_STAGE_SERVER_GRPC_CONTROL_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "proto/resbm/v1/control.grpc.pb.h"
#include "stage_server/host/stage.h"

namespace resbm::stage_server {

class ControlService : public v1::StageControl::CallbackService {
 public:
  // `identity`: what Describe says that never changes. `stage` outlives the server.
  ControlService(Stage* stage, v1::DescribeReply identity);

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context, const v1::DescribeRequest* request,
                                     v1::DescribeReply* reply) override;
  grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>* Session(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetShard(grpc::CallbackServerContext* context, const v1::GetShardRequest* request,
                                     v1::GetShardReply* reply) override;
  grpc::ServerUnaryReactor* PutShard(grpc::CallbackServerContext* context, const v1::PutShardRequest* request,
                                     v1::PutShardReply* reply) override;

 private:
  Stage* const stage_;
  const v1::DescribeReply identity_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_GRPC_CONTROL_SERVICE_H_
