#include <utility>

#include <grpc/grpc.h>

#include "proto/wire/grpc_link.h"

namespace resbm::wire {
namespace {

constexpr int kKeepaliveMs = 20'000;
// A piece of a shard is 1 MiB, a chunk of a tensor 256 KiB.
constexpr int kMaxMessageBytes = 4 * 1024 * 1024;
constexpr int kConnectMs = 10'000;
constexpr int kFirstReconnectMs = 100;
constexpr int kLongestReconnectMs = 5'000;
// A peer has one connection for control and one a link; more streams on one are nobody of ours.
constexpr int kMaxStreams = 64;

// gRPC 1.51 tears its library down with the last channel or server, and may wait there for 10 s, the longest
// poll of a thread of its own. A process that has begun to use it keeps it.
void KeepLibrary() {
  static const bool kKept = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(kKept);
}

}  // namespace

grpc::ChannelArguments DefaultChannelArguments() {
  KeepLibrary();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Control must not share a connection with tensors: it would wait behind them.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A stream that gRPC itself began again would be a second dial with the number of the first.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  // Despite its name the time that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return arguments;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           std::shared_ptr<grpc::ChannelCredentials> credentials) {
  return grpc::CreateCustomChannel(address, std::move(credentials), DefaultChannelArguments());
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  KeepLibrary();
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 2);
  // Two servers on one port would share its connections silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
}

}  // namespace resbm::wire
