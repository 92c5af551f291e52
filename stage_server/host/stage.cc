#include "stage_server/host/stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/wire/fence.h"
#include "stage_server/host/readiness.h"

namespace resbm::stage_server {
namespace {

// At the end of a run the stages are released together: a link's end and the Release come in any order, close together.
constexpr absl::Duration kReleasePatience = absl::Seconds(2);

}  // namespace

Stage::Stage(StageOptions options, const Clock& clock, std::unique_ptr<Computer> computer, DiallerFactory* diallers)
    : options_(std::move(options)),
      clock_(clock),
      started_(clock.Now()),
      computer_(std::move(computer)),
      links_(clock, diallers, this),
      data_links_(&links_, options_.local_data, this),
      machine_(options_.machine, clock, this, &data_links_),
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
  data_links_.Close(absl::CancelledError("the stage server stops"));
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
      UpdateReadiness();
      for (const std::optional<LostLink>& lost : lost_links_) {
        if (lost.has_value() && clock_.Now() - lost->at >= kReleasePatience) {
          LogLostLinks(LogLevel::kWarning);
          break;
        }
      }
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

v1::DescribeReply Stage::DescribeNow() const {
  v1::DescribeReply reply;
  machine_.Describe(&reply);
  // An end that its own copy of the data serves is no link.
  const auto describe = [&](End end) { return data_links_.IsLocal(end) ? std::nullopt : links_.Describe(end); };
  if (std::optional<v1::LinkState> up = describe(End::kUp)) *reply.mutable_up() = *std::move(up);
  if (std::optional<v1::LinkState> down = describe(End::kDown)) *reply.mutable_down() = *std::move(down);
  const absl::Duration now = clock_.Now();
  reply.set_clock_nanos(absl::ToInt64Nanoseconds(now));
  reply.set_uptime_seconds(absl::ToDoubleSeconds(now - started_));
  return reply;
}

StageSnapshot Stage::SnapshotNow() const {
  StageSnapshot snapshot;
  snapshot.now = DescribeNow();
  snapshot.attached = machine_.tenancy().attached();
  snapshot.ready = ready_;
  snapshot.counters = machine_.counters();
  snapshot.totals = totals_;
  snapshot.inbox_bytes = machine_.inbox_bytes();
  for (End end : kEnds) snapshot.links[static_cast<int>(end)] = links_.Totals(end);
  const v1::StageSpec* spec = machine_.loaded();
  if (spec == nullptr) return snapshot;
  snapshot.memory_plan = machine_.memory_plan();
  if (static_cast<int>(spec->stage()) < spec->windows_size()) snapshot.window = spec->windows(spec->stage());
  if (spec->boundaries_size() > 0) {
    const int last = spec->boundaries_size() - 1;
    if (spec->stage() > 0) snapshot.cut_points[static_cast<int>(End::kUp)] = spec->boundaries(0).cut_point();
    if (spec->stage() + 1 < spec->stages()) {
      snapshot.cut_points[static_cast<int>(End::kDown)] = spec->boundaries(last).cut_point();
    }
  }
  return snapshot;
}

void Stage::UpdateReadiness() {
  const absl::Status readiness =
      shut_down_.has_value() ? *shut_down_ : Readiness(DescribeNow(), machine_.tenancy().attached());
  if (readiness.ok() == ready_) return;
  ready_ = readiness.ok();
  LogEvent event(ready_ || shut_down_.has_value() ? LogLevel::kInfo : LogLevel::kWarning,
                 ready_ ? "ready_again" : "not_ready");
  if (!ready_) event.With("reason", std::string(readiness.message()));
  Log(std::move(event));
  if (options_.on_ready_changed) options_.on_ready_changed(ready_);
}

void Stage::Log(LogEvent event) const {
  if (!options_.log) return;
  nlohmann::ordered_json fields = Where(machine_);
  fields.update(event.fields);
  event.fields = std::move(fields);
  options_.log(event);
}

void Stage::LogLink(LogLevel level, const char* name, End end, const absl::Status& status) const {
  LogEvent event(level, name);
  event.With("link", machine_.tenancy().stage() + (end == End::kUp ? 0 : 1));
  if (!status.ok()) event.With("error", status.ToString());
  Log(std::move(event));
}

void Stage::LogLostLinks(LogLevel level) {
  for (End end : kEnds) {
    std::optional<LostLink>& lost = lost_links_[static_cast<int>(end)];
    if (lost.has_value()) LogLink(level, "link_disconnected", end, lost->status);
    lost.reset();
  }
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
    if (session == machine_.tenancy().session()) {
      LogLostLinks(LogLevel::kWarning);
      Log(LogEvent(LogLevel::kWarning, "control_stream_lost").With("note", "the lease runs"));
    }
    machine_.OnSessionClosed(session);
  });
}

void Stage::Describe(std::function<void(v1::DescribeReply)> done) {
  Post([this, done = std::move(done)] { done(DescribeNow()); });
}

std::optional<StageSnapshot> Stage::Snapshot(absl::Duration timeout) {
  // Shared: who has given up waiting is not there any more when the answer comes.
  struct Answer {
    Mutex mutex;
    CondVar changed;
    std::optional<StageSnapshot> snapshot RESBM_GUARDED_BY(mutex);
  };
  const auto answer = std::make_shared<Answer>();
  Post([this, answer] {
    StageSnapshot snapshot = SnapshotNow();
    MutexLock lock(answer->mutex);
    answer->snapshot = std::move(snapshot);
    answer->changed.NotifyAll();
  });
  const absl::Duration deadline = clock_.Now() + timeout;
  MutexLock lock(answer->mutex);
  while (!answer->snapshot.has_value()) {
    const absl::Duration left = deadline - clock_.Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    answer->changed.WaitFor(answer->mutex, left);
  }
  return std::move(answer->snapshot);
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
      UpdateReadiness();
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
  totals_.Add(event, machine_.tenancy().job_id());
  if (std::optional<LogEvent> log = ToLogEvent(event); log.has_value()) {
    if (event.has_failed()) LogLostLinks(LogLevel::kWarning);
    Log(*std::move(log));
  }
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second->Send(event);
}

void Stage::EndSession(SessionId session, const absl::Status& status) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  LogLostLinks(status.ok() ? LogLevel::kInfo : LogLevel::kWarning);
  LogEvent event(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, status.ok() ? "released" : "control_stream_ended");
  if (!status.ok()) event.With("error", status.ToString());
  Log(std::move(event));
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
    if (!wire::SameFence(fence, machine_.tenancy().fence())) return;
    LogLostLinks(LogLevel::kWarning);
    LogLink(LogLevel::kInfo, "link_connected", end);
    machine_.OnLinkChanged();
  });
}

void Stage::OnDisconnected(const v1::Fence& fence, End end, const absl::Status& status) {
  Post([this, fence, end, status] {
    if (!wire::SameFence(fence, machine_.tenancy().fence())) return;
    // Between two pieces of work nothing is lost by it.
    if (machine_.state() == State::kReady) {
      std::optional<LostLink>& lost = lost_links_[static_cast<int>(end)];
      if (!lost.has_value()) lost = LostLink{status, clock_.Now()};  // a redial that fails is no new loss
    } else {
      LogLink(LogLevel::kWarning, "link_disconnected", end, status);
    }
    machine_.OnLinkChanged();
  });
}

void Stage::OnLinkError(const v1::Fence& fence, End end, const absl::Status& status) {
  Post([this, fence, end, status] { machine_.OnLinkError(fence, end, status); });
}

}  // namespace resbm::stage_server
