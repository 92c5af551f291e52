#include "coordinator/run/group_check.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

std::vector<v1::Ready> TwoStages() {
  std::vector<v1::Ready> stages(2);
  stages[0].add_parameter_names("stem.conv.weight");
  stages[1].add_parameter_names("head.bias");
  return stages;
}

v1::Optimizer Groups(const std::vector<std::string>& patterns) {
  v1::Optimizer optimizer;
  for (const std::string& pattern : patterns) optimizer.add_group()->set_match(pattern);
  return optimizer;
}

TEST(CheckParameterGroups, APatternMayMatchOnAnyStage) {
  EXPECT_TRUE(CheckParameterGroups(Groups({}), TwoStages()).ok());
  EXPECT_TRUE(CheckParameterGroups(Groups({"stem.*", "*.bias"}), TwoStages()).ok());
}

TEST(CheckParameterGroups, APatternThatMatchesNothingIsNamedWithItsField) {
  const absl::Status status = CheckParameterGroups(Groups({"*.bias", "steam.conv.weight"}), TwoStages());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("optimizer.group[1].match"));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("steam.conv.weight"));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("stem.conv.weight"));
}

}  // namespace
}  // namespace resbm::coordinator
