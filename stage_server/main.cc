// stage_server: one stage of a pipeline as a process.
#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "model/stage_model.h"
#include "proto/base/clock.h"
#include "proto/base/event.h"
#include "proto/base/signal_watcher.h"
#include "proto/base/status.h"
#include "proto/base/version.h"
#include "proto/metrics/endpoint.h"
#include "proto/metrics/process_metrics.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/tensor_frame.h"
#include "stage_server/compute/model_computer.h"
#include "stage_server/data/local_data.h"
#include "stage_server/data/local_data_computer.h"
#include "stage_server/grpc/control_service.h"
#include "stage_server/grpc/link_adapters.h"
#include "stage_server/host/stage.h"
#include "stage_server/machine_info.h"
#include "stage_server/metrics/stage_families.h"
#include "stage_server/server_options.h"
#include "stage_server/service_manager.h"

namespace resbm::stage_server {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);
// The stage's thread answers within milliseconds; Prometheus itself gives up after 10 s.
constexpr absl::Duration kScrapePatience = absl::Seconds(5);
// A service of the health service: Readiness. The empty name is whether the process lives.
constexpr char kReadyService[] = "ready";

// spdlog's pattern gives the time and the level.
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%e %l %v";
constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kStep: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Set before any other thread, and constant afterwards.
bool log_as_json = false;

void Log(const LogEvent& event) {
  const spdlog::level::level_enum level = LevelOf(event.level);
  if (spdlog::should_log(level)) spdlog::log(level, log_as_json ? JsonFields(event) : TextLine(event));
}

void SetUpLogs(const ServerOptions& options) {
  log_as_json = options.log_format == "json";
  spdlog::set_default_logger(spdlog::stderr_logger_mt("stage_server"));
  spdlog::set_pattern(log_as_json ? kJsonPattern : kTextPattern);
  spdlog::set_level(options.verbose ? spdlog::level::debug : spdlog::level::info);
  // What gRPC has to say is said better by those who get its statuses.
  gpr_set_log_function([](gpr_log_func_args* args) { Log(LogEvent(LogLevel::kStep, "grpc").With("message", args->message)); });
}

// systemd waits for READY=1 and ends a process that never says it: not getting through is worth a line in the log.
void TellServiceManager(absl::string_view state) {
  if (const absl::Status told = NotifyServiceManager(state); !told.ok()) {
    Log(LogEvent(LogLevel::kWarning, "service_manager").With("state", std::string(state)).With("error", told.ToString()));
  }
}

int Usage(const absl::Status& status) {
  std::cerr << "stage_server: " << status.message() << std::endl;
  return kExitUsage;
}

v1::DescribeReply Identity(const ServerOptions& options, const std::string& device, std::uint64_t incarnation) {
  v1::DescribeReply identity;
  identity.set_min_protocol_version(wire::kProtocolVersion);
  identity.set_max_protocol_version(wire::kProtocolVersion);
  identity.set_incarnation(incarnation);
  identity.set_device(device);
  identity.set_device_name(DeviceName(device));
  identity.set_server_version(kVersion);
  identity.set_libtorch_version(model::StageModel::LibTorchVersion());
  identity.set_cpu_capability(model::StageModel::CpuCapability());
  identity.set_max_threads(options.threads);
  identity.set_memory_limit_bytes(options.memory_limit_bytes);
  identity.set_advertised_address(options.advertise);
  return identity;
}

int Serve(const ServerOptions& options) {
  Event stop;
  // Before any other thread, so that the signals are blocked in all of them.
  SignalWatcher signals([&](int count) {
    if (count > 1) std::_Exit(128 + SIGTERM);
    stop.Set();
  });
  if (options.exit_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  SetUpLogs(options);

  const absl::StatusOr<std::string> device = model::StageModel::ResolveDevice(options.device);
  if (!device.ok()) return Usage(absl::Status(device.status().code(), absl::StrCat("--device: ", device.status().message())));

  StageOptions stage_options;
  stage_options.machine.incarnation = NewIncarnation();
  stage_options.machine.max_threads = options.threads;
  stage_options.machine.memory_limit_bytes = options.memory_limit_bytes;
  stage_options.log = Log;
  // Null until the server runs.
  std::atomic<grpc::HealthCheckServiceInterface*> health = nullptr;
  stage_options.on_ready_changed = [&health](bool ready) {
    if (grpc::HealthCheckServiceInterface* service = health.load()) service->SetServingStatus(kReadyService, ready);
  };
  LocalData local_data(options.data);
  stage_options.local_data = &local_data;
  GrpcDiallers diallers(grpc::InsecureChannelCredentials());
  Stage stage(stage_options, Clock::Real(),
              std::make_unique<LocalDataComputer>(
                  std::make_unique<ModelComputer>(ModelComputer::Options{*device, options.memory_limit_bytes}), &local_data),
              &diallers);
  StageLinkDirectory directory(&stage);
  const v1::DescribeReply identity = Identity(options, *device, stage_options.machine.incarnation);
  ControlService control(&stage, identity);
  const std::unique_ptr<grpc::Service> links = wire::MakeLinkService(&directory);

  std::unique_ptr<metrics::Endpoint> metrics_endpoint;
  if (!options.metrics_listen.empty()) {
    auto listening = metrics::Endpoint::Listen(options.metrics_listen, [&stage, &identity] {
      const std::optional<StageSnapshot> snapshot = stage.Snapshot(kScrapePatience);
      std::vector<prometheus::MetricFamily> families = StageFamilies(identity, snapshot.has_value() ? &*snapshot : nullptr);
      for (prometheus::MetricFamily& family : metrics::ProcessFamilies()) families.push_back(std::move(family));
      return families;
    });
    if (!listening.ok()) return Usage(Annotate(listening.status(), "--metrics-listen"));
    metrics_endpoint = *std::move(listening);
  }

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  wire::ConfigureServer(builder);
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&control);
  builder.RegisterService(links.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return Usage(absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen,
                     ": the port is taken, or the address is not this machine's; stop the other server, or give "
                     "another --listen (port 0 takes a free one)")));
  }
  const std::string address = absl::StrCat(options.listen.substr(0, options.listen.rfind(':')), ":", port);
  server->GetHealthCheckService()->SetServingStatus(kReadyService, true);
  health = server->GetHealthCheckService();
  LogEvent listening(LogLevel::kInfo, "listening");
  listening.With("address", address);
  if (metrics_endpoint != nullptr) listening.With("metrics", metrics_endpoint->address());
  if (!options.advertise.empty()) listening.With("advertised", options.advertise);
  listening.With("device", *device)
      .With("version", kVersion)
      .With("libtorch", identity.libtorch_version())
      .With("cpu_capability", identity.cpu_capability());
  Log(listening);
  // On stdout: scripts wait for it.
  std::cout << "LISTENING " << address << std::endl;
  if (metrics_endpoint != nullptr) std::cout << "METRICS " << metrics_endpoint->address() << std::endl;
  TellServiceManager("READY=1");

  stop.Wait();
  Log(LogEvent(LogLevel::kInfo, "stopping"));
  TellServiceManager("STOPPING=1");
  // First whatever waits is answered, so that no call keeps the server from ending.
  stage.Shutdown(absl::UnavailableError("the stage server stops"));
  server->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kGoodbye));
  // A computation cannot be interrupted, and its result concerns nobody any more; the web server of /metrics looks only
  // every two seconds whether it is to end.
  if (!stage.WaitUntilIdle(kGoodbye) || metrics_endpoint != nullptr) {
    spdlog::default_logger()->flush();
    std::_Exit(kExitOk);
  }
  return kExitOk;
}

}  // namespace
}  // namespace resbm::stage_server

int main(int argc, char** argv) {
  using namespace resbm::stage_server;  // NOLINT: main only
  CLI::App app("Computes one stage of a pipeline for a coordinator (resbm).", "stage_server");
  app.set_version_flag("--version", resbm::VersionText("stage_server"));
  app.footer("Example:\n  stage_server --listen 127.0.0.1:7001 &\n  stage_server --listen 127.0.0.1:7002 &\n"
             "  resbm train --job job.textproto --stages 127.0.0.1:7001,127.0.0.1:7002");
  ServerOptions options;
  AddTo(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" of code 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (const absl::Status status = Check(options); !status.ok()) return Usage(status);
  return Serve(options);
}
