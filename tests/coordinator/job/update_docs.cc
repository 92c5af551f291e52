// Writes the generated part of docs/job.md:  bazel run //tests/coordinator/job:update_docs
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "coordinator/job/describe_fields.h"

int main() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::string path = std::string(workspace == nullptr ? "." : workspace) + "/docs/job.md";
  std::ifstream in(path);
  std::stringstream page;
  page << in.rdbuf();
  const auto updated = resbm::coordinator::WithFieldTables(page.str());
  if (!in || !updated.ok()) {
    std::cerr << path << ": " << (in ? updated.status().message() : "cannot be read") << "\n";
    return 1;
  }
  in.close();
  std::ofstream out(path, std::ios::trunc);
  out << *updated << std::flush;
  if (!out) std::cerr << path << ": cannot be written\n";
  return out ? 0 : 1;
}
