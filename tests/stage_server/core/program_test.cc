#include "stage_server/core/program.h"

#include <gtest/gtest.h>

#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

absl::StatusOr<Program> Parse(const std::string& actions, std::uint32_t window,
                              v1::DefineProgram::Mode mode = v1::DefineProgram::TRAIN) {
  return Program::FromProto(MakeProgram(3, actions, window, mode));
}

TEST(Program, TakesBothSchedulesAndCountsWhatIsInFlight) {
  const auto gpipe = Parse("F0 F1 F2 B0 B1 B2", 3);
  ASSERT_TRUE(gpipe.ok()) << gpipe.status();
  EXPECT_EQ(gpipe->micro_batches, 3u);
  EXPECT_EQ(gpipe->most_in_flight, 3u);
  const auto one_f_one_b = Parse("F0 F1 B0 F2 B1 B2", 2);
  ASSERT_TRUE(one_f_one_b.ok()) << one_f_one_b.status();
  EXPECT_EQ(one_f_one_b->most_in_flight, 2u);
  ASSERT_EQ(one_f_one_b->actions.size(), 6u);
  EXPECT_TRUE(one_f_one_b->actions[2].backward);
  EXPECT_EQ(one_f_one_b->actions[2].micro_batch, 0u);
}

TEST(Program, EvaluationHasForwardsOnlyAndNoLimitInFlight) {
  const auto program = Parse("F0 F1 F2", 1, v1::DefineProgram::EVALUATE);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->evaluation);
  EXPECT_EQ(program->micro_batches, 3u);
}

TEST(Program, RefusesWhatIsMalformedAndSaysWhere) {
  const struct {
    const char* actions;
    std::uint32_t window;
    v1::DefineProgram::Mode mode;
    const char* says;
  } cases[] = {
      {"", 1, v1::DefineProgram::TRAIN, "no actions"},
      {"F0 B0", 0, v1::DefineProgram::TRAIN, "window is 0"},
      {"F0 B0", 1, v1::DefineProgram::MODE_UNSPECIFIED, "mode"},
      {"B0 F0", 1, v1::DefineProgram::TRAIN, "action 0 takes micro-batch 0 backward before its forward"},
      {"F0 B0 B0", 1, v1::DefineProgram::TRAIN, "action 2 takes micro-batch 0 backward where 1 is next"},
      {"F0 F0 B0", 2, v1::DefineProgram::TRAIN, "action 1 forwards micro-batch 0 where 1 is next"},
      {"F0 F1 B1 B0", 2, v1::DefineProgram::TRAIN, "action 2 takes micro-batch 1 backward where 0 is next"},
      {"F0 F2 B0 B2", 2, v1::DefineProgram::TRAIN, "action 1 forwards micro-batch 2 where 1 is next"},
      {"F0 F1 B0", 2, v1::DefineProgram::TRAIN, "micro-batch 1 is forwarded and never taken backward"},
      {"F0 F1 B0 B1", 1, v1::DefineProgram::TRAIN, "action 1 puts 2 micro-batches in flight, its window is 1"},
      {"F0 B0", 1, v1::DefineProgram::EVALUATE, "action 1 is a backward"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<Program> program = Parse(c.actions, c.window, c.mode);
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << c.actions;
    EXPECT_NE(program.status().message().find(c.says), absl::string_view::npos) << program.status();
    EXPECT_NE(program.status().message().find("program 3"), absl::string_view::npos) << program.status();
  }
}

TEST(Program, RefusesAnActionOfNoKindAndAbsurdlyManyActions) {
  v1::DefineProgram definition = MakeProgram(1, "F0 B0", 1);
  definition.mutable_actions(1)->set_kind(v1::Action::KIND_UNSPECIFIED);
  EXPECT_EQ(Program::FromProto(definition).status().code(), absl::StatusCode::kInvalidArgument);
  definition = MakeProgram(1, "", 1, v1::DefineProgram::EVALUATE);
  for (int i = 0; i <= kMaxActions; ++i) {
    v1::Action* action = definition.add_actions();
    action->set_kind(v1::Action::FORWARD);
    action->set_micro_batch(static_cast<std::uint32_t>(i));
  }
  EXPECT_EQ(Program::FromProto(definition).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resbm::stage_server::testing
