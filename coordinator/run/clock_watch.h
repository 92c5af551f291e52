// Finds out, beside the run, where the clocks of its stages stand.
#ifndef RESBM_COORDINATOR_RUN_CLOCK_WATCH_H_
#define RESBM_COORDINATOR_RUN_CLOCK_WATCH_H_

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/run/clock_model.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace resbm::coordinator {

// A thread that asks every stage at the start, every so often, and once more at the end. Methods: any thread.
class ClockWatch {
 public:
  struct Options {
    int stages = 1;
    // The clock of a stage, nullopt: it did not say. May block, for a second or so.
    std::function<std::optional<absl::Duration>(int stage)> ask;
    int exchanges = 8;  // of a round
    absl::Duration period = absl::Seconds(5);
  };

  // `clock` outlives the watch.
  ClockWatch(Options options, const Clock& clock);
  // Without the last round, unless Finish has asked for it and it is under way. Waits for the stage that is being asked.
  ~ClockWatch();

  // What is known now, by stage.
  std::vector<ClockModel> models() const;
  // Of the stage that was asked longest ago; see ClockModel.
  absl::Duration known_until() const;
  // One more round, then the thread ends. Returns at once.
  void Finish();
  // Until the thread has ended. After Finish.
  void Wait();

 private:
  void Run();

  const Options options_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<ClockModel> models_ RESBM_GUARDED_BY(mutex_);
  bool finishing_ RESBM_GUARDED_BY(mutex_) = false;
  bool stopping_ RESBM_GUARDED_BY(mutex_) = false;
  bool finished_ RESBM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_CLOCK_WATCH_H_
