#include "coordinator/job/schema_comments.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.pb.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::SourceLocation;

constexpr unsigned char kDescriptorSet[] = {
#include "coordinator/job/job_descriptor_set.inc"
};

const google::protobuf::FileDescriptor* BuildSchema() {
  google::protobuf::FileDescriptorSet set;
  auto* const pool = new DescriptorPool;
  const google::protobuf::FileDescriptor* schema = nullptr;
  if (set.ParseFromArray(kDescriptorSet, sizeof(kDescriptorSet))) {
    // Imports come before the files that import them.
    for (const auto& file : set.file()) schema = pool->BuildFile(file);
  }
  if (schema == nullptr) {
    std::fputs("the embedded schema of the job file is broken: build again\n", stderr);
    std::abort();
  }
  return schema;
}

template <typename Descriptor>
std::string Comment(const Descriptor* commented) {
  SourceLocation location;
  if (commented == nullptr || !commented->GetSourceLocation(&location)) return "";
  const std::string both = absl::StrCat(location.leading_comments, " ", location.trailing_comments);
  const std::vector<std::string> words = absl::StrSplit(both, absl::ByAnyChar(" \n\t"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

}  // namespace

const google::protobuf::FileDescriptor& CommentedSchema() {
  static const google::protobuf::FileDescriptor* const schema = BuildSchema();
  return *schema;
}

std::string CommentOf(const google::protobuf::Descriptor& message) {
  return Comment(CommentedSchema().pool()->FindMessageTypeByName(message.full_name()));
}

std::string CommentOf(const google::protobuf::FieldDescriptor& field) {
  return Comment(CommentedSchema().pool()->FindFieldByName(field.full_name()));
}

std::string CommentOf(const google::protobuf::EnumValueDescriptor& value) {
  return Comment(CommentedSchema().pool()->FindEnumValueByName(value.full_name()));
}

}  // namespace resbm::coordinator
