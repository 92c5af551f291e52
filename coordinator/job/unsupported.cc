#include "coordinator/job/unsupported.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Singular scalars only; a message or a list that is set is no default.
bool EqualsDefault(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) return false;
  const Reflection& r = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return r.GetInt32(message, &field) == field.default_value_int32();
    case FieldDescriptor::CPPTYPE_INT64: return r.GetInt64(message, &field) == field.default_value_int64();
    case FieldDescriptor::CPPTYPE_UINT32: return r.GetUInt32(message, &field) == field.default_value_uint32();
    case FieldDescriptor::CPPTYPE_UINT64: return r.GetUInt64(message, &field) == field.default_value_uint64();
    case FieldDescriptor::CPPTYPE_DOUBLE: return r.GetDouble(message, &field) == field.default_value_double();
    case FieldDescriptor::CPPTYPE_FLOAT: return r.GetFloat(message, &field) == field.default_value_float();
    case FieldDescriptor::CPPTYPE_BOOL: return r.GetBool(message, &field) == field.default_value_bool();
    case FieldDescriptor::CPPTYPE_ENUM: return r.GetEnum(message, &field) == field.default_value_enum();
    case FieldDescriptor::CPPTYPE_STRING: return r.GetString(message, &field) == field.default_value_string();
    case FieldDescriptor::CPPTYPE_MESSAGE: return false;
  }
  return false;
}

void CheckValue(const EnumValueDescriptor& value, const std::string& path, FieldErrors& errors) {
  if (value.options().HasExtension(v1::unsupported_value)) {
    errors.Add(path, value.name(), ": ", value.options().GetExtension(v1::unsupported_value));
  }
}

void Walk(const Message& message, const std::string& prefix, FieldErrors& errors) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, prefix.empty() ? "" : ".", field->name());
    if (field->options().HasExtension(v1::unsupported)) {
      if (!EqualsDefault(message, *field)) errors.Add(path, field->options().GetExtension(v1::unsupported));
      continue;
    }
    const bool is_enum = field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!field->is_repeated()) {
      if (is_enum) CheckValue(*reflection.GetEnum(message, field), path, errors);
      if (is_message) Walk(reflection.GetMessage(message, field), path, errors);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const std::string element = absl::StrCat(path, "[", i, "]");
      if (is_enum) CheckValue(*reflection.GetRepeatedEnum(message, field, i), element, errors);
      if (is_message) Walk(reflection.GetRepeatedMessage(message, field, i), element, errors);
    }
  }
}

}  // namespace

FieldErrors FindUnsupported(const Message& message) {
  FieldErrors errors;
  Walk(message, "", errors);
  return errors;
}

absl::Status CheckSupported(const LoadedJob& loaded) {
  return loaded.locations.ToStatus(FindUnsupported(loaded.job), absl::StatusCode::kUnimplemented);
}

}  // namespace resbm::coordinator
