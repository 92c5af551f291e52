#include "coordinator/compare/run_difference.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/safetensors.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

std::string Weights(const std::vector<std::pair<std::string, std::vector<float>>>& tensors) {
  SafetensorsFile file;
  std::vector<std::string> bytes(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, values] = tensors[i];
    bytes[i].assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    file.tensors.push_back({name, "F32", {static_cast<std::int64_t>(values.size())}, bytes[i]});
  }
  auto text = SerializeSafetensors(file);
  EXPECT_TRUE(text.ok()) << text.status();
  return *text;
}

RunTrace Trace(const std::string& name) {
  RunTrace trace;
  trace.name = name;
  trace.steps = {{1, 2.5, 3.0, false, {4, 5}, {}}, {2, 2.25, 2.0, false, {1, 3}, {}}};
  trace.parameters = {"stem.conv.weight", "head.weight"};
  trace.weights = Weights({{"stem.conv.weight", {1, 2}}, {"head.weight", {4}}});
  return trace;
}

TEST(RunDifference, EqualRunsAreOneLine) {
  const auto difference = CompareRuns(Trace("1 stage"), Trace("3 stages"));
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_TRUE(difference->equal());
  EXPECT_EQ(Describe(Trace("1 stage"), Trace("3 stages"), *difference),
            "equal in every bit: 1 stage and 3 stages, 2 steps (losses, gradient norms of 2 parameters, 2 weight "
            "tensors)\n");
}

// A step that both skipped.
TEST(RunDifference, ANormThatIsNaNInBothIsEqual) {
  RunTrace a = Trace("a");
  a.steps[0].skipped = true;
  a.steps[0].squared_norms[0] = std::numeric_limits<double>::quiet_NaN();
  a.steps[0].gradient_norm.reset();
  RunTrace b = a;
  const auto difference = CompareRuns(a, b);
  ASSERT_TRUE(difference.ok());
  EXPECT_TRUE(difference->equal()) << Describe(a, b, *difference);
  b.steps[0].squared_norms[0] = 1;
  EXPECT_FALSE(CompareRuns(a, b)->equal());
}

TEST(RunDifference, NamesTheFirstStepThenTheGradientsThenTheWeights) {
  const RunTrace a = Trace("a");
  RunTrace b = Trace("b");
  b.steps[1].gradient_norm = std::nextafter(2.0, 3.0);
  b.steps[1].squared_norms[1] = 3.5;
  b.weights = Weights({{"stem.conv.weight", {1, 2}}, {"head.weight", {5}}});
  const auto difference = CompareRuns(a, b);
  ASSERT_TRUE(difference.ok());
  EXPECT_FALSE(difference->equal());
  EXPECT_THAT(difference->gradients, ElementsAre(Field(&TensorDifference::name, "head.weight")));
  EXPECT_EQ(Describe(a, b, *difference), R"(NOT EQUAL: a and b
  first difference: step 2: equal loss, gradient norm 2 and 2 (relative 2.2e-16)
  gradients of that step: 1 of 2 differ
    first:   head.weight: gradient norm 1.73205081 and 1.87082869 (relative 0.074)
    largest: head.weight: gradient norm 1.73205081 and 1.87082869 (relative 0.074)
  final weights: 1 of 2 differ
    first:   head.weight: max |a - b| / max |a| = 0.25, 1 of 1 values
    largest: head.weight: max |a - b| / max |a| = 0.25, 1 of 1 values
)");
}

TEST(RunDifference, OneBitOfALossCounts) {
  RunTrace b = Trace("b");
  b.steps[0].loss = std::nextafter(2.5, 3.0);
  const auto difference = CompareRuns(Trace("a"), b);
  ASSERT_TRUE(difference.ok());
  EXPECT_THAT(difference->first_step, HasSubstr("step 1: loss"));
}

TEST(RunDifference, AnotherNumberOfStepsIsADifference) {
  RunTrace b = Trace("b");
  b.steps.pop_back();
  EXPECT_THAT(CompareRuns(Trace("a"), b)->first_step, "2 steps in one, 1 in the other");
  b.steps.clear();
  EXPECT_FALSE(CompareRuns(Trace("a"), b)->equal());
}

TEST(RunDifference, WeightsMayDifferInNamesShapesAndNaNs) {
  int tensors = 0;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto differences = CompareWeights(Weights({{"a", {1, 2}}, {"b", {1}}, {"c", {nan, 1}}, {"e", {0}}}),
                                          Weights({{"a", {1}}, {"c", {2, 1}}, {"d", {1}}, {"e", {-0.0f}}}), &tensors);
  ASSERT_TRUE(differences.ok()) << differences.status();
  EXPECT_EQ(tensors, 4);
  ASSERT_EQ(differences->size(), 5u);
  EXPECT_EQ((*differences)[0].what, "[2] in one, [1] in the other");
  EXPECT_EQ((*differences)[1].what, "only in the first");
  EXPECT_TRUE(std::isinf((*differences)[2].relative));
  EXPECT_EQ((*differences)[3].name, "e");  // the sign of zero is a bit
  EXPECT_EQ((*differences)[4].what, "only in the second");
}

TEST(RunDifference, NotAWeightsFileIsAnError) {
  RunTrace b = Trace("b");
  b.weights = "nonsense";
  EXPECT_EQ(CompareRuns(Trace("a"), b).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RunDifference, SignalsSayBetweenWhichCutPointsItBegins) {
  RunTrace a = Trace("a");
  for (StepTrace& step : a.steps) {
    step.at_cuts = {{"stem z_rms", 1}, {"group0.0 z_rms", 2}, {"group0.0 gradient_rms_before", 3}};
  }
  EXPECT_THAT(Describe(a, a, *CompareRuns(a, a)), HasSubstr("3 signals at cut points"));
  RunTrace b = a;
  b.steps[1].at_cuts[1].second = 2.5;
  const auto quiet = CompareRuns(a, b);
  EXPECT_FALSE(quiet->equal());
  EXPECT_EQ(quiet->first_step, "step 2: equal loss and gradients, but not at every cut point");
  b.steps[1].loss = 9;
  const auto difference = CompareRuns(a, b);
  EXPECT_THAT(difference->at_cuts, ElementsAre(Field(&TensorDifference::name, "group0.0 z_rms")));
  EXPECT_THAT(Describe(a, b, *difference), HasSubstr("signals at cut points, in the order of computing: 1 of 3 differ\n"
                                                     "    first:   group0.0 z_rms: 2 and 2.5 (relative 0.2)"));
}

}  // namespace
}  // namespace resbm::coordinator
