#include "coordinator/job/parse_text.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coordinator/job/field_names.h"
#include "coordinator/job/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::ErrorCollector;
using google::protobuf::io::Tokenizer;

// Deeper nesting than any job has, and far from the end of the stack.
constexpr int kDeepestNesting = 50;

// As the parser gives them: positions count from 0 and are those of the token it had come to.
struct RawError {
  int line;
  int column;
  std::string text;
};

class Collector : public ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& text) override { errors.push_back({line, column, text}); }
  // Unknown fields, which the parser was told to skip.
  void AddWarning(int line, int column, const std::string& text) override { AddError(line, column, text); }

  std::vector<RawError> errors;
};

// What stands before a position: the messages it is in, and the last token.
struct Context {
  std::vector<std::string> path;
  Tokenizer::Token before;
};

Context ContextAt(const std::string& text, int line, int column) {
  ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  Collector ignored;
  Tokenizer tokenizer(&stream, &ignored);
  tokenizer.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer.set_require_space_after_number(false);
  tokenizer.set_allow_multiline_strings(true);
  Context context;
  context.before.line = line;
  context.before.column = column;
  std::string name;
  while (tokenizer.Next()) {
    const Tokenizer::Token& token = tokenizer.current();
    if (token.line > line || (token.line == line && token.column >= column)) break;
    if (token.type == Tokenizer::TYPE_IDENTIFIER) {
      name = token.text;
    } else if (token.text == "{" || token.text == "<") {
      context.path.push_back(name);
    } else if ((token.text == "}" || token.text == ">") && !context.path.empty()) {
      // Of a list, [{...}, {...}], the next element has the same name.
      name = context.path.back();
      context.path.pop_back();
    }
    context.before = token;
  }
  return context;
}

const Descriptor* TypeAt(const Descriptor* type, const std::vector<std::string>& path) {
  for (const std::string& name : path) {
    const FieldDescriptor* field = type->FindFieldByName(name);
    if (field == nullptr || field->message_type() == nullptr) return nullptr;
    type = field->message_type();
  }
  return type;
}

// The parts between quotes: `Unknown value "a" of "b"` -> {"a", "b"}.
std::vector<std::string> Quoted(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '"');
  std::vector<std::string> quoted;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

TextError Reword(const std::string& text, const Descriptor* root, const RawError& raw) {
  const Context context = ContextAt(text, raw.line, raw.column);
  const std::string where = absl::StrJoin(context.path, ".");
  const std::string prefix = where.empty() ? "" : absl::StrCat(where, ": ");
  const std::vector<std::string> quoted = Quoted(raw.text);
  const TextError at_word = {context.before.line + 1, context.before.column + 1, ""};

  if (absl::StrContains(raw.text, "has no field named") && quoted.size() == 2) {
    TextError error = at_word;
    const Descriptor* type = root->file()->pool()->FindMessageTypeByName(quoted[0]);
    const std::string suggestion = type == nullptr ? "" : SuggestName(quoted[1], FieldNames(*type));
    error.text = absl::StrCat(prefix, "no field \"", quoted[1], "\"", suggestion.empty() ? "" : "; ", suggestion);
    return error;
  }
  if (absl::StartsWith(raw.text, "Unknown enumeration value") && quoted.size() == 2) {
    const Descriptor* type = TypeAt(root, context.path);
    const FieldDescriptor* field = type == nullptr ? nullptr : type->FindFieldByName(quoted[1]);
    if (field != nullptr && field->enum_type() != nullptr) {
      TextError error = at_word;
      error.text = absl::StrCat(prefix, quoted[1], ": expected ", ExpectedValue(*field), ", got \"", quoted[0], "\"");
      return error;
    }
  }
  if (absl::StartsWith(raw.text, "Non-repeated field") && quoted.size() == 1) {
    TextError error = at_word;
    error.text = absl::StrCat(prefix, "\"", quoted[0], "\" is set twice");
    return error;
  }
  return {raw.line + 1, raw.column + 1, absl::StrCat(prefix, absl::StripSuffix(raw.text, "."))};
}

}  // namespace

std::vector<TextError> ParseText(const std::string& text, google::protobuf::Message& message,
                                 TextFormat::ParseInfoTree* locations) {
  Collector collector;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kDeepestNesting);
  if (locations != nullptr) parser.WriteLocationsTo(locations);
  const bool parsed = parser.ParseFromString(text, &message);
  std::vector<TextError> errors;
  for (const RawError& raw : collector.errors) {
    errors.push_back(Reword(text, message.GetDescriptor(), {std::max(raw.line, 0), std::max(raw.column, 0), raw.text}));
  }
  if (!parsed && errors.empty()) errors.push_back({1, 1, "not in Protocol Buffers text format"});
  return errors;
}

}  // namespace resbm::coordinator
