#include "coordinator/run/state_id.h"

#include <set>

#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

TEST(StateId, DependsOnEverythingThatMadeIt) {
  v1::Attempt a;
  a.set_step(1);
  a.mutable_fence()->set_epoch(1);
  a.mutable_fence()->set_generation(1);
  v1::Attempt later = a, other_epoch = a, other_generation = a;
  later.set_step(2);
  other_epoch.mutable_fence()->set_epoch(2);
  other_generation.mutable_fence()->set_generation(2);
  const auto base = InitialStateId("job");
  const std::set<std::uint64_t> ids = {base,
                                       InitialStateId("another job"),
                                       NextStateId(base, a, v1::Commit::APPLY),
                                       NextStateId(base, a, v1::Commit::SKIP),
                                       NextStateId(base, later, v1::Commit::APPLY),
                                       NextStateId(base, other_epoch, v1::Commit::APPLY),
                                       NextStateId(base, other_generation, v1::Commit::APPLY),
                                       NextStateId(base + 1, a, v1::Commit::APPLY)};
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(ids.count(0), 0u);
  EXPECT_EQ(NextStateId(base, a, v1::Commit::APPLY), NextStateId(base, a, v1::Commit::APPLY));
}

}  // namespace
}  // namespace resbm::coordinator
