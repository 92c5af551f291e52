#include "coordinator/plan/partition.h"

#include <optional>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

v1::Job Parse(const std::string& text) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job)) << text;
  return job;
}

// Six blocks of equal cost but the first of the second group; three cut points.
constexpr char kJob[] =
    "model { resnet { stem { stride: 2 } group { blocks: 3 channels: 32 } group { blocks: 3 channels: 64 stride: 2 } } "
    "} "
    "cut_point { after: 'group0.0' } cut_point { after: 'group0.2' } cut_point { after: 'group1.1' } "
    "optimizer { sgd { momentum: 0.9 nesterov: true weight_decay: 0.0005 } } "
    "data { fashion_mnist { directory: '/d' } } ";

PartitionPlan Plan(const std::string& text, std::optional<int> stages) {
  const v1::Job job = Parse(text);
  auto plan = PlanPartition(job, *ExpandModel(job), stages);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : PartitionPlan();
}

std::string ErrorOf(const std::string& text, std::optional<int> stages = std::nullopt) {
  const v1::Job job = Parse(text);
  const auto plan = PlanPartition(job, *ExpandModel(job), stages);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(StageCount, TheCommandLineBeatsTheJobBeatsTheDefault) {
  EXPECT_EQ(StageCount(Parse(""), std::nullopt), 2);
  EXPECT_EQ(StageCount(Parse("partition { auto {} }"), std::nullopt), 2);
  EXPECT_EQ(StageCount(Parse("partition { auto { stages: 3 } }"), std::nullopt), 3);
  EXPECT_EQ(StageCount(Parse("partition { stage {} stage {} stage {} stage {} }"), std::nullopt), 4);
  EXPECT_EQ(StageCount(Parse("partition { auto { stages: 3 } }"), 1), 1);
}

TEST(PlanPartition, OneStageHasEverything) {
  const PartitionPlan plan = Plan(kJob, 1);
  EXPECT_EQ(plan.stages, (std::vector<StageRange>{{0, 8}}));
  EXPECT_TRUE(plan.cuts.empty());
  const v1::Job job = Parse(kJob);
  EXPECT_EQ(plan.stage_flops, std::vector<std::uint64_t>{ExpandModel(job)->forward_flops()});
}

TEST(PlanPartition, BalancesTheCostliestStage) {
  // Layers: stem 0.1, group0 7.2 each, group1 5.6, 7.2, 7.2 MFLOPs: half of them end with group0.2.
  const PartitionPlan two = Plan(kJob, 2);
  EXPECT_EQ(two.cuts, std::vector<int>{1});
  EXPECT_EQ(two.stages, (std::vector<StageRange>{{0, 3}, {4, 8}}));
  EXPECT_EQ(Plan(kJob, 4).cuts, (std::vector<int>{0, 1, 2}));
}

TEST(PlanPartition, StageCostsIncludeBoundaries) {
  // Both boundaries of group0: r = 16, 2 of 32 channels, 14 x 14: encoder 25088, decoder 78400.
  // That of group1: r = 16, 4 of 64 channels, 7 x 7: encoder 2 x 64 x 4 x 49, decoder 98 x (2 x 144 + 2 x 256).
  const PartitionPlan plan = Plan(kJob, 2);
  ASSERT_EQ(plan.stage_flops.size(), 2u);
  EXPECT_EQ(plan.stage_flops[0], 112896u + 3 * 7225344 + (25088 + 78400) + 25088);
  EXPECT_EQ(plan.stage_flops[1], 78400u + 5619712 + 2 * 7225344 + (25088 + 78400) + 1280);
}

TEST(PlanPartition, ByHandFollowsTheStageList) {
  const PartitionPlan plan =
      Plan(std::string(kJob) + "partition { stage { cut_after: 'group0.0' } stage { cut_after: 'group1.1' } stage {} }",
           std::nullopt);
  EXPECT_EQ(plan.cuts, (std::vector<int>{0, 2}));
  EXPECT_EQ(plan.stages, (std::vector<StageRange>{{0, 1}, {2, 5}, {6, 8}}));
}

TEST(PlanPartition, ByHandNamesCutPointsInOrder) {
  const std::string job = kJob;
  EXPECT_EQ(ErrorOf(job + "partition { stage { cut_after: 'group0.1' } stage {} }"),
            "partition.stage[0].cut_after: no cut point \"group0.1\"; did you mean \"group0.0\"?");
  EXPECT_EQ(ErrorOf(job + "partition { stage {} stage {} }"),
            "partition.stage[0].cut_after: says no cut point after which the stage ends; known: group0.0, group0.2, "
            "group1.1");
  EXPECT_EQ(ErrorOf(job + "partition { stage { cut_after: 'group0.2' } stage { cut_after: 'group0.0' } stage {} }"),
            "partition.stage[1].cut_after: \"group0.0\" is not after \"group0.2\", where the stage before it ends");
  EXPECT_EQ(ErrorOf(job + "partition { stage { cut_after: 'group0.0' } stage { cut_after: 'group0.2' } }"),
            "partition.stage[1].cut_after: the last stage goes to the end of the model; leave it out");
}

TEST(PlanPartition, CountsMatch) {
  const std::string job = kJob;
  EXPECT_EQ(
      ErrorOf(job, 5),
      "5 stages need 4 cuts, the job declares 3 cut points; declare more (cut_point { after: ... }) or use at most "
      "4 stages");
  EXPECT_EQ(ErrorOf(job, 0), "0 stages; at least 1 is needed");
  EXPECT_EQ(
      ErrorOf(job + "partition { stage { cut_after: 'group0.0' } stage {} }", 3),
      "partition.stage: lists 2 stages, but 3 were asked for; make the numbers equal, or use partition { auto {} }");
  EXPECT_EQ(ErrorOf(job + "partition { auto {} stage { cut_after: 'group0.0' } stage {} }"),
            "partition: has both auto and stage; keep one of them");
}

TEST(PlanPartition, AddressesAreHostAndPortOnAllStagesOrNone) {
  const std::string job = kJob;
  const std::string first = "partition { stage { cut_after: 'group0.0' address: 'host-a:50051' } stage { ";
  EXPECT_EQ(Plan(job + first + "address: '[::1]:7002' } }", std::nullopt).cuts, std::vector<int>{0});
  EXPECT_EQ(ErrorOf(job + first + "} }"), "partition.stage: 1 of 2 stages have an address; give all or none");
  for (const std::string bad : {"host-b", ":7002", "host-b:", "host-b:0", "host-b:70000", "host-b:x"}) {
    EXPECT_EQ(ErrorOf(job + first + "address: '" + bad + "' } }"),
              "partition.stage[1].address: \"" + bad + "\" is not host:port, such as host-a:50051");
  }
}

TEST(CrossingBytes, CountsBothDirections) {
  const v1::Job job = Parse(std::string(kJob) + "wire { activations: FP16 gradients: FP32 }");
  EXPECT_EQ(CrossingBytes(ExpandModel(job)->boundaries[0]), 2u * 14 * 14 * (2 + 4));
}

class StageSpecs : public testing::Test {
 protected:
  v1::StageSpec Make(int stages, int stage) const {
    const ModelPlan model = *ExpandModel(job_);
    const PartitionPlan partition = *PlanPartition(job_, model, stages);
    return MakeStageSpec(job_, model, partition, stage, {3, 2, 1});
  }

  v1::Job job_ = Parse(std::string(kJob) + "run { threads_per_stage: 2 deterministic: false channels_last: true }");
};

std::vector<std::string> Layers(const v1::StageSpec& spec) {
  std::vector<std::string> names;
  for (const auto& layer : spec.layers()) names.push_back(layer.name());
  return names;
}

std::vector<std::string> Boundaries(const v1::StageSpec& spec) {
  std::vector<std::string> names;
  for (const auto& boundary : spec.boundaries()) names.push_back(boundary.cut_point());
  return names;
}

TEST_F(StageSpecs, EachStageHasItsLayersAndTheBoundariesItTakesPartIn) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Boundaries(Make(1, 0)), (Names{"group0.0", "group0.2", "group1.1"}));
  EXPECT_EQ(Layers(Make(2, 0)), (Names{"stem", "group0.0", "group0.1", "group0.2"}));
  EXPECT_EQ(Boundaries(Make(2, 0)), (Names{"group0.0", "group0.2"}));
  EXPECT_EQ(Layers(Make(2, 1)), (Names{"group1.0", "group1.1", "group1.2", "pool", "head"}));
  EXPECT_EQ(Boundaries(Make(2, 1)), (Names{"group0.2", "group1.1"}));
  EXPECT_EQ(Boundaries(Make(4, 1)), (Names{"group0.0", "group0.2"}));
  EXPECT_EQ(Layers(Make(4, 3)), (Names{"group1.2", "pool", "head"}));
  EXPECT_EQ(Boundaries(Make(4, 3)), (Names{"group1.1"}));
}

TEST_F(StageSpecs, OptionsComeFromTheJob) {
  v1::StageSpec spec = Make(2, 0);
  spec.clear_layers();
  spec.clear_boundaries();
  v1::StageSpec expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "stage: 0 stages: 2 optimizer { sgd { momentum: 0.9 nesterov: true weight_decay: 0.0005 } } loss: CROSS_ENTROPY "
      "threads: 2 deterministic: false channels_last: true input_mean: 0.2860 input_std: 0.3530 "
      "input_shape: [1, 28, 28] windows: [3, 2, 1] seed: 1 signals: true",
      &expected));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(spec, expected)) << spec.DebugString();
}

TEST_F(StageSpecs, LaterStagesTakeWhatCrosses) {
  const v1::StageSpec spec = Make(2, 1);
  EXPECT_EQ(spec.input_mean_size(), 0);
  EXPECT_EQ(std::vector<std::int64_t>(spec.input_shape().begin(), spec.input_shape().end()),
            (std::vector<std::int64_t>{2, 14, 14}));
}

TEST_F(StageSpecs, MuonCarriesTheRatioOfItsTwoRates) {
  v1::Optimizer::Muon* job = job_.mutable_optimizer()->mutable_muon();
  job->set_learning_rate(0.02);
  job->set_adjust(v1::Optimizer::Muon::MATCH_RMS_ADAMW);
  job->mutable_adamw()->set_learning_rate(0.005);
  job->mutable_adamw()->set_weight_decay(0);
  const v1::MuonOptions muon = Make(1, 0).optimizer().muon();
  EXPECT_EQ(muon.momentum(), 0.95);
  EXPECT_TRUE(muon.nesterov());
  EXPECT_EQ(muon.weight_decay(), 0.1);
  EXPECT_EQ(muon.ns_steps(), 5u);
  EXPECT_EQ(muon.adjust(), v1::MuonOptions::MATCH_RMS_ADAMW);
  EXPECT_EQ(muon.adamw().beta1(), 0.9);
  EXPECT_EQ(muon.adamw().weight_decay(), 0);
  EXPECT_EQ(muon.adamw_rate_ratio(), 0.25);
}

TEST_F(StageSpecs, AdamWOptionsComeFromTheJob) {
  job_.mutable_optimizer()->mutable_adamw()->set_beta1(0.8);
  const v1::AdamWOptions adamw = Make(1, 0).optimizer().adamw();
  EXPECT_EQ(adamw.beta1(), 0.8);
  EXPECT_EQ(adamw.beta2(), 0.999);
  EXPECT_EQ(adamw.epsilon(), 1e-8);
  EXPECT_EQ(adamw.weight_decay(), 0.01);
}

TEST_F(StageSpecs, NormalisationIsThatOfTheDataSet) {
  const auto means = [&] {
    const v1::StageSpec spec = Make(1, 0);
    return std::vector<float>(spec.input_mean().begin(), spec.input_mean().end());
  };
  const auto stds = [&] {
    const v1::StageSpec spec = Make(1, 0);
    return std::vector<float>(spec.input_std().begin(), spec.input_std().end());
  };
  job_.mutable_data()->mutable_mnist();
  EXPECT_EQ(means(), (std::vector<float>{0.1307f}));
  EXPECT_EQ(stds(), (std::vector<float>{0.3081f}));
  job_.mutable_data()->mutable_cifar10();
  EXPECT_EQ(means(), (std::vector<float>{0.4914f, 0.4822f, 0.4465f}));
  EXPECT_EQ(stds(), (std::vector<float>{0.2470f, 0.2435f, 0.2616f}));
  job_.mutable_data()->mutable_cifar100();
  EXPECT_EQ(means(), (std::vector<float>{0.5071f, 0.4865f, 0.4409f}));
  EXPECT_EQ(stds(), (std::vector<float>{0.2673f, 0.2564f, 0.2762f}));
}

TEST_F(StageSpecs, ParameterGroupsComeFromTheJobInOrder) {
  v1::Optimizer::ParameterGroup* group = job_.mutable_optimizer()->add_group();
  group->set_match("boundaries.*");
  group->set_rate_ratio(2);
  group = job_.mutable_optimizer()->add_group();
  group->set_match("*.bias");
  group->set_weight_decay(0);
  const v1::OptimizerSpec spec = Make(1, 0).optimizer();
  ASSERT_EQ(spec.groups_size(), 2);
  EXPECT_EQ(spec.groups(0).pattern(), "boundaries.*");
  EXPECT_EQ(spec.groups(0).rate_ratio(), 2);
  EXPECT_FALSE(spec.groups(0).has_weight_decay());
  EXPECT_EQ(spec.groups(1).rate_ratio(), 1);
  EXPECT_TRUE(spec.groups(1).has_weight_decay());
}

TEST_F(StageSpecs, SeedPrecisionAndSignalsComeFromTheJob) {
  job_.set_seed(77);
  job_.set_precision(v1::BF16);
  EXPECT_TRUE(Make(1, 0).signals());
  job_.mutable_run()->set_signals(false);
  const v1::StageSpec spec = Make(1, 0);
  EXPECT_EQ(spec.seed(), 77u);
  EXPECT_EQ(spec.precision(), v1::StageSpec::BF16);
  EXPECT_FALSE(spec.signals());
}

}  // namespace
}  // namespace resbm::coordinator
