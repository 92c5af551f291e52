#include "coordinator/job/source_map.h"

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

TEST(SourceMap, FieldIsWhereItWasSet) {
  SourceMap map("a.textproto");
  map.RecordLine("boundary", 3);
  map.RecordLine("boundary.ratio", 4);
  EXPECT_EQ(map.Locate("boundary.ratio"), "a.textproto:4");
}

TEST(SourceMap, AbsentFieldIsWhereTheMessageAroundItIs) {
  SourceMap map("a.textproto");
  map.RecordLine("cut_point[1]", 7);
  EXPECT_EQ(map.Locate("cut_point[1].boundary.ratio"), "a.textproto:7");
  EXPECT_EQ(map.Locate("cut_point[0]"), "a.textproto");
  EXPECT_EQ(map.Locate(""), "a.textproto");
}

TEST(SourceMap, OverrideReplacesTheFieldAndWhatIsBelowIt) {
  SourceMap map("a.textproto");
  map.RecordLine("batch", 1);
  map.RecordLine("batch.samples", 2);
  map.RecordLine("batches", 3);
  map.RecordOverride("batch", "batch={samples: 8}");
  EXPECT_EQ(map.Locate("batch.samples"), "--set batch={samples: 8}");
  EXPECT_EQ(map.Locate("batches"), "a.textproto:3");
}

TEST(SourceMap, OverrideMakesMessagesOnTheWay) {
  SourceMap map("a.textproto");
  map.RecordLine("partition", 5);
  map.RecordOverride("partition.auto.stages", "partition.auto.stages=3");
  EXPECT_EQ(map.Locate("partition.auto"), "--set partition.auto.stages=3");
  EXPECT_EQ(map.Locate("partition"), "a.textproto:5");
}

TEST(SourceMap, StatusHasOneLinePerErrorInTheOrderOfTheFile) {
  SourceMap map("a.textproto");
  map.RecordLine("seed", 2);
  map.RecordLine("name", 10);
  map.RecordOverride("batch", "batch={}");
  FieldErrors errors;
  errors.Add("batch.samples", "last");
  errors.Add("name", "fourth");
  errors.Add("seed", "second ", 2);
  errors.Add("seed", "third");
  errors.Add("", "first");
  const absl::Status status = map.ToStatus(errors);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "a.textproto: first\n"
            "a.textproto:2: seed: second 2\n"
            "a.textproto:2: seed: third\n"
            "a.textproto:10: name: fourth\n"
            "--set batch={}: batch.samples: last");
  EXPECT_TRUE(map.ToStatus(FieldErrors()).ok());
}

TEST(ParentPath, TakesOffOnePartAtATime) {
  EXPECT_EQ(ParentPath("a.b[1].c"), "a.b[1]");
  EXPECT_EQ(ParentPath("a.b[1]"), "a.b");
  EXPECT_EQ(ParentPath("a"), "");
}

}  // namespace
}  // namespace resbm::coordinator
