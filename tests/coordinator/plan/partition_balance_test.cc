#include "coordinator/plan/partition_balance.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

// parts.size() == cut_costs.size() + 1: what lies between neighbouring cut points.
struct Chain {
  std::vector<std::uint64_t> parts;
  std::vector<std::uint64_t> cut_costs;

  std::uint64_t PartCost(int a, int b) const {
    return std::accumulate(parts.begin() + a + 1, parts.begin() + b + 1, std::uint64_t{0});
  }
};

std::vector<int> Cuts(const Chain& chain, int cuts) {
  return BalancedCuts(
      static_cast<int>(chain.cut_costs.size()), cuts, [&](int a, int b) { return chain.PartCost(a, b); },
      [&](int cut) { return chain.cut_costs[cut]; });
}

// By trying all.
std::vector<int> BestCuts(const Chain& chain, int cuts) {
  const int points = static_cast<int>(chain.cut_costs.size());
  std::tuple<std::uint64_t, std::uint64_t, std::vector<int>> best = {~0ull, ~0ull, {}};
  for (int chosen = 0; chosen < 1 << points; ++chosen) {
    std::vector<int> at;
    for (int i = 0; i < points; ++i) {
      if (chosen >> i & 1) at.push_back(i);
    }
    if (static_cast<int>(at.size()) != cuts) continue;
    std::uint64_t costliest = 0, sum = 0;
    int a = -1;
    for (const int b : at) {
      costliest = std::max(costliest, chain.PartCost(a, b));
      sum += chain.cut_costs[b];
      a = b;
    }
    costliest = std::max(costliest, chain.PartCost(a, points));
    best = std::min(best, std::make_tuple(costliest, sum, at));
  }
  return std::get<2>(best);
}

TEST(BalancedCuts, MinimisesTheCostliestPart) {
  EXPECT_EQ(Cuts({{1, 1, 1, 1}, {5, 5, 5}}, 1), std::vector<int>{1});
  EXPECT_EQ(Cuts({{9, 1, 1, 1}, {5, 5, 5}}, 1), std::vector<int>{0});
  EXPECT_EQ(Cuts({{1, 2, 3, 4, 5}, {1, 1, 1, 1}}, 2), (std::vector<int>{2, 3}));
}

TEST(BalancedCuts, PrefersCheaperCutsAmongEquals) {
  // The costliest part is 9 wherever the rest is cut.
  EXPECT_EQ(Cuts({{9, 1, 1, 1}, {1, 7, 3}}, 2), (std::vector<int>{0, 2}));
  EXPECT_EQ(Cuts({{9, 1, 1, 1}, {1, 3, 7}}, 2), (std::vector<int>{0, 1}));
}

TEST(BalancedCuts, PrefersEarlierCutsAmongEqualsInAll) {
  EXPECT_EQ(Cuts({{9, 1, 1, 1}, {1, 3, 3}}, 2), (std::vector<int>{0, 1}));
}

TEST(BalancedCuts, TakesNoneOrAllCuts) {
  EXPECT_EQ(Cuts({{1, 2}, {3}}, 0), std::vector<int>{});
  EXPECT_EQ(Cuts({{1, 2}, {3}}, 1), std::vector<int>{0});
  EXPECT_EQ(Cuts({{7}, {}}, 0), std::vector<int>{});
}

TEST(BalancedCuts, EqualsTryingAllCuts) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 300; ++round) {
    const int points = static_cast<int>(random() % 9);
    Chain chain;
    for (int i = 0; i < points; ++i) chain.cut_costs.push_back(1 + random() % 4);
    for (int i = 0; i <= points; ++i) chain.parts.push_back(1 + random() % 6);
    const int cuts = static_cast<int>(random() % (points + 1));
    EXPECT_EQ(Cuts(chain, cuts), BestCuts(chain, cuts)) << "round " << round;
  }
}

}  // namespace
}  // namespace resbm::coordinator
