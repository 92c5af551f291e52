// Spans of stages as events of a Chrome trace.
#include "coordinator/report/trace_events.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/report/spans.h"

namespace resbm::coordinator {
namespace {

using absl::Microseconds;
using absl::Seconds;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

json Parse(const std::string& events) { return json::parse("[{\"ph\":\"none\"}" + events + "]"); }

json OfKind(const json& events, const std::string& kind) {
  json found = json::array();
  for (const json& event : events) {
    if (event["ph"] == kind) found.push_back(event);
  }
  return found;
}

// "0/1 send F0 send 130.000 +20.000": process and thread, name, category, times.
std::vector<std::string> Slices(const json& events, int process = -1) {
  std::vector<std::string> lines;
  for (const json& event : OfKind(events, "X")) {
    if (process >= 0 && event["pid"] != process) continue;
    lines.push_back(absl::StrCat(event["pid"].get<int>(), "/", event["tid"].get<int>(), " ",
                                 event["name"].get<std::string>(), " ", event["cat"].get<std::string>(), " ",
                                 event["ts"].get<double>(), " +", event["dur"].get<double>()));
  }
  return lines;
}

// Two stages, whose clocks show 500 s and 900 s more; the trace begins at 100 s.
class TraceEventsTest : public ::testing::Test {
 protected:
  v1::Span At(int stage, v1::Span::Kind kind, v1::Direction direction, std::uint32_t micro_batch, int from, int took,
              std::uint64_t bytes = 0, std::uint32_t tensor = 0) {
    const absl::Duration zero = Seconds(100) + (stage == 0 ? Seconds(500) : Seconds(900));
    return SpanOf(kind, direction, micro_batch, zero + Microseconds(from), Microseconds(took), bytes, tensor);
  }
  json Make(std::vector<std::vector<v1::Span>> spans, std::int64_t number = 1) {
    StepSpans step;
    step.step = number;
    step.began = Seconds(100) + Microseconds(1000 * (number - 1));
    step.ended = step.began + Microseconds(1000);
    step.spans = std::move(spans);
    return Parse(events_.Of(step, clocks_));
  }

  TraceEvents events_{2, Seconds(100)};
  std::vector<ClockModel> clocks_ = {ClockAhead(Seconds(500)), ClockAhead(Seconds(900))};
};

TEST_F(TraceEventsTest, EverySpanHasItsPlaceOnTheCoordinatorsClock) {
  const json events = Make({
      {At(0, v1::Span::WAIT, v1::UP, 0, 10, 20), At(0, v1::Span::FORWARD, v1::LOCAL, 0, 30, 70),
       At(0, v1::Span::BACKWARD, v1::LOCAL, 0, 400, 100), At(0, v1::Span::FINISH, v1::LOCAL, 0, 500, 5),
       At(0, v1::Span::SEND, v1::DOWN, 0, 100, 40, 64), At(0, v1::Span::RECEIVE, v1::DOWN, 0, 350, 30, 32),
       At(0, v1::Span::RECEIVE, v1::UP, 0, 20, 9, 16)},
      {At(1, v1::Span::COMMIT, v1::LOCAL, 0, 1, 2), At(1, v1::Span::RECEIVE, v1::UP, 0, 130, 20, 64),
       At(1, v1::Span::WAIT, v1::DOWN, 0, 150, 1), At(1, v1::Span::SEND, v1::UP, 0, 300, 60, 32),
       At(1, v1::Span::RECEIVE, v1::DOWN, 0, 5, 1, 8)},
  });
  EXPECT_THAT(Slices(events, 2), ElementsAre("2/0 step 1 step 0 +1000"));
  EXPECT_THAT(Slices(events, 0),
              ElementsAre("0/0 wait up wait 10 +20", "0/0 F0 forward 30 +70", "0/0 B0 backward 400 +100",
                          "0/0 finish finish 500 +5", "0/1 send F0 send 100 +40", "0/2 receive B0 receive 350 +30",
                          "0/4 receive input 0 receive 20 +9"));
  EXPECT_THAT(Slices(events, 1),
              ElementsAre("1/0 commit commit 1 +2", "1/0 wait down wait 150 +1", "1/2 receive target 0 receive 5 +1",
                          "1/3 send B0 send 300 +60", "1/4 receive F0 receive 130 +20"));
  for (const json& slice : OfKind(events, "X")) {
    EXPECT_EQ(slice["args"]["step"], slice["name"] == "commit" ? 0 : 1) << slice;
    if (slice["name"] == "send F0") {
      EXPECT_EQ(slice["args"]["bytes"], 64);
      EXPECT_EQ(slice["args"]["micro_batch"], 0);
      EXPECT_EQ(slice["args"]["queued_us"], 0);
    }
  }
}

TEST_F(TraceEventsTest, AnArrowLeadsFromEachSendingToItsReceiving) {
  const json events = Make({
      {At(0, v1::Span::SEND, v1::DOWN, 0, 100, 10, 64, 0), At(0, v1::Span::SEND, v1::DOWN, 0, 110, 10, 4, 1),
       At(0, v1::Span::RECEIVE, v1::DOWN, 0, 320, 10, 32)},
      {At(1, v1::Span::RECEIVE, v1::UP, 0, 115, 10, 64, 0), At(1, v1::Span::RECEIVE, v1::UP, 0, 125, 10, 4, 1),
       At(1, v1::Span::SEND, v1::UP, 0, 300, 10, 32),
       // Nobody says that it received this.
       At(1, v1::Span::SEND, v1::UP, 1, 310, 10, 32)},
  });
  const json starts = OfKind(events, "s");
  const json ends = OfKind(events, "f");
  ASSERT_EQ(starts.size(), 3u);
  ASSERT_EQ(ends.size(), 3u);
  std::vector<std::string> arrows;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
    EXPECT_EQ(starts[i]["name"], ends[i]["name"]);
    EXPECT_EQ(starts[i]["cat"], ends[i]["cat"]);
    EXPECT_EQ(ends[i]["bp"], "e");
    arrows.push_back(absl::StrCat(starts[i]["name"].get<std::string>(), " ", starts[i]["pid"].get<int>(), "/",
                                  starts[i]["tid"].get<int>(), " ", starts[i]["ts"].get<double>(), " -> ",
                                  ends[i]["pid"].get<int>(), "/", ends[i]["tid"].get<int>(), " ",
                                  ends[i]["ts"].get<double>()));
  }
  EXPECT_THAT(arrows, ElementsAre("B0 1/3 300 -> 0/2 320", "F0 0/1 100 -> 1/4 115", "F0 0/1 110 -> 1/4 125"));
  EXPECT_NE(starts[0]["id"], starts[1]["id"]);
  // Those of the next step have ids of their own.
  const json next = Make(
      {{At(0, v1::Span::SEND, v1::DOWN, 0, 1100, 10, 64)}, {At(1, v1::Span::RECEIVE, v1::UP, 0, 1115, 10, 64)}}, 2);
  ASSERT_EQ(OfKind(next, "s").size(), 1u);
  EXPECT_GT(OfKind(next, "s")[0]["id"].get<int>(), 3);
}

TEST_F(TraceEventsTest, TensorsThatWereReadyTogetherLeaveOneAfterTheOther) {
  const json events =
      Make({{At(0, v1::Span::SEND, v1::DOWN, 1, 100, 50, 64), At(0, v1::Span::SEND, v1::DOWN, 0, 100, 20, 64),
             At(0, v1::Span::SEND, v1::DOWN, 2, 200, 10, 64)},
            {}});
  EXPECT_THAT(Slices(events, 0),
              ElementsAre("0/1 send F0 send 100 +20", "0/1 send F1 send 120 +30", "0/1 send F2 send 200 +10"));
  const json slices = OfKind(events, "X");
  EXPECT_EQ(slices[2]["args"]["queued_us"], 20);
  EXPECT_EQ(slices[3]["args"]["queued_us"], 0);
  // Also over the border of steps.
  const json next = Make({{At(0, v1::Span::SEND, v1::DOWN, 0, 205, 10, 64)}, {}}, 2);
  EXPECT_THAT(Slices(next, 0), ElementsAre("0/1 send F0 send 210 +5"));
}

TEST_F(TraceEventsTest, NothingIsBeforeTheStartOfTheTraceThoughAClockMayBeOffALittle) {
  const json events = Make({{At(0, v1::Span::WAIT, v1::UP, 0, -30, 40)}, {}});
  EXPECT_THAT(Slices(events, 0), ElementsAre("0/0 wait up wait 0 +10"));
}

TEST_F(TraceEventsTest, AStageWhoseClockIsNotKnownIsLeftOut) {
  clocks_[1] = ClockModel();
  const json events =
      Make({{At(0, v1::Span::SEND, v1::DOWN, 0, 100, 10, 64)}, {At(1, v1::Span::RECEIVE, v1::UP, 0, 115, 10, 64)}});
  EXPECT_THAT(Slices(events, 0), ElementsAre("0/1 send F0 send 100 +10"));
  EXPECT_THAT(Slices(events, 1), IsEmpty());
  EXPECT_EQ(OfKind(events, "s").size(), 0u);
}

TEST_F(TraceEventsTest, TimesKeepTheirNanoseconds) {
  v1::Span span = At(0, v1::Span::FORWARD, v1::LOCAL, 0, 1, 2);
  span.set_start_nanos(span.start_nanos() + 7);
  span.set_duration_nanos(span.duration_nanos() + 80);
  StepSpans step;
  step.step = 1;
  step.began = Seconds(100);
  step.ended = Seconds(101);
  step.spans = {{span}, {}};
  EXPECT_NE(events_.Of(step, clocks_).find("\"ts\":1.007,\"dur\":2.080"), std::string::npos);
}

TEST(TraceNames, NameStagesByTheirAddressesAndOrderThem) {
  const auto [first, rest] = TraceEvents::Names({"host-a:50051", "host\"b\":1"});
  const json events = json::parse("[" + first + rest + "]");
  std::vector<std::string> names;
  for (const json& event : events) {
    EXPECT_EQ(event["ph"], "M");
    if (event["name"] == "process_name") {
      names.push_back(absl::StrCat(event["pid"].get<int>(), " ", event["args"]["name"].get<std::string>()));
    } else if (event["name"] == "process_sort_index") {
      EXPECT_EQ(event["args"]["sort_index"], event["pid"]);
    } else if (event["name"] == "thread_name" && event["pid"] == 1) {
      names.push_back(event["args"]["name"]);
    }
  }
  EXPECT_THAT(names, ElementsAre("2 coordinator", "0 stage 0 (host-a:50051)", "1 stage 1 (host\"b\":1)", "compute",
                                 "send down", "receive down", "send up", "receive up"));
}

}  // namespace
}  // namespace resbm::coordinator
