// Joins two LinkEndpoints in memory by a thread of its own, and breaks the connection when told to.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_MEMORY_WIRE_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_MEMORY_WIRE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "proto/base/mutex.h"
#include "proto/wire/link_endpoint.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server::testing {

class MemoryWire {
 public:
  // Breaks after every `break_every` messages; 0 = never.
  MemoryWire(std::shared_ptr<wire::LinkEndpoint> a, std::shared_ptr<wire::LinkEndpoint> b, int break_every)
      : ends_{std::move(a), std::move(b)}, break_every_(break_every), thread_([this] { Run(); }) {}
  ~MemoryWire() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

 private:
  class Half : public wire::LinkConnection {
   public:
    explicit Half(MemoryWire* wire) : wire_(wire) {}
    void WakeWriter() override { wire_->Wake(); }
    void WakeReader() override { wire_->Wake(); }
    void Close(const absl::Status&) override {
      MutexLock lock(wire_->mutex_);
      wire_->closed_ = true;
      wire_->changed_.NotifyAll();
    }

   private:
    MemoryWire* const wire_;
  };

  void Wake() {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.NotifyAll();
  }
  static std::string Flat(const wire::OutgoingMessage& message) {
    return message.prefix + std::string(message.payload.view());
  }

  void Run() {
    for (std::uint64_t dial = 1;; ++dial) {
      {
        MutexLock lock(mutex_);
        if (stopping_) return;
        closed_ = false;
      }
      if (!RunConnection(dial)) return;
    }
  }

  // One connection's life; false when there can be no other.
  bool RunConnection(std::uint64_t dial) {
    const std::shared_ptr<Half> halves[2] = {std::make_shared<Half>(this), std::make_shared<Half>(this)};
    const bool again = Carry(halves, dial);
    // The endpoints must not keep a half: it does not outlive the wire.
    for (int i = 0; i < 2; ++i) ends_[i]->OnClosed(halves[i].get(), absl::UnavailableError("the wire was cut"));
    return again;
  }

  bool Carry(const std::shared_ptr<Half> (&halves)[2], std::uint64_t dial) {
    v1::Hello hellos[2];
    for (int i = 0; i < 2; ++i) {
      const auto message = ends_[i]->Connect(halves[i], dial);
      if (!message.ok()) return false;  // the endpoint has ended
      v1::LinkMessage parsed;
      parsed.ParseFromString(Flat(*message));
      hellos[i] = parsed.hello();
    }
    for (int i = 0; i < 2; ++i) {
      if (!ends_[i]->OnHello(halves[i].get(), hellos[1 - i]).ok()) return false;
    }
    std::optional<std::string> held[2];
    bool again = true;
    for (int moved = 0;;) {
      {
        MutexLock lock(mutex_);
        while (!again && !woken_ && !closed_ && !stopping_) changed_.Wait(mutex_);
        woken_ = false;
        if (closed_ || stopping_) break;
      }
      again = false;
      for (int from = 0; from < 2; ++from) {
        std::optional<std::string>& message = held[from];
        if (!message.has_value()) {
          const auto next = ends_[from]->NextMessage(halves[from].get());
          if (!next.has_value()) continue;
          message = Flat(*next);
          ends_[from]->OnMessageWritten(halves[from].get());
        }
        const std::string_view view = *message;
        const auto parsed = wire::ParseLinkMessage({&view, 1});
        const auto taken = ends_[1 - from]->OnChunk(halves[1 - from].get(), *parsed->chunk);
        if (!taken.ok()) return false;
        if (*taken == wire::LinkEndpoint::Taken::kYes) {
          message.reset();
          again = true;
          ++moved;
        }
      }
      if (break_every_ > 0 && moved >= break_every_) break;
    }
    return true;
  }

  const std::shared_ptr<wire::LinkEndpoint> ends_[2];
  const int break_every_;

  Mutex mutex_;
  CondVar changed_;
  bool woken_ RESBM_GUARDED_BY(mutex_) = false;
  bool closed_ RESBM_GUARDED_BY(mutex_) = false;
  bool stopping_ RESBM_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_MEMORY_WIRE_H_
