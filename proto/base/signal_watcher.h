// SIGINT and SIGTERM as calls on an ordinary thread, where everything is allowed.
#ifndef RESBM_PROTO_BASE_SIGNAL_WATCHER_H_
#define RESBM_PROTO_BASE_SIGNAL_WATCHER_H_

#include <atomic>
#include <functional>
#include <thread>

namespace resbm {

// Make it before any other thread: the signals are blocked in the threads that come after.
class SignalWatcher {
 public:
  // `handler` gets 1 for the first signal, 2 for the second, ... on a thread of the watcher's.
  explicit SignalWatcher(std::function<void(int count)> handler);
  // No call of the handler begins after it returned. The signals stay blocked.
  ~SignalWatcher();

 private:
  const std::function<void(int)> handler_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_SIGNAL_WATCHER_H_
