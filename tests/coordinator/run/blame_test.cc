#include "coordinator/run/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;

StageSign Waits(v1::Direction direction, bool connected = true) {
  v1::WaitingFor w;
  w.set_direction(direction);
  w.set_micro_batch(3);
  w.set_link_connected(connected);
  return {absl::Seconds(1), w, false};
}

StageSign Computes() { return {absl::Seconds(1), std::nullopt, false}; }

// Since a minute.
StageSign Done() { return {absl::Seconds(60), std::nullopt, true}; }

TEST(Blame, TheSilentStageComesFirst) {
  const Blame b = FindBlame({Waits(v1::DOWN), StageSign{absl::Seconds(30), std::nullopt, false}, Waits(v1::UP)});
  EXPECT_EQ(b.stage, 1);
  EXPECT_THAT(b.reason, HasSubstr("30 s"));
}

TEST(Blame, TheChainOfWaitingEndsAtTheStageThatComputes) {
  EXPECT_EQ(FindBlame({Waits(v1::DOWN), Waits(v1::DOWN), Computes()}).stage, 2);
  EXPECT_EQ(FindBlame({Computes(), Waits(v1::UP), Waits(v1::UP)}).stage, 0);
}

TEST(Blame, ALinkThatIsDownIsNamedWithItsFarEnd) {
  const Blame b = FindBlame({Waits(v1::DOWN, false), Computes()});
  EXPECT_EQ(b.stage, 1);
  EXPECT_THAT(b.reason, HasSubstr("not connected"));
}

TEST(Blame, TheCoordinatorsOwnLinksCanBeToBlame) {
  EXPECT_EQ(FindBlame({Waits(v1::UP), Waits(v1::UP)}).stage, -1);
  EXPECT_EQ(FindBlame({Waits(v1::DOWN), Waits(v1::DOWN)}).stage, 2);
}

TEST(Blame, ACircleOfWaitingEnds) {
  EXPECT_THAT(FindBlame({Waits(v1::DOWN), Waits(v1::UP)}).reason, HasSubstr("wait for each other"));
}

TEST(Blame, AStageThatIsDoneIsSilentForGoodReason) {
  EXPECT_EQ(FindBlame({Computes(), Done(), Done()}).stage, 0);
  EXPECT_EQ(FindBlame({Done(), Computes(), Done()}).stage, 1);
  EXPECT_EQ(FindBlame({Waits(v1::DOWN), Computes(), Done()}).stage, 1);
}

TEST(Blame, WhatADoneStageSentAndNobodyGotIsTheLinks) {
  const Blame b = FindBlame({Waits(v1::DOWN), Done()});
  EXPECT_EQ(b.stage, 1);
  EXPECT_THAT(b.reason, HasSubstr("handed to the link"));
}

}  // namespace
}  // namespace resbm::coordinator
