#include "stage_server/server_options.h"

#include <gtest/gtest.h>

namespace resbm::stage_server::testing {
namespace {

absl::Status CheckListen(const std::string& listen, bool insecure = false) {
  ServerOptions options;
  options.listen = listen;
  options.insecure = insecure;
  return Check(options);
}

TEST(ServerOptions, LoopbackNeedsNoFlagAndEverythingElseDoes) {
  for (const char* loopback : {"127.0.0.1:50051", "127.1.2.3:0", "localhost:7001", "[::1]:7001"}) {
    EXPECT_TRUE(CheckListen(loopback).ok()) << loopback;
  }
  for (const char* open : {"0.0.0.0:50051", "10.0.0.1:7001", "[::]:7001", "host-a:7001"}) {
    const absl::Status status = CheckListen(open);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << open;
    EXPECT_NE(status.message().find("--insecure"), absl::string_view::npos) << status;
    EXPECT_TRUE(CheckListen(open, /*insecure=*/true).ok()) << open;
  }
}

TEST(ServerOptions, AnAddressThatIsNoneIsRefused) {
  for (const char* bad : {"", "50051", ":50051", "localhost", "localhost:", "localhost:x", "localhost:65536",
                          "localhost:-1", "::1:7001"}) {
    EXPECT_EQ(CheckListen(bad, /*insecure=*/true).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  ServerOptions options;
  options.advertise = "host-a:0";
  EXPECT_EQ(Check(options).code(), absl::StatusCode::kInvalidArgument);
  options.advertise = "host-a:7001";
  EXPECT_TRUE(Check(options).ok());
}

}  // namespace
}  // namespace resbm::stage_server::testing
