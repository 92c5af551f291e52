#include "coordinator/cli/run_command.h"

#include <unistd.h>

#include <climits>
#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/cli/exit_code.h"
#include "proto/base/mutex.h"
#include "proto/base/signal_watcher.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

// Beside this program, as installed; or where Bazel puts it.
std::string FindStageServer() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
  const std::filesystem::path folder =
      n > 0 ? std::filesystem::path(std::string(self, static_cast<std::size_t>(n))).parent_path() : ".";
  for (const std::filesystem::path& candidate :
       {folder / "stage_server", folder / "../../stage_server/stage_server"}) {
    if (access(candidate.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(candidate)) {
      return candidate.lexically_normal();
    }
  }
  return folder / "stage_server";
}

absl::Status CheckPrecision(v1::Precision precision, const Fleet& fleet) {
  if (precision != v1::FP16) return absl::OkStatus();
  for (int s = 0; s < fleet.size(); ++s) {
    const std::string& device = fleet.description(s).device();
    if (absl::StartsWith(device, "cuda")) continue;
    return absl::InvalidArgumentError(absl::StrCat("precision: FP16 is of CUDA devices only, stage ", s,
                                                   " computes on ", device, "; use BF16 there"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> StageAddresses(const FleetOptions& options, const v1::Job& job) {
  if (!options.stages.empty()) return options.stages;
  std::vector<std::string> addresses;
  if (options.local_stages > 0) return addresses;
  for (const v1::Partition::Stage& stage : job.partition().stage()) {
    if (stage.has_address()) addresses.push_back(stage.address());
  }
  return addresses;
}

absl::StatusOr<std::unique_ptr<Fleet>> MakeFleet(const FleetOptions& options, const RunSetup& setup,
                                                 const std::vector<std::string>& addresses,
                                                 const std::string& log_directory) {
  const absl::Duration timeout = absl::Seconds(setup.job.timeouts().connect_seconds());
  const auto checked = [&](absl::StatusOr<std::unique_ptr<Fleet>> fleet) -> absl::StatusOr<std::unique_ptr<Fleet>> {
    RESBM_RETURN_IF_ERROR(fleet.status());
    RESBM_RETURN_IF_ERROR(CheckPrecision(setup.job.precision(), **fleet));
    return fleet;
  };
  if (!addresses.empty()) return checked(Fleet::Connect(addresses, timeout));
  LocalStages::Options local;
  local.binary = options.stage_server.empty() ? FindStageServer() : options.stage_server;
  local.log_directory = log_directory;
  local.count = setup.stages();
  local.device = options.device;
  return checked(Fleet::StartLocal(local, timeout));
}

struct SignalledRun::Impl {
  Mutex mutex;
  RunHost* host RESBM_GUARDED_BY(mutex) = nullptr;
  int signals RESBM_GUARDED_BY(mutex) = 0;
  std::unique_ptr<SignalWatcher> watcher;

  void OnSignal(int count) RESBM_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    signals = count;
    if (host == nullptr) {
      // Nothing runs yet, or no more: local stage servers notice that their parent is gone.
      if (count > 1) _exit(kExitInterrupted);
      return;
    }
    if (count == 1) {
      std::cerr << "\nresbm: interrupted; the step in work ends, then the weights are saved. "
                   "Interrupt again to stop at once."
                << std::endl;
      host->Interrupt();
    } else {
      host->Stop();
    }
  }
};

SignalledRun::SignalledRun() : impl_(std::make_unique<Impl>()) {
  impl_->watcher = std::make_unique<SignalWatcher>([impl = impl_.get()](int count) { impl->OnSignal(count); });
}

SignalledRun::~SignalledRun() { impl_->watcher.reset(); }

absl::Status SignalledRun::Run(RunHost* host) {
  {
    MutexLock lock(impl_->mutex);
    if (impl_->signals > 0) return absl::CancelledError("interrupted before the run began");
    impl_->host = host;
  }
  const absl::Status status = host->Run();
  MutexLock lock(impl_->mutex);
  impl_->host = nullptr;
  return status;
}

bool SignalledRun::interrupted() const {
  MutexLock lock(impl_->mutex);
  return impl_->signals > 0;
}

int ExitCodeOfFleet(const absl::Status& status) {
  const bool usage = status.code() == absl::StatusCode::kNotFound || status.code() == absl::StatusCode::kInvalidArgument;
  return usage ? kExitUsage : kExitPeer;
}

}  // namespace resbm::coordinator
