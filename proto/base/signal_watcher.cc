#include "proto/base/signal_watcher.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace resbm {

SignalWatcher::SignalWatcher(std::function<void(int)> handler) : handler_(std::move(handler)) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this, signals] {
    for (int count = 1;; ++count) {
      int signal = 0;
      sigwait(&signals, &signal);
      if (stopping_) return;
      handler_(count);
    }
  });
}

SignalWatcher::~SignalWatcher() {
  stopping_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

}  // namespace resbm
