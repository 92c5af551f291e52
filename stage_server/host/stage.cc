#include "stage_server/host/stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "stage_server/core/fence.h"

namespace resbm::stage_server {

Stage::Stage(StageOptions options, const Clock& clock, std::unique_ptr<Computer> computer, DiallerFactory* diallers)
    : options_(std::move(options)),
      clock_(clock),
      computer_(std::move(computer)),
      links_(clock, diallers, this),
      machine_(options_.machine, clock, this, &links_),
      hello_desk_(options_.hello_patience),
      compute_thread_([this] { RunComputeThread(); }),
      stage_thread_([this] { RunStageThread(); }) {}

Stage::~Stage() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    queue_changed_.NotifyAll();
    work_changed_.NotifyAll();
  }
  compute_thread_.join();
  stage_thread_.join();
  // Endpoints post into the queue until they are shut down, so they go before it.
  links_.Close(absl::CancelledError("the stage server stops"));
}

void Stage::Post(std::function<void()> event) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(event));
  queue_changed_.NotifyOne();
}

void Stage::RunStageThread() {
  absl::Duration next_tick = clock_.Now() + options_.tick;
  for (;;) {
    std::deque<std::function<void()>> events;
    bool stopping = false;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) {
        const absl::Duration left = next_tick - clock_.Now();
        if (left <= absl::ZeroDuration() || !queue_changed_.WaitFor(mutex_, left)) break;
      }
      events.swap(queue_);
      stopping = stopping_;
    }
    for (std::function<void()>& event : events) event();
    if (events.empty() && stopping) return;
    if (clock_.Now() >= next_tick) {
      next_tick = clock_.Now() + options_.tick;
      if (!shut_down_.has_value()) machine_.OnTick();
    }
    if (hello_desk_.waiting() > 0) hello_desk_.LookAgain(Now(), clock_.Now());
  }
}

void Stage::RunComputeThread() {
  for (;;) {
    std::optional<Work> work;
    {
      MutexLock lock(mutex_);
      while (!work_.has_value() && !stopping_) work_changed_.Wait(mutex_);
      if (stopping_) return;
      work = std::move(work_);
      work_.reset();
    }
    const absl::Duration began = clock_.Now();
    WorkResult result = computer_->Run(*work);
    result.began = began;
    // Tensors of the work may be large; they go before the next is waited for.
    work.reset();
    Post([this, result = std::move(result)]() mutable { machine_.OnWorkDone(std::move(result)); });
    MutexLock lock(mutex_);
    computing_ = work_.has_value();
    work_changed_.NotifyAll();
  }
}

HelloDesk::Situation Stage::Now() const {
  return {&machine_.tenancy(), machine_.links_open(), [this](End end) { return links_.endpoint(end); }};
}

void Stage::Log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, absl::StrCat(WhereLine(machine_), " ", text));
}

SessionId Stage::OpenSession(std::shared_ptr<SessionSink> sink) {
  SessionId session = 0;
  {
    MutexLock lock(mutex_);
    session = ++last_session_;
  }
  Post([this, session, sink = std::move(sink)] {
    if (shut_down_.has_value()) {
      sink->End(*shut_down_);
    } else {
      sessions_.emplace(session, sink);
    }
  });
  return session;
}

void Stage::Request(SessionId session, v1::ControlRequest request, std::function<void()> taken) {
  Post([this, session, request = std::move(request), taken = std::move(taken)] {
    // A stream that was ended may have had a request under way.
    if (sessions_.count(session) > 0) machine_.OnRequest(session, request);
    taken();
  });
}

void Stage::CloseSession(SessionId session) {
  Post([this, session] {
    if (sessions_.erase(session) == 0) return;
    if (session == machine_.tenancy().session()) Log(LogLevel::kWarning, "control stream lost; the lease runs");
    machine_.OnSessionClosed(session);
  });
}

void Stage::Describe(std::function<void(v1::DescribeReply)> done) {
  Post([this, done = std::move(done)] {
    v1::DescribeReply reply;
    machine_.Describe(&reply);
    reply.set_clock_nanos(absl::ToInt64Nanoseconds(clock_.Now()));
    done(std::move(reply));
  });
}

void Stage::GetShard(v1::GetShardRequest request, GetShardDone done) {
  Post([this, request = std::move(request), done = std::move(done)]() mutable {
    if (shut_down_.has_value()) {
      done(*shut_down_);
    } else {
      machine_.GetShard(request, std::move(done));
    }
  });
}

void Stage::PutShard(v1::PutShardRequest request, PutShardDone done) {
  Post([this, request = std::move(request), done = std::move(done)]() mutable {
    if (shut_down_.has_value()) {
      done(*shut_down_);
    } else {
      machine_.PutShard(request, std::move(done));
    }
  });
}

void Stage::FindLink(const v1::Hello& hello, HelloDesk::Found found) {
  Post([this, hello, found = std::move(found)]() mutable {
    if (shut_down_.has_value()) {
      found(*shut_down_);
    } else {
      hello_desk_.Arrive(hello, std::move(found), Now(), clock_.Now());
    }
  });
}

void Stage::Shutdown(const absl::Status& status) {
  bool done = false;
  Post([this, status, &done] {
    if (!shut_down_.has_value()) {
      shut_down_ = status;
      machine_.OnShutdown(status);
      hello_desk_.Close(status);
      for (auto& [session, sink] : std::exchange(sessions_, {})) sink->End(status);
    }
    MutexLock lock(mutex_);
    done = true;
    work_changed_.NotifyAll();
  });
  MutexLock lock(mutex_);
  while (!done) work_changed_.Wait(mutex_);
}

bool Stage::WaitUntilIdle(absl::Duration timeout) {
  const absl::Duration deadline = clock_.Now() + timeout;
  MutexLock lock(mutex_);
  while (computing_) {
    const absl::Duration left = deadline - clock_.Now();
    if (left <= absl::ZeroDuration()) return false;
    work_changed_.WaitFor(mutex_, left);
  }
  return true;
}

void Stage::Emit(SessionId session, const v1::ControlEvent& event) {
  if (std::string line = EventLine(event); !line.empty()) Log(EventLevel(event), line);
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second->Send(event);
}

void Stage::EndSession(SessionId session, const absl::Status& status) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
      status.ok() ? "released" : absl::StrCat("control stream ended: ", status.ToString()));
  const std::shared_ptr<SessionSink> sink = found->second;
  sessions_.erase(found);
  sink->End(status);
}

void Stage::Start(Work work) {
  MutexLock lock(mutex_);
  work_ = std::move(work);
  computing_ = true;
  work_changed_.NotifyAll();
}

void Stage::OnTensor(End end, wire::ReceivedTensor tensor) {
  Post([this, end, tensor = std::move(tensor)]() mutable {
    machine_.OnTensor(end, tensor.header, std::move(tensor.tensor));
  });
}

void Stage::OnAllSent(const v1::Fence&, End) {
  Post([this] { machine_.OnLinkChanged(); });
}

void Stage::OnConnected(const v1::Fence& fence, End end) {
  Post([this, fence, end] {
    if (!SameFence(fence, machine_.tenancy().fence())) return;
    Log(LogLevel::kInfo, absl::StrCat("link ", machine_.tenancy().stage() + (end == End::kUp ? 0 : 1), " connected"));
    machine_.OnLinkChanged();
  });
}

void Stage::OnDisconnected(const v1::Fence& fence, End end, const absl::Status& status) {
  Post([this, fence, end, status] {
    if (!SameFence(fence, machine_.tenancy().fence())) return;
    Log(LogLevel::kWarning, absl::StrCat("link ", machine_.tenancy().stage() + (end == End::kUp ? 0 : 1),
                                         " disconnected: ", status.ToString()));
    machine_.OnLinkChanged();
  });
}

void Stage::OnLinkError(const v1::Fence& fence, End end, const absl::Status& status) {
  Post([this, fence, end, status] { machine_.OnLinkError(fence, end, status); });
}

}  // namespace resbm::stage_server
