#include "stage_server/machine_info.h"

#include <fstream>
#include <random>

namespace resbm::stage_server {

std::string DeviceName(const std::string& device) {
  if (device != "cpu") return device;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return device;
}

std::uint64_t NewIncarnation() {
  std::random_device random;
  const std::uint64_t value = (static_cast<std::uint64_t>(random()) << 32) | random();
  return value == 0 ? 1 : value;
}

}  // namespace resbm::stage_server
