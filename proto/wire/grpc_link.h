// The thin gRPC side of a link: StageLink.Exchange streams whose messages go between the transport's
// buffers and a LinkEndpoint without a copy on the way out and with one on the way in.
#ifndef RESBM_PROTO_WIRE_GRPC_LINK_H_
#define RESBM_PROTO_WIRE_GRPC_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/resbm/v1/link.grpc.pb.h"
#include "proto/wire/link_endpoint.h"

namespace resbm::wire {

// Channel arguments that every client of ours uses: keepalive 20 s + 20 s, its own subchannel pool, no
// limit on pings, message size limits.
grpc::ChannelArguments DefaultChannelArguments();
// A channel with these arguments; each has its own connection.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           std::shared_ptr<grpc::ChannelCredentials> credentials);
// The server's side of the same: keepalive, messages of at most 4 MiB, at most 64 streams a connection, and a
// taken port is an error (BuildAndStart returns null).
void ConfigureServer(grpc::ServerBuilder& builder);

// Dials `address` for `endpoint` until Stop or until the endpoint has ended: reconnects with a growing pause
// (0.1 s .. 5 s) whenever the stream has ended. Why a stream ended or could not be had reaches the endpoint's
// listener as OnDisconnected, with the address; as OnError where the peer refused the link itself
// (FAILED_PRECONDITION). Callbacks run on gRPC's threads.
class LinkDialler {
 public:
  LinkDialler(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials,
              std::shared_ptr<LinkEndpoint> endpoint);
  ~LinkDialler();  // Stop
  void Start();
  // No new dial; the present stream is cancelled; returns when its callbacks are over: so not from a
  // listener's call.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Finds the endpoint that a Hello is for. Called on gRPC's threads; must not block.
class LinkDirectory {
 public:
  virtual ~LinkDirectory() = default;
  // Calls `found` once, now or later (a Hello newer than the stage's fence is held until the fence arrives
  // or the caller's patience ends), with the endpoint, FAILED_PRECONDITION (old fence, wrong job, key,
  // version or link: says which; the dialler gives up), or UNAVAILABLE (worth another dial).
  virtual void Find(const v1::Hello& hello,
                    std::function<void(absl::StatusOr<std::shared_ptr<LinkEndpoint>>)> found) = 0;
};

// Accepts Exchange streams. `directory` outlives the server. A stream ends with DEADLINE_EXCEEDED without a
// Hello in time; INVALID_ARGUMENT if what it carries is no LinkMessage or begins with no Hello;
// FAILED_PRECONDITION for another protocol version; ABORTED for an older dial than the newest; or as the directory
// or the endpoint says. Other streams go on.
std::unique_ptr<grpc::Service> MakeLinkService(LinkDirectory* directory,
                                               absl::Duration hello_timeout = absl::Seconds(10));

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_GRPC_LINK_H_
