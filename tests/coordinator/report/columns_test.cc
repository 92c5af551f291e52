#include "coordinator/report/columns.h"

#include <limits>

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

TEST(Columns, AreAlignedLeftThenRightWithoutTrailingBlanks) {
  EXPECT_EQ(FormatColumns({{"arm", "x", "note"}, {"longer", "1", ""}, {"a", "100", "z"}}, 1, Terminal()),
            "  arm       x  note\n"
            "  longer    1\n"
            "  a       100     z\n");
}

TEST(Columns, HumanBytesStayShort) {
  EXPECT_EQ(HumanBytes(0), "0");
  EXPECT_EQ(HumanBytes(75264), "75264");
  EXPECT_EQ(HumanBytes(1204224), "1.2 MB");
  EXPECT_EQ(HumanBytes(150000), "150.0 kB");
  EXPECT_EQ(HumanBytes(999.9e12), "999.9 TB");
  EXPECT_EQ(HumanBytes(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(Columns, LongLinesAreBrokenAtSpacesAndIndented) {
  EXPECT_EQ(Indented("one two three", 100), "  one two three\n");
  EXPECT_EQ(Indented("one two three", 10), "  one two\n    three\n");
  EXPECT_EQ(Indented("unbreakable word", 5), "  unbreakable\n    word\n");
}

}  // namespace
}  // namespace resbm::coordinator
