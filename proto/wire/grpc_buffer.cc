#include "proto/wire/grpc_buffer.h"

#include <grpcpp/support/slice.h>

namespace resbm::wire {

grpc::ByteBuffer ToByteBuffer(const OutgoingMessage& message) {
  grpc::Slice slices[2] = {grpc::Slice(message.prefix), grpc::Slice()};
  if (message.payload.size() == 0) return grpc::ByteBuffer(slices, 1);
  auto* hold = new SharedBytes(message.payload);
  slices[1] = grpc::Slice(const_cast<char*>(hold->data()), hold->size(),
                          [](void* bytes) { delete static_cast<SharedBytes*>(bytes); }, hold);
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace resbm::wire
