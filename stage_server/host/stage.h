// A StageMachine with its threads: one runs the machine, one computes. What comes from outside, on any
// thread, is put into a queue and handled by the first; nothing ever waits for a lock that is held while
// the machine, an endpoint or a computation runs.
//
//   control stream, link streams, shards --Post--> [queue] --> stage thread: machine, links, hello desk
//                                                                 | Start            ^ OnWorkDone
//                                                                 v                  |
//                                                              compute thread: Computer
//
// Whoever watches (Describe, Snapshot) comes through the same queue: the stage's thread, which never computes, copies
// a few numbers between two events (the endpoints' own under their mutexes, which are held for bookkeeping only) and
// hands the copy over. The watcher waits, the stage does not; nothing is shared with it afterwards.
#ifndef RESBM_STAGE_SERVER_HOST_STAGE_H_
#define RESBM_STAGE_SERVER_HOST_STAGE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.pb.h"
#include "stage_server/core/stage_machine.h"
#include "stage_server/core/work.h"
#include "stage_server/data/local_data.h"
#include "stage_server/data/local_data_links.h"
#include "stage_server/host/endpoint_links.h"
#include "stage_server/host/event_line.h"
#include "stage_server/host/hello_desk.h"
#include "stage_server/host/session_sink.h"
#include "stage_server/metrics/stage_snapshot.h"

namespace resbm::stage_server {

struct StageOptions {
  StageMachineOptions machine;
  // How often leases and progress are looked at.
  absl::Duration tick = absl::Milliseconds(200);
  // How long a Hello whose fence has not come yet may wait.
  absl::Duration hello_patience = absl::Seconds(30);
  LogFunction log;  // may be null
  // For jobs whose end stages read their own copy (LocalDataComputer loads it); may be null. Outlives the stage.
  const LocalData* local_data = nullptr;
  // Told of every change of Readiness, which is "ready" at first, on the stage's thread; must not block. May be null.
  std::function<void(bool ready)> on_ready_changed;
};

class Stage : private StageEffects, private LinkEvents {
 public:
  // The clock and the factory outlive it. Starts both threads.
  Stage(StageOptions options, const Clock& clock, std::unique_ptr<Computer> computer, DiallerFactory* diallers);
  // Waits for the computation that runs. Nobody may call it any more.
  ~Stage() override;

  // ---- any thread
  // A control stream. It is closed once, by CloseSession, whoever ended it.
  SessionId OpenSession(std::shared_ptr<SessionSink> sink);
  // `taken` is called when it was handled: then the next may be read, so a stream has one request here.
  void Request(SessionId session, v1::ControlRequest request, std::function<void()> taken);
  void CloseSession(SessionId session);
  // `done` is called once, on the stage's thread; everything is filled in that may change while the server lives.
  void Describe(std::function<void(v1::DescribeReply)> done);
  // What /metrics says. Waits for the stage's thread; nullopt after `timeout`. Not on the stage's thread.
  std::optional<StageSnapshot> Snapshot(absl::Duration timeout);
  void GetShard(v1::GetShardRequest request, GetShardDone done);
  void PutShard(v1::PutShardRequest request, PutShardDone done);
  // Which endpoint a Hello is for: as wire::LinkDirectory::Find.
  void FindLink(const v1::Hello& hello, HelloDesk::Found found);

  // Ends all sessions and links and answers everything that waits, now and from now on, with `status`;
  // returns when that is done. Computation goes on to the end of its present call.
  void Shutdown(const absl::Status& status);
  // Whether the compute thread is idle within `timeout`.
  bool WaitUntilIdle(absl::Duration timeout);

 private:
  void Post(std::function<void()> event) RESBM_EXCLUDES(mutex_);
  void RunStageThread();
  void RunComputeThread();
  HelloDesk::Situation Now() const;
  v1::DescribeReply DescribeNow() const;
  StageSnapshot SnapshotNow() const;
  // Says it where it has changed.
  void UpdateReadiness();
  void Log(LogEvent event) const;
  void LogLink(LogLevel level, const char* name, End end, const absl::Status& status = absl::OkStatus()) const;
  void LogLostLinks(LogLevel level);

  // StageEffects, on the stage's thread.
  void Emit(SessionId session, const v1::ControlEvent& event) override;
  void EndSession(SessionId session, const absl::Status& status) override;
  void Start(Work work) override;

  // LinkEvents, any thread.
  void OnTensor(End end, wire::ReceivedTensor tensor) override;
  void OnAllSent(const v1::Fence& fence, End end) override;
  void OnConnected(const v1::Fence& fence, End end) override;
  void OnDisconnected(const v1::Fence& fence, End end, const absl::Status& status) override;
  void OnLinkError(const v1::Fence& fence, End end, const absl::Status& status) override;

  // Constant after construction.
  const StageOptions options_;
  const Clock& clock_;
  const absl::Duration started_;
  const std::unique_ptr<Computer> computer_;  // the compute thread's

  // The stage's thread's.
  EndpointLinks links_;
  LocalDataLinks data_links_;
  StageMachine machine_;
  HelloDesk hello_desk_;
  std::map<SessionId, std::shared_ptr<SessionSink>> sessions_;
  std::optional<absl::Status> shut_down_;
  StageTotals totals_;
  bool ready_ = true;
  // A link that ended while nothing was under way: perhaps the run is over, and the Release on its way.
  struct LostLink {
    absl::Status status;
    absl::Duration at;
  };
  std::optional<LostLink> lost_links_[2];

  Mutex mutex_;
  CondVar queue_changed_;
  CondVar work_changed_;
  std::deque<std::function<void()>> queue_ RESBM_GUARDED_BY(mutex_);
  std::optional<Work> work_ RESBM_GUARDED_BY(mutex_);
  bool computing_ RESBM_GUARDED_BY(mutex_) = false;
  bool stopping_ RESBM_GUARDED_BY(mutex_) = false;
  SessionId last_session_ RESBM_GUARDED_BY(mutex_) = 0;

  std::thread compute_thread_;
  std::thread stage_thread_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_STAGE_H_
