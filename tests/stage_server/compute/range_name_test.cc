#include "stage_server/compute/range_name.h"

#include <gtest/gtest.h>

namespace resbm::stage_server {
namespace {

TEST(RangeName, SaysWhatIsDoneForWhichMicroBatchAndStep) {
  Forward forward;
  forward.micro_batch = 3;
  forward.step = 40;
  EXPECT_EQ(RangeName(forward), "F3 step 40");
  Backward backward;
  backward.micro_batch = 12;
  backward.step = 7;
  EXPECT_EQ(RangeName(backward), "B12 step 7");
  EXPECT_EQ(RangeName(Finish{40}), "finish step 40");
  Apply apply;
  apply.step = 40;
  EXPECT_EQ(RangeName(apply), "commit step 40");
  EvaluateForward evaluate;
  evaluate.micro_batch = 2;
  EXPECT_EQ(RangeName(evaluate), "E2");
  EXPECT_EQ(RangeName(Drop{}), "drop");
}

}  // namespace
}  // namespace resbm::stage_server
