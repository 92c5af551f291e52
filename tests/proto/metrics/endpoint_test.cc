// Over real HTTP.
#include "proto/metrics/endpoint.h"

#include <atomic>

#include <gtest/gtest.h>

#include "proto/metrics/metric.h"
#include "tests/support/http_get.h"

namespace resbm::metrics {
namespace {

using resbm::testing::HttpGet;
using resbm::testing::ParseSamples;

constexpr Metric kCatalogue[] = {{"a_scrapes_total", Kind::kCounter, "who", "Scrapes."}};

TEST(Endpoint, EveryScrapeAsksForTheValuesAnew) {
  std::atomic<int> scrapes = 0;
  const auto endpoint = Endpoint::Listen("127.0.0.1:0", [&] {
    Families families(kCatalogue);
    families.Set("a_scrapes_total", ++scrapes, {"a \"quoted\" name"});
    return families.Take();
  });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_NE((*endpoint)->address(), "127.0.0.1:0");
  for (int i = 1; i <= 3; ++i) {
    const auto reply = HttpGet((*endpoint)->address(), "/metrics");
    ASSERT_EQ(reply.code, 200);
    EXPECT_NE(reply.head.find("text/plain"), std::string::npos) << reply.head;
    EXPECT_EQ(ParseSamples(reply.body)["a_scrapes_total{who=\"a \\\"quoted\\\" name\"}"], i) << reply.body;
  }
  EXPECT_EQ(HttpGet((*endpoint)->address(), "/etc/passwd").code, 404);
}

TEST(Endpoint, ATakenPortIsAnErrorThatSaysWhatToDo) {
  const auto nothing = [] { return std::vector<prometheus::MetricFamily>(); };
  const auto first = Endpoint::Listen("127.0.0.1:0", nothing);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Endpoint::Listen((*first)->address(), nothing);
  ASSERT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("the port is taken"), absl::string_view::npos);
  EXPECT_NE(second.status().message().find((*first)->address()), absl::string_view::npos);
  EXPECT_EQ(HttpGet((*first)->address(), "/metrics").code, 200) << "the first is not disturbed";
}

TEST(Endpoint, ThePortIsFreeAgainAfterIt) {
  const auto nothing = [] { return std::vector<prometheus::MetricFamily>(); };
  auto endpoint = Endpoint::Listen("127.0.0.1:0", nothing);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string address = (*endpoint)->address();
  endpoint->reset();
  EXPECT_EQ(HttpGet(address, "/metrics").code, 0);
  EXPECT_TRUE(Endpoint::Listen(address, nothing).ok());
}

TEST(Endpoint, AnAddressThatIsNoneOrOpenToOthersIsRefused) {
  EXPECT_EQ(Endpoint::Listen("9100", nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckAddress("--metrics-listen", "127.0.0.1:0", false).ok());
  EXPECT_TRUE(CheckAddress("--metrics-listen", "0.0.0.0:9100", true).ok());
  const absl::Status open = CheckAddress("--metrics-listen", "0.0.0.0:9100", false);
  EXPECT_EQ(open.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(open.message().find("--insecure"), absl::string_view::npos) << open;
  EXPECT_EQ(CheckAddress("--metrics-listen", "host", true).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resbm::metrics
