// Writes the reports that the browser test opens: write_reports DIRECTORY.
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "coordinator/html/report.h"
#include "tests/coordinator/html/example_reports.h"

namespace {

using namespace resbm::coordinator;  // NOLINT: main only

void Write(const std::string& directory, const char* name, const std::vector<ExampleReport>& examples) {
  std::vector<ReportRun> runs;
  for (const ExampleReport& example : examples) runs.push_back(MakeExampleReport(example));
  std::ofstream file(directory + "/" + name + ".html", std::ios::binary);
  file << MakeReport(runs, {"", "2026-02-03T00:00:00+00:00", "0.1.0"});
  if (!file.flush()) {
    std::cerr << "cannot write " << directory << "/" << name << ".html" << std::endl;
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_reports DIRECTORY" << std::endl;
    return 2;
  }
  const std::string directory = argv[1];
  Write(directory, "run", {{.steps = 500}});
  Write(directory, "without_trace", {{.has_trace = false}});
  Write(directory, "old", {{.has_trace = false, .is_one_stage = true, .is_old = true}});
  Write(directory, "text", {{.is_text = true}});
  Write(directory, "long", {{.steps = 100'000}});
  Write(directory, "evil",
        {{.path = "runs/<b>&amp;", .name = "</script><script>window.evil = 1</script><img src=x onerror=evil=1>"}});
  Write(directory, "several",
        {{.path = "runs/r4-1", .name = "r4", .ratio = 4, .steps = 500},
         {.path = "runs/r16-1", .name = "r16", .ratio = 16, .steps = 500},
         {.path = "runs/r16-2", .name = "r16", .seed = 2, .ratio = 16, .steps = 400, .has_trace = false}});
  std::vector<ExampleReport> arms;
  for (int seed = 1; seed <= 3; ++seed) arms.push_back({.path = absl::StrCat("q/", seed), .seed = seed});
  for (int seed = 1; seed <= 3; ++seed) arms.push_back({.path = absl::StrCat("r/", seed), .seed = seed, .ratio = 8});
  Write(directory, "arms", arms);
  Write(directory, "seeds", {{.path = "x/s1", .seed = 1}, {.path = "x/s2", .seed = 2}, {.path = "x/s3", .seed = 3}});
}
