#include "proto/base/host_port.h"

#include <gtest/gtest.h>

namespace resbm {
namespace {

TEST(HostPort, HostAndPortComeApartAndTogether) {
  for (const char* text : {"127.0.0.1:50051", "host-a:7001", "[::1]:0", "0.0.0.0:65535"}) {
    const auto address = ParseHostPort(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(ToString(*address), text);
  }
  EXPECT_EQ(ParseHostPort("[::1]:7001")->host, "::1");
  EXPECT_EQ(ParseHostPort("[::1]:7001")->port, 7001);
}

TEST(HostPort, WhatIsNoneIsRefused) {
  for (const char* bad : {"", ":", "50051", ":50051", "localhost", "localhost:", "localhost:x", "localhost:65536",
                          "localhost:-1", "::1:7001"}) {
    EXPECT_EQ(ParseHostPort(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(HostPort, LoopbackIsKnown) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "::1"}) EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "host-a", ""}) EXPECT_FALSE(IsLoopback(host)) << host;
}

}  // namespace
}  // namespace resbm
