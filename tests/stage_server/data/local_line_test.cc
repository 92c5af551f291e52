#include "stage_server/data/local_line.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/base/mutex.h"
#include "stage_server/data/local_data_links.h"
#include "tests/stage_server/data/small_copy.h"
#include "tests/stage_server/support/fake_links.h"
#include "tests/stage_server/support/specs.h"
#include "tests/support/small_images.h"

namespace resbm::stage_server {
namespace {

using resbm::testing::WriteSmallMnist;
using stage_server::testing::FakeLinks;
using stage_server::testing::MakeFence;
using stage_server::testing::SmallCopy;
using ::testing::HasSubstr;

class Events : public LinkEvents {
 public:
  void OnTensor(End, wire::ReceivedTensor tensor) override {
    MutexLock lock(mutex_);
    tensors_.push_back(std::move(tensor));
    changed_.NotifyAll();
  }
  void OnAllSent(const v1::Fence&, End) override {}
  void OnConnected(const v1::Fence&, End) override {}
  void OnDisconnected(const v1::Fence&, End, const absl::Status&) override {}
  void OnLinkError(const v1::Fence&, End, const absl::Status& status) override {
    MutexLock lock(mutex_);
    error_ = status;
    changed_.NotifyAll();
  }

  std::vector<wire::ReceivedTensor> WaitFor(std::size_t count) {
    MutexLock lock(mutex_);
    while (tensors_.size() < count) changed_.Wait(mutex_);
    return tensors_;
  }
  absl::Status WaitForError() {
    MutexLock lock(mutex_);
    while (!error_.has_value()) changed_.Wait(mutex_);
    return *error_;
  }
  std::size_t count() {
    MutexLock lock(mutex_);
    return tensors_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<wire::ReceivedTensor> tensors_ RESBM_GUARDED_BY(mutex_);
  std::optional<absl::Status> error_ RESBM_GUARDED_BY(mutex_);
};

// 20 images in steps of 8: 8, 8 and 4, in two micro-batches; 10 to test on in micro-batches of 4, 4 and 2.
class LocalLineTest : public ::testing::Test {
 protected:
  LocalLineTest() : folder_(WriteSmallMnist(20, 10)), data_(folder_) {
    EXPECT_TRUE(data_.Load(SmallCopy(folder_)).ok());
  }

  static v1::TensorHeader Input(std::uint64_t step, std::uint32_t micro_batch, std::int64_t samples) {
    v1::TensorHeader header;
    header.set_kind(v1::INPUT);
    header.set_step(step);
    header.set_micro_batch(micro_batch);
    header.set_dtype(v1::UINT8);
    for (const std::int64_t dim : {samples, std::int64_t{1}, std::int64_t{28}, std::int64_t{28}}) header.add_dims(dim);
    return header;
  }
  static v1::TensorHeader Target(std::uint64_t evaluation, std::uint32_t micro_batch, std::int64_t samples) {
    v1::TensorHeader header;
    header.set_kind(v1::TARGET);
    header.set_evaluation(evaluation);
    header.set_micro_batch(micro_batch);
    header.set_dtype(v1::INT64);
    header.add_dims(samples);
    return header;
  }

  const std::string folder_;
  LocalData data_;
  Events events_;
};

TEST_F(LocalLineTest, GivesWhatIsExpectedInOrderAsTheCoordinatorWouldSendIt) {
  LocalLine line(End::kUp, MakeFence(1, 2), &data_, &events_);
  line.Expect(Input(1, 0, 4));
  line.Expect(Input(1, 1, 4));
  line.Expect(Input(3, 1, 2));
  const std::vector<wire::ReceivedTensor> got = events_.WaitFor(3);
  EXPECT_EQ(got[0].header.fence().generation(), 2u);
  EXPECT_EQ(got[1].header.micro_batch(), 1u);
  const auto source = data_.source();
  EXPECT_EQ(got[0].tensor.payload.view(), source->Inputs(source->Plan(1), 0).payload.view());
  EXPECT_EQ(got[1].tensor.payload.view(), source->Inputs(source->Plan(1), 1).payload.view());
  EXPECT_EQ(got[2].tensor.payload.view(), source->Inputs(source->Plan(3), 1).payload.view());
}

TEST_F(LocalLineTest, TargetsOfAnEvaluationComeAsTheyAreUsedUp) {
  LocalLine line(End::kDown, MakeFence(1, 1), &data_, &events_);
  line.SetInboxLimit(2);
  line.Expect(Target(1, 0, 4));
  line.Expect(Target(1, 1, 4));
  line.Expect(Target(1, 2, 2));
  events_.WaitFor(2);
  EXPECT_EQ(events_.count(), 2u);
  line.Consumed();
  const std::vector<wire::ReceivedTensor> got = events_.WaitFor(3);
  EXPECT_EQ(got[2].tensor.payload.view(), data_.source()->EvaluationTargets(2).payload.view());
}

TEST_F(LocalLineTest, WhatTheDataDoesNotGiveIsALinkError) {
  std::vector<std::pair<v1::TensorHeader, std::string>> cases = {
      {Input(1, 2, 4), "micro-batch 2 of step 1"},
      {Input(1, 0, 5), "is [4, 1, 28, 28], the step expects [5, 1, 28, 28]"},
      {Input(0, 0, 4), "step 0"},
      {Target(9, 7, 4), "micro-batch 7 of evaluation 9"},
  };
  cases.push_back({Input(1, 0, 4), "of the same dtype"});
  cases.back().first.set_dtype(v1::INT64);
  for (const auto& [header, says] : cases) {
    Events events;
    LocalLine line(End::kUp, MakeFence(1, 1), &data_, &events);
    line.Expect(header);
    line.Expect(Input(1, 0, 4));
    const absl::Status status = events.WaitForError();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(says));
    EXPECT_EQ(events.count(), 0u) << "nothing comes after an error";
  }
}

TEST_F(LocalLineTest, WithoutTrainingDataThereIsNoStep) {
  v1::LocalData spec = SmallCopy(folder_);
  spec.clear_train_hash();
  ASSERT_TRUE(data_.Load(spec).ok());
  LocalLine line(End::kUp, MakeFence(1, 1), &data_, &events_);
  line.Expect(Input(1, 0, 4));
  EXPECT_EQ(events_.WaitForError().code(), absl::StatusCode::kInvalidArgument);
}

// The sanitizers see an event that comes too late.
TEST_F(LocalLineTest, NothingComesAfterItsEnd) {
  for (int i = 0; i < 50; ++i) {
    Events events;
    LocalLine line(End::kUp, MakeFence(1, 1), &data_, &events);
    for (std::uint64_t step = 1; step <= 20; ++step) line.Expect(Input(step, 0, step % 3 == 0 ? 2 : 4));
    if (i % 2 == 1) events.WaitFor(1);
  }
}

TEST_F(LocalLineTest, OnlyOuterEndsThatAreAskedForAreLocal) {
  FakeLinks inner;
  LocalDataLinks links(&inner, &data_, &events_);
  LinkSetup setup;
  setup.stages = 3;
  setup.local_inputs = setup.local_targets = true;
  setup.stage = 1;
  links.Open(setup);
  EXPECT_FALSE(links.IsLocal(End::kUp) || links.IsLocal(End::kDown));
  setup.stage = 2;
  links.Open(setup);
  EXPECT_FALSE(links.IsLocal(End::kUp));
  EXPECT_TRUE(links.IsLocal(End::kDown));
  inner.up().connected = inner.down().connected = false;
  EXPECT_FALSE(links.Connected(End::kUp));
  EXPECT_TRUE(links.Connected(End::kDown));
  links.Expect(End::kUp, Input(1, 0, 4));
  links.Expect(End::kDown, Target(1, 0, 4));
  EXPECT_EQ(inner.up().expected.size(), 1u);
  EXPECT_EQ(inner.down().expected.size(), 0u);
  EXPECT_EQ(events_.WaitFor(1)[0].tensor.payload.view(), data_.source()->EvaluationTargets(0).payload.view());
  links.Close(absl::CancelledError("over"));
  EXPECT_FALSE(links.IsLocal(End::kDown));
}

}  // namespace
}  // namespace resbm::stage_server
