// Tells a service manager (systemd, Type=notify) how this process is.
//
// The protocol is one datagram to the socket in $NOTIFY_SOCKET, and documented as stable (sd_notify(3)). libsystemd
// would bring its five libraries of compression and cryptography into every package for it.
#ifndef RESBM_STAGE_SERVER_SERVICE_MANAGER_H_
#define RESBM_STAGE_SERVER_SERVICE_MANAGER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace resbm::stage_server {

// `state`: "READY=1", "STOPPING=1". Does nothing where no service manager listens ($NOTIFY_SOCKET is not set). Any
// thread. INVALID_ARGUMENT: $NOTIFY_SOCKET is no address of a Unix socket. Other codes: the system's reason.
absl::Status NotifyServiceManager(absl::string_view state);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_SERVICE_MANAGER_H_
