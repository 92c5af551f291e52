#include "coordinator/run/local_stages.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"

namespace resbm::coordinator {
namespace {

constexpr absl::string_view kListening = "LISTENING ";
constexpr absl::Duration kPatience = absl::Seconds(5);

std::string LastLine(const std::string& path) {
  std::ifstream in(path);
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "(its log is empty)" : last;
}

// One line from the pipe, or as much as came until the deadline or the end.
std::string ReadLine(int fd, absl::Duration timeout) {
  const absl::Duration deadline = Clock::Real().Now() + timeout;
  std::string line;
  for (;;) {
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) return line;
    pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    char c;
    const ssize_t n = read(fd, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || c == '\n') return line;
    line += c;
  }
}

absl::StatusOr<int> Spawn(const std::vector<std::string>& arguments, int stdout_fd, int stderr_fd) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError(absl::StrFormat("cannot start a process: %s", strerror(errno)));
  if (pid == 0) {
    // Only async-signal-safe calls. Here and not in the new program: a parent that dies before it gets there would
    // leave it behind; one that died before the prctl is not the parent any more.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    // A group of its own: Ctrl-C at the terminal is for the coordinator, which
    // still needs its stages to finish the step.
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(stdout_fd, STDOUT_FILENO);
    dup2(stderr_fd, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  return pid;
}

// Of a process that has closed its stdout; nullopt: it goes on, or a signal has ended it.
std::optional<int> ExitCodeOf(pid_t pid) {
  const absl::Duration deadline = Clock::Real().Now() + absl::Seconds(1);
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::Real().Now() > deadline) return std::nullopt;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return WIFEXITED(status) ? std::optional<int>(WEXITSTATUS(status)) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStages>> LocalStages::Start(const Options& options) {
  if (access(options.binary.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrFormat("no stage server at %s (%s); give --stage-server PATH", options.binary, strerror(errno)));
  }
  auto stages = std::unique_ptr<LocalStages>(new LocalStages());
  std::vector<int> pipes;
  absl::Status error;
  for (int k = 0; k < options.count && error.ok(); ++k) {
    Process process;
    process.log = absl::StrFormat("%s/stage-%d.log", options.log_directory, k);
    const int log = open(process.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int ends[2] = {-1, -1};
    if (log < 0 || pipe2(ends, O_CLOEXEC) != 0) {
      error = absl::InternalError(absl::StrFormat("cannot write %s: %s", process.log, strerror(errno)));
      if (log >= 0) close(log);
      break;
    }
    auto pid = Spawn({options.binary, "--listen", "127.0.0.1:0", "--device", options.device}, ends[1], log);
    close(ends[1]);
    close(log);
    pipes.push_back(ends[0]);
    if (!pid.ok()) {
      error = pid.status();
      break;
    }
    process.pid = *pid;
    stages->processes_.push_back(process);
  }
  // They start side by side; each says where it listens.
  for (std::size_t k = 0; k < stages->processes_.size() && error.ok(); ++k) {
    const std::string line = ReadLine(pipes[k], options.start_timeout);
    if (absl::StartsWith(line, kListening)) {
      stages->addresses_.push_back(line.substr(kListening.size()));
    } else {
      const Process process = stages->processes_[k];
      const std::optional<int> code = ExitCodeOf(process.pid);
      if (code.has_value()) stages->processes_.erase(stages->processes_.begin() + static_cast<std::ptrdiff_t>(k));
      // What it was asked for is wrong, --device for one: its own line says it all.
      error = code == 2 ? absl::InvalidArgumentError(LastLine(process.log))
                        : absl::UnavailableError(absl::StrFormat("local stage server %d did not start: %s (see %s)", k,
                                                                 LastLine(process.log), process.log));
    }
  }
  for (int fd : pipes) close(fd);
  if (!error.ok()) return error;
  return stages;
}

LocalStages::~LocalStages() {
  for (const Process& p : processes_) kill(p.pid, SIGTERM);
  const absl::Duration deadline = Clock::Real().Now() + kPatience;
  for (const Process& p : processes_) {
    while (waitpid(p.pid, nullptr, WNOHANG) == 0) {
      if (Clock::Real().Now() > deadline) {
        kill(p.pid, SIGKILL);
        waitpid(p.pid, nullptr, 0);
        break;
      }
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
}

}  // namespace resbm::coordinator
