// trace.json of a real run: what every stage did, on one clock; and the event file beside it.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program_test.h"

namespace resbm {
namespace {

using nlohmann::json;
using testing::Finished;
using testing::RunProgram;
using testing::Strings;
using testing::Subprocess;

constexpr int kStages = 3;
constexpr int kMicroBatches = 4;
constexpr int kSteps = 5;

constexpr char kJob[] = R"pb(
  batch { samples: 16 micro_batches: 4 }
  optimizer { sgd { learning_rate: 0.01 } }
  run { steps: 5 evaluate: false }
)pb";

struct Slice {
  int process = 0, thread = 0;
  std::string name, category;
  double begin = 0, end = 0;  // microseconds
  int step = 0, micro_batch = 0;
};

class Trace : public testing::ImageProgramTest {
 protected:
  Trace() : ImageProgramTest(90, 10) { WriteJob(kJob); }

  json Read(const std::string& run_dir) const {
    return json::parse(testing::ReadFileOrDie(Path(run_dir, "trace.json")));
  }

  static std::vector<Slice> Slices(const json& trace) {
    std::vector<Slice> slices;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") continue;
      Slice slice{event["pid"], event["tid"], event["name"], event["cat"], event["ts"]};
      slice.end = slice.begin + event["dur"].get<double>();
      slice.step = event["args"]["step"];
      slice.micro_batch = event["args"].value("micro_batch", 0);
      slices.push_back(slice);
    }
    return slices;
  }
  static int Count(const std::vector<Slice>& slices, const std::string& category) {
    return static_cast<int>(
        std::count_if(slices.begin(), slices.end(), [&](const Slice& s) { return s.category == category; }));
  }
};

TEST_F(Trace, ShowsEveryPieceOfWorkOfEveryStageOnOneClock) {
  const Finished run = RunProgram(TrainOf("job.textproto", "run", kStages, {"run.trace_steps=-1"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const json trace = Read("run");
  const std::vector<Slice> slices = Slices(trace);

  EXPECT_EQ(Count(slices, "step"), kSteps);
  EXPECT_EQ(Count(slices, "forward"), kStages * kMicroBatches * kSteps);
  EXPECT_EQ(Count(slices, "backward"), kStages * kMicroBatches * kSteps);
  EXPECT_EQ(Count(slices, "finish"), kStages * kSteps);
  EXPECT_EQ(Count(slices, "commit"), kStages * (kSteps - 1)) << "each comes with the step after it";
  EXPECT_EQ(Count(slices, "send"), 2 * (kStages - 1) * kMicroBatches * kSteps);
  // Inputs and targets, too, come from the coordinator.
  EXPECT_EQ(Count(slices, "receive"), (2 * (kStages - 1) + 2) * kMicroBatches * kSteps);
  EXPECT_GT(Count(slices, "wait"), 0);

  // On a thread things happen one after the other.
  std::map<std::pair<int, int>, double> busy_until;
  for (const Slice& slice : slices) {
    double& until = busy_until[{slice.process, slice.thread}];
    EXPECT_GE(slice.begin + 0.002, until)
        << "stage " << slice.process << " " << slice.name << " of step " << slice.step;
    EXPECT_GE(slice.end, slice.begin);
    until = slice.end;
  }

  // What crossed was sent before it was used, as far as the clocks are known.
  double error = 0.002;
  ASSERT_EQ(trace["otherData"]["clock_error_us"].size(), kStages);
  for (const json& bound : trace["otherData"]["clock_error_us"]) {
    EXPECT_LT(bound, 1e5);
    error += bound.get<double>();
  }
  std::map<std::tuple<std::string, int, int, int>, const Slice*> by_work;  // category and thread, stage, step, mb
  for (const Slice& slice : slices) {
    by_work[{slice.category + std::to_string(slice.thread), slice.process, slice.step, slice.micro_batch}] = &slice;
  }
  const auto find = [&](const std::string& what, int stage, int step, int micro_batch) -> Slice {
    const auto found = by_work.find({what, stage, step, micro_batch});
    if (found != by_work.end()) return *found->second;
    ADD_FAILURE() << what << " of stage " << stage << ", step " << step << ", micro-batch " << micro_batch;
    return {};
  };
  for (int step = 1; step <= kSteps; ++step) {
    for (int mb = 0; mb < kMicroBatches; ++mb) {
      for (int s = 0; s + 1 < kStages; ++s) {
        EXPECT_LE(find("forward0", s, step, mb).end, find("send1", s, step, mb).begin + 0.002);
        EXPECT_LE(find("send1", s, step, mb).begin, find("receive4", s + 1, step, mb).end + error);
        EXPECT_LE(find("receive4", s + 1, step, mb).end, find("forward0", s + 1, step, mb).begin + 0.002);
        EXPECT_LE(find("send3", s + 1, step, mb).begin, find("receive2", s, step, mb).end + error);
        EXPECT_LE(find("receive2", s, step, mb).end, find("backward0", s, step, mb).begin + 0.002);
      }
    }
    // And within the step that the coordinator saw; but a stage goes on with the next step before the coordinator has
    // heard that all have committed.
    const Slice whole = find("step0", kStages, step, 0);
    for (int s = 0; s < kStages; ++s) {
      if (step == 1) {
        EXPECT_GE(find("forward0", s, step, 0).begin + error, whole.begin);
      }
      EXPECT_LE(find("backward0", s, step, kMicroBatches - 1).end, whole.end + error);
    }
  }
}

TEST_F(Trace, ArrowsJoinEverySendingWithItsReceiving) {
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "run", kStages, {"run.trace_steps=2"})).code, 0);
  const json trace = Read("run");
  const std::vector<Slice> slices = Slices(trace);
  const auto slice_at = [&](const json& event) {
    std::string found;
    for (const Slice& slice : slices) {
      const double time = event["ts"];
      if (slice.process != event["pid"] || slice.thread != event["tid"]) continue;
      if (slice.begin <= time && time < std::max(slice.end, slice.begin + 0.001)) found = slice.name;
    }
    return found;
  };
  std::map<int, json> open;
  int arrows = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") {
      EXPECT_TRUE(open.emplace(event["id"].get<int>(), event).second) << "an id is used once";
    } else if (event["ph"] == "f") {
      ASSERT_EQ(open.count(event["id"]), 1u);
      const json start = open[event["id"]];
      const std::string tensor = event["name"];
      EXPECT_EQ(start["name"], tensor);
      EXPECT_EQ(start["cat"], event["cat"]);
      EXPECT_EQ(slice_at(start), "send " + tensor);
      EXPECT_EQ(slice_at(event), "receive " + tensor);
      EXPECT_EQ(start["pid"].get<int>() - event["pid"].get<int>(), tensor[0] == 'F' ? -1 : 1);
      ++arrows;
    }
  }
  EXPECT_EQ(arrows, 2 * (kStages - 1) * kMicroBatches * 2);
  EXPECT_EQ(open.size(), static_cast<std::size_t>(arrows));
}

TEST_F(Trace, HoldsTheFirstStepsThatTheJobAsksForAndChangesNoWeight) {
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "all", 2, {"run.trace_steps=-1"})).code, 0);
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "two", 2, {"run.trace_steps=2"})).code, 0);
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "none", 2, {"run.trace_steps=0"})).code, 0);
  std::set<int> steps;
  for (const Slice& slice : Slices(Read("two"))) steps.insert(slice.step);
  EXPECT_EQ(steps, (std::set<int>{1, 2}));
  EXPECT_FALSE(std::filesystem::exists(Path("none", "trace.json")));
  EXPECT_EQ(Weights("all"), Weights("none"));
  EXPECT_EQ(Weights("two"), Weights("none"));
}

TEST_F(Trace, IsReadableAfterTheCoordinatorWasKilled) {
  Subprocess run(TrainOf("job.textproto", "run", 2, {"run.steps=100000", "run.trace_steps=-1"}));
  ASSERT_TRUE(WaitForRows(&run, "run", 3));
  run.Signal(SIGKILL);
  run.Wait();
  EXPECT_EQ(Read("run")["displayTimeUnit"], "ms");
  testing::WaitUntil([&] { return StageServers() == 0; });
}

TEST_F(Trace, OfAnInterruptedRunHasItsStepsAndTensorboardItsCurves) {
  Subprocess run(TrainOf("job.textproto", "run", 2, {"run.steps=100000", "run.trace_steps=-1"}));
  ASSERT_TRUE(WaitForRows(&run, "run", 3));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130) << run.Stderr();
  const std::size_t steps = Rows("run").size();
  EXPECT_EQ(Count(Slices(Read("run")), "step"), static_cast<int>(steps));
  EXPECT_EQ(Read("run")["otherData"]["steps"], steps);
  int event_files = 0;
  for (const auto& file : std::filesystem::directory_iterator(Path("run"))) {
    if (file.path().filename().string().rfind("events.out.tfevents.", 0) != 0) continue;
    ++event_files;
    // A loss a step and more.
    EXPECT_GT(file.file_size(), 50 * steps);
  }
  EXPECT_EQ(event_files, 1);
}

}  // namespace
}  // namespace resbm
