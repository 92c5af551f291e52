#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "proto/base/clock.h"

namespace resbm::testing {
namespace {

std::string Temporary() {
  const char* folder = std::getenv("TEST_TMPDIR");
  return folder != nullptr ? folder : "/tmp";
}

std::string Unique(const std::string& name) {
  static std::atomic<int> counter = 0;
  return Temporary() + "/" + name + "-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace

void Nap() { absl::SleepFor(absl::Milliseconds(5)); }
absl::Duration Monotonic() { return Clock::Real().Now(); }

Subprocess::Subprocess(std::vector<std::string> argv, std::vector<std::string> environment)
    : out_(Unique("stdout")), err_(Unique("stderr")) {
  std::vector<char*> arguments;
  for (std::string& a : argv) arguments.push_back(a.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::string& e : environment) putenv(e.data());
    dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
}

Subprocess::~Subprocess() {
  if (running()) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

bool Subprocess::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == 0) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  pid_ = -1;
  return false;
}

int Subprocess::Wait(absl::Duration timeout) {
  if (!WaitUntil([this] { return !running(); }, timeout)) {
    ADD_FAILURE() << "still running after " << timeout << "\nstdout: " << Stdout() << "\nstderr: " << Stderr();
    Signal(SIGKILL);
    WaitUntil([this] { return !running(); });
  }
  return status_;
}

void Subprocess::Signal(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

std::string Subprocess::Stdout() const { return Read(out_); }
std::string Subprocess::Stderr() const { return Read(err_); }

std::string Subprocess::WaitForLine(const std::string& prefix, absl::Duration timeout) {
  std::string rest;
  WaitUntil(
      [&] {
        const bool alive = running();
        std::istringstream lines(Stdout());
        std::string line;
        while (std::getline(lines, line) && !lines.eof()) {
          if (line.rfind(prefix, 0) == 0) {
            rest = line.substr(prefix.size());
            return true;
          }
        }
        return !alive;
      },
      timeout);
  return rest;
}

Finished RunProgram(std::vector<std::string> argv, std::vector<std::string> environment) {
  Subprocess process(std::move(argv), std::move(environment));
  Finished finished;
  finished.code = process.Wait();
  finished.out = process.Stdout();
  finished.err = process.Stderr();
  return finished;
}

std::string RunfileFromEnvironment(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) {
    ADD_FAILURE() << variable << " is not set";
    return "";
  }
  if (const char* folder = std::getenv("TEST_SRCDIR")) {
    const char* workspace = std::getenv("TEST_WORKSPACE");
    const auto file = std::filesystem::path(folder) / (workspace != nullptr ? workspace : "") / path;
    if (std::filesystem::exists(file)) return file;
  }
  return std::filesystem::absolute(path);
}

std::string NewFolder(const std::string& name) {
  const std::string folder = Unique(name);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string ReadFileOrDie(const std::string& path) {
  EXPECT_TRUE(std::filesystem::exists(path)) << path;
  return Read(path);
}

void WriteFileOrDie(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  EXPECT_TRUE(out.good()) << path;
}

int CountProcesses(const std::string& path) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string command = Read(entry.path() / "cmdline");
    if (command.c_str() == path) ++count;
  }
  return count;
}

}  // namespace resbm::testing
