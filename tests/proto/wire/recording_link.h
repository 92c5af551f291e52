// A listener and a connection that remember what was called, and helpers to join two endpoints by hand.
#ifndef RESBM_TESTS_PROTO_WIRE_RECORDING_LINK_H_
#define RESBM_TESTS_PROTO_WIRE_RECORDING_LINK_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/mutex.h"
#include "proto/wire/link_endpoint.h"
#include "proto/wire/tensor_frame.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {

// Any thread.
class RecordingListener : public LinkEndpoint::Listener {
 public:
  // Runs in OnTensor, without the listener's lock. Set before the first call.
  std::function<void(const ReceivedTensor&)> on_tensor;
  std::function<void(const absl::Status&)> on_error;

  void OnTensor(ReceivedTensor tensor) override {
    if (on_tensor) on_tensor(tensor);
    Note("tensor", [&] { tensors_.push_back(std::move(tensor)); });
  }
  void OnAllSent() override {
    Note("all sent", [&] {});
  }
  void OnConnected() override {
    Note("connected", [&] {});
  }
  void OnDisconnected(const absl::Status& status) override {
    Note("disconnected", [&] { status_ = status; });
  }
  void OnError(const absl::Status& status) override {
    if (on_error) on_error(status);
    Note("error", [&] { status_ = status; });
  }

  std::vector<std::string> events() const {
    MutexLock lock(mutex_);
    return events_;
  }
  int count(const std::string& event) const {
    int count = 0;
    for (const std::string& e : events()) count += e == event;
    return count;
  }
  // Of the last OnDisconnected or OnError.
  absl::Status status() const {
    MutexLock lock(mutex_);
    return status_;
  }
  std::vector<ReceivedTensor> tensors() const {
    MutexLock lock(mutex_);
    return tensors_;
  }
  // Until `done(*this)`; true unless a minute passed.
  bool WaitUntil(const std::function<bool(const RecordingListener&)>& done) const {
    for (;;) {
      std::size_t seen = 0;
      {
        MutexLock lock(mutex_);
        seen = events_.size();
      }
      if (done(*this)) return true;
      MutexLock lock(mutex_);
      while (events_.size() == seen) {
        if (!changed_.WaitFor(mutex_, absl::Minutes(1))) return false;
      }
    }
  }

 private:
  template <typename F>
  void Note(const char* event, const F& change) {
    MutexLock lock(mutex_);
    change();
    events_.push_back(event);
    changed_.NotifyAll();
  }

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<std::string> events_;
  std::vector<ReceivedTensor> tensors_;
  absl::Status status_;
};

// For one thread.
class RecordingConnection : public LinkConnection {
 public:
  void WakeWriter() override { ++writer_wakes; }
  void WakeReader() override { ++reader_wakes; }
  void Close(const absl::Status& status) override {
    EXPECT_FALSE(closed.has_value()) << "Close was called twice";
    closed = status;
  }

  int writer_wakes = 0;
  int reader_wakes = 0;
  std::optional<absl::Status> closed;
};

inline LinkEndpoint::Options OptionsOf(v1::Side side) {
  LinkEndpoint::Options options;
  options.job_id = "job";
  options.fence = FenceOf(3, 2);
  options.link_key = "0123456789abcdef";
  options.link = 1;
  options.side = side;
  return options;
}

// An endpoint with what it is connected to.
struct End {
  explicit End(v1::Side side) : endpoint(OptionsOf(side), &listener) {}

  // A new stream; the Hello that the endpoint sends on it.
  v1::Hello Dial(std::uint64_t seq) {
    connection = std::make_shared<RecordingConnection>();
    const auto message = endpoint.Connect(connection, seq);
    EXPECT_TRUE(message.ok()) << message.status();
    v1::LinkMessage hello;
    EXPECT_TRUE(hello.ParseFromString(Flat(*message)));
    return hello.hello();
  }
  absl::StatusOr<LinkEndpoint::Taken> Give(const std::string& message) {
    const std::string_view view = message;
    const auto parsed = ParseLinkMessage({&view, 1});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return endpoint.OnChunk(connection.get(), *parsed->chunk);
  }
  // The next message, taken by the transport; "" if there is none.
  std::string Take() {
    const auto message = endpoint.NextMessage(connection.get());
    if (!message) return "";
    endpoint.OnMessageWritten(connection.get());
    return Flat(*message);
  }
  void Break() { endpoint.OnClosed(connection.get(), absl::UnavailableError("broken")); }

  RecordingListener listener;
  std::shared_ptr<RecordingConnection> connection;
  LinkEndpoint endpoint;
};

// Both ends of link 1, upstream first.
struct Ends {
  End up{v1::UPSTREAM};
  End down{v1::DOWNSTREAM};

  void Join(std::uint64_t seq = 1) {
    const v1::Hello to_down = up.Dial(seq);
    const v1::Hello to_up = down.Dial(seq);
    ASSERT_TRUE(down.endpoint.OnHello(down.connection.get(), to_down).ok());
    ASSERT_TRUE(up.endpoint.OnHello(up.connection.get(), to_up).ok());
  }
  // Moves at most `messages` messages; how many went.
  int Move(End* from, End* to, int messages = 1000) {
    for (int moved = 0; moved < messages; ++moved) {
      const std::string message = from->Take();
      if (message.empty()) return moved;
      const auto taken = to->Give(message);
      EXPECT_TRUE(taken.ok()) << taken.status();
      EXPECT_EQ(*taken, LinkEndpoint::Taken::kYes);
    }
    return messages;
  }
};

}  // namespace resbm::wire

#endif  // RESBM_TESTS_PROTO_WIRE_RECORDING_LINK_H_
