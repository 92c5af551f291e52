#include "coordinator/job/presets.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "coordinator/job/unsupported.h"
#include "coordinator/job/validate.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

TEST(Presets, ParseAndValidate) {
  for (const std::string& name : PresetNames()) {
    const auto text = PresetText(name);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto loaded = ParseJob(*text, name, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(CheckSupported(*loaded).ok()) << CheckSupported(*loaded);
    EXPECT_TRUE(ValidateJob(*loaded, std::nullopt).ok()) << ValidateJob(*loaded, std::nullopt);
  }
}

TEST(Presets, AreThePromisedOnes) {
  EXPECT_EQ(PresetNames(), (std::vector<std::string>{"fmnist", "cifar10", "byte-gpt"}));
  EXPECT_TRUE(ParseJob(*PresetText("fmnist"), "", {})->job.data().has_fashion_mnist());
  EXPECT_TRUE(ParseJob(*PresetText("cifar10"), "", {})->job.data().has_cifar10());
  EXPECT_TRUE(ParseJob(*PresetText("byte-gpt"), "", {})->job.model().has_transformer());
}

TEST(Presets, AreCommentedFilesThatBeginAndEndCleanly) {
  for (const std::string& name : PresetNames()) {
    const std::string text = *PresetText(name);
    EXPECT_EQ(text.substr(0, 2), "# ") << name;
    EXPECT_EQ(text.back(), '\n') << name;
  }
}

TEST(Presets, UnknownNamesGetASuggestion) {
  EXPECT_EQ(PresetText("cifar").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PresetText("cifar").status().message(), "no preset \"cifar\"; did you mean \"cifar10\"?");
}

TEST(DeployedJobs, AllLoadAndValidate) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/jobs")) {
    if (entry.path().extension() != ".textproto") continue;
    names.insert(entry.path().stem());
    const auto loaded = LoadValidJob(entry.path(), {}, std::nullopt);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
  }
  for (const char* name : {"fashion_mnist", "mnist", "cifar10", "byte_gpt"}) EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(DeployedJobs, TheDemoIsWhatItShouldShow) {
  const auto loaded = LoadValidJob("deploy/jobs/fashion_mnist.textproto", {}, std::nullopt);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->job.boundary().ratio(), 16);
  EXPECT_EQ(loaded->job.partition().auto_().stages(), 2);
  EXPECT_EQ(loaded->job.wire().activations(), v1::Wire::FP16);
}

TEST(JobPage, ExampleLoadsAndValidates) {
  std::stringstream page;
  page << std::ifstream("docs/job.md").rdbuf();
  const std::string text = page.str();
  const std::size_t begin = text.find("```\n");
  const std::size_t end = text.find("```\n", begin + 4);
  ASSERT_NE(end, std::string::npos);
  const auto loaded = ParseJob(text.substr(begin + 4, end - begin - 4), "example", {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(ValidateJob(*loaded, std::nullopt).ok()) << ValidateJob(*loaded, std::nullopt);
  EXPECT_EQ(loaded->job.cut_point(0).after(), "group0.1");
}

}  // namespace
}  // namespace resbm::coordinator
