// Two endpoints over a link that breaks at random: everything arrives exactly once, in order, bit-equal.
// Once step by step with many seeds, once with threads for ThreadSanitizer.
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/mutex.h"
#include "proto/wire/link_endpoint.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

constexpr std::uint64_t kSteps = 5;
constexpr std::uint32_t kMicroBatches = 6;

// Some empty, some of one byte less or more than whole chunks; each of other bytes.
const EncodedTensor& TensorAt(v1::TensorKind kind, std::uint64_t step, std::uint32_t micro_batch) {
  static const std::vector<EncodedTensor> kTensors = [] {
    constexpr std::int64_t kSizes[] = {0, 1, 1000, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, 2 * kChunkBytes + 5};
    std::vector<EncodedTensor> tensors;
    for (std::uint64_t seed = 0; seed < 2 * kSteps * kMicroBatches; ++seed) {
      tensors.push_back(TensorOf({kSizes[seed * 2654435761 % 7]}, WireDtype::kUint8, seed));
    }
    return tensors;
  }();
  return kTensors[(kind == v1::GRADIENT ? kSteps * kMicroBatches : 0) + (step - 1) * kMicroBatches + micro_batch];
}

void ExpectAll(LinkEndpoint* endpoint, v1::TensorKind kind, std::uint64_t step) {
  for (std::uint32_t m = 0; m < kMicroBatches; ++m) {
    endpoint->Expect(ExpectedOf(WorkOf(kind, step, m), TensorAt(kind, step, m)));
  }
}

// The tensors of a direction in the order sent.
void ExpectExactlyOnceInOrder(const std::vector<ReceivedTensor>& tensors, v1::TensorKind kind) {
  ASSERT_EQ(tensors.size(), kSteps * kMicroBatches);
  for (std::uint64_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t step = 1 + i / kMicroBatches;
    const std::uint32_t micro_batch = i % kMicroBatches;
    EXPECT_EQ(tensors[i].header.step(), step);
    EXPECT_EQ(tensors[i].header.micro_batch(), micro_batch);
    EXPECT_TRUE(Equal(tensors[i].tensor, TensorAt(kind, step, micro_batch)));
  }
}

// As stages do: a gradient answers each activation; an activation is released when its gradient is there, a
// step's gradients at its decision, which follows the last.
void AnswerLikeStages(RecordingListener* up_listener, RecordingListener* down_listener, LinkEndpoint* up,
                      LinkEndpoint* down) {
  down_listener->on_tensor = [=](const ReceivedTensor& received) {
    const std::uint64_t step = received.header.step();
    const std::uint32_t m = received.header.micro_batch();
    down->Send(WorkOf(v1::GRADIENT, step, m), TensorAt(v1::GRADIENT, step, m));
    down->Consumed();
  };
  up_listener->on_tensor = [=](const ReceivedTensor& received) {
    const std::uint64_t step = received.header.step();
    const std::uint32_t m = received.header.micro_batch();
    up->ReleaseMicroBatch(step, m);
    if (m + 1 == kMicroBatches) down->ReleaseThroughStep(step);
    up->Consumed();
  };
}

TEST(LinkUnderFaults, EverythingArrivesOnceInOrderForManySeeds) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Ends ends;
    End* const end[2] = {&ends.up, &ends.down};
    AnswerLikeStages(&ends.up.listener, &ends.down.listener, &ends.up.endpoint, &ends.down.endpoint);
    ends.up.endpoint.SetInboxLimit(1 + random() % 3, /*hard=*/false);
    ends.down.endpoint.SetInboxLimit(1 + random() % 3, /*hard=*/false);
    std::deque<std::string> wire[2];  // [sender]
    std::uint64_t seq = 0, sent = 0, expected[2] = {0, 0};
    std::vector<int> damaged(2 * kSteps * kMicroBatches + 2, 0);
    bool up = false;
    const auto break_link = [&] {
      for (int i = 0; i < 2; ++i) {
        // One of the ends may notice only when the next dial arrives.
        if (random() % 2 == 0) end[i]->Break();
        wire[i].clear();
      }
      up = false;
    };
    const auto done = [&] {
      return ends.up.listener.count("tensor") + ends.down.listener.count("tensor") ==
             static_cast<int>(2 * kSteps * kMicroBatches);
    };
    int moves = 0;
    for (; !done() && moves < 20000; ++moves) {
      if (!up) {
        ends.Join(++seq);
        up = true;
      }
      const int from = random() % 2;
      switch (random() % 16) {
        case 0:
          if (sent < kSteps * kMicroBatches) {
            const std::uint64_t step = 1 + sent / kMicroBatches;
            const std::uint32_t m = sent++ % kMicroBatches;
            ends.up.endpoint.Send(WorkOf(v1::ACTIVATION, step, m), TensorAt(v1::ACTIVATION, step, m));
          }
          break;
        case 1:
          if (expected[from] < kSteps) {
            ExpectAll(&end[from]->endpoint, from == 0 ? v1::GRADIENT : v1::ACTIVATION, ++expected[from]);
          }
          break;
        case 2:
          if (random() % 4 == 0) break_link();
          break;
        case 3: {
          // Damage, at most twice to a tensor: the third time ends the endpoint.
          if (wire[from].empty()) break;
          const std::uint64_t due = end[1 - from]->endpoint.counters().tensors_received;
          if (damaged[2 * due + from] == 2) break;
          wire[from].front().back() ^= 1;
          const auto taken = end[1 - from]->Give(wire[from].front());
          if (taken.ok()) {
            ASSERT_EQ(*taken, LinkEndpoint::Taken::kHold);
            wire[from].front().back() ^= 1;
            break;
          }
          ASSERT_EQ(taken.status().code(), absl::StatusCode::kDataLoss);
          ++damaged[2 * due + from];
          break_link();
          break;
        }
        case 4: case 5: case 6: case 7: case 8: case 9: {
          std::string message = end[from]->Take();
          if (!message.empty()) wire[from].push_back(std::move(message));
          break;
        }
        default: {
          if (wire[from].empty()) break;
          const auto taken = end[1 - from]->Give(wire[from].front());
          ASSERT_TRUE(taken.ok()) << taken.status();
          if (*taken == LinkEndpoint::Taken::kYes) wire[from].pop_front();
        }
      }
    }
    ASSERT_TRUE(done()) << "after " << moves << " moves";
    ExpectExactlyOnceInOrder(ends.down.listener.tensors(), v1::ACTIVATION);
    ExpectExactlyOnceInOrder(ends.up.listener.tensors(), v1::GRADIENT);
    EXPECT_EQ(ends.up.listener.count("error") + ends.down.listener.count("error"), 0);
    EXPECT_EQ(ends.up.endpoint.retained_bytes(), 0u);
    EXPECT_EQ(ends.down.endpoint.retained_bytes(), 0u);
  }
}

// Both ends' view of one stream of the threaded test.
class Stream {
 public:
  class Half : public LinkConnection {
   public:
    explicit Half(Stream* stream) : stream_(stream) {}
    void WakeWriter() override { stream_->Wake(); }
    void WakeReader() override { stream_->Wake(); }
    void Close(const absl::Status&) override { stream_->End(); }

   private:
    Stream* const stream_;
  };

  Stream() : half{std::make_shared<Half>(this), std::make_shared<Half>(this)} {}

  std::uint64_t wakes() const {
    MutexLock lock(mutex_);
    return wakes_;
  }
  // Until Wake was called more often than `seen` says, or End.
  void WaitForWake(std::uint64_t seen) {
    MutexLock lock(mutex_);
    while (wakes_ == seen && !ended_) changed_.Wait(mutex_);
  }
  void Wake() {
    MutexLock lock(mutex_);
    ++wakes_;
    changed_.NotifyAll();
  }
  void End() {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  bool ended() const {
    MutexLock lock(mutex_);
    return ended_;
  }

  const std::shared_ptr<Half> half[2];

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::uint64_t wakes_ = 0;
  bool ended_ = false;
};

class ThreadedLink {
 public:
  explicit ThreadedLink(std::uint64_t seed)
      : seed_(seed), up_(OptionsOf(v1::UPSTREAM), &up_listener_), down_(OptionsOf(v1::DOWNSTREAM), &down_listener_) {
    AnswerLikeStages(&up_listener_, &down_listener_, &up_, &down_);
  }

  void Run() {
    Redial(nullptr);
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Pump(0); });
    threads.emplace_back([this] { Pump(1); });
    threads.emplace_back([this] {
      for (std::uint64_t step = 1; step <= kSteps; ++step) {
        for (std::uint32_t m = 0; m < kMicroBatches; ++m) {
          up_.Send(WorkOf(v1::ACTIVATION, step, m), TensorAt(v1::ACTIVATION, step, m));
        }
      }
    });
    threads.emplace_back([this] {
      for (std::uint64_t step = 1; step <= kSteps; ++step) {
        ExpectAll(&down_, v1::ACTIVATION, step);
        ExpectAll(&up_, v1::GRADIENT, step);
      }
    });
    threads.emplace_back([this] {
      // An observer, as metrics are.
      while (!stop_) {
        up_.counters();
        down_.AllSent();
        std::this_thread::yield();
      }
    });
    const auto all = [](const RecordingListener& l) { return l.count("tensor") == kSteps * kMicroBatches; };
    EXPECT_TRUE(down_listener_.WaitUntil(all));
    EXPECT_TRUE(up_listener_.WaitUntil(all));
    Stop();
    for (std::thread& thread : threads) thread.join();
  }
  // Before everything has arrived.
  void RunAndShutDownAfter(int tensors) {
    Redial(nullptr);
    ExpectAll(&down_, v1::ACTIVATION, 1);
    ExpectAll(&up_, v1::GRADIENT, 1);
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Pump(0); });
    threads.emplace_back([this] { Pump(1); });
    threads.emplace_back([this] {
      for (std::uint32_t m = 0; m < kMicroBatches; ++m) {
        up_.Send(WorkOf(v1::ACTIVATION, 1, m), TensorAt(v1::ACTIVATION, 1, m));
      }
    });
    EXPECT_TRUE(up_listener_.WaitUntil([=](const RecordingListener& l) { return l.count("tensor") >= tensors; }));
    up_.Shutdown(absl::CancelledError("over"));
    const std::size_t events = up_listener_.events().size();
    Stop();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(up_listener_.events().size(), events) << "a listener call after Shutdown";
  }

  RecordingListener up_listener_;
  RecordingListener down_listener_;

 private:
  LinkEndpoint* end(int i) { return i == 0 ? &up_ : &down_; }

  void Stop() {
    stop_ = true;
    Current()->End();
  }
  std::shared_ptr<Stream> Current() {
    MutexLock lock(mutex_);
    return stream_;
  }

  // A new stream instead of `old`, unless another thread was first.
  void Redial(const std::shared_ptr<Stream>& old) {
    MutexLock lock(mutex_);
    if (stream_ != old || stop_) return;
    if (old != nullptr) old_streams_.push_back(old);
    auto stream = std::make_shared<Stream>();
    ++seq_;
    v1::Hello hello[2];
    for (int i = 0; i < 2; ++i) {
      // Half of the time the end learns of the loss by the new dial alone.
      if (old != nullptr && (seq_ + i) % 2 == 0) end(i)->OnClosed(old->half[i].get(), absl::UnavailableError("broken"));
      const auto message = end(i)->Connect(stream->half[i], seq_);
      if (!message.ok()) return;  // shut down
      v1::LinkMessage parsed;
      ASSERT_TRUE(parsed.ParseFromString(Flat(*message)));
      hello[i] = parsed.hello();
    }
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = end(i)->OnHello(stream->half[i].get(), hello[1 - i]);
      ASSERT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    }
    stream_ = std::move(stream);
  }

  // Carries messages from end `from`, and breaks the stream now and then.
  void Pump(int from) {
    std::mt19937_64 random(seed_ * 2 + from);
    while (!stop_) {
      const std::shared_ptr<Stream> stream = Current();
      while (!stream->ended()) {
        if (random() % 12 == 0) stream->End();
        if (!Carry(from, stream.get(), random)) break;
      }
      Redial(stream);
    }
  }

  // One message, or the wait for one; false when the stream is of no use any more.
  bool Carry(int from, Stream* stream, std::mt19937_64& random) {
    const std::uint64_t seen = stream->wakes();
    const auto message = end(from)->NextMessage(stream->half[from].get());
    if (!message) {
      stream->WaitForWake(seen);
      return !stream->ended();
    }
    const std::string bytes = Flat(*message);
    const auto parsed = ParseLinkMessage(Split(bytes, random));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    for (;;) {
      const std::uint64_t before = stream->wakes();
      const auto taken = end(1 - from)->OnChunk(stream->half[1 - from].get(), *parsed->chunk);
      EXPECT_TRUE(taken.ok()) << taken.status();
      if (!taken.ok()) return false;
      if (*taken == LinkEndpoint::Taken::kYes) break;
      stream->WaitForWake(before);
      if (stream->ended()) return false;
    }
    end(from)->OnMessageWritten(stream->half[from].get());
    return true;
  }

  const std::uint64_t seed_;
  Mutex mutex_;
  std::shared_ptr<Stream> stream_ RESBM_GUARDED_BY(mutex_);
  // A late Close may still come for them.
  std::vector<std::shared_ptr<Stream>> old_streams_ RESBM_GUARDED_BY(mutex_);
  std::uint64_t seq_ RESBM_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stop_{false};
  LinkEndpoint up_;
  LinkEndpoint down_;
};

TEST(LinkUnderThreads, EverythingArrivesOnceInOrder) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ThreadedLink link(seed);
    link.Run();
    ExpectExactlyOnceInOrder(link.down_listener_.tensors(), v1::ACTIVATION);
    ExpectExactlyOnceInOrder(link.up_listener_.tensors(), v1::GRADIENT);
    EXPECT_EQ(link.up_listener_.count("error") + link.down_listener_.count("error"), 0);
  }
}

TEST(LinkUnderThreads, NoListenerCallFollowsShutdown) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ThreadedLink link(seed);
    link.RunAndShutDownAfter(static_cast<int>(seed % kMicroBatches));
  }
}

}  // namespace
}  // namespace resbm::wire
