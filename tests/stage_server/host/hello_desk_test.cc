#include "stage_server/host/hello_desk.h"

#include <gtest/gtest.h>

#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

struct NoListener : wire::LinkEndpoint::Listener {
  void OnTensor(wire::ReceivedTensor) override {}
  void OnAllSent() override {}
  void OnConnected() override {}
  void OnDisconnected(const absl::Status&) override {}
  void OnError(const absl::Status&) override {}
};

class HelloDeskTest : public ::testing::Test {
 protected:
  HelloDeskTest() {
    for (End end : kEnds) {
      wire::LinkEndpoint::Options options;
      options.link = end == End::kUp ? 1 : 2;
      endpoints_[static_cast<int>(end)] = std::make_shared<wire::LinkEndpoint>(options, &listener_);
    }
  }
  HelloDesk::Situation Now() {
    return {&tenancy_, links_open_, [this](End end) { return endpoints_[static_cast<int>(end)]; }};
  }
  void Attach(std::uint64_t generation) { tenancy_.Accept(1, MakeFence(1, generation), MakeAttach(1, 3)); }
  v1::Hello Hello(std::uint32_t link, std::uint64_t generation) {
    v1::Hello hello;
    hello.set_protocol_version(wire::kProtocolVersion);
    hello.set_job_id("job-a");
    *hello.mutable_fence() = MakeFence(1, generation);
    hello.set_link(link);
    return hello;
  }
  void Arrive(const v1::Hello& hello) {
    answer_.reset();
    desk_.Arrive(hello, [this](auto found) { answer_ = std::move(found); }, Now(), now_);
  }
  void LookAgain() { desk_.LookAgain(Now(), now_); }

  NoListener listener_;
  std::shared_ptr<wire::LinkEndpoint> endpoints_[2];
  Tenancy tenancy_;
  bool links_open_ = false;
  absl::Duration now_ = absl::Hours(1);
  HelloDesk desk_{absl::Seconds(30)};
  std::optional<absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>>> answer_;
};

TEST_F(HelloDeskTest, FindsTheLinkByItsNumber) {
  Attach(1);
  links_open_ = true;
  Arrive(Hello(1, 1));
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ(**answer_, endpoints_[0]);
  Arrive(Hello(2, 1));
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ(**answer_, endpoints_[1]);
}

TEST_F(HelloDeskTest, AHelloNewerThanTheFenceWaitsForAttachAndResume) {
  Attach(1);
  links_open_ = true;
  Arrive(Hello(1, 2));
  EXPECT_FALSE(answer_.has_value());
  Attach(2);
  links_open_ = false;
  LookAgain();
  EXPECT_FALSE(answer_.has_value());
  links_open_ = true;
  LookAgain();
  ASSERT_TRUE(answer_.has_value());
  EXPECT_TRUE(answer_->ok());
  EXPECT_EQ(desk_.waiting(), 0u);
}

TEST_F(HelloDeskTest, AFreeStageLetsItWaitToo) {
  Arrive(Hello(1, 1));
  EXPECT_FALSE(answer_.has_value());
  Attach(1);
  links_open_ = true;
  LookAgain();
  EXPECT_TRUE(answer_.has_value() && answer_->ok());
}

TEST_F(HelloDeskTest, PatienceEndsAfterThirtySecondsAndSaysWhereTheStageIs) {
  Attach(1);
  Arrive(Hello(1, 2));
  now_ += absl::Seconds(29);
  LookAgain();
  EXPECT_FALSE(answer_.has_value());
  now_ += absl::Seconds(1);
  LookAgain();
  ASSERT_TRUE(answer_.has_value());
  EXPECT_EQ(answer_->status().code(), absl::StatusCode::kUnavailable) << "its dialler must not give up";
  EXPECT_NE(answer_->status().message().find("fence 1.2 waited 30s; the stage is at fence 1.1"), absl::string_view::npos)
      << answer_->status();
}

TEST_F(HelloDeskTest, OldFencesOtherJobsVersionsAndLinksAreRefusedAtOnce) {
  Attach(3);
  links_open_ = true;
  const auto expect_refused = [&](const v1::Hello& hello, const char* says) {
    Arrive(hello);
    ASSERT_TRUE(answer_.has_value()) << says;
    EXPECT_EQ(answer_->status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(answer_->status().message().find(says), absl::string_view::npos) << answer_->status();
  };
  expect_refused(Hello(1, 2), "obeys the newer 1.3");
  expect_refused(Hello(3, 3), "stage 1 has links 1 and 2");
  v1::Hello hello = Hello(1, 3);
  hello.set_job_id("job-b");
  expect_refused(hello, "belongs to job job-a");
  hello = Hello(1, 3);
  hello.set_protocol_version(wire::kProtocolVersion + 1);
  expect_refused(hello, "protocol version is 2, this stage server speaks 1");
}

TEST_F(HelloDeskTest, ACrowdIsSentAway) {
  for (std::size_t i = 0; i < kMaxWaitingHellos; ++i) Arrive(Hello(1, 5));
  EXPECT_EQ(desk_.waiting(), kMaxWaitingHellos);
  Arrive(Hello(1, 5));
  EXPECT_EQ(answer_->status().code(), absl::StatusCode::kUnavailable);
  desk_.Close(absl::UnavailableError("stops"));
  EXPECT_EQ(desk_.waiting(), 0u);
  EXPECT_EQ(answer_->status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace resbm::stage_server::testing
