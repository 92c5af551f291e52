// Steps: what is expected, in which order it computes, what it sends and reports.

#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

// "ACTIVATION 0 [2, 4]"
std::string Text(const v1::TensorHeader& header) {
  std::string text = absl::StrCat(v1::TensorKind_Name(header.kind()), " ", header.step() + header.evaluation(), "/",
                                  header.micro_batch(), " [");
  for (int i = 0; i < header.dims_size(); ++i) text += absl::StrCat(i > 0 ? ", " : "", header.dims(i));
  return text + "]";
}
template <typename Headers>
std::vector<std::string> Texts(const Headers& headers) {
  std::vector<std::string> texts;
  for (const auto& header : headers) texts.push_back(Text(header));
  return texts;
}
using Lines = std::vector<std::string>;

TEST(Step, AMiddleStageExpectsActivationsAndGradientsInProgramOrder) {
  Harness h;
  h.Attach();
  h.Resume(MakeInit(MakeSpec(1, 3, /*window=*/2)));
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 F1 B0 F2 B1 B2", 2));
  h.Begin(MakeBegin(h.fence(), 1, 100, 1, {3, 3, 2}, {9, 9}));
  EXPECT_EQ(Texts(h.links().up().expected), (Lines{"ACTIVATION 1/0 [3, 4]", "ACTIVATION 1/1 [3, 4]", "ACTIVATION 1/2 [2, 4]"}));
  EXPECT_EQ(Texts(h.links().down().expected), (Lines{"GRADIENT 1/0 [3, 4]", "GRADIENT 1/1 [3, 4]", "GRADIENT 1/2 [2, 4]"}));
  const v1::TensorHeader& header = h.links().up().expected[0];
  EXPECT_EQ(header.dtype(), v1::FLOAT32);
  EXPECT_EQ(header.codec(), v1::CODEC_FP32);
  EXPECT_EQ(header.tensor_count(), 1u);
  EXPECT_EQ(header.payload_bytes(), 48u);
  EXPECT_EQ(h.links().up().limit, 2u);
  EXPECT_TRUE(h.links().up().hard);
  EXPECT_EQ(h.links().down().limit, 2u);
  EXPECT_TRUE(h.links().down().hard);
}

TEST(Step, TheOuterLinksExpectInputsAndTargetsAndTheNextStepsToo) {
  Harness h(0, 1);
  h.Attach();
  h.Init();
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 B0 F1 B1", 1));
  h.Define(MakeProgram(2, "F0 B0", 1));
  h.Begin(MakeBegin(h.fence(), 1, 100, 1, {3, 2}, {1}));
  EXPECT_EQ(Texts(h.links().up().expected), (Lines{"INPUT 1/0 [3, 4]", "INPUT 1/1 [2, 4]", "INPUT 2/0 [1, 4]"}));
  EXPECT_EQ(Texts(h.links().down().expected), (Lines{"TARGET 1/0 [3]", "TARGET 1/1 [2]", "TARGET 2/0 [1]"}));
  EXPECT_EQ(h.links().up().expected[0].dtype(), v1::UINT8);
  EXPECT_EQ(h.links().down().expected[0].dtype(), v1::INT64);
  EXPECT_EQ(h.links().up().limit, 3u);
  h.Settle();
  ASSERT_EQ(h.state(), State::kComputed);
  // What was prefetched is not expected twice.
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 2, {1}, {5, 5});
  h.Commit(commit);
  h.FinishWork();
  EXPECT_EQ(Texts(h.links().up().expected), (Lines{"INPUT 3/0 [5, 4]", "INPUT 3/1 [5, 4]"}));
  EXPECT_EQ(Texts(h.links().down().expected), (Lines{"TARGET 3/0 [5]", "TARGET 3/1 [5]"}));
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kComputed);
  EXPECT_EQ(h.last_event().computed().weight(), 1);
}

TEST(Step, ABeginThatDiffersFromWhatPrefetchAnnouncedNamesBoth) {
  Harness h(0, 2);
  h.Ready();
  h.Begin(MakeBegin(h.fence(), 1, 100, 1, {2, 2}, {2, 2}));
  h.Settle();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 1, {2, 1});
  h.Commit(commit);
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(h.last_failure().text().find("[2, 1] samples; prefetch announced [2, 2]"), std::string::npos);
}

TEST(Step, ComputesInProgramOrderAsTensorsArriveAndSendsAtOnce) {
  Harness h;
  h.Attach();
  h.Init();
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 F1 B0 F2 B1 B2", 2));
  h.TakeWorks();
  h.Begin(MakeBegin(h.fence(), 1, 100, 1, {2, 2, 2}));
  EXPECT_FALSE(h.busy());
  h.Deliver(End::kUp, 1);
  h.Deliver(End::kUp, 2);
  h.Deliver(End::kUp, 3);
  h.FinishAllWork();
  // F2 has its tensor and waits for its turn.
  EXPECT_EQ(h.TakeWorks(), "Forward 0, Forward 1");
  ASSERT_EQ(h.links().down().sent.size(), 2u);
  EXPECT_EQ(Text(h.links().down().sent[1].first), "ACTIVATION 1/1 [2, 4]");
  EXPECT_EQ(h.links().up().consumed, 2);
  h.Deliver(End::kDown, 4);
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Backward 0, Forward 2");
  ASSERT_EQ(h.links().up().sent.size(), 1u);
  EXPECT_EQ(Text(h.links().up().sent[0].first), "GRADIENT 1/0 [2, 4]");
  // Its gradient is back: nobody asks for that activation again.
  EXPECT_EQ(h.links().down().released_micro_batches, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{{1, 0}}));
  h.Deliver(End::kDown, 5);
  h.Deliver(End::kDown, 6);
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Backward 1, Backward 2, Finish");
  EXPECT_EQ(h.state(), State::kComputed);
  EXPECT_EQ(h.computer().most_live_graphs(), 2u);
}

TEST(Step, TheResultDoesNotDependOnWhenTensorsArrive) {
  std::uint64_t gradients[2];
  for (int early : {0, 1}) {
    Harness h;
    h.Attach();
    h.Init();
    h.FinishAllWork();
    h.Define(MakeProgram(1, "F0 F1 B0 F2 B1 B2", 2));
    h.Begin(MakeBegin(h.fence(), 1, 100, 1, {2, 2, 2}));
    if (early) h.DeliverAll();
    h.Settle();
    gradients[early] = h.computer().gradients();
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(Step, TheLastStageNeedsInputAndTargetAndReportsItsSums) {
  Harness h(1, 2);
  h.Ready();
  h.Begin(1, 100);
  h.Deliver(End::kUp);
  EXPECT_FALSE(h.busy());
  h.Deliver(End::kDown);
  EXPECT_TRUE(h.busy());
  h.Settle();
  const v1::Computed& computed = h.last_event().computed();
  EXPECT_EQ(computed.weight(), 4);
  EXPECT_EQ(computed.metric_sums_size(), 1);
  EXPECT_EQ(computed.squared_norms_size(), 2);
  EXPECT_TRUE(h.links().down().sent.empty());
  EXPECT_EQ(h.links().up().sent.size(), 2u);
}

TEST(Step, IsComputedOnlyWhenEverythingWasHandedToBothLinks) {
  Harness h;
  h.Running();
  h.links().up().all_sent = false;
  h.Settle();
  EXPECT_EQ(h.state(), State::kRunning);
  h.machine().OnLinkChanged();
  EXPECT_EQ(h.state(), State::kRunning);
  h.links().up().all_sent = true;
  h.machine().OnLinkChanged();
  EXPECT_EQ(h.state(), State::kComputed);
  const v1::Computed& computed = h.last_event().computed();
  EXPECT_EQ(computed.base_state_id(), 100u);
  EXPECT_EQ(computed.attempt().step(), 1u);
}

TEST(Step, ReportsTimesTrafficAndMemory) {
  Harness h;
  h.Running();
  h.clock().Advance(absl::Seconds(3));  // waits for the first activation
  h.Deliver(End::kUp);
  h.Deliver(End::kUp);
  h.FinishAllWork();
  h.clock().Advance(absl::Seconds(5));  // and for the first gradient
  h.Settle();
  const v1::Computed& computed = h.last_event().computed();
  EXPECT_DOUBLE_EQ(computed.times().waiting_up_seconds(), 3);
  EXPECT_DOUBLE_EQ(computed.times().waiting_down_seconds(), 5);
  EXPECT_DOUBLE_EQ(computed.times().forward_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(computed.times().backward_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(computed.times().total_seconds(), 9);
  EXPECT_EQ(computed.bytes().down_payload(), 64u);
  EXPECT_EQ(computed.bytes().up_payload(), 64u);
  EXPECT_EQ(computed.bytes().down_messages(), 2u);
  EXPECT_EQ(computed.bytes().up_metadata(), 100u);
  EXPECT_EQ(computed.memory().weights_bytes(), 80u);
  EXPECT_EQ(computed.memory().peak_bytes(), 1000u + 32u);  // and one activation in the inbox
  EXPECT_EQ(computed.memory().peak_bytes(), computed.memory().weights_bytes() + computed.memory().optimizer_bytes() +
                                                computed.memory().buffers_bytes() + computed.memory().activations_bytes());
}

TEST(Step, TrafficIsOfTheStepAndNotOfThoseBefore) {
  Harness h;
  h.Computed();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 1, {2, 2});
  h.Commit(commit);
  h.Settle();
  EXPECT_EQ(h.last_event().computed().attempt().step(), 2u);
  EXPECT_EQ(h.last_event().computed().bytes().down_payload(), 64u);
  EXPECT_DOUBLE_EQ(h.last_event().computed().times().commit_seconds(), 0.25);
}

TEST(Step, ProgressIsSaidEverySecondAndNamesWhomItWaitsFor) {
  Harness h;
  h.Running();
  h.TakeEvents();
  h.machine().OnTick();
  EXPECT_EQ(h.TakeEvents(), "");
  h.links().up().connected = false;
  h.clock().Advance(absl::Seconds(1));
  h.machine().OnTick();
  ASSERT_TRUE(h.last_event().has_progress());
  const v1::Progress up = h.last_event().progress();
  EXPECT_EQ(up.step(), 1u);
  EXPECT_EQ(up.waiting_for().direction(), v1::UP);
  EXPECT_EQ(up.waiting_for().micro_batch(), 0u);
  EXPECT_DOUBLE_EQ(up.waiting_for().seconds(), 1);
  EXPECT_FALSE(up.waiting_for().link_connected());
  h.Deliver(End::kUp);
  h.clock().Advance(absl::Seconds(1));
  h.machine().OnTick();
  EXPECT_FALSE(h.last_event().progress().has_waiting_for()) << "it computes";
  h.Deliver(End::kUp);
  h.FinishAllWork();
  h.clock().Advance(absl::Seconds(1));
  h.machine().OnTick();
  const v1::Progress down = h.last_event().progress();
  EXPECT_EQ(down.forwards(), 2u);
  EXPECT_EQ(down.backwards(), 0u);
  EXPECT_EQ(down.waiting_for().direction(), v1::DOWN);
  EXPECT_TRUE(down.waiting_for().link_connected());
  h.Settle();
  h.TakeEvents();
  h.clock().Advance(absl::Seconds(5));
  h.machine().OnTick();
  EXPECT_EQ(h.TakeEvents(), "") << "a computed stage has nothing to say";
}

TEST(Step, AShapeThatChangesFromStepToStepIsRight) {
  Harness h;
  h.Computed();
  h.Define(MakeProgram(4, "F0 B0", 1));
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 4, {7});
  h.Commit(commit);
  h.FinishAllWork();
  EXPECT_EQ(Texts(h.links().up().expected), (Lines{"ACTIVATION 2/0 [7, 4]"}));
  h.Settle();
  EXPECT_EQ(h.state(), State::kComputed);
  EXPECT_EQ(Text(h.links().up().sent.back().first), "GRADIENT 2/0 [7, 4]");
}

TEST(Step, AComputedTensorOfAnotherShapeThanTheSpecsNamesBoth) {
  Harness h;
  h.Attach();
  v1::StageSpec spec = h.Spec();
  spec.mutable_boundaries(1)->mutable_wire(0)->set_shape(0, 5);
  h.computer().set_width(4);  // whatever the spec says
  h.Resume(MakeInit(spec));
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 F1 B0 B1", 2));
  h.Begin(1, 100);
  h.Settle();
  EXPECT_EQ(h.state(), State::kFailed);
  EXPECT_EQ(h.last_failure().blame(), v1::LOCAL);
  EXPECT_NE(h.last_failure().text().find("is [2, 4]"), std::string::npos) << h.last_failure().text();
  EXPECT_NE(h.last_failure().text().find("spec says [2, 5]"), std::string::npos) << h.last_failure().text();
  EXPECT_TRUE(h.links().down().sent.empty());
}

TEST(Step, ABadBeginIsRefusedAndTheStageStaysReady) {
  const struct {
    const char* what;
    void (*spoil)(v1::Begin*);
    absl::StatusCode code;
  } cases[] = {
      {"another base", [](v1::Begin* b) { b->set_base_state_id(5); }, absl::StatusCode::kFailedPrecondition},
      {"a step too far", [](v1::Begin* b) { b->mutable_attempt()->set_step(2); }, absl::StatusCode::kInvalidArgument},
      {"a step again", [](v1::Begin* b) { b->mutable_attempt()->set_step(0); }, absl::StatusCode::kInvalidArgument},
      {"an attempt of another fence", [](v1::Begin* b) { b->mutable_attempt()->mutable_fence()->set_generation(9); },
       absl::StatusCode::kInvalidArgument},
      {"an unknown program", [](v1::Begin* b) { b->set_program_id(77); }, absl::StatusCode::kFailedPrecondition},
      {"a program for evaluation", [](v1::Begin* b) { b->set_program_id(2); }, absl::StatusCode::kInvalidArgument},
      {"too few micro-batches", [](v1::Begin* b) { b->mutable_micro_batches()->RemoveLast(); }, absl::StatusCode::kInvalidArgument},
      {"negative samples", [](v1::Begin* b) { b->mutable_micro_batches(0)->set_samples(-1); }, absl::StatusCode::kInvalidArgument},
      {"overflowing samples", [](v1::Begin* b) { b->mutable_micro_batches(1)->set_samples(std::int64_t{1} << 62); },
       absl::StatusCode::kInvalidArgument},
      {"samples beyond the cap", [](v1::Begin* b) { b->mutable_micro_batches(1)->set_samples(std::int64_t{1} << 40); },
       absl::StatusCode::kInvalidArgument},
  };
  for (const auto& c : cases) {
    Harness h;
    h.Ready();
    v1::Begin begin = MakeBegin(h.fence(), 1, 100, 1, {2, 2});
    c.spoil(&begin);
    h.Begin(begin);
    EXPECT_EQ(h.state(), State::kReady) << c.what;
    ASSERT_TRUE(h.last_event().has_failed()) << c.what;
    EXPECT_EQ(Code(h.last_failure()), c.code) << c.what << ": " << h.last_failure().text();
    EXPECT_EQ(h.last_failure().phase(), "READY");
    EXPECT_TRUE(h.links().up().expected.empty()) << c.what;
    h.Begin(1, 100);
    EXPECT_EQ(h.state(), State::kRunning) << c.what;
  }
}

TEST(Step, AProgramBeyondTheStagesWindowIsRefused) {
  Harness h;
  h.Attach();
  h.Resume(MakeInit(MakeSpec(1, 3, /*window=*/1)));
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 F1 B0 B1", 2));
  h.Begin(1, 100);
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kInvalidArgument);
}

TEST(Step, AnErrorWhileComputingKeepsTheWeightsAndBlamesThisStage) {
  Harness h;
  h.Running();
  const auto weights = h.computer().weights();
  h.computer().FailNext("Forward 1", absl::ResourceExhaustedError("out of memory; make micro-batches smaller"));
  h.Settle();
  EXPECT_EQ(h.state(), State::kFailed);
  const v1::Failed& failed = h.last_failure();
  EXPECT_EQ(Code(failed), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(failed.phase(), "RUNNING");
  EXPECT_EQ(failed.micro_batch(), 1u);
  EXPECT_EQ(failed.blame(), v1::LOCAL);
  EXPECT_EQ(failed.attempt().step(), 1u);
  EXPECT_NE(failed.text().find("smaller"), std::string::npos);
  EXPECT_EQ(h.computer().weights(), weights);
  EXPECT_EQ(h.computer().live_graphs(), 0u) << "memory is given back at once";
  h.Attach(1, 2);
  h.Keep(100, 0);
  EXPECT_EQ(h.state(), State::kReady);
}

TEST(Step, ALinksErrorBlamesItsDirectionAndTheRunningCallsResultIsThrownAway) {
  Harness h;
  h.Running();
  h.Deliver(End::kUp);
  h.machine().OnLinkError(h.fence(), End::kDown, absl::InvalidArgumentError("dims[0] is 3, expected 2"));
  EXPECT_EQ(h.state(), State::kFailed);
  EXPECT_EQ(h.last_failure().blame(), v1::DOWN);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kInvalidArgument);
  h.FinishAllWork();
  EXPECT_TRUE(h.links().down().sent.empty());
  EXPECT_EQ(h.state(), State::kFailed);
}

TEST(Step, AnEndThatReadsOurCopyOfTheDataBlamesUs) {
  for (const bool inputs : {true, false}) {
    Harness h(0, 1);
    h.Attach();
    v1::StageSpec spec = MakeSpec(0, 1);
    spec.mutable_local_data()->set_inputs(inputs);
    h.Resume(MakeInit(spec));
    h.FinishAllWork();
    EXPECT_EQ(h.links().setup().local_inputs, inputs);
    EXPECT_FALSE(h.links().setup().local_targets);
    h.machine().OnLinkError(h.fence(), End::kUp, absl::InvalidArgumentError("local data: another shape"));
    EXPECT_EQ(h.last_failure().blame(), inputs ? v1::LOCAL : v1::UP);
  }
}

TEST(Step, TensorsOfAnOldFenceDoNotReachCompute) {
  Harness h;
  h.Running();
  v1::TensorHeader header = h.links().up().expected.front();
  *header.mutable_fence() = MakeFence(1, 0);
  h.machine().OnTensor(End::kUp, header, MakeTensor(header, 1));
  EXPECT_FALSE(h.busy());
}

TEST(Step, NonFiniteValuesAreCountedByTensorAndParameter) {
  Harness h;
  h.Running();
  h.computer().ReportNonFinite("Forward 0", {"fc1 activation", 3});
  h.computer().ReportNonFinite("Forward 1", {"fc1 activation", 2});
  h.computer().ReportNonFinite("Backward 1", {"fc0 gradient", 1});
  h.Settle();
  ASSERT_EQ(h.state(), State::kComputed);
  const v1::Computed& computed = h.last_event().computed();
  ASSERT_EQ(computed.non_finite_size(), 2);
  EXPECT_EQ(computed.non_finite(0).where(), "fc0 gradient");
  EXPECT_EQ(computed.non_finite(0).count(), 1u);
  EXPECT_EQ(computed.non_finite(1).where(), "fc1 activation");
  EXPECT_EQ(computed.non_finite(1).count(), 5u);
}

TEST(Step, AReceivedTensorsNonFiniteCountIsItsSendersToReport) {
  Harness h;
  h.Running();
  v1::TensorHeader header = h.links().up().expected.front();
  h.links().up().expected.pop_front();
  *header.mutable_fence() = h.fence();
  header.set_non_finite(9);
  h.machine().OnTensor(End::kUp, header, MakeTensor(header, 1));
  h.Settle();
  EXPECT_EQ(h.last_event().computed().non_finite_size(), 0);
}

}  // namespace
}  // namespace resbm::stage_server::testing
