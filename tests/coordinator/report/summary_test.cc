#include "coordinator/report/summary.h"

#include <limits>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/report/example_summary.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;

TEST(Summary, ComesBackAsItWas) {
  const auto read = ParseSummary(ToJson(ExampleSummary()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, ExampleSummary());
  const auto empty = ParseSummary(ToJson(Summary()));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(*empty, Summary());
}

TEST(Summary, FiguresOfTextHaveTheNamesOfTheContractAndComeBack) {
  Summary summary = ExampleSummary();
  summary.perplexity = 4.5;
  summary.bits_per_byte = 2.25;
  summary.tokens_per_second = 12345.5;
  const auto json = nlohmann::json::parse(ToJson(summary));
  EXPECT_EQ(json["perplexity"], 4.5);
  EXPECT_EQ(json["bits_per_byte"], 2.25);
  EXPECT_EQ(json["tokens_per_second"], 12345.5);
  EXPECT_EQ(*ParseSummary(ToJson(summary)), summary);
  EXPECT_TRUE(nlohmann::json::parse(ToJson(ExampleSummary()))["bits_per_byte"].is_null());
}

TEST(Summary, HasTheNamesOfTheContract) {
  const auto json = nlohmann::json::parse(ToJson(ExampleSummary()));
  for (const char* name :
       {"final_loss", "top1", "validation_loss", "samples_per_second", "step_seconds_median", "epoch_seconds",
        "planned_step_seconds", "communication_share_exposed", "communication_share_total", "bubble_share"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json[name].is_number()) << name;
  }
  const auto& boundary = json["boundaries"][0];
  EXPECT_EQ(boundary["cut_point"], "group0.1");
  EXPECT_EQ(boundary["direction"], "activations");
  EXPECT_EQ(boundary["codec"], "fp16");
  EXPECT_EQ(boundary["ratio"], 16);
  EXPECT_EQ(boundary["payload_bytes"].dump(), "75264");
  EXPECT_EQ(boundary["metadata_bytes"].dump(), "963.5");
  EXPECT_EQ(boundary["uncompressed_bytes"].dump(), R"({"fp16":1204224,"fp32":2408448})");
  const auto& stage = json["stages"][1];
  EXPECT_EQ(stage["parameters"], 89);
  EXPECT_EQ(stage["forward_seconds"], 0.0301);
  EXPECT_EQ(stage["backward_seconds"], 0.0612);
  EXPECT_EQ(stage["utilization"], 0.55);
  EXPECT_EQ(stage["gpu_utilization"], 0.91);
  EXPECT_EQ(stage["peak_memory_bytes"].dump(),
            R"({"activations":2000000,"buffers":1000000,"optimizer":1000000,"total":5000000,"weights":1000000})");
}

TEST(Summary, SaysWhenAndByWhatTheRunWasMadeAndHowItsEvaluationsWent) {
  const auto json = nlohmann::json::parse(ToJson(ExampleSummary()));
  EXPECT_EQ(json["started"], "2026-01-02T03:04:05+00:00");
  EXPECT_EQ(json["version"], "0.1.0");
  EXPECT_EQ(json["stages"][1]["server"].dump(),
            R"({"cpu_capability":"AVX2","device_name":"NVIDIA H200","libtorch_version":"2.13.0","version":"0.1.0"})");
  EXPECT_EQ(json["evaluations"][0].dump(), R"({"loss":0.41,"samples":10000,"seconds":3.5,"step":625,"top1":0.851})");
  EXPECT_TRUE(json["evaluations"][1]["top1"].is_null());
}

TEST(Summary, WhatIsNotKnownIsNull) {
  Summary summary;
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  summary.stages.emplace_back();
  const auto json = nlohmann::json::parse(ToJson(summary));
  EXPECT_TRUE(json["top1"].is_null());
  EXPECT_TRUE(json["planned_step_seconds"].is_null());
  EXPECT_TRUE(json["communication_share_total"].is_null());
  EXPECT_TRUE(json["final_loss"].is_null());
  EXPECT_TRUE(json["stages"][0]["gpu_utilization"].is_null());
  EXPECT_TRUE(json["boundaries"].is_array());
}

TEST(Summary, UnknownFieldsAreSkippedAndMissingOnesAbsent) {
  const auto read = ParseSummary(R"({"top1": 0.5, "new": {"a": [1]}, "stages": [{"stage": 1}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->top1, 0.5);
  EXPECT_FALSE(read->final_loss.has_value());
  ASSERT_EQ(read->stages.size(), 1u);
  EXPECT_EQ(read->stages[0].stage, 1);
}

TEST(Summary, AValueOfAnotherTypeIsNamed) {
  const struct {
    const char* json;
    const char* message;
  } cases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"[]", "is not an object"},
      {R"({"top1": "high"})", "top1 is not a number"},
      {R"({"name": 3})", "name is not a string"},
      {R"({"steps": 1.5})", "steps is not a whole number"},
      {R"({"boundaries": {}})", "boundaries is not an array"},
      {R"({"boundaries": [{}, 3]})", "boundaries[1]. is not an object"},
      {R"({"boundaries": [{"uncompressed_bytes": {"fp16": true}}]})", "boundaries[0].uncompressed_bytes.fp16 is not"},
      {R"({"stages": [{"peak_memory_bytes": {"total": "x"}}]})", "stages[0].peak_memory_bytes.total is not"},
  };
  for (const auto& test : cases) {
    const auto read = ParseSummary(test.json);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << test.json;
    EXPECT_THAT(read.status().message(), HasSubstr(test.message));
  }
}

TEST(Summary, DamagedTextIsAnErrorNeverACrash) {
  const std::string good = ToJson(ExampleSummary());
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    const auto read = ParseSummary(bad);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
  EXPECT_FALSE(ParseSummary(std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace resbm::coordinator
