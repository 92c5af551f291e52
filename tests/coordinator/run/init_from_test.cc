#include "coordinator/run/init_from.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/base/safetensors.h"
#include "tests/support/subprocess.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;

// Layers "a" | "b", a boundary after "a".
std::vector<v1::StageSpec> TwoStages() {
  std::vector<v1::StageSpec> stages(2);
  for (int s = 0; s < 2; ++s) {
    stages[s].add_layers()->set_name(s == 0 ? "a" : "b");
    stages[s].add_boundaries()->set_cut_point("a");
  }
  return stages;
}

v1::InitFrom FileOf(const std::vector<std::string>& names, bool strict = true) {
  static const char kZero[4] = {};
  SafetensorsFile file;
  for (const std::string& name : names) file.tensors.push_back({name, "F32", {1}, std::string_view(kZero, 4)});
  v1::InitFrom from;
  from.set_path(testing::NewFolder("init-from") + "/weights.safetensors");
  from.set_strict(strict);
  testing::WriteFileOrDie(from.path(), *SerializeSafetensors(file));
  return from;
}

std::vector<std::string> Names(const std::string& shard) {
  std::vector<std::string> names;
  const SafetensorsFile file = *ParseSafetensors(shard);
  for (const SafetensorsEntry& tensor : file.tensors) names.push_back(tensor.name);
  return names;
}

TEST(InitFrom, EachStageGetsItsLayersAndTheBoundariesItTakesPartIn) {
  const auto weights =
      InitialWeights::Read(FileOf({"a.weight", "boundaries.a.compressor.weight", "b.weight"}), TwoStages());
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(Names(weights->shards()[0]), (std::vector<std::string>{"a.weight", "boundaries.a.compressor.weight"}));
  EXPECT_EQ(Names(weights->shards()[1]), (std::vector<std::string>{"boundaries.a.compressor.weight", "b.weight"}));
}

TEST(InitFrom, ThePlanRestoresAndItsOriginIsTheFiles) {
  const auto origin = [](const v1::InitFrom& from) {
    RunPlan plan;
    plan.seed = 5;
    plan.origin = "job";
    const auto weights = InitialWeights::Read(from, TwoStages());
    EXPECT_TRUE(weights.ok()) << weights.status();
    weights->AddTo(&plan);
    EXPECT_EQ(plan.restore.size(), 2u);
    EXPECT_EQ(plan.restore[1].bytes(), weights->shards()[1].size());
    EXPECT_NE(plan.restore[0].hash(), plan.restore[1].hash());
    EXPECT_EQ(plan.restore[0].has_seed(), !from.strict());
    if (!from.strict()) {
      EXPECT_EQ(plan.restore[0].seed(), 5u);
    }
    return plan.origin;
  };
  const std::string one = origin(FileOf({"a.weight"}));
  EXPECT_EQ(origin(FileOf({"a.weight"}, false)), one);
  EXPECT_NE(origin(FileOf({"a.bias"})), one);
  EXPECT_THAT(one, HasSubstr("job"));
}

TEST(InitFrom, AFileThatIsNotThereOrNoSafetensorsIsNamed) {
  v1::InitFrom from;
  from.set_path("/nowhere/x.safetensors");
  absl::Status status = InitialWeights::Read(from, TwoStages()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("/nowhere/x.safetensors"));
  from = FileOf({});
  testing::WriteFileOrDie(from.path(), "not safetensors");
  for (const bool strict : {true, false}) {
    from.set_strict(strict);
    status = InitialWeights::Read(from, TwoStages()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr(from.path()));
  }
}

TEST(InitFrom, ATensorOfNoLayerIsRefusedOrLeftOut) {
  const std::vector<std::string> names = {"a.weight", "c.weight"};
  EXPECT_THAT(InitialWeights::Read(FileOf(names), TwoStages()).status().ToString(), HasSubstr("\"c.weight\""));
  const auto weights = InitialWeights::Read(FileOf(names, false), TwoStages());
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(Names(weights->shards()[0]), std::vector<std::string>{"a.weight"});
  EXPECT_THAT(*weights->Check(std::vector<v1::Ready>(2)), HasSubstr("1 tensor of the file left out"));
}

TEST(InitFrom, ATensorThatNeitherSideOfACutUsesIsNoParameter) {
  const std::vector<std::string> names = {"a.weight", "boundaries.a.compressor.weight", "boundaries.a.expander.weight"};
  std::vector<v1::Ready> ready(2);
  ready[0].add_unused_tensors("boundaries.a.expander.weight");
  ready[1].add_unused_tensors("boundaries.a.compressor.weight");
  const auto strict = InitialWeights::Read(FileOf(names), TwoStages());
  const auto partial = InitialWeights::Read(FileOf(names, false), TwoStages());
  ASSERT_TRUE(strict.ok() && partial.ok());
  EXPECT_THAT(*strict->Check(ready), HasSubstr("3 tensors from"));

  ready[1].add_unused_tensors("boundaries.a.expander.weight");
  ready[1].add_seeded_parameters("b.weight");
  ready[1].add_seeded_parameters("b.bias");
  const absl::Status status = strict->Check(ready).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), HasSubstr("\"boundaries.a.expander.weight\""));
  const auto line = partial->Check(ready);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(*line, HasSubstr("2 tensors from"));
  EXPECT_THAT(*line, HasSubstr("2 parameters from the seed (b.weight, ...)"));
  EXPECT_THAT(*line, HasSubstr("1 tensor of the file left out"));
}

TEST(InitFrom, AFileOfAnotherModelIsRefusedEvenIfNotStrict) {
  const auto weights = InitialWeights::Read(FileOf({"c.weight", "d.weight"}, false), TwoStages());
  ASSERT_TRUE(weights.ok());
  EXPECT_THAT(weights->Check(std::vector<v1::Ready>(2)).status().ToString(), HasSubstr("another model"));
}

}  // namespace
}  // namespace resbm::coordinator
