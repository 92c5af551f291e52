#include "coordinator/job/load_job.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/job/parse_text.h"
#include "coordinator/job/set_field.h"
#include "google/protobuf/descriptor.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ParseInfoTree = google::protobuf::TextFormat::ParseInfoTree;

constexpr std::uintmax_t kLargestFile = 1 << 20;

void RecordLines(const Message& message, const ParseInfoTree& tree, const std::string& prefix, SourceMap& locations) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, prefix.empty() ? "" : ".", field->name());
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const auto record = [&](const std::string& at, int index) {
      // Entries of a list in brackets have no line of their own.
      const auto location = tree.GetLocation(field, index);
      if (location.line >= 0) locations.RecordLine(at, location.line + 1);
    };
    if (!field->is_repeated()) {
      record(path, -1);
      const ParseInfoTree* nested = is_message ? tree.GetTreeForNested(field, -1) : nullptr;
      if (nested != nullptr) RecordLines(reflection->GetMessage(message, field), *nested, path, locations);
      continue;
    }
    record(path, 0);
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const std::string element = absl::StrCat(path, "[", i, "]");
      record(element, i);
      const ParseInfoTree* nested = is_message ? tree.GetTreeForNested(field, i) : nullptr;
      if (nested != nullptr) {
        RecordLines(reflection->GetRepeatedMessage(message, field, i), *nested, element, locations);
      }
    }
  }
}

}  // namespace

absl::StatusOr<LoadedJob> ParseJob(const std::string& text, const std::string& file_name,
                                   absl::Span<const std::string> overrides) {
  LoadedJob loaded = {v1::Job(), SourceMap(file_name)};
  ParseInfoTree tree;
  std::string problems;
  for (const TextError& e : ParseText(text, loaded.job, &tree)) {
    absl::StrAppend(&problems, problems.empty() ? "" : "\n", file_name, ":", e.line, ":", e.column, ": ", e.text);
  }
  if (problems.empty()) RecordLines(loaded.job, tree, "", loaded.locations);
  for (const std::string& setting : overrides) {
    if (absl::StatusOr<std::string> path = SetField(setting, loaded.job); path.ok()) {
      loaded.locations.RecordOverride(*path, setting);
    } else {
      absl::StrAppend(&problems, problems.empty() ? "" : "\n", "--set ", setting, ": ", path.status().message());
    }
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems);
  return loaded;
}

absl::StatusOr<LoadedJob> LoadJob(const std::string& path, absl::Span<const std::string> overrides) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(absl::StrCat("no job file \"", path, "\"; write one with: resbm init"));
  }
  if (std::filesystem::is_directory(status)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" is a folder; name the job file in it"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("cannot read \"", path, "\": ", std::strerror(errno)));
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return absl::InvalidArgumentError(absl::StrCat("cannot read \"", path, "\": ", std::strerror(errno)));
  if (text.size() > kLargestFile) {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" is over 1 MiB: not a job file"));
  }
  return ParseJob(text, path, overrides);
}

}  // namespace resbm::coordinator
