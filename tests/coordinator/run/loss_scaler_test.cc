#include "coordinator/run/loss_scaler.h"

#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

TEST(LossScaler, IsOneWhenOff) {
  LossScaler scaler(false);
  for (int i = 0; i < 3 * LossScaler::kStepsToGrow; ++i) scaler.OnStep(i % 5 == 0);
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, HalvesWithEverySkippedStepDownToOne) {
  LossScaler scaler(true);
  EXPECT_EQ(scaler.scale(), LossScaler::kStart);
  scaler.OnStep(true);
  EXPECT_EQ(scaler.scale(), LossScaler::kStart / 2);
  for (int i = 0; i < 100; ++i) scaler.OnStep(true);
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, DoublesAfterEnoughGoodStepsInARowUpToItsLimit) {
  LossScaler scaler(true);
  for (int i = 1; i < LossScaler::kStepsToGrow; ++i) scaler.OnStep(false);
  EXPECT_EQ(scaler.scale(), LossScaler::kStart);
  scaler.OnStep(true);  // the row begins anew
  for (int i = 1; i < LossScaler::kStepsToGrow; ++i) scaler.OnStep(false);
  EXPECT_EQ(scaler.scale(), LossScaler::kStart / 2);
  scaler.OnStep(false);
  EXPECT_EQ(scaler.scale(), LossScaler::kStart);
  for (int i = 0; i < 20 * LossScaler::kStepsToGrow; ++i) scaler.OnStep(false);
  EXPECT_EQ(scaler.scale(), LossScaler::kLargest);
}

}  // namespace
}  // namespace resbm::coordinator
