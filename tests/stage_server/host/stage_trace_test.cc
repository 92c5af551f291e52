// Spans of stages with their threads and links that break.
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/stage_server/host/pipeline.h"

namespace resbm::stage_server::testing {
namespace {

constexpr int kSteps = 4;

// How many of each kind and direction.
std::map<std::pair<v1::Span::Kind, v1::Direction>, int> Count(const v1::Computed& computed) {
  std::map<std::pair<v1::Span::Kind, v1::Direction>, int> counts;
  for (const v1::Span& span : computed.spans()) {
    // How often a stage waits is a matter of luck.
    if (span.kind() != v1::Span::WAIT) ++counts[{span.kind(), span.direction()}];
  }
  return counts;
}

TEST(StageTrace, EveryTensorIsSentAndReceivedOnceHoweverOftenTheLinksBreak) {
  constexpr int kM = Pipeline::kMicroBatches;
  for (int break_every : {0, 1, 3}) {
    Pipeline pipeline(break_every);
    pipeline.AttachAll(1);
    pipeline.ResumeAll(100, 0, /*keep=*/false);
    for (int step = 1; step <= kSteps; ++step) {
      for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
        v1::ControlRequest request;
        *request.mutable_begin() = MakeBegin(pipeline.fence(), step, 99 + step, 1, {2, 2, 1});
        request.mutable_begin()->set_trace(true);
        pipeline.Send(s, request);
      }
      for (int mb = 0; mb < kM; ++mb) pipeline.Feed(step, mb);
      for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
        const v1::ControlEvent event = pipeline.Next(s);
        ASSERT_TRUE(event.has_computed());
        std::map<std::pair<v1::Span::Kind, v1::Direction>, int> expected = {
            {{v1::Span::FORWARD, v1::LOCAL}, kM}, {{v1::Span::BACKWARD, v1::LOCAL}, kM},
            {{v1::Span::FINISH, v1::LOCAL}, 1},   {{v1::Span::SEND, s == 0 ? v1::DOWN : v1::UP}, kM},
            {{v1::Span::RECEIVE, v1::UP}, kM},    {{v1::Span::RECEIVE, v1::DOWN}, kM},
        };
        if (step > 1) expected[{v1::Span::COMMIT, v1::LOCAL}] = 1;
        EXPECT_EQ(Count(event.computed()), expected) << "stage " << s << ", step " << step << ", " << break_every;
        for (const v1::Span& span : event.computed().spans()) EXPECT_GE(span.duration_nanos(), 0);
      }
      for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
        v1::ControlRequest request;
        *request.mutable_commit() = MakeCommit(pipeline.fence(), step, 99 + step, 100 + step);
        pipeline.Send(s, request);
      }
      for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) ASSERT_TRUE(pipeline.Next(s).has_committed());
    }
  }
}

}  // namespace
}  // namespace resbm::stage_server::testing
