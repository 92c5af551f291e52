#include "coordinator/report/metrics_writer.h"

#include <sys/resource.h>

#include <csignal>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_files.h"

namespace resbm::coordinator {
namespace {

using resbm::testing::ReadFile;
using resbm::testing::TempDirectory;
using ::testing::HasSubstr;

MetricsRow Row() {
  MetricsRow row;
  row.step = 7;
  row.loss = 0.5;
  row.samples = 96;
  row.step_seconds = 0.25;
  row.learning_rate = 0.125;
  row.fence_epoch = 2;
  row.fence_generation = 13;
  row.epoch = 1;
  return row;
}

TEST(MetricsWriter, ARowIsOneLineWithTheNamesOfTheContract) {
  EXPECT_EQ(ToJsonLine(Row()),
            R"({"step":7,"loss":0.5,"samples":96,"step_seconds":0.25,"learning_rate":0.125,"skipped":false,)"
            R"("fence":"2.13","epoch":1})"
            "\n");
}

TEST(MetricsWriter, OfTextTheRowSaysHowManyBytesWerePredicted) {
  MetricsRow row = Row();
  row.tokens = 12000;
  EXPECT_EQ(nlohmann::json::parse(ToJsonLine(row))["tokens"], 12000);
  EXPECT_FALSE(nlohmann::json::parse(ToJsonLine(Row())).contains("tokens"));
}

TEST(MetricsWriter, ASkippedStepSaysWhyAndItsLossIsNull) {
  MetricsRow row = Row();
  row.skipped = true;
  row.loss = std::numeric_limits<double>::quiet_NaN();
  row.grad_norm = std::numeric_limits<double>::infinity();
  row.non_finite = {"stage 1: group1.0 gradient: 3 non-finite values\n\"\xff"};
  const std::string line = ToJsonLine(row);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_TRUE(json["skipped"].get<bool>());
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_THAT(json["non_finite"][0].get<std::string>(), HasSubstr("stage 1: group1.0"));
}

TEST(MetricsWriter, NumbersComeBackAsTheyWere) {
  MetricsRow row = Row();
  row.loss = 0.1 + 0.2;
  row.learning_rate = 1e-300;
  row.grad_norm = 1.0 / 3;
  const auto json = nlohmann::json::parse(ToJsonLine(row));
  EXPECT_EQ(json["loss"].get<double>(), row.loss);
  EXPECT_EQ(json["learning_rate"].get<double>(), row.learning_rate);
  EXPECT_EQ(json["grad_norm"].get<double>(), *row.grad_norm);
}

TEST(MetricsWriter, RowsAreInTheFileAtOnceAndAppended) {
  TempDirectory folder;
  const std::string path = folder / "metrics.jsonl";
  for (int life = 1; life <= 2; ++life) {
    auto writer = MetricsWriter::Open(path);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Write(Row()).ok());
    std::string expected;
    for (int i = 0; i < life; ++i) expected += ToJsonLine(Row());
    EXPECT_EQ(ReadFile(path), expected);
    EXPECT_TRUE((*writer)->Sync().ok());
  }
}

TEST(MetricsWriter, AFullDiskIsAnError) {
  auto writer = MetricsWriter::Open("/dev/full");
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ((*writer)->Write(Row()).code(), absl::StatusCode::kResourceExhausted);
}

TEST(MetricsWriter, ARowThatDoesNotFitLeavesNoHalfOfIt) {
  TempDirectory folder;
  const std::string path = folder / "metrics.jsonl";
  auto writer = MetricsWriter::Open(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(Row()).ok());
  const std::string line = ToJsonLine(Row());
  // The system takes the first bytes of the row, then refuses the rest.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = line.size() + 10;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = (*writer)->Write(Row());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ReadFile(path), line);
  EXPECT_TRUE((*writer)->Write(Row()).ok());
  EXPECT_EQ(ReadFile(path), line + line);
}

TEST(MetricsWriter, AMissingFolderIsNamed) {
  TempDirectory folder;
  const auto writer = MetricsWriter::Open(folder / "absent/metrics.jsonl");
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(writer.status().message(), HasSubstr("absent/metrics.jsonl"));
}

TEST(MetricsWriter, SignalsStandByCutPointAndWhatIsNotFiniteIsNull) {
  MetricsRow row = Row();
  row.signals["group0.1"] = {{"z_rms", 0.5}, {"gradient_rms_after", std::numeric_limits<double>::infinity()}};
  const auto json = nlohmann::json::parse(ToJsonLine(row));
  EXPECT_EQ(json["signals"]["group0.1"]["z_rms"], 0.5);
  EXPECT_TRUE(json["signals"]["group0.1"]["gradient_rms_after"].is_null());
}

TEST(MetricsWriter, TheSlopeIsThereWhenItIsKnownAndASpikeWhenThereIsOne) {
  MetricsRow row = Row();
  EXPECT_FALSE(nlohmann::json::parse(ToJsonLine(row)).contains("loss_slope"));
  EXPECT_FALSE(nlohmann::json::parse(ToJsonLine(row)).contains("loss_spike"));
  row.loss_slope = -0.5;
  row.loss_spike = true;
  EXPECT_EQ(nlohmann::json::parse(ToJsonLine(row))["loss_slope"], -0.5);
  EXPECT_EQ(nlohmann::json::parse(ToJsonLine(row))["loss_spike"], true);
}

}  // namespace
}  // namespace resbm::coordinator
