#include "proto/metrics/process_metrics.h"

#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace resbm::metrics {
namespace {

constexpr Metric kMetrics[] = {
    {"process_start_time_seconds", Kind::kGauge, "", "When the process started, in seconds since 1970."},
    {"process_cpu_seconds_total", Kind::kCounter, "", "Processor time of the process, of all its threads."},
    {"process_resident_memory_bytes", Kind::kGauge, "", "Memory of the process that is in RAM, libraries included."},
};

struct ProcessTimes {
  double cpu_seconds = 0;
  double start_seconds = 0;  // since the machine was started
  double resident_bytes = 0;
};

// Fields of /proc/self/stat as proc(5) counts them.
std::optional<ProcessTimes> ReadSelf() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // The second field is the program's name, in brackets, and may hold anything.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  std::string skipped;
  double user = 0, system = 0, start = 0, pages = 0;
  for (int field = 3; field <= 24; ++field) {
    if (field == 14) {
      rest >> user;
    } else if (field == 15) {
      rest >> system;
    } else if (field == 22) {
      rest >> start;
    } else if (field == 24) {
      rest >> pages;
    } else {
      rest >> skipped;
    }
  }
  if (!rest) return std::nullopt;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessTimes{(user + system) / ticks, start / ticks, pages * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

std::optional<double> ReadBootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    double seconds = 0;
    std::string key;
    if (std::istringstream(line) >> key >> seconds && key == "btime") return seconds;
  }
  return std::nullopt;
}

}  // namespace

Catalogue ProcessMetrics() { return kMetrics; }

std::vector<prometheus::MetricFamily> ProcessFamilies() {
  Families families(kMetrics);
  if (const std::optional<ProcessTimes> self = ReadSelf()) {
    if (const std::optional<double> boot = ReadBootTime()) {
      families.Set("process_start_time_seconds", *boot + self->start_seconds);
    }
    families.Set("process_cpu_seconds_total", self->cpu_seconds);
    families.Set("process_resident_memory_bytes", self->resident_bytes);
  }
  return families.Take();
}

}  // namespace resbm::metrics
