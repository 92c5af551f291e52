#include "coordinator/job/describe_fields.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coordinator/job/field_docs.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr std::size_t kTextColumn = 44;
constexpr std::size_t kLineWidth = 110;

void AddSentence(std::string sentence, std::string& text) {
  if (sentence.empty()) return;
  if (!absl::EndsWith(sentence, ".")) sentence += '.';
  absl::StrAppend(&text, text.empty() ? "" : " ", sentence);
}

// Everything about a field but its values.
std::string TextOf(const FieldDoc& doc) {
  std::string text;
  AddSentence(doc.comment, text);
  if (!doc.excludes.empty()) AddSentence(absl::StrCat("Not together with ", absl::StrJoin(doc.excludes, ", ")), text);
  if (!doc.same_as.empty()) AddSentence(absl::StrCat("Fields as in ", doc.same_as), text);
  if (!doc.unsupported.empty()) AddSentence(absl::StrCat("Not yet: ", doc.unsupported), text);
  return text;
}

std::string TextOf(const ValueDoc& value) {
  if (value.unsupported.empty()) return value.comment;
  return absl::StrCat(value.comment, value.comment.empty() ? "" : "; ", "not yet: ", value.unsupported);
}

// `head`, then `text` from kTextColumn on, broken between words.
void AddRow(const std::string& head, const std::string& text, std::string& out) {
  std::string line = head;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() < kTextColumn) {
      line.resize(kTextColumn, ' ');
    } else if (line.size() + 1 + word.size() > kLineWidth) {
      absl::StrAppend(&out, line, "\n");
      line.assign(kTextColumn, ' ');
    } else if (line.size() > kTextColumn || line.back() != ' ') {
      line += ' ';
    }
    absl::StrAppend(&line, word);
  }
  absl::StrAppend(&out, line, "\n");
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "\\<"}}); }

void AddTable(const std::vector<FieldDoc>& docs, std::string& out) {
  absl::StrAppend(&out, "| Field | Type | Default | Meaning |\n|---|---|---|---|\n");
  for (const FieldDoc& doc : docs) {
    std::string text = TextOf(doc);
    std::vector<std::string> values;
    for (const ValueDoc& value : doc.values) {
      const std::string about = TextOf(value);
      values.push_back(absl::StrCat("`", value.name, "`", about.empty() ? "" : " (", about, about.empty() ? "" : ")"));
    }
    AddSentence(absl::StrJoin(values, ", "), text);
    const std::string given = doc.default_value.empty() ? "" : absl::StrCat("`", doc.default_value, "`");
    absl::StrAppend(&out, "| `", doc.path, "` | ", doc.type, " | ", Cell(given), " | ", Cell(text), " |\n");
  }
}

}  // namespace

absl::StatusOr<std::string> DescribeFields(absl::string_view path) {
  RESBM_ASSIGN_OR_RETURN(const std::vector<FieldDoc> docs, ListFields(path));
  std::string out;
  for (const FieldDoc& doc : docs) {
    const std::string indent(2 * doc.depth, ' ');
    const std::string given = doc.default_value.empty() ? "" : absl::StrCat(" = ", doc.default_value);
    // The first one says where we are.
    const std::string& name = doc.depth == 0 ? doc.path : doc.name;
    AddRow(absl::StrCat(indent, name, "  ", doc.type, given), TextOf(doc), out);
    for (const ValueDoc& value : doc.values) AddRow(absl::StrCat(indent, "    ", value.name), TextOf(value), out);
  }
  return out;
}

absl::StatusOr<std::string> FieldsJson(absl::string_view path) {
  RESBM_ASSIGN_OR_RETURN(const std::vector<FieldDoc> docs, ListFields(path));
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const FieldDoc& doc : docs) {
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (const ValueDoc& value : doc.values) {
      values.push_back(
          {{"name", value.name}, {"comment", value.comment}, {"unsupported", or_null(value.unsupported)}});
    }
    out.push_back({{"path", doc.path},
                   {"type", doc.type},
                   {"default", or_null(doc.default_value)},
                   {"comment", doc.comment},
                   {"unsupported", or_null(doc.unsupported)},
                   {"values", std::move(values)},
                   {"excludes", doc.excludes},
                   {"same_as", or_null(doc.same_as)}});
  }
  return out.dump(2) + "\n";
}

std::string FieldTables() {
  // The empty path and the paths of its fields are there.
  const std::vector<FieldDoc> all = *ListFields("");
  std::vector<FieldDoc> own;
  std::copy_if(all.begin(), all.end(), std::back_inserter(own), [](const FieldDoc& d) { return d.depth == 0; });
  std::string out;
  AddTable(own, out);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].depth != 0) continue;
    const auto end = std::find_if(all.begin() + i + 1, all.end(), [](const FieldDoc& d) { return d.depth == 0; });
    const std::vector<FieldDoc> inner(all.begin() + i + 1, end);
    if (inner.empty()) continue;
    absl::StrAppend(&out, "\n### ", all[i].name, "\n\n");
    AddTable(inner, out);
  }
  return out;
}

absl::StatusOr<std::string> WithFieldTables(const std::string& page) {
  const std::size_t begin = page.find(kTablesBegin);
  const std::size_t end = page.find(kTablesEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return absl::InvalidArgumentError(absl::StrCat("the page needs the lines ", kTablesBegin, "and ", kTablesEnd));
  }
  const std::size_t after_begin = begin + sizeof(kTablesBegin) - 1;
  return absl::StrCat(page.substr(0, after_begin), "\n", FieldTables(), "\n", page.substr(end));
}

}  // namespace resbm::coordinator
