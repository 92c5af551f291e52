#include "coordinator/job/unsupported.h"

#include <string>

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

absl::Status StatusOf(const std::string& text) {
  const auto loaded = ParseJob(text, "job.textproto", {});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return CheckSupported(*loaded);
}

// Empty: supported.
std::string Check(const std::string& text) { return std::string(StatusOf(text).message()); }

TEST(Unsupported, RefusesFieldsAwayFromTheirDefault) {
  const absl::Status status = StatusOf("checkpoint {\n  every_steps: 500 }");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(std::string(status.message()),
            "job.textproto:2: checkpoint.every_steps: checkpoints in mid-run are not implemented");
}

TEST(Unsupported, TakesFieldsSetToTheirDefault) {
  EXPECT_EQ(Check("checkpoint { every_steps: 0 keep: 2 } boundary { low_dim { depth: 2 width: 1 } stride: 1 }"), "");
  EXPECT_EQ(Check(""), "");
}

TEST(Unsupported, RefusesMarkedEnumValues) {
  EXPECT_EQ(Check("precision: BF16"), "job.textproto:1: precision: BF16: bf16 compute is not implemented");
  EXPECT_EQ(Check("boundary {\n kind: TOPK\n}"),
            "job.textproto:2: boundary.kind: TOPK: the top-k baseline is not implemented");
  EXPECT_EQ(Check("precision: FP32 boundary { kind: IDENTITY }"), "");
}

TEST(Unsupported, RefusesMarkedMessagesAndListsHoweverTheyAreSet) {
  EXPECT_EQ(Check("model { transformer { layers: 2 } }"),
            "job.textproto:1: model.transformer: language models are not implemented");
  EXPECT_EQ(Check("recompute_layer: \"stem\""), "job.textproto:1: recompute_layer: recomputation is not implemented");
}

TEST(Unsupported, FindsAllAtAnyDepth) {
  EXPECT_EQ(
      Check("recompute: BOUNDARY\n"
            "cut_point { after: \"a\" }\n"
            "cut_point {\n"
            "  boundary { kind: TOPK }\n"
            "  wire { activations: INT8 } }\n"),
      "job.textproto:1: recompute: BOUNDARY: recomputation is not implemented\n"
      "job.textproto:4: cut_point[1].boundary.kind: TOPK: the top-k baseline is not implemented");
}

TEST(Unsupported, NamesTheOverride) {
  const auto loaded = ParseJob("", "job.textproto", {{"boundary.kind=TOPK"}});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(std::string(CheckSupported(*loaded).message()),
            "--set boundary.kind=TOPK: boundary.kind: TOPK: the top-k baseline is not implemented");
}

// A default that is itself refused would refuse every job.
void NoDefaultIsMarked(const google::protobuf::Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->enum_type() == nullptr) continue;
    EXPECT_FALSE(type.field(i)->default_value_enum()->options().HasExtension(v1::unsupported_value))
        << type.field(i)->full_name();
  }
  for (int i = 0; i < type.nested_type_count(); ++i) NoDefaultIsMarked(*type.nested_type(i));
}

TEST(Unsupported, NoDefaultIsRefused) {
  const google::protobuf::FileDescriptor& file = *v1::Job::descriptor()->file();
  for (int i = 0; i < file.message_type_count(); ++i) NoDefaultIsMarked(*file.message_type(i));
}

}  // namespace
}  // namespace resbm::coordinator
