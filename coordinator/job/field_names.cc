#include "coordinator/job/field_names.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace resbm::coordinator {

using google::protobuf::FieldDescriptor;

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return names;
}

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", absl::StrJoin(ValueNames(*field.enum_type()), ", "));
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const std::vector<std::string> names = FieldNames(*field.message_type());
      return names.empty() ? "an empty message, {}"
                           : absl::StrCat("a message in braces, such as {", names.front(), ": ...}");
    }
    case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64: return absl::StrCat("a whole number (", field.type_name(), ")");
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat("a whole number that is not negative (", field.type_name(), ")");
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT: return "a number";
    case FieldDescriptor::CPPTYPE_STRING: return "a string";
  }
  return field.type_name();
}

}  // namespace resbm::coordinator
