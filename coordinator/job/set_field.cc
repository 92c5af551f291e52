#include "coordinator/job/set_field.h"

#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coordinator/job/field_names.h"
#include "coordinator/job/nearest_name.h"
#include "coordinator/job/parse_text.h"
#include "google/protobuf/descriptor.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Reads `value` as the text format of `field` in a message that has nothing else.
absl::StatusOr<std::unique_ptr<Message>> ParseValue(const Message& parent, const FieldDescriptor& field,
                                                    absl::string_view value) {
  std::unique_ptr<Message> holder(parent.New());
  const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !quoted && !absl::StartsWith(value, "[")) {
    if (field.is_repeated()) {
      holder->GetReflection()->AddString(holder.get(), &field, std::string(value));
    } else {
      holder->GetReflection()->SetString(holder.get(), &field, std::string(value));
    }
    return holder;
  }
  const std::vector<TextError> errors = ParseText(absl::StrCat(field.name(), ": ", value), *holder);
  std::vector<const FieldDescriptor*> set;
  holder->GetReflection()->ListFields(*holder, &set);
  // More than one field: the value went on after its end, as in "8 kind: IDENTITY".
  const bool alone = set.size() == 1 && set[0] == &field;
  const bool empty_list = set.empty() && field.is_repeated();
  if (!errors.empty() || !(alone || empty_list)) {
    const std::string list = field.is_repeated() ? " (or a list of them in [ ])" : "";
    std::string text = absl::StrCat("expected ", ExpectedValue(field), list, ", got \"", value, "\"");
    // What is wrong within braces is worth saying too.
    if (!errors.empty() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && absl::StartsWith(value, "{")) {
      text = errors.front().text;
    }
    return absl::InvalidArgumentError(text);
  }
  return holder;
}

// "a[1].b" and "a.1.b" alike -> {"a", "1", "b"}.
std::vector<std::string> Tokens(absl::string_view path) {
  return absl::StrSplit(absl::StrReplaceAll(path, {{"[", "."}, {"]", ""}}), '.');
}

absl::Status NoSuchField(absl::string_view name, const Descriptor& type, absl::string_view parent) {
  return absl::InvalidArgumentError(absl::StrCat("no field \"", name, "\" in ",
                                                 parent.empty() ? absl::string_view("the job") : parent, "; ",
                                                 SuggestName(name, FieldNames(type))));
}

// Puts the one element of `holder`'s repeated `field` at `index` of `message`'s, which has at least as many.
void PutElement(const FieldDescriptor& field, int index, Message& holder, Message& message) {
  const auto* reflection = message.GetReflection();
  if (index == reflection->FieldSize(message, &field)) {
    message.MergeFrom(holder);
    return;
  }
  // An element cannot be replaced by a generic call: append the new one, swap it in, drop the old one.
  message.MergeFrom(holder);
  reflection->SwapElements(&message, &field, index, reflection->FieldSize(message, &field) - 1);
  reflection->RemoveLast(&message, &field);
}

absl::StatusOr<std::string> SetPath(const std::vector<std::string>& tokens, absl::string_view value, Message& root) {
  Message* message = &root;
  std::string path;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(tokens[i]);
    if (field == nullptr) return NoSuchField(tokens[i], *message->GetDescriptor(), path);
    const auto* reflection = message->GetReflection();
    absl::StrAppend(&path, path.empty() ? "" : ".", field->name());

    int index = -1;
    if (field->is_repeated() && i + 1 < tokens.size()) {
      const int size = reflection->FieldSize(*message, field);
      if (!absl::SimpleAtoi(tokens[++i], &index) || index < 0 || index > size) {
        return absl::InvalidArgumentError(absl::StrCat(path, " has ", size, size == 1 ? " entry" : " entries",
                                                       "; expected an index from 0 to ", size, " (", size,
                                                       " appends), got \"", tokens[i], "\""));
      }
      absl::StrAppend(&path, "[", index, "]");
    }

    if (i + 1 == tokens.size()) {
      auto holder = ParseValue(*message, *field, value);
      if (!holder.ok()) return Annotate(holder.status(), path);
      if (index >= 0) {
        if ((*holder)->GetReflection()->FieldSize(**holder, field) != 1) {
          return absl::InvalidArgumentError(absl::StrCat(path, ": expected one value, got \"", value, "\""));
        }
        PutElement(*field, index, **holder, *message);
      } else {
        reflection->ClearField(message, field);
        message->MergeFrom(**holder);
      }
      return path;
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is ", ExpectedValue(*field), " and has no field \"", tokens[i + 1], "\""));
    }
    if (index < 0) {
      message = reflection->MutableMessage(message, field);
    } else if (index < reflection->FieldSize(*message, field)) {
      message = reflection->MutableRepeatedMessage(message, field, index);
    } else {
      message = reflection->AddMessage(message, field);
    }
  }
  return absl::InvalidArgumentError("empty path");
}

}  // namespace

absl::StatusOr<std::string> SetField(absl::string_view setting, Message& root) {
  const std::size_t equals = setting.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError("expected path=value, such as boundary.ratio=8");
  }
  const absl::string_view path = absl::StripAsciiWhitespace(setting.substr(0, equals));
  const absl::string_view value = absl::StripAsciiWhitespace(setting.substr(equals + 1));
  // On a copy: a path may have made messages before its last part proves wrong.
  std::unique_ptr<Message> changed(root.New());
  changed->CopyFrom(root);
  RESBM_ASSIGN_OR_RETURN(std::string set, SetPath(Tokens(path), value, *changed));
  root.GetReflection()->Swap(&root, changed.get());
  return set;
}

}  // namespace resbm::coordinator
