// A server with the link service on loopback, and a directory of endpoints for it.
#ifndef RESBM_TESTS_PROTO_WIRE_LOOPBACK_LINK_H_
#define RESBM_TESTS_PROTO_WIRE_LOOPBACK_LINK_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/link_endpoint.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {

// Endpoints by link. Holds every Hello while told to.
class MapDirectory : public LinkDirectory {
 public:
  using Answer = std::function<void(absl::StatusOr<std::shared_ptr<LinkEndpoint>>)>;

  void Add(std::shared_ptr<LinkEndpoint> endpoint) {
    MutexLock lock(mutex_);
    endpoints_[endpoint->options().link] = std::move(endpoint);
  }
  void Hold() {
    MutexLock lock(mutex_);
    hold_ = true;
  }
  // Answers those that were held, once there are `count`.
  void Release(std::size_t count) {
    std::vector<std::pair<v1::Hello, Answer>> held;
    {
      MutexLock lock(mutex_);
      while (held_.size() < count) changed_.Wait(mutex_);
      hold_ = false;
      held.swap(held_);
    }
    for (auto& [hello, answer] : held) answer(Look(hello));
  }

  void Find(const v1::Hello& hello, Answer found) override {
    {
      MutexLock lock(mutex_);
      if (hold_) {
        held_.emplace_back(hello, std::move(found));
        changed_.NotifyAll();
        return;
      }
    }
    found(Look(hello));
  }

 private:
  absl::StatusOr<std::shared_ptr<LinkEndpoint>> Look(const v1::Hello& hello) {
    MutexLock lock(mutex_);
    const auto it = endpoints_.find(hello.link());
    if (it == endpoints_.end()) {
      return absl::FailedPreconditionError(absl::StrCat("no link ", hello.link(), " ends at this stage"));
    }
    return it->second;
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<std::uint32_t, std::shared_ptr<LinkEndpoint>> endpoints_ RESBM_GUARDED_BY(mutex_);
  bool hold_ RESBM_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<v1::Hello, Answer>> held_ RESBM_GUARDED_BY(mutex_);
};

class LoopbackServer {
 public:
  // Port 0: any. The port is kept over Stop and Start.
  explicit LoopbackServer(LinkDirectory* directory, absl::Duration hello_timeout = absl::Seconds(10))
      : directory_(directory), hello_timeout_(hello_timeout) {
    Start();
  }
  ~LoopbackServer() { Stop(); }

  void Start() {
    service_ = MakeLinkService(directory_, hello_timeout_);
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    int port = 0;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    port_ = port;
  }
  // As a process that dies: streams are cut at once.
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
    service_.reset();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  LinkDirectory* const directory_;
  const absl::Duration hello_timeout_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// An endpoint that streams may outlive.
struct SharedEnd {
  explicit SharedEnd(LinkEndpoint::Options options)
      : endpoint(std::make_shared<LinkEndpoint>(std::move(options), &listener)) {}
  ~SharedEnd() { endpoint->Shutdown(absl::CancelledError("the test is over")); }

  RecordingListener listener;
  std::shared_ptr<LinkEndpoint> endpoint;
};

inline LinkEndpoint::Options OptionsOf(v1::Side side, std::uint32_t link) {
  LinkEndpoint::Options options = OptionsOf(side);
  options.link = link;
  return options;
}

inline bool WaitForTensors(const SharedEnd& end, int count) {
  return end.listener.WaitUntil([=](const RecordingListener& l) { return l.count("tensor") >= count; });
}
inline bool WaitForEvent(const SharedEnd& end, const std::string& event, int count = 1) {
  return end.listener.WaitUntil([=](const RecordingListener& l) { return l.count(event) >= count; });
}

}  // namespace resbm::wire

#endif  // RESBM_TESTS_PROTO_WIRE_LOOPBACK_LINK_H_
