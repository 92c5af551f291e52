// The command line of stage_server.
#ifndef RESBM_STAGE_SERVER_SERVER_OPTIONS_H_
#define RESBM_STAGE_SERVER_SERVER_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace resbm::stage_server {

struct ServerOptions {
  std::string listen = "127.0.0.1:50051";
  bool insecure = false;
  std::string advertise;        // empty: where the coordinator reached it
  std::string metrics_listen;   // empty: no /metrics
  std::string log_format = "text";  // or json
  std::string data;             // folder of copies of data; empty: none
  std::string device = "auto";  // auto, cpu, cuda:N
  std::uint32_t threads = 0;    // 0 = what the job asks for
  std::uint64_t memory_limit_bytes = 0;  // 0 = none
  bool exit_with_parent = false;
  bool verbose = false;
};

void AddTo(CLI::App* app, ServerOptions* options);

// INVALID_ARGUMENT: an address that is none, or one that others can reach without --insecure.
absl::Status Check(const ServerOptions& options);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_SERVER_OPTIONS_H_
