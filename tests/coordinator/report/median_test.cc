#include "coordinator/report/median.h"

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

TEST(Median, IsTheMiddleInWhateverOrder) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({3, 100, -1, 3, 2}), 3);
}

TEST(Median, OfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(Median({4, 1}), 2.5);
  EXPECT_EQ(Median({10, 1, 2, 4}), 3);
  EXPECT_EQ(Median({1, 1, 5, 5}), 3);
}

}  // namespace
}  // namespace resbm::coordinator
