#include "coordinator/job/unsupported.h"

#include <memory>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/text_format.h"
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

// A schema of its own, so that marks of any kind are tested whatever a job can do by now.
constexpr char kSchema[] = R"pb(
  name: "test.proto"
  package: "test"
  dependency: "proto/resbm/v1/job.proto"
  message_type {
    name: "Thing"
    field { name: "size" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 default_value: "3"
            options { [resbm.v1.unsupported]: "has one size" } }
    field { name: "part" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".test.Thing"
            options { [resbm.v1.unsupported]: "has no part" } }
    field { name: "word" number: 3 label: LABEL_REPEATED type: TYPE_STRING
            options { [resbm.v1.unsupported]: "has no words" } }
    field { name: "kind" number: 4 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".test.Kind" }
    field { name: "kinds" number: 5 label: LABEL_REPEATED type: TYPE_ENUM type_name: ".test.Kind" }
    field { name: "inner" number: 6 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".test.Thing" }
    field { name: "item" number: 7 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".test.Thing" }
  }
  enum_type {
    name: "Kind"
    value { name: "PLAIN" number: 0 }
    value { name: "FANCY" number: 1 options { [resbm.v1.unsupported_value]: "fancy is for later" } }
  }
)pb";

class MarkedThing : public ::testing::Test {
 protected:
  void SetUp() override {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kSchema, &file));
    ASSERT_NE(pool_.BuildFile(file), nullptr);
  }
  // Of a Thing in text format; empty: supported.
  std::string ErrorsOf(const std::string& text) {
    const google::protobuf::Message* prototype = factory_.GetPrototype(pool_.FindMessageTypeByName("test.Thing"));
    const std::unique_ptr<google::protobuf::Message> thing(prototype->New());
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, thing.get()));
    return FindUnsupported(*thing).ToString();
  }

  google::protobuf::DescriptorPool pool_{google::protobuf::DescriptorPool::generated_pool()};
  google::protobuf::DynamicMessageFactory factory_;
};

TEST_F(MarkedThing, RefusesMarkedEnumValues) {
  EXPECT_EQ(ErrorsOf("kind: FANCY"), "kind: FANCY: fancy is for later");
  EXPECT_EQ(ErrorsOf("kinds: [PLAIN, FANCY]"), "kinds[1]: FANCY: fancy is for later");
  EXPECT_EQ(ErrorsOf("kind: PLAIN"), "");
}

TEST_F(MarkedThing, RefusesMarkedMessagesAndListsHoweverTheyAreSet) {
  EXPECT_EQ(ErrorsOf("size: 3"), "");
  EXPECT_EQ(ErrorsOf("size: 0"), "size: has one size");
  EXPECT_EQ(ErrorsOf("part {}"), "part: has no part");
  EXPECT_EQ(ErrorsOf("word: ''"), "word: has no words");
}

TEST_F(MarkedThing, FindsAllAtAnyDepth) {
  EXPECT_EQ(ErrorsOf("inner { item {} item { kind: FANCY inner { size: 4 } } } word: 'a'"),
            "word: has no words\n"
            "inner.item[1].kind: FANCY: fancy is for later\n"
            "inner.item[1].inner.size: has one size");
}

TEST(Unsupported, NamesTheOverride) {
  const auto loaded = ParseJob("", "job.textproto", {{"checkpoint.keep=3"}});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(std::string(CheckSupported(*loaded).message()),
            "--set checkpoint.keep=3: checkpoint.keep: checkpoints in mid-run are not implemented");
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
