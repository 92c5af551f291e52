// Tests of the programs as users run them: processes, real gRPC on loopback, small data.
#ifndef RESBM_TESTS_SUPPORT_PROGRAM_TEST_H_
#define RESBM_TESTS_SUPPORT_PROGRAM_TEST_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/subprocess.h"

namespace resbm::testing {

using Strings = std::vector<std::string>;

// A folder of its own with a `stage_server` in it, whose processes can be counted: none may be left at the end. The
// programs come from the environment (program_test.bzl).
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  void TearDown() override;

  // "folder/name".
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Path(const std::string& run_dir, const std::string& name) const { return Path(run_dir) + "/" + name; }

  // `resbm` with these arguments. With "--local-stages", those are our stage server, on the CPU.
  Strings Resbm(Strings arguments) const;
  Finished Run(const Strings& arguments) const { return RunProgram(Resbm(arguments)); }
  // "--set" before each.
  static Strings Sets(const Strings& fields);
  // Trains the job at `job` into the run directory of that name.
  Strings TrainOf(const std::string& job, const std::string& run_dir, int stages, const Strings& sets = {}) const;

  // Our stage server on a free port of loopback, on the CPU; where it listens.
  std::unique_ptr<Subprocess> StartStage(std::string* address, const Strings& more = {}) const;
  int StageServers() const { return CountProcesses(stage_server_); }

  // Of a run directory.
  std::string Weights(const std::string& run_dir) const { return ReadFileOrDie(Path(run_dir, "model.safetensors")); }
  std::map<std::string, std::string> Tensors(const std::string& run_dir) const;
  nlohmann::json Summary(const std::string& run_dir) const;
  // Of metrics.jsonl, whole lines only: the last may be in the writing.
  std::vector<nlohmann::json> Rows(const std::string& run_dir) const;
  // Until so many steps are committed; false if the process ended before.
  bool WaitForRows(Subprocess* run, const std::string& run_dir, std::size_t rows) const;

  const std::string folder_, resbm_, stage_server_;
};

// The same with images to train on (small_images.h).
class ImageProgramTest : public ProgramTest {
 protected:
  ImageProgramTest(int train, int test);

  // Writes a job with `more` appended to the small model's.
  void WriteJob(const std::string& more, const std::string& name = "job.textproto");

  const std::string data_;
};

}  // namespace resbm::testing

#endif  // RESBM_TESTS_SUPPORT_PROGRAM_TEST_H_
