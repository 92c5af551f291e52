#include "coordinator/status/run_info.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/report/run_directory.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

namespace fs = std::filesystem;

// A row with the signals of many cuts is some kilobytes.
constexpr std::streamoff kTailBytes = 256 * 1024;
constexpr std::streamoff kMostStagesBytes = 1024 * 1024;

std::string ReadUpTo(const std::string& path, std::streamoff bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  file.read(text.data(), bytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// The last line that has its end: the row being written is not there yet.
std::string LastLine(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  const std::streamoff start = std::max<std::streamoff>(0, size - kTailBytes);
  file.seekg(start);
  std::string tail(static_cast<std::size_t>(size - start), '\0');
  file.read(tail.data(), size - start);
  tail.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  const std::size_t end = tail.rfind('\n');
  if (end == std::string::npos) return "";
  const std::size_t before = end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
  if (before == std::string::npos && start > 0) return "";
  return tail.substr(before == std::string::npos ? 0 : before + 1,
                     end - (before == std::string::npos ? 0 : before + 1));
}

std::optional<RunInfo::Row> ReadLastRow(const std::string& path) {
  const auto json = nlohmann::json::parse(LastLine(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto number = [&](const char* name) -> std::optional<double> {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  if (!number("step").has_value()) return std::nullopt;
  RunInfo::Row row;
  row.step = static_cast<std::int64_t>(*number("step"));
  row.epoch = static_cast<std::int64_t>(number("epoch").value_or(0));
  row.loss = number("loss");
  row.learning_rate = number("learning_rate").value_or(0);
  row.step_seconds = number("step_seconds").value_or(0);
  const auto skipped = json.find("skipped");
  row.skipped = skipped != json.end() && skipped->is_boolean() && skipped->get<bool>();
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (!error) {
    row.age_seconds = std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count());
  }
  return row;
}

// Who holds the lock of the directory. Not by locking it, which could make a coordinator that starts now fail.
std::optional<int> LockHolder(const std::string& lock) {
  std::istringstream words(ReadUpTo(lock, 80));
  std::string process;
  int pid = 0;
  struct stat file = {};
  if (!(words >> process >> pid) || process != "process" || stat(lock.c_str(), &file) != 0) return std::nullopt;
  // "12: FLOCK  ADVISORY  WRITE 4711 fd:01:1234567 0 EOF"
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream fields(line);
    std::string number, kind, mode, access, holder, inode;
    fields >> number >> kind >> mode >> access >> holder >> inode;
    if (kind == "FLOCK" && holder == absl::StrCat(pid) && absl::EndsWith(inode, absl::StrCat(":", file.st_ino))) {
      return pid;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<RunInfo> ReadRunInfo(const std::string& directory) {
  RunInfo run;
  run.directory = directory;
  while (run.directory.size() > 1 && run.directory.back() == '/') run.directory.pop_back();
  const auto file = [&](const char* name) { return absl::StrCat(run.directory, "/", name); };
  std::error_code error;
  if (!fs::is_directory(run.directory, error)) {
    return absl::NotFoundError(absl::StrCat("no run directory ", run.directory, "; `resbm train` says which it uses"));
  }
  if (!fs::exists(file(kStagesFile), error)) {
    return absl::NotFoundError(absl::StrCat(run.directory, " has no ", kStagesFile,
                                            ": its stage servers are not known yet; ask them by --stages"));
  }
  absl::StatusOr<StagesFile> stages = ParseStagesFile(ReadUpTo(file(kStagesFile), kMostStagesBytes));
  if (!stages.ok()) return Annotate(stages.status(), file(kStagesFile));
  run.stages = *std::move(stages);
  run.coordinator_pid = LockHolder(file(kLockFile));
  run.has_summary = fs::exists(file(kSummaryFile), error);
  run.last = ReadLastRow(file(kMetricsFile));
  return run;
}

std::string Describe(const RunInfo& run) {
  std::string text = absl::StrCat(run.directory, ": ");
  if (run.last.has_value()) {
    absl::StrAppendFormat(&text, "step %d of %d, epoch %d", run.last->step, run.stages.total_steps,
                          run.last->epoch + 1);
    if (run.last->loss.has_value()) absl::StrAppendFormat(&text, ", loss %.4f", *run.last->loss);
    if (run.last->skipped) absl::StrAppend(&text, " (skipped)");
    absl::StrAppendFormat(&text, ", %.3g s a step, %.0f s ago", run.last->step_seconds, run.last->age_seconds);
  } else {
    absl::StrAppendFormat(&text, "no step of %d yet", run.stages.total_steps);
  }
  if (run.coordinator_pid.has_value()) {
    absl::StrAppendFormat(&text, "; process %d", *run.coordinator_pid);
  } else {
    const bool early = !run.last.has_value() || run.last->step < run.stages.total_steps;
    absl::StrAppend(&text, !run.has_summary ? "; no coordinator of it runs on this machine"
                           : early          ? "; the run ended before its last step"
                                            : "; the run has ended");
  }
  return text;
}

}  // namespace resbm::coordinator
