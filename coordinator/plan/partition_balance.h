// Balanced partition of a chain. A part of partition.
#ifndef RESBM_COORDINATOR_PLAN_PARTITION_BALANCE_H_
#define RESBM_COORDINATOR_PLAN_PARTITION_BALANCE_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace resbm::coordinator {

// A chain with cut points 0 .. cut_points-1 is cut at `cuts` of them (0 <= cuts <= cut_points). Returns
// them ascending: those with the least cost of the costliest part, among equals the least sum of
// `cut_cost`, then the lexicographically first. Exact, in O(cuts x cut_points^2).
//
// part_cost(a, b): of the part between cut points a and b; a = -1 is the chain's start, b = cut_points its end.
std::vector<int> BalancedCuts(int cut_points, int cuts, const std::function<std::uint64_t(int a, int b)>& part_cost,
                              const std::function<std::uint64_t(int cut_point)>& cut_cost);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_PARTITION_BALANCE_H_
