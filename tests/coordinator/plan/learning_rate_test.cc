#include "coordinator/plan/learning_rate.h"

#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

v1::LearningRateSchedule Parse(const std::string& text) {
  v1::LearningRateSchedule schedule;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &schedule)) << text;
  return schedule;
}

void ExpectFactors(const std::string& text, const std::vector<double>& expected) {
  const v1::LearningRateSchedule schedule = Parse(text);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(LearningRateFactor(schedule, i + 1, expected.size()), expected[i], 1e-15) << text << " step " << i + 1;
  }
}

TEST(LearningRate, NothingSetIsConstant) {
  ExpectFactors("", {1, 1, 1});
  ExpectFactors("constant {}", {1, 1, 1});
}

TEST(LearningRate, WarmUpRisesLinearlyToOne) {
  ExpectFactors("warmup_steps: 4", {0.25, 0.5, 0.75, 1, 1, 1});
  ExpectFactors("warmup_steps: 1 constant {}", {1, 1});
}

TEST(LearningRate, AWarmUpLongerThanTheRunStillRises) { ExpectFactors("warmup_steps: 10 cosine {}", {0.1, 0.2, 0.3}); }

// Values of PyTorch 2.13.0:
//   python -c 'import torch
//   o = torch.optim.SGD([torch.zeros(1)], lr=1.0)
//   s = torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=8, eta_min=0.1)
//   for _ in range(8): print(o.param_groups[0]["lr"]); o.step(); s.step()'
TEST(LearningRate, CosineIsThatOfPyTorch) {
  ExpectFactors("cosine { final_factor: 0.1 }", {1.0, 0.9657457896300791, 0.8681980515339464, 0.7222075445642905, 0.55,
                                                 0.3777924554357097, 0.2318019484660537, 0.134254210369921});
}

TEST(LearningRate, CosineFollowsTheWarmUpOverTheRest) {
  ExpectFactors("warmup_steps: 2 cosine { final_factor: 0.1 }",
                {0.5, 1, 1.0, 0.9657457896300791, 0.8681980515339464, 0.7222075445642905, 0.55, 0.3777924554357097,
                 0.2318019484660537, 0.134254210369921});
}

// Values of PyTorch 2.13.0, here and below with other total_steps, pct_start, div_factor, final_div_factor:
//   python -c 'import torch
//   o = torch.optim.SGD([torch.zeros(1)], lr=1.0)
//   s = torch.optim.lr_scheduler.OneCycleLR(o, max_lr=1.0, total_steps=10, cycle_momentum=False)
//   for i in range(10):
//     print(o.param_groups[0]["lr"]); o.step()
//     if i < 9: s.step()'
TEST(LearningRate, OneCycleIsThatOfPyTorch) {
  ExpectFactors("one_cycle {}", {0.040000000000000036, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631,
                                 0.6112620219362893, 0.38874197806371075, 0.18825834605023697, 0.049519367986526286,
                                 4e-06});
}

// pct_start=0.25, div_factor=10.0, final_div_factor=100.0: the peak lies between two steps.
TEST(LearningRate, OneCycleTakesItsOptions) {
  ExpectFactors("one_cycle { rise: 0.25 start_div: 10 final_div: 100 }",
                {0.09999999999999998, 0.7749999999999999, 0.9890847265665359, 0.9046039886902862, 0.75025,
                 0.552711967402193, 0.3461460113097138, 0.16626926212375048, 0.044184043907520815, 0.001});
}

TEST(LearningRate, OneCycleOfAFewSteps) {
  ExpectFactors("one_cycle {}", {0.9944154354509117, 0.46263710266697505, 4e-06});
  ExpectFactors("one_cycle {}", {4e-06});
  ExpectFactors("one_cycle { rise: 0 }", {0.8535539763797113, 0.500002, 0.14645002362028864, 4e-06});
  ExpectFactors("one_cycle { rise: 1 }", {0.040000000000000036, 0.28, 0.7599999999999999, 1.0});
}

TEST(LearningRate, OneCycleWhoseRiseIsASingleStepBeginsAtThePeak) {
  EXPECT_EQ(LearningRateFactor(Parse("one_cycle { rise: 0.25 }"), 1, 4), 1);
  EXPECT_NEAR(LearningRateFactor(Parse("one_cycle { rise: 0.25 }"), 4, 4), 4e-6, 1e-15);
  EXPECT_EQ(LearningRateFactor(Parse("one_cycle { rise: 1 }"), 1, 1), 1);
}

TEST(LearningRate, StepsOutsideTheRunAreTheNearestInside) {
  const v1::LearningRateSchedule cycle = Parse("one_cycle {}");
  EXPECT_EQ(LearningRateFactor(cycle, 0, 10), LearningRateFactor(cycle, 1, 10));
  EXPECT_EQ(LearningRateFactor(cycle, 12, 10), LearningRateFactor(cycle, 10, 10));
}

}  // namespace
}  // namespace resbm::coordinator
