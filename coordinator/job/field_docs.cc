#include "coordinator/job/field_docs.h"

#include <map>
#include <queue>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/job/field_names.h"
#include "coordinator/job/nearest_name.h"
#include "coordinator/job/schema_comments.h"
#include "google/protobuf/descriptor.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string NameInPath(const FieldDescriptor& field) {
  return absl::StrCat(field.name(), field.is_repeated() ? "[i]" : "");
}

std::string Join(const std::string& prefix, const FieldDescriptor& field) {
  return absl::StrCat(prefix, prefix.empty() ? "" : ".", NameInPath(field));
}

std::string TypeOf(const FieldDescriptor& field) {
  const std::string type = field.type_name();
  return field.is_repeated() ? absl::StrCat("list of ", type, type == "message" ? "s" : "") : type;
}

std::string DefaultOf(const FieldDescriptor& field) {
  if (field.is_repeated() || !field.has_default_value()) return "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return absl::StrCat(field.default_value_int32());
    case FieldDescriptor::CPPTYPE_INT64: return absl::StrCat(field.default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT32: return absl::StrCat(field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64: return absl::StrCat(field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_DOUBLE: return absl::StrCat(field.default_value_double());
    case FieldDescriptor::CPPTYPE_FLOAT: return absl::StrCat(field.default_value_float());
    case FieldDescriptor::CPPTYPE_BOOL: return field.default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM: return field.default_value_enum()->name();
    case FieldDescriptor::CPPTYPE_STRING: return absl::StrCat("\"", field.default_value_string(), "\"");
    case FieldDescriptor::CPPTYPE_MESSAGE: return "";
  }
  return "";
}

// Where each message type is listed when several fields have it: at the one nearest to the root.
std::map<const Descriptor*, std::string> Homes(const Descriptor& root, const std::string& root_path) {
  std::map<const Descriptor*, std::string> homes = {{&root, root_path}};
  std::queue<std::pair<const Descriptor*, std::string>> open;
  open.push({&root, root_path});
  while (!open.empty()) {
    const auto [type, path] = open.front();
    open.pop();
    for (int i = 0; i < type->field_count(); ++i) {
      const Descriptor* inner = type->field(i)->message_type();
      if (inner == nullptr) continue;
      const std::string inner_path = Join(path, *type->field(i));
      if (homes.emplace(inner, inner_path).second) open.push({inner, inner_path});
    }
  }
  return homes;
}

FieldDoc Document(const FieldDescriptor& field, const std::string& path, int depth) {
  FieldDoc doc;
  doc.path = path;
  doc.name = NameInPath(field);
  doc.depth = depth;
  doc.type = TypeOf(field);
  doc.default_value = DefaultOf(field);
  doc.comment = CommentOf(field);
  doc.unsupported = field.options().GetExtension(v1::unsupported);
  if (field.message_type() != nullptr) {
    const std::string of_type = CommentOf(*field.message_type());
    absl::StrAppend(&doc.comment, doc.comment.empty() || of_type.empty() ? "" : " ", of_type);
  }
  if (const auto* type = field.enum_type(); type != nullptr) {
    for (int i = 0; i < type->value_count(); ++i) {
      const auto& value = *type->value(i);
      doc.values.push_back({value.name(), CommentOf(value), value.options().GetExtension(v1::unsupported_value)});
    }
  }
  if (const auto* oneof = field.real_containing_oneof(); oneof != nullptr) {
    for (int i = 0; i < oneof->field_count(); ++i) {
      if (oneof->field(i) != &field) doc.excludes.push_back(oneof->field(i)->name());
    }
  }
  return doc;
}

void List(const Descriptor& type, const std::string& prefix, int depth,
          const std::map<const Descriptor*, std::string>& homes, std::vector<FieldDoc>& docs) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = Join(prefix, field);
    docs.push_back(Document(field, path, depth));
    const Descriptor* inner = field.message_type();
    if (inner == nullptr || inner->field_count() == 0) continue;
    if (const std::string& home = homes.at(inner); home != path) {
      docs.back().same_as = home;
    } else {
      List(*inner, path, depth + 1, homes, docs);
    }
  }
}

bool IsIndex(const std::string& token) {
  return token == "i" || token.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

absl::StatusOr<std::vector<FieldDoc>> ListFields(absl::string_view path) {
  const Descriptor* type = v1::Job::descriptor();
  const FieldDescriptor* field = nullptr;
  std::string prefix;
  const std::vector<std::string> tokens = absl::StrSplit(path, absl::ByAnyChar(".[]"), absl::SkipEmpty());
  for (const std::string& token : tokens) {
    if (field != nullptr && field->is_repeated() && IsIndex(token)) continue;
    const std::string where = prefix.empty() ? "the job" : prefix;
    if (type == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where, " has no fields, so no \"", token, "\""));
    }
    const FieldDescriptor* next = type->FindFieldByName(token);
    if (next == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no field \"", token, "\" in ", where, "; ", SuggestName(token, FieldNames(*type))));
    }
    field = next;
    type = field->message_type();
    prefix = Join(prefix, *field);
  }
  std::vector<FieldDoc> docs;
  if (field != nullptr) docs.push_back(Document(*field, prefix, 0));
  if (type != nullptr) List(*type, prefix, field == nullptr ? 0 : 1, Homes(*type, prefix), docs);
  return docs;
}

}  // namespace resbm::coordinator
