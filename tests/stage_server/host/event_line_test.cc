#include "stage_server/host/event_line.h"

#include <gtest/gtest.h>

namespace resbm::stage_server::testing {
namespace {

TEST(EventLine, TextIsOneLineOfWordsWhateverIsInIt) {
  LogEvent event(LogLevel::kWarning, "link_disconnected");
  event.With("job", "run-1").With("stage", 1u).With("seconds", 0.25);
  event.With("error", "UNAVAILABLE: \"gone\"\nreally=\x1b[31m").With("empty", "");
  EXPECT_EQ(TextLine(event),
            "link_disconnected job=run-1 stage=1 seconds=0.25 "
            "error=\"UNAVAILABLE: \\\"gone\\\"\\nreally=\\u001b[31m\" empty=\"\"");
}

TEST(EventLine, JsonHoldsTheSameFieldsAndReplacesWhatIsNoText) {
  LogEvent event(LogLevel::kInfo, "attached");
  event.With("job", "a \"b\"\n").With("step", std::uint64_t{7}).With("bad", std::string("\xff\xfe"));
  const std::string line = "{" + JsonFields(event) + "}";
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["event"], "attached");
  EXPECT_EQ(json["job"], "a \"b\"\n");
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["bad"], "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(JsonFields(LogEvent(LogLevel::kInfo, "stopping")), "\"event\":\"stopping\"");
}

TEST(EventLine, AStepWithNonFiniteValuesIsAWarningThatSaysWhere) {
  v1::ControlEvent event;
  event.mutable_computed()->mutable_attempt()->set_step(3);
  EXPECT_EQ(ToLogEvent(event)->level, LogLevel::kStep);
  v1::NonFinite* count = event.mutable_computed()->add_non_finite();
  count->set_where("group0.1 activations");
  count->set_count(2);
  EXPECT_EQ(ToLogEvent(event)->level, LogLevel::kWarning);
  EXPECT_EQ(ToLogEvent(event)->fields["non_finite"], "2 in group0.1 activations");
}

TEST(EventLine, AFailureSaysPhaseCodeAndBlame) {
  v1::ControlEvent event;
  event.mutable_failed()->set_code(static_cast<std::uint32_t>(absl::StatusCode::kDataLoss));
  event.mutable_failed()->set_phase("RUNNING");
  event.mutable_failed()->set_blame(v1::UP);
  event.mutable_failed()->set_text("stage 1: checksum");
  EXPECT_EQ(ToLogEvent(event)->level, LogLevel::kError);
  EXPECT_EQ(TextLine(*ToLogEvent(event)), "failed phase=RUNNING code=DATA_LOSS blame=UP error=\"stage 1: checksum\"");
}

TEST(EventLine, ProgressIsNotLogged) {
  v1::ControlEvent event;
  event.mutable_progress();
  EXPECT_FALSE(ToLogEvent(event).has_value());
}

}  // namespace
}  // namespace resbm::stage_server::testing
