#include "coordinator/plan/partition_balance.h"

#include <algorithm>
#include <limits>

namespace resbm::coordinator {
namespace {

constexpr std::uint64_t kImpossible = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::vector<int> BalancedCuts(int cut_points, int cuts, const std::function<std::uint64_t(int a, int b)>& part_cost,
                              const std::function<std::uint64_t(int cut_point)>& cut_cost) {
  // Both passes fill best[k][a + 1]: the optimum of what comes after cut point a (-1: the start) when it is
  // cut k more times. From the end, so that the walk at last can take the earliest cut first.
  using Table = std::vector<std::vector<std::uint64_t>>;
  Table costliest(cuts + 1, std::vector<std::uint64_t>(cut_points + 1, kImpossible));
  for (int a = -1; a < cut_points; ++a) costliest[0][a + 1] = part_cost(a, cut_points);
  for (int k = 1; k <= cuts; ++k) {
    for (int a = -1; a < cut_points; ++a) {
      for (int b = a + 1; b < cut_points; ++b) {
        const std::uint64_t rest = costliest[k - 1][b + 1];
        costliest[k][a + 1] = std::min(costliest[k][a + 1], std::max(part_cost(a, b), rest));
      }
    }
  }
  // Two passes, because the least costliest part of a tail is no guide to the cheapest cuts of the whole:
  // another part may be the costliest one.
  const std::uint64_t limit = costliest[cuts][0];
  Table sum(cuts + 1, std::vector<std::uint64_t>(cut_points + 1, kImpossible));
  for (int a = -1; a < cut_points; ++a) sum[0][a + 1] = part_cost(a, cut_points) <= limit ? 0 : kImpossible;
  const auto through = [&](int k, int a, int b) {
    const std::uint64_t rest = sum[k - 1][b + 1];
    return rest == kImpossible || part_cost(a, b) > limit ? kImpossible : rest + cut_cost(b);
  };
  for (int k = 1; k <= cuts; ++k) {
    for (int a = -1; a < cut_points; ++a) {
      for (int b = a + 1; b < cut_points; ++b) sum[k][a + 1] = std::min(sum[k][a + 1], through(k, a, b));
    }
  }
  std::vector<int> chosen;
  for (int k = cuts, a = -1; k > 0; --k) {
    int b = a + 1;
    while (through(k, a, b) != sum[k][a + 1]) ++b;
    chosen.push_back(b);
    a = b;
  }
  return chosen;
}

}  // namespace resbm::coordinator
