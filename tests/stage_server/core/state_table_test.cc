// protocol.md's table of states and events, cell by cell.
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

constexpr State kStates[] = {State::kEmpty,  State::kFenced,   State::kLoading,  State::kReady,     State::kRunning,
                             State::kFailed, State::kComputed, State::kApplying, State::kEvaluating};

struct Row {
  const char* event;
  std::function<void(Harness&)> happens;
  // In the order of kStates: the state once running work is over, and what was said: "READY failed ready".
  std::vector<std::string> cells;

  friend std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.event; }
};

std::vector<Row> Table() {
  const auto request = [](auto fill) {
    return [fill](Harness& h) {
      v1::ControlRequest message = h.Request();
      fill(h, message);
      h.Send(message);
    };
  };
  return {
      {"a newer Attach", [](Harness& h) { h.Attach(1, 2); },
       {"FENCED attached", "FENCED attached", "FENCED attached", "FENCED attached", "FENCED attached", "FENCED attached",
        "FENCED attached", "FENCED attached", "FENCED attached"}},
      {"an Attach of a newer epoch on another stream", [](Harness& h) { h.Attach(2, 1, 2); },
       {"FENCED attached", "FENCED attached", "FENCED attached", "FENCED attached", "FENCED attached", "FENCED attached",
        "FENCED attached", "FENCED attached", "FENCED attached"}},
      {"an Attach with the fence it has",
       request([](Harness&, v1::ControlRequest& r) { *r.mutable_attach() = MakeAttach(1, 3); }),
       {"EMPTY refused", "FENCED refused", "READY refused ready", "READY refused", "RUNNING refused", "FAILED refused",
        "COMPUTED refused", "READY refused committed", "EVALUATING refused"}},
      {"INIT", [](Harness& h) { h.Init(200); },
       {"EMPTY failed", "READY ready", "READY failed ready", "READY failed", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"KEEP", [](Harness& h) { h.Keep(100, 0); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "READY failed", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"Begin on its state", [](Harness& h) { h.Begin(1, 100); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "RUNNING", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"Begin on another state", [](Harness& h) { h.Begin(1, 999); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "READY failed", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"Commit of this attempt", [](Harness& h) { h.Commit(MakeCommit(h.fence(), 1, 100, 101)); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "READY failed", "RUNNING failed", "FAILED failed",
        "READY committed", "READY committed", "EVALUATING failed"}},
      {"Commit of another attempt", [](Harness& h) { h.Commit(MakeCommit(MakeFence(1, 9), 1, 100, 101)); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "READY failed", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"Evaluate", [](Harness& h) { h.Evaluate(MakeEvaluate(5, 2, {1, 1})); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "EVALUATING", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"a malformed program", [](Harness& h) { h.Define(MakeProgram(9, "B0", 1)); },
       {"EMPTY failed", "FENCED failed", "READY failed ready", "READY failed", "RUNNING failed", "FAILED failed",
        "COMPUTED failed", "READY failed committed", "EVALUATING failed"}},
      {"Renew", request([](Harness&, v1::ControlRequest& r) { r.mutable_renew()->set_lease_seconds(5); }),
       {"EMPTY", "FENCED", "READY ready", "READY", "RUNNING", "FAILED", "COMPUTED", "READY committed", "EVALUATING"}},
      {"a Release of an old fence",
       request([](Harness&, v1::ControlRequest& r) {
         *r.mutable_fence() = MakeFence(1, 0);
         r.mutable_release();
       }),
       {"EMPTY", "FENCED", "READY ready", "READY", "RUNNING", "FAILED", "COMPUTED", "READY committed", "EVALUATING"}},
      {"Release", [](Harness& h) { h.Release(); },
       {"EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY"}},
      {"the stream lost", [](Harness& h) { h.machine().OnSessionClosed(h.session()); },
       {"EMPTY", "FENCED", "READY", "READY", "RUNNING", "FAILED", "COMPUTED", "READY", "EVALUATING"}},
      {"the stream lost and the lease over",
       [](Harness& h) {
         h.machine().OnSessionClosed(h.session());
         h.clock().Advance(absl::Seconds(61));
         h.machine().OnTick();
       },
       {"EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY", "EMPTY"}},
      {"a neighbour's error",
       [](Harness& h) { h.machine().OnLinkError(h.fence(), End::kDown, absl::DataLossError("three times")); },
       {"EMPTY", "FENCED", "FAILED ready failed", "FAILED failed", "FAILED failed", "FAILED", "COMPUTED",
        "FAILED committed failed", "FAILED failed"}},
      {"a neighbour's error of an old fence",
       [](Harness& h) { h.machine().OnLinkError(MakeFence(1, 0), End::kDown, absl::DataLossError("three times")); },
       {"EMPTY", "FENCED", "READY ready", "READY", "RUNNING", "FAILED", "COMPUTED", "READY committed", "EVALUATING"}},
  };
}

class StateTable : public ::testing::TestWithParam<Row> {};

TEST_P(StateTable, LeadsFromEachStateWhereTheProtocolSays) {
  const Row& row = GetParam();
  ASSERT_EQ(row.cells.size(), std::size(kStates));
  for (std::size_t i = 0; i < std::size(kStates); ++i) {
    Harness h;
    h.Reach(kStates[i]);
    ASSERT_EQ(h.state(), kStates[i]);
    h.TakeEvents();
    row.happens(h);
    h.FinishAllWork();
    const std::string events = h.TakeEvents();
    EXPECT_EQ(StateName(h.state()) + (events.empty() ? "" : " " + events), row.cells[i])
        << row.event << " in " << StateName(kStates[i]);
    EXPECT_EQ(h.machine().state_id() == 0, h.state() == State::kEmpty || h.computer().weights() == std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(Events, StateTable, ::testing::ValuesIn(Table()));

TEST(StateMachine, DescribesItselfByStateJobAndFence) {
  Harness h;
  h.Ready();
  v1::DescribeReply reply;
  h.machine().Describe(&reply);
  EXPECT_EQ(reply.state(), "READY");
  EXPECT_EQ(reply.job_id(), "job-a");
  EXPECT_EQ(reply.fence().epoch(), 1u);
  h.Release();
  h.machine().Describe(&reply);
  EXPECT_EQ(reply.state(), "EMPTY");
  EXPECT_EQ(reply.job_id(), "");
}

TEST(StateMachine, EndsAStreamThatSendsAMessageOfNoKind) {
  Harness h;
  h.Ready();
  h.Send(h.Request());
  ASSERT_EQ(h.ended().count(1), 1u);
  EXPECT_EQ(h.ended().at(1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(h.machine().tenancy().attached());
}

}  // namespace
}  // namespace resbm::stage_server::testing
