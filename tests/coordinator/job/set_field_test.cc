#include "coordinator/job/set_field.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {
namespace {

v1::Job Parse(const std::string& text) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job)) << text;
  return job;
}

// Sets on `before` and compares with `after`; returns the path.
std::string Sets(const std::string& before, const std::string& setting, const std::string& after) {
  v1::Job job = Parse(before);
  const auto path = SetField(setting, job);
  EXPECT_TRUE(path.ok()) << path.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(job, Parse(after))) << job.DebugString();
  return path.value_or("");
}

std::string Fails(const std::string& before, const std::string& setting) {
  v1::Job job = Parse(before);
  const auto path = SetField(setting, job);
  EXPECT_EQ(path.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(job, Parse(before))) << job.DebugString();
  return std::string(path.status().message());
}

TEST(SetField, SetsNestedFieldAndMakesMessages) {
  EXPECT_EQ(Sets("", "boundary.ratio=8", "boundary { ratio: 8 }"), "boundary.ratio");
  EXPECT_EQ(Sets("", "partition.auto.stages=3", "partition { auto { stages: 3 } }"), "partition.auto.stages");
}

TEST(SetField, SetsEveryTypeOfValue) {
  Sets("", "seed=18446744073709551615", "seed: 18446744073709551615");
  Sets("", "optimizer.clip_norm=0.5", "optimizer { clip_norm: 0.5 }");
  Sets("", "optimizer.clip_norm=1", "optimizer { clip_norm: 1 }");
  Sets("", "run.evaluate=false", "run { evaluate: false }");
  Sets("", "boundary.kind=IDENTITY", "boundary { kind: IDENTITY }");
  Sets("", "batch.samples=-3", "batch { samples: -3 }");
}

TEST(SetField, TakesStringsWithAndWithoutQuotes) {
  Sets("", "name=a b=c", "name: \"a b=c\"");
  Sets("", "name=\"a\\tb\"", "name: \"a\\tb\"");
  Sets("name: \"x\"", "name=", "name: \"\"");
  Sets("", "data.mnist.directory=/data/{mnist}", "data { mnist { directory: \"/data/{mnist}\" } }");
}

TEST(SetField, SpacesAroundTheEqualsSignDoNotMatter) { Sets("", " batch.samples = 4 ", "batch { samples: 4 }"); }

TEST(SetField, SetsEntryOfAListByEitherSpelling) {
  const std::string before = "cut_point { after: \"a\" } cut_point { after: \"b\" }";
  const std::string after = "cut_point { after: \"a\" } cut_point { after: \"b\" boundary { ratio: 8 } }";
  EXPECT_EQ(Sets(before, "cut_point[1].boundary.ratio=8", after), "cut_point[1].boundary.ratio");
  EXPECT_EQ(Sets(before, "cut_point.1.boundary.ratio=8", after), "cut_point[1].boundary.ratio");
}

TEST(SetField, IndexEqualToTheSizeAppends) {
  Sets("cut_point { after: \"a\" }", "cut_point[1].after=b", "cut_point { after: \"a\" } cut_point { after: \"b\" }");
  Sets("schedule { windows: 4 }", "schedule.windows[1]=2", "schedule { windows: [4, 2] }");
  Sets("", "recompute_layer[0]=stem", "recompute_layer: \"stem\"");
}

TEST(SetField, ReplacesEntryInPlace) {
  Sets("schedule { windows: [4, 3, 2] }", "schedule.windows[1]=1", "schedule { windows: [4, 1, 2] }");
  Sets("cut_point { after: \"a\" wire { gradients: FP32 } } cut_point { after: \"b\" }", "cut_point[0]={after: 'c'}",
       "cut_point { after: \"c\" } cut_point { after: \"b\" }");
}

TEST(SetField, ReplacesWholeListsAndMessages) {
  Sets("schedule { windows: [4, 3, 2] }", "schedule.windows=[2, 1]", "schedule { windows: [2, 1] }");
  Sets("schedule { windows: [4, 3, 2] }", "schedule.windows=[]", "schedule {}");
  Sets("batch { samples: 64 micro_batches: 8 }", "batch={samples: 8}", "batch { samples: 8 }");
  Sets("cut_point { after: \"a\" }", "cut_point=[{after: 'x'}, {after: 'y'}]",
       "cut_point { after: \"x\" } cut_point { after: \"y\" }");
}

TEST(SetField, ChoosingOneKindDropsTheOther) {
  Sets("optimizer { adamw { beta1: 0.8 } clip_norm: 1 }", "optimizer.sgd.momentum=0.9",
       "optimizer { sgd { momentum: 0.9 } clip_norm: 1 }");
  Sets("optimizer { schedule { cosine {} } }", "optimizer.schedule.constant={}",
       "optimizer { schedule { constant {} } }");
}

TEST(SetField, RefusesUnknownFieldsWithTheNearest) {
  EXPECT_EQ(Fails("", "boundry.ratio=8"), "no field \"boundry\" in the job; did you mean \"boundary\"?");
  EXPECT_EQ(Fails("", "boundary.low_dim.dept=1"), "no field \"dept\" in boundary.low_dim; did you mean \"depth\"?");
  EXPECT_EQ(Fails("", "batch.learning_rate=1"), "no field \"learning_rate\" in batch; known: samples, micro_batches");
  EXPECT_EQ(Fails("", "seed.x=1"), "seed is a whole number that is not negative (uint64) and has no field \"x\"");
}

TEST(SetField, RefusesValuesOfAnotherType) {
  EXPECT_EQ(Fails("", "batch.samples=many"), "batch.samples: expected a whole number (int32), got \"many\"");
  EXPECT_EQ(Fails("", "batch.samples=1.5"), "batch.samples: expected a whole number (int32), got \"1.5\"");
  EXPECT_EQ(Fails("", "batch.samples=3000000000"),
            "batch.samples: expected a whole number (int32), got \"3000000000\"");
  EXPECT_EQ(Fails("", "batch.samples="), "batch.samples: expected a whole number (int32), got \"\"");
  EXPECT_EQ(Fails("", "run.evaluate=maybe"), "run.evaluate: expected true or false, got \"maybe\"");
  EXPECT_EQ(Fails("", "schedule.kind=1F1B"), "schedule.kind: expected one of ONE_F_ONE_B, GPIPE, got \"1F1B\"");
  EXPECT_EQ(Fails("", "optimizer.clip_norm=x"), "optimizer.clip_norm: expected a number, got \"x\"");
  EXPECT_EQ(Fails("", "batch=8"), "batch: expected a message in braces, such as {samples: ...}, got \"8\"");
  EXPECT_EQ(Fails("", "schedule.windows=x"),
            "schedule.windows: expected a whole number (int32) (or a list of them in [ ]), got \"x\"");
}

TEST(SetField, SaysWhatIsWrongWithinBraces) {
  EXPECT_EQ(Fails("", "batch={sample: 8}"), "batch: batch: no field \"sample\"; did you mean \"samples\"?");
}

TEST(SetField, RefusesAValueThatGoesOnAfterItsEnd) {
  EXPECT_EQ(Fails("", "boundary.ratio=8 kind: IDENTITY"),
            "boundary.ratio: expected a whole number (int32), got \"8 kind: IDENTITY\"");
}

TEST(SetField, RefusesWrongIndices) {
  const std::string before = "cut_point { after: \"a\" }";
  EXPECT_EQ(Fails(before, "cut_point[2].after=b"),
            "cut_point has 1 entry; expected an index from 0 to 1 (1 appends), got \"2\"");
  EXPECT_EQ(Fails(before, "cut_point.after=b"),
            "cut_point has 1 entry; expected an index from 0 to 1 (1 appends), got \"after\"");
  EXPECT_EQ(Fails("", "schedule.windows[-1]=2"),
            "schedule.windows has 0 entries; expected an index from 0 to 0 (0 appends), got \"-1\"");
  EXPECT_EQ(Fails("schedule { windows: 1 }", "schedule.windows[0]=[1, 2]"),
            "schedule.windows[0]: expected one value, got \"[1, 2]\"");
}

TEST(SetField, RefusesSettingsWithoutAnEqualsSign) {
  EXPECT_EQ(Fails("", "boundary.ratio"), "expected path=value, such as boundary.ratio=8");
}

TEST(SetField, RefusesEmptyPaths) {
  EXPECT_THAT(Fails("", "=8"), testing::StartsWith("no field \"\" in the job; known: name, "));
  EXPECT_THAT(Fails("", "boundary.=8"), testing::StartsWith("no field \"\" in boundary; known: kind, "));
}

}  // namespace
}  // namespace resbm::coordinator
