#include "coordinator/job/describe_fields.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "coordinator/job/field_docs.h"
#include "coordinator/job/schema_comments.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {
namespace {

FieldDoc DocOf(const std::string& path) {
  const std::vector<FieldDoc> docs = *ListFields("");
  const auto found = std::find_if(docs.begin(), docs.end(), [&](const FieldDoc& d) { return d.path == path; });
  EXPECT_NE(found, docs.end()) << path;
  return found == docs.end() ? FieldDoc() : *found;
}

TEST(SchemaComments, EmbeddedSchemaIsTheCompiledOne) {
  google::protobuf::FileDescriptorProto embedded, compiled;
  CommentedSchema().CopyTo(&embedded);
  v1::Job::descriptor()->file()->CopyTo(&compiled);
  // Derived names, which only one of them spells out.
  CommentedSchema().CopyJsonNameTo(&embedded);
  v1::Job::descriptor()->file()->CopyJsonNameTo(&compiled);
  EXPECT_EQ(embedded.SerializeAsString(), compiled.SerializeAsString());
}

TEST(SchemaComments, StandBeforeAndBehindAnElement) {
  EXPECT_EQ(CommentOf(*v1::Batch::descriptor()->FindFieldByName("samples")), "Samples of one optimizer step.");
  EXPECT_EQ(CommentOf(*v1::ResNet::Block_descriptor()->FindValueByName("BASIC")), "3x3, 3x3");
  EXPECT_EQ(CommentOf(*v1::Mlp::descriptor()),
            "Fully connected classifier: layers \"flatten\", \"hidden<i>\", \"head\".");
  EXPECT_EQ(CommentOf(*v1::Model::descriptor()), "");
}

TEST(ListFields, SaysTypesDefaultsAndComments) {
  const FieldDoc samples = DocOf("batch.samples");
  EXPECT_EQ(samples.name, "samples");
  EXPECT_EQ(samples.depth, 1);
  EXPECT_EQ(samples.type, "int32");
  EXPECT_EQ(samples.default_value, "64");
  EXPECT_EQ(samples.comment, "Samples of one optimizer step.");
  EXPECT_EQ(DocOf("optimizer.adamw.epsilon").default_value, "1e-08");
  EXPECT_EQ(DocOf("run.evaluate").default_value, "true");
  EXPECT_EQ(DocOf("name").default_value, "\"job\"");
  EXPECT_EQ(DocOf("boundary.norm_groups").default_value, "");
  EXPECT_EQ(DocOf("schedule.windows[i]").type, "list of int32");
  EXPECT_EQ(DocOf("cut_point[i]").type, "list of messages");
}

TEST(ListFields, SaysWhatIsNotImplemented) {
  EXPECT_EQ(DocOf("checkpoint.keep").unsupported, "checkpoints in mid-run are not implemented");
  EXPECT_EQ(DocOf("init_from").unsupported, "");
  const FieldDoc kind = DocOf("boundary.kind");
  ASSERT_EQ(kind.values.size(), 8u);
  EXPECT_EQ(kind.default_value, "RESBM");
  EXPECT_EQ(kind.values[1].name, "IDENTITY");
  EXPECT_EQ(kind.values[1].comment, "the whole activation crosses: the uncompressed baseline");
  EXPECT_EQ(kind.values[1].unsupported, "");
}

TEST(ListFields, SaysWhichFieldsExcludeEachOther) {
  EXPECT_EQ(DocOf("model.mlp").excludes, (std::vector<std::string>{"resnet", "transformer"}));
  EXPECT_TRUE(DocOf("model").excludes.empty());
}

TEST(ListFields, ListsTheFieldsOfAMessageOnceNearestToTheRoot) {
  EXPECT_EQ(DocOf("cut_point[i].wire").same_as, "wire");
  EXPECT_EQ(DocOf("cut_point[i].boundary").same_as, "boundary");
  EXPECT_EQ(DocOf("data.mnist").same_as, "data.fashion_mnist");
  EXPECT_EQ(DocOf("wire").same_as, "");
  EXPECT_EQ(DocOf("wire.gradients").comment, "");
}

TEST(ListFields, StartsAtAPath) {
  const auto docs = ListFields("cut_point[1].wire");
  ASSERT_TRUE(docs.ok()) << docs.status();
  ASSERT_EQ(docs->size(), 3u);
  EXPECT_EQ((*docs)[0].path, "cut_point[i].wire");
  EXPECT_EQ((*docs)[0].depth, 0);
  EXPECT_EQ((*docs)[0].same_as, "");
  EXPECT_EQ((*docs)[2].path, "cut_point[i].wire.gradients");
  EXPECT_EQ((*docs)[2].depth, 1);
  EXPECT_EQ(ListFields("seed")->size(), 1u);
}

TEST(ListFields, UnknownPathsGetASuggestion) {
  EXPECT_EQ(ListFields("boundary.rato").status().message(), "no field \"rato\" in boundary; did you mean \"ratio\"?");
  EXPECT_EQ(ListFields("bacth").status().message(), "no field \"bacth\" in the job; did you mean \"batch\"?");
  EXPECT_EQ(ListFields("seed.x").status().message(), "seed has no fields, so no \"x\"");
  EXPECT_EQ(ListFields("seed.x").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DescribeFields, PrintsATree) {
  EXPECT_EQ(
      *DescribeFields("schedule"),
      "schedule  message\n"
      "  kind  enum = ONE_F_ONE_B\n"
      "      ONE_F_ONE_B\n"
      "      GPIPE\n"
      "  windows[i]  list of int32                 Micro-batches that a stage may have forwarded and not yet taken\n"
      "                                            backward, first to last stage; not growing downstream. Empty: P-s\n"
      "                                            for ONE_F_ONE_B, M for GPIPE.\n");
}

TEST(DescribeFields, PrintsValuesWithWhatTheyMean) {
  const std::string text = *DescribeFields("wire.activations");
  EXPECT_EQ(text,
            "wire.activations  enum = FP16\n"
            "    FP16\n"
            "    BF16\n"
            "    FP32\n"
            "    INT8                                    a scale for each 64 values: 1.06 bytes a value\n"
            "    INT4                                    the same: 0.56 bytes a value\n");
}

TEST(DescribeFields, KeepsToItsWidth) {
  std::istringstream lines(*DescribeFields(""));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(line.size(), 110u) << line;
    EXPECT_FALSE(absl::EndsWith(line, " ")) << line;
  }
  EXPECT_GT(count, 100);
}

TEST(FieldsJson, SaysOfEachFieldWhatTheTreeSays) {
  const auto text = FieldsJson("wire");
  ASSERT_TRUE(text.ok()) << text.status();
  const nlohmann::json fields = nlohmann::json::parse(*text);
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(fields[0]["path"], "wire");
  EXPECT_TRUE(fields[0]["default"].is_null());
  EXPECT_EQ(fields[1]["path"], "wire.activations");
  EXPECT_EQ(fields[1]["type"], "enum");
  EXPECT_EQ(fields[1]["default"], "FP16");
  EXPECT_EQ(fields[1]["values"][3]["name"], "INT8");
  EXPECT_TRUE(fields[1]["unsupported"].is_null());
  EXPECT_EQ(nlohmann::json::parse(*FieldsJson("checkpoint.keep"))[0]["unsupported"],
            "checkpoints in mid-run are not implemented");
  EXPECT_EQ(nlohmann::json::parse(*FieldsJson("model.mlp"))[0]["excludes"], nlohmann::json({"resnet", "transformer"}));
  EXPECT_EQ(FieldsJson("boundary.rato").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WithFieldTables, NeedsBothLines) {
  EXPECT_EQ(WithFieldTables("no lines").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(JobPage, GeneratedPartIsCurrent) {
  std::stringstream page;
  page << std::ifstream("docs/job.md").rdbuf();
  const auto updated = WithFieldTables(page.str());
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_TRUE(page.str() == *updated) << "run: bazel run //tests/coordinator/job:update_docs";
  EXPECT_TRUE(absl::StrContains(page.str(), "| `boundary.ratio` | int32 | `16` |"));
}

}  // namespace
}  // namespace resbm::coordinator
