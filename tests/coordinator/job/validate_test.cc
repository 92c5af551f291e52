#include "coordinator/job/validate.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

// One field a line, so that errors name lines.
constexpr char kJob[] =
    "name: \"demo\"\n"                                           // 1
    "model { resnet { stem { stride: 2 }\n"                      // 2
    "  group { blocks: 2 channels: 32 }\n"                       // 3
    "  group { blocks: 2 channels: 64 stride: 2 } } }\n"         // 4
    "boundary { ratio: 16 }\n"                                   // 5
    "cut_point { after: \"group0.1\" }\n"                        // 6
    "cut_point { after: \"group1.0\" boundary { ratio: 8 } }\n"  // 7
    "batch { samples: 96 micro_batches: 6 }\n"                   // 8
    "optimizer { adamw {} }\n"                                   // 9
    "data { fashion_mnist { directory: \"/data\" } }\n";         // 10

// Each override stands for a field of the job; "" when it is valid.
std::string ErrorsWith(const std::vector<std::string>& overrides, std::optional<int> stages = std::nullopt) {
  const auto loaded = ParseJob(kJob, "job.textproto", overrides);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return "does not parse";
  const absl::Status status = ValidateJob(*loaded, stages);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// The message less the location, which is the one override.
std::string ErrorWith(const std::string& setting) {
  const std::string error = ErrorsWith({setting});
  const std::string prefix = "--set " + setting + ": ";
  EXPECT_EQ(error.substr(0, prefix.size()), prefix);
  return error.size() > prefix.size() ? error.substr(prefix.size()) : error;
}

std::string ErrorsOf(const std::string& text) {
  const auto loaded = ParseJob(text, "job.textproto", {});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return std::string(ValidateJob(*loaded, std::nullopt).message());
}

TEST(Validate, TakesAGoodJob) { EXPECT_EQ(ErrorsWith({}), ""); }

TEST(Validate, ErrorsNameTheLineOfTheFieldThatCausesThem) {
  std::string text = kJob;
  text.replace(text.find("ratio: 16"), 9, "ratio: 24");
  EXPECT_EQ(ErrorsOf(text),
            "job.textproto:5: boundary.ratio: 24 does not divide 32 channels at \"group0.1\"; try 16 or 32");
  text.replace(text.find("ratio: 8"), 8, "ratio: 5");
  EXPECT_EQ(ErrorsOf(text),
            "job.textproto:5: boundary.ratio: 24 does not divide 32 channels at \"group0.1\"; try 16 or 32\n"
            "job.textproto:7: cut_point[1].boundary.ratio: 5 does not divide 64 channels at \"group1.0\"; try 4 or 8");
}

TEST(Validate, ErrorsNameTheOverrideThatCausesThem) {
  EXPECT_EQ(ErrorsWith({"boundary.ratio=24"}),
            "--set boundary.ratio=24: boundary.ratio: 24 does not divide 32 channels at \"group0.1\"; try 16 or 32");
}

TEST(Validate, FindsAllErrorsOfAnEmptyJob) {
  EXPECT_EQ(
      ErrorsOf(""),
      "job.textproto: model: says no kind of model; choose resnet {}, mlp {} or transformer {}\n"
      "job.textproto: optimizer: says no kind of optimizer; choose sgd {}, adamw {} or muon {}\n"
      "job.textproto: data: says no data set; choose fashion_mnist, mnist, cifar10 or cifar100 { directory: ... } or "
      "text { file: ... }");
}

TEST(Validate, NamesAreFitForFolders) {
  EXPECT_EQ(ErrorsWith({"name=A-b_c.9"}), "");
  EXPECT_EQ(ErrorWith("name="), "name: is empty; it names the run directory");
  EXPECT_EQ(ErrorWith("name=a/b"), "name: \"a/b\" has other characters than letters, digits, '-', '_' and '.'");
  EXPECT_EQ(ErrorWith("name=.."), "name: \"..\" must begin with a letter, a digit or '_'");
  EXPECT_EQ(ErrorWith("name=-rf"), "name: \"-rf\" must begin with a letter, a digit or '_'");
  EXPECT_EQ(ErrorWith("name=" + std::string(101, 'a')), "name: is 101 characters long; at most 100");
}

TEST(Validate, MoreStagesThanCutsAllowAreRefused) {
  EXPECT_EQ(ErrorsWith({}, 3), "");
  EXPECT_EQ(
      ErrorsWith({}, 5),
      "job.textproto: 5 stages need 4 cuts, the job declares 2 cut points; declare more (cut_point { after: ... }) "
      "or use at most 3 stages");
  EXPECT_EQ(ErrorWith("partition.auto.stages=4"),
            "partition.auto.stages: 4 stages need 3 cuts, the job declares 2 cut points; declare more (cut_point { "
            "after: ... }) or use at most 3 stages");
  EXPECT_EQ(ErrorWith("partition.auto.stages=0"), "partition.auto.stages: 0 stages; at least 1 is needed");
}

TEST(Validate, DefaultOfTwoStagesNeedsACutPoint) {
  EXPECT_EQ(ErrorsWith({"cut_point=[]"}),
            "job.textproto: partition.auto.stages: 2 stages need 1 cut, the job declares 0 cut points; declare more "
            "(cut_point { after: "
            "... }) or use at most 1 stage");
}

TEST(Validate, WindowsFitTheStagesAndDoNotGrow) {
  EXPECT_EQ(ErrorsWith({"schedule.windows=[2, 1]"}), "");
  EXPECT_EQ(ErrorsWith({"schedule.windows=[3, 3, 1]"}, 3), "");
  EXPECT_EQ(ErrorWith("schedule.windows=[2]"),
            "schedule.windows: 1 window for 2 stages; give one each, or leave them out");
  EXPECT_EQ(ErrorWith("schedule.windows=[1, 2]"),
            "schedule.windows[1]: 2 is more than the 1 of the stage before it: windows must not grow downstream, the "
            "stage would wait for ever");
  EXPECT_EQ(ErrorWith("schedule.windows=[1, 0]"), "schedule.windows[1]: 0 is too small; at least 1");
}

TEST(Validate, BatchFillsItsMicroBatches) {
  EXPECT_EQ(ErrorsWith({"batch.samples=6"}), "");
  EXPECT_EQ(ErrorWith("batch.samples=5"),
            "batch.samples: 5 samples cannot fill 6 micro-batches; raise samples or lower micro_batches");
  EXPECT_EQ(ErrorWith("batch.samples=0"), "batch.samples: 0 is too small; at least 1");
  EXPECT_EQ(ErrorWith("batch.micro_batches=0"), "batch.micro_batches: 0 is too small; at least 1");
  EXPECT_EQ(ErrorWith("batch.samples=2000000000"), "batch.samples: 2000000000 is too large; at most 1048576");
}

TEST(Validate, DataHasADirectoryAndLimits) {
  EXPECT_EQ(ErrorWith("data.mnist.directory="), "data.mnist.directory: is empty; name the folder that holds the files");
  EXPECT_EQ(ErrorsWith({"data.fashion_mnist.directory="}), "");  // the place of Debian's package
  EXPECT_EQ(ErrorWith("data.limit_train=-1"), "data.limit_train: -1 is negative; 0 is all samples");
  EXPECT_EQ(ErrorWith("data.limit_test=-1"), "data.limit_test: -1 is negative; 0 is all samples");
}

TEST(Validate, ModelTakesTheImagesOfTheData) {
  EXPECT_EQ(ErrorsWith({"data.mnist.directory=/data"}), "");
  EXPECT_EQ(ErrorsWith({"data.cifar10.directory=/data"}),
            "job.textproto:2: model.resnet.input: 1x28x28, but images of cifar10 are 3x32x32 (channels x height x "
            "width)");
  EXPECT_EQ(ErrorsWith({"data.cifar100.directory=/data", "model.resnet.input={channels: 3 height: 32 width: 32}"}),
            "job.textproto:2: model.resnet.classes: 10, but cifar100 has 100");
  EXPECT_EQ(ErrorsWith({"data.cifar100.directory=/data", "model.resnet.input={channels: 3 height: 32 width: 32}",
                        "model.resnet.classes=100"}),
            "");
  EXPECT_EQ(ErrorsWith({"model.mlp={input {height: 9}}", "model.mlp.classes=12", "boundary.kind=IDENTITY",
                        "cut_point=[{after: 'flatten'}]"}),
            "--set model.mlp={input {height: 9}}: model.mlp.input: 1x9x28, but images of fashion_mnist are 1x28x28 "
            "(channels x height x width)\n"
            "--set model.mlp.classes=12: model.mlp.classes: 12, but fashion_mnist has 10");
}

constexpr char kTextJob[] =
    "model { transformer { layers: 2 width: 32 context: 16 } }\n"
    "boundary { kind: ADAPTER }\n"
    "cut_point { after: \"block0\" }\n"
    "optimizer { adamw {} }\n"
    "data { text { file: \"a.txt\" } }\n";

std::string TextErrorsWith(const std::vector<std::string>& overrides) {
  const auto loaded = ParseJob(kTextJob, "job.textproto", overrides);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return std::string(ValidateJob(*loaded, std::nullopt).message());
}

TEST(Validate, ALanguageModelTakesText) {
  EXPECT_EQ(TextErrorsWith({}), "");
  EXPECT_EQ(TextErrorsWith({"data.fashion_mnist={}"}),
            "job.textproto:1: model.transformer: is a model of bytes, but fashion_mnist holds images; set data { text { "
            "file: ... } }, or choose resnet {} or mlp {}");
  EXPECT_EQ(ErrorsWith({"data.text.file=['a']"}),
            "job.textproto:2: model.resnet: takes images, but the data is text; choose transformer {}, or another data "
            "set");
}

TEST(Validate, TextNamesFilesAndKeepsSomethingToTest) {
  const auto error = [](const std::string& setting) {
    const std::string errors = TextErrorsWith({setting});
    const std::string prefix = "--set " + setting + ": ";
    return errors.substr(0, prefix.size()) == prefix ? errors.substr(prefix.size()) : errors;
  };
  EXPECT_EQ(error("data.text={}"), "data.text.file: is empty; name files, or a folder with .txt files");
  EXPECT_EQ(error("data.text.file=['a', '']"), "data.text.file[1]: is empty; it names a file or folder");
  EXPECT_EQ(error("data.text.test_share=1"),
            "data.text.test_share: 1 is out of range; it must be from 0 to below 1");
  EXPECT_EQ(error("data.text.test_share=nan"),
            "data.text.test_share: nan is out of range; it must be from 0 to below 1");
  EXPECT_EQ(error("data.text.test_share=0"),
            "data.text.test_share: 0 leaves nothing to test on; raise it, or set run.evaluate to false");
  EXPECT_EQ(TextErrorsWith({"data.text.test_share=0", "run.evaluate=false"}), "");
  EXPECT_EQ(error("data.augment.flip=true"), "data.augment: is of images; leave it out for text");
}

TEST(Validate, RecomputeNamesLayers) {
  EXPECT_EQ(ErrorsWith({"recompute=BOUNDARY"}), "");
  EXPECT_EQ(ErrorsWith({"recompute=LAYERS", "recompute_layer=['stem', 'group1.0']"}), "");
  EXPECT_EQ(ErrorsWith({"recompute=LAYERS", "recompute_layer=['stm']"}),
            "--set recompute_layer=['stm']: recompute_layer[0]: no layer \"stm\"; did you mean \"stem\"?");
}

TEST(Validate, SgdValuesAreInRange) {
  const std::string sgd = "optimizer.sgd.";
  EXPECT_EQ(ErrorsWith({sgd + "momentum=0.9", sgd + "nesterov=true"}), "");
  EXPECT_EQ(ErrorWith(sgd + "learning_rate=0"), sgd + "learning_rate: 0 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(sgd + "learning_rate=nan"), sgd + "learning_rate: nan is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(sgd + "learning_rate=inf"), sgd + "learning_rate: inf is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(sgd + "momentum=1"), sgd + "momentum: 1 is out of range; it must be from 0 to below 1");
  EXPECT_EQ(ErrorWith(sgd + "weight_decay=-1"), sgd + "weight_decay: -1 is out of range; it must be 0 or more");
  EXPECT_EQ(ErrorWith(sgd + "dampening=2"), sgd + "dampening: 2 is out of range; it must be from 0 to 1");
  EXPECT_EQ(ErrorWith(sgd + "nesterov=true"), sgd + "nesterov: needs a momentum; set momentum: 0.9");
  EXPECT_EQ(ErrorWith("optimizer.sgd={momentum: 0.9 nesterov: true dampening: 0.5}"),
            sgd + "nesterov: does not go with dampening; set it to 0");
}

TEST(Validate, InitFromNamesAFile) {
  EXPECT_EQ(ErrorsWith({"init_from.path=/any/weights.safetensors"}), "");
  EXPECT_EQ(ErrorWith("init_from.strict=false"), "init_from.path: is empty; it names a safetensors file");
}

TEST(Validate, MuonValuesAreInRange) {
  const std::string muon = "optimizer.muon.";
  EXPECT_EQ(ErrorsWith({"optimizer={muon { adamw { learning_rate: 0.002 } }}"}), "");
  EXPECT_EQ(ErrorWith(muon + "learning_rate=0"), muon + "learning_rate: 0 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(muon + "momentum=1"), muon + "momentum: 1 is out of range; it must be from 0 to below 1");
  EXPECT_EQ(ErrorWith(muon + "weight_decay=-1"), muon + "weight_decay: -1 is out of range; it must be 0 or more");
  EXPECT_EQ(ErrorWith(muon + "ns_steps=0"), muon + "ns_steps: 0 is too small; at least 1");
  EXPECT_EQ(ErrorWith(muon + "ns_steps=100"), muon + "ns_steps: 100 is too large; at most 99");
  EXPECT_EQ(ErrorWith(muon + "adamw.epsilon=0"), muon + "adamw.epsilon: 0 is out of range; it must be above 0");
}

TEST(Validate, AdamWValuesAreInRange) {
  const std::string adamw = "optimizer.adamw.";
  EXPECT_EQ(ErrorWith(adamw + "learning_rate=-1"), adamw + "learning_rate: -1 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(adamw + "beta1=1"), adamw + "beta1: 1 is out of range; it must be from 0 to below 1");
  EXPECT_EQ(ErrorWith(adamw + "beta2=-0.5"), adamw + "beta2: -0.5 is out of range; it must be from 0 to below 1");
  EXPECT_EQ(ErrorWith(adamw + "epsilon=0"), adamw + "epsilon: 0 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(adamw + "weight_decay=-1"), adamw + "weight_decay: -1 is out of range; it must be 0 or more");
  EXPECT_EQ(ErrorWith("optimizer.clip_norm=-1"), "optimizer.clip_norm: -1 is out of range; it must be 0 or more");
}

TEST(Validate, LearningRateSchedulesAreInRange) {
  const std::string schedule = "optimizer.schedule.";
  EXPECT_EQ(ErrorsWith({schedule + "one_cycle={}"}), "");
  EXPECT_EQ(ErrorsWith({schedule + "cosine={}", schedule + "warmup_steps=10"}), "");
  EXPECT_EQ(ErrorWith("optimizer.schedule={one_cycle {} warmup_steps: 10}"),
            schedule + "warmup_steps: one_cycle has a rise of its own; leave warmup_steps out, or set one_cycle.rise");
  EXPECT_EQ(ErrorWith(schedule + "warmup_steps=-1"), schedule + "warmup_steps: -1 is negative; 0 is no warm-up");
  EXPECT_EQ(ErrorWith(schedule + "cosine.final_factor=1.5"),
            schedule + "cosine.final_factor: 1.5 is out of range; it must be from 0 to 1");
  EXPECT_EQ(ErrorWith(schedule + "one_cycle.rise=1"),
            schedule + "one_cycle.rise: 1 is out of range; it must be between 0 and 1");
  EXPECT_EQ(ErrorWith(schedule + "one_cycle.start_div=0"),
            schedule + "one_cycle.start_div: 0 is out of range; it must be 1 or more");
  EXPECT_EQ(ErrorWith(schedule + "one_cycle.final_div=0.5"),
            schedule + "one_cycle.final_div: 0.5 is out of range; it must be 1 or more");
}

TEST(Validate, RunHasSomethingToDo) {
  EXPECT_EQ(ErrorsWith({"run.epochs=0", "run.steps=5"}), "");
  EXPECT_EQ(ErrorWith("run.epochs=0"), "run.epochs: 0 epochs are nothing to do; set epochs or steps to 1 or more");
  EXPECT_EQ(ErrorWith("run.steps=-1"), "run.steps: -1 is negative; 0 is as many as the epochs have");
  EXPECT_EQ(ErrorWith("run.threads_per_stage=0"), "run.threads_per_stage: 0 is too small; at least 1");
  EXPECT_EQ(ErrorWith("run.evaluation_micro_batch=0"), "run.evaluation_micro_batch: 0 is too small; at least 1");
  EXPECT_EQ(ErrorsWith({"run.trace_steps=-1"}), "");
  EXPECT_EQ(ErrorWith("run.trace_steps=-2"), "run.trace_steps: -2 is too small; -1 traces all steps, 0 none");
}

TEST(Validate, TimeoutsAreOrdered) {
  const std::string timeouts = "timeouts.";
  EXPECT_EQ(ErrorsWith({"timeouts={stall_seconds: 41 lease_seconds: 42}"}), "");
  EXPECT_EQ(ErrorsWith({"timeouts={lease_seconds: 61}"}), "");
  EXPECT_EQ(ErrorWith(timeouts + "stall_seconds=40"),
            timeouts +
                "stall_seconds: 40 s is not above the 40 s after which a connection counts as dead; raise it, or "
                "0 for the default");
  EXPECT_EQ(ErrorWith("timeouts={stall_seconds: 100 lease_seconds: 100}"),
            timeouts +
                "lease_seconds: 100 s is not above the stall time of 100 s: a stage would forget the job before "
                "the coordinator gives it up; raise it");
  EXPECT_EQ(ErrorWith(timeouts + "lease_seconds=60"),
            timeouts +
                "lease_seconds: 60 s is not above the stall time of 60 s: a stage would forget the job before "
                "the coordinator gives it up; raise it");
  EXPECT_EQ(ErrorWith(timeouts + "connect_seconds=0"),
            timeouts + "connect_seconds: 0 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(timeouts + "attach_seconds=-1"),
            timeouts + "attach_seconds: -1 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(timeouts + "load_seconds=0"), timeouts + "load_seconds: 0 is out of range; it must be above 0");
  EXPECT_EQ(ErrorWith(timeouts + "step_seconds=-1"),
            timeouts + "step_seconds: -1 is out of range; it must be 0 or more");
}

TEST(LoadValidJob, RefusesInTheOrderParseSupportValidate) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/job.textproto";
  std::ofstream(path) << kJob;
  EXPECT_TRUE(LoadValidJob(path, {}, std::nullopt).ok());
  EXPECT_EQ(LoadValidJob(path + "x", {}, std::nullopt).status().code(), absl::StatusCode::kNotFound);
  const std::vector<std::string> bad_batch = {"batch.samples=0"};
  const std::vector<std::string> bad_both = {"checkpoint.every_steps=5", "batch.samples=0"};
  EXPECT_EQ(LoadValidJob(path, bad_both, std::nullopt).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(LoadValidJob(path, bad_batch, std::nullopt).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadValidJob(path, {}, 9).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resbm::coordinator
