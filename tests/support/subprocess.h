// Programs as a test starts them: with output captured, and gone when the test is.
#ifndef RESBM_TESTS_SUPPORT_SUBPROCESS_H_
#define RESBM_TESTS_SUPPORT_SUBPROCESS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace resbm::testing {

// Killed by the destructor, and by the kernel should the test die.
class Subprocess {
 public:
  // argv[0] is a path. stdout and stderr go to files under TEST_TMPDIR. `environment`: NAME=VALUE, added.
  explicit Subprocess(std::vector<std::string> argv, std::vector<std::string> environment = {});
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  // Exit status, or -signal. Kills it (and fails the test) after `timeout`.
  int Wait(absl::Duration timeout = absl::Seconds(120));
  void Signal(int signal);
  bool running();
  int pid() const { return pid_; }
  // So far.
  std::string Stdout() const;
  std::string Stderr() const;
  // Waits until stdout has a whole line that begins with `prefix`; the rest of it, or "" after `timeout` or when
  // it ended.
  std::string WaitForLine(const std::string& prefix, absl::Duration timeout = absl::Seconds(60));

 private:
  int pid_ = -1;
  int status_ = 0;
  std::string out_, err_;
};

struct Finished {
  int code = 0;
  std::string out, err;
};
Finished RunProgram(std::vector<std::string> argv, std::vector<std::string> environment = {});

// An absolute path for a label's $(rootpath), given in the environment variable `variable`.
std::string RunfileFromEnvironment(const char* variable);

// A new empty folder under TEST_TMPDIR.
std::string NewFolder(const std::string& name);

std::string ReadFileOrDie(const std::string& path);
void WriteFileOrDie(const std::string& path, const std::string& bytes);

// How many processes run whose argv[0] is `path`.
int CountProcesses(const std::string& path);

// Asks `done` every few milliseconds until it says true; false after `timeout`.
template <typename Done>
bool WaitUntil(Done done, absl::Duration timeout = absl::Seconds(60));

void Nap();
absl::Duration Monotonic();

template <typename Done>
bool WaitUntil(Done done, absl::Duration timeout) {
  const absl::Duration end = Monotonic() + timeout;
  while (!done()) {
    if (Monotonic() > end) return false;
    Nap();
  }
  return true;
}

}  // namespace resbm::testing

#endif  // RESBM_TESTS_SUPPORT_SUBPROCESS_H_
