#include "coordinator/html/link_use.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/html/example_reports.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TraceRecord Parse(const std::string& text) {
  std::istringstream json(text);
  return *ParseTrace(json);
}

TEST(LinkUse, IsOfEachDirectionBetweenStagesWithoutTheWarmUp) {
  // Three steps count, four micro-batches each.
  EXPECT_THAT(LinkUses(Parse(ExampleTrace(3, 4))),
              ElementsAre(LinkUse{0, 1, 12, 12 * 784, 2000, 2000}, LinkUse{1, 0, 12, 12 * 784, 2000, 2000},
                          LinkUse{1, 2, 12, 12 * 784, 2000, 2000}, LinkUse{2, 1, 12, 12 * 784, 2000, 2000}));
}

TEST(LinkUse, TheOnlyStepCounts) {
  EXPECT_THAT(LinkUses(Parse(ExampleTrace(2, 1))),
              ElementsAre(LinkUse{0, 1, 4, 4 * 784, 2000, 2000}, LinkUse{1, 0, 4, 4 * 784, 2000, 2000}));
}

TEST(LinkUse, ATensorIsOnItsWayFromItsSendingToItsArrival) {
  // Two tensors of a micro-batch, on their way for 7 us and, by clocks that are apart, for none; the third never came.
  const TraceRecord trace = Parse(
      R"({"traceEvents":[{"ph":"X","pid":0,"tid":1,"ts":10,"dur":2,"cat":"send","args":{"step":1,"micro_batch":0}},
          {"ph":"X","pid":0,"tid":1,"ts":20,"dur":2,"cat":"send","args":{"step":1,"micro_batch":0}},
          {"ph":"X","pid":0,"tid":1,"ts":30,"dur":2,"cat":"send","args":{"step":1,"micro_batch":1}},
          {"ph":"X","pid":1,"tid":4,"ts":14,"dur":3,"cat":"receive","args":{"step":1,"micro_batch":0}},
          {"ph":"X","pid":1,"tid":4,"ts":18,"dur":1,"cat":"receive","args":{"step":1,"micro_batch":0}}]})");
  EXPECT_THAT(LinkUses(trace), ElementsAre(LinkUse{0, 1, 3, 0, 2, 3.5}));
}

TEST(LinkUse, TheCoordinatorIsNoStage) {
  const TraceRecord trace = Parse(
      R"({"traceEvents":[{"ph":"X","pid":0,"tid":4,"name":"F0","cat":"receive","ts":0,"dur":5,"args":{"step":1}},
          {"ph":"X","pid":0,"tid":1,"name":"F0","cat":"send","ts":0,"dur":5,"args":{"step":1,"bytes":7}}]})");
  EXPECT_THAT(LinkUses(trace), IsEmpty());
}

}  // namespace
}  // namespace resbm::coordinator
