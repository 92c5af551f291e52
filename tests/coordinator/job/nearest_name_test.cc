#include "coordinator/job/nearest_name.h"

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

TEST(EditDistance, CountsEachKindOfChangeOnce) {
  EXPECT_EQ(EditDistance("ratio", "ratio"), 0);
  EXPECT_EQ(EditDistance("rato", "ratio"), 1);
  EXPECT_EQ(EditDistance("rattio", "ratio"), 1);
  EXPECT_EQ(EditDistance("retio", "ratio"), 1);
  EXPECT_EQ(EditDistance("raito", "ratio"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
}

TEST(EditDistance, IgnoresLetterCase) { EXPECT_EQ(EditDistance("Resbm", "RESBM"), 0); }

TEST(NearestName, IsTheFirstOfTheNearest) {
  EXPECT_EQ(NearestName("bacth", {"seed", "batch", "match"}), "batch");
  EXPECT_EQ(NearestName("a", {"b", "c"}), "b");
  EXPECT_EQ(NearestName("a", {}), "");
}

TEST(SuggestName, SuggestsWhatIsNear) { EXPECT_EQ(SuggestName("rato", {"kind", "ratio"}), "did you mean \"ratio\"?"); }

TEST(SuggestName, ListsAllWhereNothingIsNear) {
  EXPECT_EQ(SuggestName("compression", {"kind", "ratio"}), "known: kind, ratio");
  EXPECT_EQ(SuggestName("", {"kind", "ratio"}), "known: kind, ratio");
  EXPECT_EQ(SuggestName("x", {}), "");
}

TEST(SuggestName, TakesVeryLongNames) {
  EXPECT_EQ(SuggestName(std::string(1 << 20, 'x'), {"kind", "ratio"}), "known: kind, ratio");
}

}  // namespace
}  // namespace resbm::coordinator
