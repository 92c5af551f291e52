// Resume, and weights in pieces.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "stage_server/core/shard.h"
#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

TEST(Resume, InitLoadsAndReportsStateParametersAndMemory) {
  Harness h;
  h.Attach();
  h.Init(100);
  EXPECT_EQ(h.TakeWorks(), "Load");
  EXPECT_EQ(h.state(), State::kLoading);
  h.FinishAllWork();
  const v1::Ready& ready = h.last_event().ready();
  EXPECT_EQ(ready.state_id(), 100u);
  EXPECT_EQ(ready.step(), 0u);
  ASSERT_EQ(ready.parameter_names_size(), 2);
  EXPECT_EQ(ready.parameter_names(0), "fc1.weight");
  EXPECT_EQ(ready.parameter_sizes(1), 4u);
  EXPECT_EQ(ready.memory().weights_bytes(), 80u);
}

TEST(Resume, OpensBothLinksWithKeyFenceAndNeighbours) {
  Harness h;
  h.Attach(2, 3);
  v1::StageSpec spec = h.Spec();
  spec.mutable_down()->set_address("host-b:1");
  h.Resume(MakeInit(spec));
  EXPECT_TRUE(h.links().open());
  const LinkSetup& setup = h.links().setup();
  EXPECT_EQ(setup.job_id, "job-a");
  EXPECT_EQ(setup.fence.generation(), 3u);
  EXPECT_EQ(setup.link_key, "0123456789abcdef");
  EXPECT_EQ(setup.stage, 1u);
  EXPECT_EQ(setup.up.address(), "");
  EXPECT_EQ(setup.down.address(), "host-b:1");
}

TEST(Resume, RefusesABadSpecBeforeAnythingIsTouched) {
  const struct {
    const char* what;
    void (*spoil)(v1::Resume*);
    absl::StatusCode code;
    const char* says;
  } cases[] = {
      {"no kind", [](v1::Resume* r) { r->clear_kind(); }, absl::StatusCode::kInvalidArgument, "no known kind"},
      {"state_id 0", [](v1::Resume* r) { r->set_state_id(0); }, absl::StatusCode::kInvalidArgument, "state_id is 0"},
      {"another stage", [](v1::Resume* r) { r->mutable_stage()->set_stage(2); }, absl::StatusCode::kInvalidArgument,
       "Attach was for stage 1 of 3"},
      {"no threads", [](v1::Resume* r) { r->mutable_stage()->set_threads(0); }, absl::StatusCode::kInvalidArgument, "threads is 0"},
      {"too many threads", [](v1::Resume* r) { r->mutable_stage()->set_threads(3); }, absl::StatusCode::kFailedPrecondition,
       "asks for 3 threads, this stage server was started with --threads 2"},
      {"no layers", [](v1::Resume* r) { r->mutable_stage()->clear_layers(); }, absl::StatusCode::kInvalidArgument, "no layers"},
      {"no boundary before", [](v1::Resume* r) { r->mutable_stage()->mutable_boundaries()->DeleteSubrange(0, 1); },
       absl::StatusCode::kInvalidArgument, "no boundary before"},
      {"no boundary after", [](v1::Resume* r) { r->mutable_stage()->mutable_boundaries()->DeleteSubrange(1, 1); },
       absl::StatusCode::kInvalidArgument, "no boundary after"},
      {"a bad codec", [](v1::Resume* r) { r->mutable_stage()->mutable_boundaries(0)->mutable_wire(0)->set_gradient_codec(v1::CODEC_RAW); },
       absl::StatusCode::kInvalidArgument, "gradient_codec"},
      {"a bad shape", [](v1::Resume* r) { r->mutable_stage()->mutable_boundaries(1)->mutable_wire(0)->set_shape(0, -4); },
       absl::StatusCode::kInvalidArgument, "shape: [-4] has a dimension below 1"},
      {"a short key", [](v1::Resume* r) { r->mutable_stage()->set_link_key("short"); }, absl::StatusCode::kInvalidArgument,
       "link_key has 5 bytes"},
      {"windows of other stages", [](v1::Resume* r) { r->mutable_stage()->add_windows(1); }, absl::StatusCode::kInvalidArgument,
       "1 windows for 3 stages"},
      {"too much memory", [](v1::Resume* r) { r->mutable_stage()->mutable_layers(0)->set_parameters(1000); },
       absl::StatusCode::kResourceExhausted, "need 12000 bytes, --memory-limit is 10000"},
      {"parameters that overflow",
       [](v1::Resume* r) { r->mutable_stage()->mutable_layers(0)->set_parameters(std::numeric_limits<std::uint64_t>::max()); },
       absl::StatusCode::kResourceExhausted, "--memory-limit"},
      {"APPLY", [](v1::Resume* r) { r->mutable_apply(); }, absl::StatusCode::kUnimplemented, "APPLY is not implemented"},
      {"RESTORE with optimizer",
       [](v1::Resume* r) {
         r->mutable_restore()->set_optimizer(true);
         r->mutable_restore()->set_bytes(8);
       },
       absl::StatusCode::kUnimplemented, "optimizer's state is not implemented"},
      {"RESTORE of nothing", [](v1::Resume* r) { r->mutable_restore(); }, absl::StatusCode::kInvalidArgument, "a shard of 0 bytes"},
      {"RESTORE beyond the cap", [](v1::Resume* r) { r->mutable_restore()->set_bytes(1 << 20); }, absl::StatusCode::kInvalidArgument,
       "1 to 1000 are allowed"},
  };
  for (const auto& c : cases) {
    StageMachineOptions options;
    options.max_threads = 2;
    options.memory_limit_bytes = 10000;
    options.max_shard_bytes = 1000;
    Harness h(1, 3, options);
    h.Computed();
    h.Attach(1, 2);
    h.TakeWorks();
    v1::Resume resume = MakeInit(h.Spec(), 500);
    c.spoil(&resume);
    h.Resume(resume);
    ASSERT_TRUE(h.last_event().has_failed()) << c.what;
    EXPECT_EQ(Code(h.last_failure()), c.code) << c.what << ": " << h.last_failure().text();
    EXPECT_NE(h.last_failure().text().find(c.says), std::string::npos) << c.what << ": " << h.last_failure().text();
    EXPECT_NE(h.last_failure().text().find("stage 1"), std::string::npos);
    // Nothing was lost: the computed step is still there for a better Resume.
    EXPECT_EQ(h.state(), State::kFenced) << c.what;
    EXPECT_EQ(h.machine().state_id(), 100u);
    EXPECT_EQ(h.TakeWorks(), "");
    h.Keep(100, 0);
    EXPECT_EQ(h.state(), State::kReady) << c.what;
  }
}

TEST(Resume, ALoadThatFailsLeavesNothingAndSaysWhy) {
  Harness h;
  h.Attach();
  h.computer().FailNext("Load", absl::ResourceExhaustedError("out of memory; use more stages"));
  h.Init();
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kEmpty);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(h.last_failure().phase(), "LOADING");
  EXPECT_EQ(h.last_failure().blame(), v1::LOCAL);
  EXPECT_FALSE(h.links().open());
  // And the process lives: the next fence may try again.
  h.Attach(1, 2);
  h.Init();
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kReady);
}

TEST(Resume, KeepDropsComputedWorkAndKeepsTheWeights) {
  Harness h;
  h.Computed();
  const auto weights = h.computer().weights();
  h.Attach(1, 2);
  h.TakeWorks();
  h.Keep(100, 0);
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Drop");
  EXPECT_EQ(h.last_event().ready().state_id(), 100u);
  EXPECT_EQ(h.last_event().ready().parameter_names_size(), 2);
  EXPECT_EQ(h.computer().weights(), weights);
  EXPECT_EQ(h.computer().gradients(), 0u);
  // The step is computed again, under the new fence, to the same result.
  h.Define(MakeProgram(1, "F0 F1 B0 B1", 2));
  h.Begin(1, 100);
  h.Settle();
  EXPECT_EQ(h.last_event().computed().attempt().fence().generation(), 2u);
}

TEST(Resume, KeepOfAnotherStateStepOrSpecIsRefused) {
  Harness h;
  h.Ready();
  h.Attach(1, 2);
  h.Keep(101, 0);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(h.last_failure().text().find("asked to keep state 101 of step 0, has state 100 of step 0"), std::string::npos);
  h.Keep(100, 1);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kFailedPrecondition);
  v1::Resume resume = MakeInit(h.Spec(), 100);
  resume.mutable_keep();
  resume.mutable_stage()->mutable_optimizer()->mutable_sgd()->set_momentum(0);
  h.Resume(resume);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kFailedPrecondition);
  // Another neighbour's address is no other model.
  *resume.mutable_stage() = h.Spec();
  resume.mutable_stage()->mutable_down()->set_address("elsewhere:1");
  h.Resume(resume);
  EXPECT_EQ(h.state(), State::kReady);
}

TEST(Resume, ProgramsAreForgottenByAnAttach) {
  Harness h;
  h.Ready();
  h.Attach(1, 2);
  h.Keep(100, 0);
  h.Begin(1, 100);
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_NE(h.last_failure().text().find("program 1 is not defined"), std::string::npos);
}

// ---- RESTORE

class Restore : public ::testing::Test {
 protected:
  void Announce(std::uint64_t bytes, std::uint64_t hash) {
    h.Attach();
    v1::Resume resume = MakeInit(h.Spec(), 700, 12);
    resume.mutable_restore()->set_bytes(bytes);
    resume.mutable_restore()->set_hash(hash);
    h.Resume(resume);
  }
  absl::StatusOr<v1::PutShardReply> Put(std::uint64_t offset, const std::string& data) {
    v1::PutShardRequest request;
    request.set_job_id("job-a");
    *request.mutable_fence() = h.fence();
    request.set_offset(offset);
    request.set_data(data);
    absl::StatusOr<v1::PutShardReply> reply = absl::UnknownError("not answered");
    int answers = 0;
    h.machine().PutShard(request, [&](absl::StatusOr<v1::PutShardReply> r) {
      reply = std::move(r);
      ++answers;
    });
    h.FinishAllWork();
    EXPECT_EQ(answers, 1);
    return reply;
  }

  Harness h;
  const std::string shard_ = "8 bytes!";
};

TEST_F(Restore, PutsTheWeightsTogetherAndBecomesReadyWithTheStateAskedFor) {
  Announce(8, ShardHash(shard_));
  EXPECT_EQ(h.state(), State::kLoading);
  EXPECT_FALSE(h.busy());
  auto reply = Put(0, shard_.substr(0, 3));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->received_bytes(), 3u);
  reply = Put(3, shard_.substr(3));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->received_bytes(), 8u);
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_EQ(h.machine().state_id(), 700u);
  EXPECT_EQ(h.machine().step(), 12u);
  EXPECT_EQ(h.last_event().ready().step(), 12u);
  std::uint64_t weights;
  std::memcpy(&weights, shard_.data(), 8);
  EXPECT_EQ(h.computer().weights(), weights);
}

TEST_F(Restore, APieceOutOfPlaceIsRefusedAndCanBeSentRight) {
  Announce(8, ShardHash(shard_));
  EXPECT_EQ(Put(1, "x").status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Put(0, "nine bytes").status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(h.state(), State::kLoading);
  EXPECT_TRUE(Put(0, shard_).ok());
  EXPECT_EQ(h.state(), State::kReady);
}

TEST_F(Restore, AnotherHashIsDataLossAndEmptiesTheStage) {
  Announce(8, ShardHash(shard_) + 1);
  EXPECT_EQ(Put(0, shard_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(h.state(), State::kEmpty);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kDataLoss);
}

TEST_F(Restore, AShardThatIsNoneAnswersTheLastPieceAndTheStream) {
  Announce(3, ShardHash("abc"));
  EXPECT_EQ(Put(0, "abc").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(h.state(), State::kEmpty);
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kInvalidArgument);
}

TEST_F(Restore, OnlyTheJobsPresentFenceMayPut) {
  Announce(8, ShardHash(shard_));
  v1::PutShardRequest request;
  request.set_job_id("job-a");
  *request.mutable_fence() = MakeFence(1, 0);
  request.set_data(shard_);
  absl::Status status;
  h.machine().PutShard(request, [&](absl::StatusOr<v1::PutShardReply> r) { status = r.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  *request.mutable_fence() = h.fence();
  request.set_job_id("job-b");
  h.machine().PutShard(request, [&](absl::StatusOr<v1::PutShardReply> r) { status = r.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Put(0, shard_).ok());
  EXPECT_EQ(Put(0, shard_).status().code(), absl::StatusCode::kFailedPrecondition);  // READY by now
}

TEST_F(Restore, OfAPartPassesTheSeedOnAndSaysWhatWasMissingAndWhatUnused) {
  h.Attach();
  v1::Resume resume = MakeInit(h.Spec(), 700);
  resume.mutable_restore()->set_bytes(8);
  resume.mutable_restore()->set_hash(ShardHash(shard_));
  resume.mutable_restore()->set_seed(31);
  h.Resume(resume);
  ASSERT_TRUE(Put(0, shard_).ok());
  EXPECT_EQ(h.computer().seed_of_rest(), 31u);
  const v1::Ready& ready = h.last_event().ready();
  ASSERT_EQ(ready.unused_tensors_size(), 1);
  EXPECT_EQ(ready.unused_tensors(0), "other.weight");
  ASSERT_EQ(ready.seeded_parameters_size(), 1);
  EXPECT_EQ(ready.seeded_parameters(0), "fc1.bias");
}

TEST_F(Restore, ANewerAttachAnswersAPieceWhoseLoadItStopped) {
  Announce(8, ShardHash(shard_));
  v1::PutShardRequest request;
  request.set_job_id("job-a");
  *request.mutable_fence() = h.fence();
  request.set_data(shard_);
  absl::Status status;
  h.machine().PutShard(request, [&](absl::StatusOr<v1::PutShardReply> r) { status = r.status(); });
  ASSERT_TRUE(h.busy());
  h.Attach(1, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  h.FinishAllWork();
  EXPECT_EQ(h.last_event().attached().state_id(), 0u);
}

// ---- GetShard

class GetShard : public ::testing::Test {
 protected:
  v1::GetShardRequest Request(std::uint64_t offset, std::uint32_t max_bytes, std::uint64_t state_id = 100) {
    v1::GetShardRequest request;
    request.set_job_id("job-a");
    *request.mutable_fence() = h.fence();
    request.set_state_id(state_id);
    request.set_offset(offset);
    request.set_max_bytes(max_bytes);
    return request;
  }
  absl::StatusOr<v1::GetShardReply> Get(const v1::GetShardRequest& request) {
    absl::StatusOr<v1::GetShardReply> reply = absl::UnknownError("not answered");
    h.machine().GetShard(request, [&](absl::StatusOr<v1::GetShardReply> r) { reply = std::move(r); });
    h.FinishAllWork();
    return reply;
  }
  Harness h;
};

TEST_F(GetShard, HandsOutTheWeightsInPiecesFromOneCopy) {
  h.Ready();
  h.TakeWorks();
  const auto first = Get(Request(0, 5));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->total_bytes(), 8u);
  const auto second = Get(Request(5, 5));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(h.TakeWorks(), "SaveShard");
  const std::string whole = first->data() + second->data();
  ASSERT_EQ(whole.size(), 8u);
  EXPECT_EQ(first->hash(), ShardHash(whole));
  std::uint64_t weights;
  std::memcpy(&weights, whole.data(), 8);
  EXPECT_EQ(h.computer().weights(), weights);
  // Read to its end, the copy is gone; it can be asked for again.
  EXPECT_TRUE(Get(Request(0, 0)).ok());
  EXPECT_EQ(h.TakeWorks(), "SaveShard");
}

TEST_F(GetShard, RefusesAnotherStateFenceOrAStageThatIsNotReady) {
  h.Ready();
  EXPECT_EQ(Get(Request(0, 5, 101)).status().code(), absl::StatusCode::kFailedPrecondition);
  v1::GetShardRequest old = Request(0, 5);
  *old.mutable_fence() = MakeFence(1, 0);
  EXPECT_EQ(Get(old).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get(Request(9, 5)).status().code(), absl::StatusCode::kOutOfRange);
  h.Begin(1, 100);
  EXPECT_EQ(Get(Request(0, 5)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(GetShard, ACopyUnderWayIsStillRightWhenTheNextStepBegins) {
  h.Ready();
  absl::StatusOr<v1::GetShardReply> reply = absl::UnknownError("not answered");
  h.machine().GetShard(Request(0, 0), [&](absl::StatusOr<v1::GetShardReply> r) { reply = std::move(r); });
  ASSERT_TRUE(h.busy());
  h.Begin(1, 100);
  h.FinishAllWork();
  EXPECT_TRUE(reply.ok()) << reply.status();
  h.Settle();
  EXPECT_EQ(h.state(), State::kComputed);
}

TEST_F(GetShard, AFailedCopyIsAnsweredWithItsError) {
  h.Ready();
  h.computer().FailNext("SaveShard", absl::ResourceExhaustedError("no memory"));
  EXPECT_EQ(Get(Request(0, 0)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_TRUE(Get(Request(0, 0)).ok());
}

TEST_F(GetShard, ANewerAttachAnswersWhoWaits) {
  h.Ready();
  absl::Status status;
  h.machine().GetShard(Request(0, 0), [&](absl::StatusOr<v1::GetShardReply> r) { status = r.status(); });
  h.Attach(1, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kFenced);
}

}  // namespace
}  // namespace resbm::stage_server::testing
