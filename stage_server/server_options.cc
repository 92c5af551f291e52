#include "stage_server/server_options.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "proto/base/host_port.h"
#include "proto/base/status.h"
#include "proto/metrics/endpoint.h"

namespace resbm::stage_server {
void AddTo(CLI::App* app, ServerOptions* options) {
  app->add_option("--listen", options->listen, "Where to listen; port 0 takes a free one and prints it")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_flag("--insecure", options->insecure,
                "Allow to listen where other machines reach it, without encryption or authentication");
  app->add_option("--advertise", options->advertise,
                  "Where neighbouring stages reach it, if not where the coordinator does")
      ->type_name("HOST:PORT");
  app->add_option("--metrics-listen", options->metrics_listen,
                  "Where Prometheus reads /metrics; port 0 takes a free one. Not given: nowhere")
      ->type_name("HOST:PORT");
  app->add_option("--log-format", options->log_format, "text, or json: one object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_option("--data", options->data, "Copies of data, for jobs with data.local")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  app->add_option("--device", options->device, "auto, cpu or cuda:N")->type_name("DEVICE")->capture_default_str();
  app->add_option("--threads", options->threads, "Refuse jobs that ask for more threads; 0 = none")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  app->add_option("--memory-limit", options->memory_limit_bytes, "Refuse jobs that need more memory; 0 = none")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app->add_flag("--exit-with-parent", options->exit_with_parent, "End when the process that started it ends");
  app->add_flag("-v,--verbose", options->verbose, "Log every step");
}

absl::Status Check(const ServerOptions& options) {
  const absl::StatusOr<HostPort> listen = ParseHostPort(options.listen);
  if (!listen.ok()) return absl::InvalidArgumentError(absl::StrCat("--listen ", listen.status().message()));
  if (!IsLoopback(listen->host) && !options.insecure) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen,
                     " can be reached by other machines, and this release has no TLS: listen on 127.0.0.1, or add "
                     "--insecure if you trust that network"));
  }
  if (!options.metrics_listen.empty()) {
    RESBM_RETURN_IF_ERROR(metrics::CheckAddress("--metrics-listen", options.metrics_listen, options.insecure));
  }
  if (!options.advertise.empty()) {
    const absl::StatusOr<HostPort> advertise = ParseHostPort(options.advertise);
    if (!advertise.ok()) return absl::InvalidArgumentError(absl::StrCat("--advertise ", advertise.status().message()));
    if (advertise->port == 0) return absl::InvalidArgumentError("--advertise needs the port");
  }
  return absl::OkStatus();
}

}  // namespace resbm::stage_server
