// Messages of tensor_frame as gRPC's.
#ifndef RESBM_PROTO_WIRE_GRPC_BUFFER_H_
#define RESBM_PROTO_WIRE_GRPC_BUFFER_H_

#include <grpcpp/support/byte_buffer.h>

#include "proto/wire/tensor_frame.h"

namespace resbm::wire {

// A message whose payload is the tensor's own memory, kept alive until gRPC is done with it.
grpc::ByteBuffer ToByteBuffer(const OutgoingMessage& message);

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_GRPC_BUFFER_H_
