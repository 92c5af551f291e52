#include "coordinator/job/nearest_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace resbm::coordinator {
namespace {

// Names are short; what is longer is no misspelling of one, and its distance would cost much to find.
constexpr std::size_t kLongestName = 64;

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Row i holds the distances of a's first i characters to each prefix of b.
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto same = [&](std::size_t x, std::size_t y) {
        return absl::ascii_tolower(a[x - 1]) == absl::ascii_tolower(b[y - 1]);
      };
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(i, j) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j)) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates) {
  const absl::string_view shortened = name.substr(0, kLongestName);
  const auto nearest = std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    return EditDistance(shortened, a) < EditDistance(shortened, b);
  });
  return nearest == candidates.end() ? "" : *nearest;
}

std::string SuggestName(absl::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  const std::string nearest = NearestName(name, candidates);
  const int allowed = std::max<int>(2, static_cast<int>(std::min(name.size(), kLongestName)) / 2);
  const int distance = EditDistance(name.substr(0, kLongestName), nearest);
  if (distance <= allowed && distance < static_cast<int>(nearest.size())) {
    return absl::StrCat("did you mean \"", nearest, "\"?");
  }
  return absl::StrCat("known: ", absl::StrJoin(candidates, ", "));
}

}  // namespace resbm::coordinator
