#include "proto/data/text_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/data/data_file.h"
#include "proto/base/status.h"

namespace resbm::data {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

std::string ExpandHome(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || !absl::StartsWith(path, "~/")) return path;
  return absl::StrCat(home, path.substr(1));
}

// The files that one of the job's paths stands for.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  // Not a range: its increment would throw.
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool is_text = absl::EndsWith(name, ".txt") || absl::EndsWith(name, ".txt.gz");
    if (is_text && !absl::StartsWith(name, ".")) files.push_back(entry->path());
  }
  if (error) return absl::ErrnoToStatus(error.value(), path);
  if (files.empty()) return absl::NotFoundError(absl::StrCat(path, ": no .txt or .txt.gz file in this folder"));
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status AppendFile(const std::string& path, std::vector<std::uint8_t>* to) {
  RESBM_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  for (;;) {
    const std::size_t old_size = to->size();
    to->resize(old_size + kPieceBytes);
    RESBM_ASSIGN_OR_RETURN(const std::size_t got, file.Read(to->data() + old_size, kPieceBytes));
    to->resize(old_size + got);
    if (got < kPieceBytes) return file.ExpectEnd();
    if (to->size() > kMaxTextBytes) return absl::OkStatus();  // the caller refuses it
  }
}

}  // namespace

absl::StatusOr<std::vector<std::uint8_t>> ReadText(absl::Span<const std::string> paths, Split split,
                                                   double test_share) {
  if (paths.empty()) return absl::InvalidArgumentError("no files");
  // Also what is no number.
  if (!(test_share >= 0 && test_share < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("a test share of ", test_share, "; from 0 to below 1"));
  }
  std::vector<std::uint8_t> text;
  std::uint64_t left_out = 0;
  for (const std::string& path : paths) {
    RESBM_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(ExpandHome(path)));
    for (const std::string& file : files) {
      const std::size_t begin = text.size();
      RESBM_RETURN_IF_ERROR(AppendFile(file, &text));
      if (text.size() + left_out > kMaxTextBytes) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": the text is larger than ", kMaxTextBytes, " bytes"));
      }
      const std::size_t bytes = text.size() - begin;
      const auto test_bytes = static_cast<std::size_t>(std::floor(static_cast<double>(bytes) * test_share));
      if (split == Split::kTrain) {
        left_out += test_bytes;
        text.resize(text.size() - test_bytes);
      } else {
        left_out += bytes - test_bytes;
        text.erase(text.begin() + begin, text.end() - test_bytes);
      }
    }
  }
  return text;
}

}  // namespace resbm::data
