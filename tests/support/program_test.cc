#include "tests/support/program_test.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "proto/base/safetensors.h"
#include "tests/support/small_images.h"

namespace resbm::testing {

ProgramTest::ProgramTest()
    : folder_(NewFolder("program")), resbm_(RunfileFromEnvironment("RESBM")), stage_server_(folder_ + "/stage_server") {
  std::filesystem::create_symlink(RunfileFromEnvironment("STAGE_SERVER"), stage_server_);
}

void ProgramTest::TearDown() { EXPECT_EQ(StageServers(), 0); }

Strings ProgramTest::Resbm(Strings arguments) const {
  const bool local = std::find(arguments.begin(), arguments.end(), "--local-stages") != arguments.end();
  arguments.insert(arguments.begin(), resbm_);
  if (local) arguments.insert(arguments.end(), {"--stage-server", stage_server_, "--device", "cpu"});
  return arguments;
}

Strings ProgramTest::Sets(const Strings& fields) {
  Strings arguments;
  for (const std::string& field : fields) arguments.insert(arguments.end(), {"--set", field});
  return arguments;
}

Strings ProgramTest::TrainOf(const std::string& job, const std::string& run_dir, int stages,
                             const Strings& sets) const {
  Strings arguments = {
      "train", "--job", Path(job), "--run-dir", Path(run_dir), "--local-stages", std::to_string(stages)};
  const Strings more = Sets(sets);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Resbm(arguments);
}

std::unique_ptr<Subprocess> ProgramTest::StartStage(std::string* address, const Strings& more) const {
  Strings argv = {stage_server_, "--listen", "127.0.0.1:0", "--device", "cpu"};
  argv.insert(argv.end(), more.begin(), more.end());
  auto stage = std::make_unique<Subprocess>(argv);
  *address = stage->WaitForLine("LISTENING ");
  EXPECT_NE(*address, "") << stage->Stderr();
  return stage;
}

std::map<std::string, std::string> ProgramTest::Tensors(const std::string& run_dir) const {
  const std::string bytes = Weights(run_dir);
  const SafetensorsFile file = *ParseSafetensors(bytes);
  std::map<std::string, std::string> tensors;
  for (const SafetensorsEntry& tensor : file.tensors) tensors[tensor.name] = std::string(tensor.data);
  return tensors;
}

nlohmann::json ProgramTest::Summary(const std::string& run_dir) const {
  return nlohmann::json::parse(ReadFileOrDie(Path(run_dir, "summary.json")));
}

std::vector<nlohmann::json> ProgramTest::Rows(const std::string& run_dir) const {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(ReadFileOrDie(Path(run_dir, "metrics.jsonl")));
  for (std::string line; std::getline(lines, line) && !lines.eof();) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

bool ProgramTest::WaitForRows(Subprocess* run, const std::string& run_dir, std::size_t rows) const {
  bool alive = true;
  WaitUntil([&] {
    alive = run->running();
    return !alive || (std::filesystem::exists(Path(run_dir, "metrics.jsonl")) && Rows(run_dir).size() >= rows);
  });
  EXPECT_TRUE(alive) << run->Stderr();
  return alive;
}

ImageProgramTest::ImageProgramTest(int train, int test) : data_(WriteSmallMnist(train, test)) {}

void ImageProgramTest::WriteJob(const std::string& more, const std::string& name) {
  WriteFileOrDie(Path(name), SmallMnistJob(data_, more));
}

}  // namespace resbm::testing
