#include "coordinator/job/source_map.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace resbm::coordinator {

absl::string_view ParentPath(absl::string_view path) {
  const std::size_t end = path.find_last_of(".[");
  return end == absl::string_view::npos ? absl::string_view() : path.substr(0, end);
}

void SourceMap::RecordLine(const std::string& path, int line) { locations_.insert_or_assign(path, Location{line, ""}); }

void SourceMap::RecordOverride(const std::string& path, absl::string_view setting) {
  std::erase_if(locations_, [&](const auto& entry) {
    return absl::StartsWith(entry.first, path) && entry.first.size() > path.size() &&
           (entry.first[path.size()] == '.' || entry.first[path.size()] == '[');
  });
  const Location location = {0, absl::StrCat("--set ", setting)};
  locations_.insert_or_assign(path, location);
  for (absl::string_view p = ParentPath(path); !p.empty(); p = ParentPath(p)) {
    locations_.try_emplace(std::string(p), location);
  }
}

SourceMap::Location SourceMap::Find(absl::string_view path) const {
  for (; !path.empty(); path = ParentPath(path)) {
    if (const auto found = locations_.find(path); found != locations_.end()) return found->second;
  }
  return {};
}

std::string SourceMap::Locate(absl::string_view path) const {
  const Location location = Find(path);
  if (!location.option.empty()) return location.option;
  return location.line == 0 ? file_name_ : absl::StrCat(file_name_, ":", location.line);
}

std::string SourceMap::Describe(const FieldError& error) const {
  return absl::StrCat(Locate(error.path), ": ", error.path, error.path.empty() ? "" : ": ", error.text);
}

absl::Status SourceMap::ToStatus(const FieldErrors& errors, absl::StatusCode code) const {
  if (errors.empty()) return absl::OkStatus();
  std::vector<FieldError> sorted = errors.errors();
  std::stable_sort(sorted.begin(), sorted.end(), [&](const FieldError& a, const FieldError& b) {
    const Location at_a = Find(a.path);
    const Location at_b = Find(b.path);
    return std::pair(!at_a.option.empty(), at_a.line) < std::pair(!at_b.option.empty(), at_b.line);
  });
  std::string lines;
  for (const FieldError& e : sorted) absl::StrAppend(&lines, lines.empty() ? "" : "\n", Describe(e));
  return absl::Status(code, lines);
}

}  // namespace resbm::coordinator
