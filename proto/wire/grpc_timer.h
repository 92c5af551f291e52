// Something to do later, or soon but on another call stack, on one of gRPC's threads. No thread waits.
#ifndef RESBM_PROTO_WIRE_GRPC_TIMER_H_
#define RESBM_PROTO_WIRE_GRPC_TIMER_H_

#include <functional>
#include <memory>

#include <grpcpp/alarm.h>

#include "absl/time/time.h"

namespace resbm::wire {

// Runs `task` once, on one of gRPC's threads, as soon as one is free.
void RunSoon(std::function<void()> task);

// One timer. Set, Cancel and the destructor exclude each other (the owner's lock); `task` is called once
// for each Set: with true after `delay`, with false soon after Cancel or destruction, on gRPC's threads.
class GrpcTimer {
 public:
  void Set(absl::Duration delay, std::function<void(bool expired)> task);
  void Cancel() { alarm_.reset(); }

 private:
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_GRPC_TIMER_H_
