// Writes docs/metrics.md:  bazel run //tests/metrics:update_page
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "tests/metrics/metrics_page.h"

int main() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::string path = std::string(workspace == nullptr ? "." : workspace) + "/docs/metrics.md";
  std::ofstream out(path, std::ios::trunc);
  out << resbm::MetricsPage() << std::flush;
  if (!out) std::cerr << path << ": cannot be written\n";
  return out ? 0 : 1;
}
