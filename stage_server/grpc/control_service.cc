#include "stage_server/grpc/control_service.h"

#include <utility>

#include "proto/wire/grpc_status.h"
#include "stage_server/grpc/control_session.h"

namespace resbm::stage_server {

ControlService::ControlService(Stage* stage, v1::DescribeReply identity)
    : stage_(stage), identity_(std::move(identity)) {}

grpc::ServerUnaryReactor* ControlService::Describe(grpc::CallbackServerContext* context, const v1::DescribeRequest*,
                                                   v1::DescribeReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  stage_->Describe([this, reactor, reply](v1::DescribeReply present) {
    *reply = identity_;
    reply->MergeFrom(present);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>* ControlService::Session(grpc::CallbackServerContext*) {
  return ControlSession::Start(stage_);
}

grpc::ServerUnaryReactor* ControlService::GetShard(grpc::CallbackServerContext* context,
                                                   const v1::GetShardRequest* request, v1::GetShardReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  stage_->GetShard(*request, [reactor, reply](absl::StatusOr<v1::GetShardReply> result) {
    if (result.ok()) *reply = *std::move(result);
    reactor->Finish(wire::ToGrpc(result.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::PutShard(grpc::CallbackServerContext* context,
                                                   const v1::PutShardRequest* request, v1::PutShardReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  stage_->PutShard(*request, [reactor, reply](absl::StatusOr<v1::PutShardReply> result) {
    if (result.ok()) *reply = *std::move(result);
    reactor->Finish(wire::ToGrpc(result.status()));
  });
  return reactor;
}

}  // namespace resbm::stage_server
