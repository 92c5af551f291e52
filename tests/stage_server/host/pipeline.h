// Two Stages with all their threads, wires in memory between them, and a coordinator that drives them by
// hand.
#ifndef RESBM_TESTS_STAGE_SERVER_HOST_PIPELINE_H_
#define RESBM_TESTS_STAGE_SERVER_HOST_PIPELINE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "stage_server/host/stage.h"
#include "tests/stage_server/support/fake_computer.h"
#include "tests/stage_server/support/memory_wire.h"
#include "tests/stage_server/support/recording_sink.h"
#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {

inline v1::Hello MakeHello(const wire::LinkEndpoint::Options& options) {
  v1::Hello hello;
  hello.set_protocol_version(wire::kProtocolVersion);
  hello.set_job_id(options.job_id);
  *hello.mutable_fence() = options.fence;
  hello.set_link_key(options.link_key);
  hello.set_link(options.link);
  hello.set_side(options.side);
  return hello;
}

class Pipeline : public DiallerFactory {
 public:
  static constexpr std::uint32_t kStages = 2;
  static constexpr int kMicroBatches = 3;

  // `log` and `on_ready_changed` are those of stage 1.
  explicit Pipeline(int break_every = 0, LogFunction log = nullptr, std::function<void(bool)> on_ready_changed = nullptr)
      : break_every_(break_every) {
    StageOptions options;
    options.machine.progress_interval = absl::Milliseconds(1);
    options.tick = absl::Milliseconds(1);
    for (std::uint32_t s = 0; s < kStages; ++s) {
      if (s == 1) {
        options.log = log;
        options.on_ready_changed = on_ready_changed;
      }
      stages_[s] = std::make_unique<Stage>(options, Clock::Real(), std::make_unique<FakeComputer>(), this);
    }
  }
  ~Pipeline() override {
    CloseFeeds();
    // The diallers of a stage look for the other.
    for (auto& stage : stages_) stage->Shutdown(absl::CancelledError("the test is over"));
  }

  // ---- the coordinator
  void AttachAll(std::uint64_t generation) {
    CloseFeeds();
    fence_ = MakeFence(1, generation);
    for (std::uint32_t s = 0; s < kStages; ++s) {
      sinks_[s] = std::make_shared<RecordingSink>();
      sessions_[s] = stages_[s]->OpenSession(sinks_[s]);
      v1::ControlRequest request;
      *request.mutable_attach() = MakeAttach(s, kStages);
      Send(s, request);
    }
    for (std::uint32_t s = 0; s < kStages; ++s) ASSERT_TRUE(Next(s).has_attached());
  }
  void ResumeAll(std::uint64_t state_id, std::uint64_t step, bool keep) {
    for (std::uint32_t s = 0; s < kStages; ++s) {
      v1::StageSpec spec = MakeSpec(s, kStages, kMicroBatches);
      if (s == 0) spec.mutable_down()->set_address("stage 1");  // stage 0 dials
      v1::ControlRequest request;
      *request.mutable_resume() = MakeInit(spec, state_id, step);
      if (keep) request.mutable_resume()->mutable_keep();
      Send(s, request);
    }
    for (std::uint32_t s = 0; s < kStages; ++s) ASSERT_TRUE(Next(s).has_ready());
    for (std::uint32_t s = 0; s < kStages; ++s) {
      v1::ControlRequest request;
      *request.mutable_define_program() =
          MakeProgram(1, s == 0 ? "F0 F1 B0 F2 B1 B2" : "F0 B0 F1 B1 F2 B2", s == 0 ? 2 : 1);
      Send(s, request);
    }
    OpenFeeds();
  }
  // `fed`: how many micro-batches get their inputs and targets at once.
  void BeginAll(std::uint64_t step, std::uint64_t base, int fed = kMicroBatches) {
    for (std::uint32_t s = 0; s < kStages; ++s) {
      v1::ControlRequest request;
      *request.mutable_begin() = MakeBegin(fence_, step, base, 1, {2, 2, 1});
      Send(s, request);
    }
    for (int mb = 0; mb < fed; ++mb) Feed(step, mb);
  }
  void Feed(std::uint64_t step, int mb) {
    const std::int64_t samples = mb == 2 ? 1 : 2;
    SendTensor(0, v1::INPUT, v1::CODEC_RAW, v1::UINT8, {samples, kWidth}, step, mb);
    SendTensor(1, v1::TARGET, v1::CODEC_RAW, v1::INT64, {samples}, step, mb);
  }
  void CommitAll(std::uint64_t step, std::uint64_t base, std::uint64_t next) {
    for (std::uint32_t s = 0; s < kStages; ++s) ASSERT_TRUE(Next(s).has_computed()) << "stage " << s;
    for (std::uint32_t s = 0; s < kStages; ++s) {
      v1::ControlRequest request;
      *request.mutable_commit() = MakeCommit(fence_, step, base, next);
      Send(s, request);
    }
    for (std::uint32_t s = 0; s < kStages; ++s) ASSERT_EQ(Next(s).committed().state_id(), next);
  }
  // Steps 1 to `steps`, from state 100.
  void Train(int steps) {
    AttachAll(1);
    ResumeAll(100, 0, /*keep=*/false);
    for (int step = 1; step <= steps; ++step) {
      BeginAll(step, 99 + step);
      CommitAll(step, 99 + step, 100 + step);
    }
  }

  void Send(std::uint32_t s, v1::ControlRequest request) {
    *request.mutable_fence() = fence_;
    stages_[s]->Request(sessions_[s], std::move(request), [] {});
  }
  v1::ControlEvent Next(std::uint32_t s) {
    std::optional<v1::ControlEvent> event = sinks_[s]->Next();
    EXPECT_TRUE(event.has_value()) << "stage " << s << " said nothing";
    if (event.has_value() && event->has_failed()) ADD_FAILURE() << event->failed().text();
    return event.value_or(v1::ControlEvent());
  }
  // Weights of both, read through GetShard.
  std::array<std::string, kStages> Weights(std::uint64_t state_id) {
    std::array<std::string, kStages> weights;
    for (std::uint32_t s = 0; s < kStages; ++s) {
      v1::GetShardRequest request;
      request.set_job_id("job-a");
      *request.mutable_fence() = fence_;
      request.set_state_id(state_id);
      Mutex mutex;
      CondVar changed;
      bool done = false;
      stages_[s]->GetShard(request, [&](absl::StatusOr<v1::GetShardReply> reply) {
        EXPECT_TRUE(reply.ok()) << reply.status();
        MutexLock lock(mutex);
        if (reply.ok()) weights[s] = reply->data();
        done = true;
        changed.NotifyAll();
      });
      MutexLock lock(mutex);
      while (!done) changed.Wait(mutex);
    }
    return weights;
  }

  Stage& stage(std::uint32_t s) { return *stages_[s]; }
  RecordingSink& sink(std::uint32_t s) { return *sinks_[s]; }
  SessionId session(std::uint32_t s) const { return sessions_[s]; }
  const v1::Fence& fence() const { return fence_; }

  // ---- DiallerFactory: whoever dials means stage 1.
  std::unique_ptr<Dialler> Dial(const v1::Neighbour&, std::shared_ptr<wire::LinkEndpoint> endpoint) override {
    return std::make_unique<WireTo>(stages_[1].get(), std::move(endpoint), break_every_);
  }

 private:
  // Says Hello to a stage and joins its endpoint when it is found.
  class WireTo : public Dialler {
   public:
    WireTo(Stage* stage, std::shared_ptr<wire::LinkEndpoint> endpoint, int break_every)
        : shared_(std::make_shared<Shared>()) {
      stage->FindLink(MakeHello(endpoint->options()), [shared = shared_, endpoint, break_every](auto found) {
        MutexLock lock(shared->mutex);
        if (!found.ok() || shared->over) return;
        shared->wire = std::make_unique<MemoryWire>(endpoint, *found, break_every);
      });
    }
    ~WireTo() override {
      std::unique_ptr<MemoryWire> wire;
      MutexLock lock(shared_->mutex);
      shared_->over = true;
      wire = std::move(shared_->wire);
    }

   private:
    struct Shared {
      Mutex mutex;
      bool over = false;
      std::unique_ptr<MemoryWire> wire;
    };
    const std::shared_ptr<Shared> shared_;
  };

  // The coordinator's ends of the outer links: nothing comes in on them.
  struct Line : wire::LinkEndpoint::Listener {
    void OnTensor(wire::ReceivedTensor) override {}
    void OnAllSent() override {}
    void OnConnected() override {}
    void OnDisconnected(const absl::Status&) override {}
    void OnError(const absl::Status& status) override { ADD_FAILURE() << status; }
    std::shared_ptr<wire::LinkEndpoint> endpoint;
    std::unique_ptr<WireTo> wire;
  };

  void OpenFeeds() {
    for (int i : {0, 1}) {
      wire::LinkEndpoint::Options options;
      options.job_id = "job-a";
      options.fence = fence_;
      options.link_key = "0123456789abcdef";
      options.link = i == 0 ? 0 : kStages;
      options.side = i == 0 ? v1::UPSTREAM : v1::DOWNSTREAM;
      feeds_[i] = std::make_unique<Line>();
      feeds_[i]->endpoint = std::make_shared<wire::LinkEndpoint>(options, feeds_[i].get());
      feeds_[i]->wire = std::make_unique<WireTo>(stages_[i == 0 ? 0 : kStages - 1].get(), feeds_[i]->endpoint, break_every_);
    }
  }
  void CloseFeeds() {
    for (auto& feed : feeds_) {
      if (feed == nullptr) continue;
      feed->wire.reset();
      feed->endpoint->Shutdown(absl::CancelledError("closed"));
      feed.reset();
    }
  }
  void SendTensor(int feed, v1::TensorKind kind, v1::Codec codec, v1::WireDtype dtype, std::vector<std::int64_t> dims,
                  std::uint64_t step, int mb) {
    v1::TensorHeader header;
    header.set_kind(kind);
    header.set_step(step);
    header.set_micro_batch(mb);
    header.set_tensor_count(1);
    EncodedTensor tensor;
    tensor.codec = static_cast<WireCodec>(codec);
    tensor.dtype = static_cast<WireDtype>(dtype);
    std::size_t bytes = SizeOf(tensor.dtype);
    for (std::int64_t dim : dims) bytes *= dim;
    tensor.dims = std::move(dims);
    tensor.payload = SharedBytes::CopyOf(std::string(bytes, static_cast<char>(step * 10 + mb)));
    feeds_[feed]->endpoint->Send(header, std::move(tensor));
  }

  const int break_every_;
  v1::Fence fence_;
  std::unique_ptr<Stage> stages_[kStages];
  std::shared_ptr<RecordingSink> sinks_[kStages];
  SessionId sessions_[kStages] = {};
  std::unique_ptr<Line> feeds_[2];
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_HOST_PIPELINE_H_
