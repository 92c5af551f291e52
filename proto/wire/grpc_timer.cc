#include "proto/wire/grpc_timer.h"

#include <chrono>
#include <utility>

namespace resbm::wire {

void RunSoon(std::function<void()> task) {
  auto* alarm = new grpc::Alarm;
  alarm->Set(std::chrono::system_clock::now(), [alarm, task = std::move(task)](bool) {
    task();
    // gRPC itself holds what is behind the Alarm until this function has returned.
    delete alarm;
  });
}

void GrpcTimer::Set(absl::Duration delay, std::function<void(bool expired)> task) {
  alarm_ = std::make_unique<grpc::Alarm>();
  // The task goes when it has run: it may own what owns this timer.
  alarm_->Set(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(delay),
              [task = std::move(task)](bool expired) mutable { std::exchange(task, nullptr)(expired); });
}

}  // namespace resbm::wire
