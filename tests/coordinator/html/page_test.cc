#include "coordinator/html/page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string DataIn(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(Page, HoldsTheChartLibraryItsLicenceAndTheData) {
  const std::string page = HtmlPage("A run", R"({"title":"A run"})");
  EXPECT_THAT(page, HasSubstr("<title>A run</title>"));
  EXPECT_THAT(page, HasSubstr("Chart.js v"));
  EXPECT_THAT(page, HasSubstr("Permission is hereby granted, free of charge"));
  EXPECT_EQ(DataIn(page), R"({"title":"A run"})");
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(Page, NothingInTheDataEndsItsElement) {
  const std::string evil = "</script><script>alert(1)</script><!-- {{script}} ]]> & \" '";
  const std::string data = nlohmann::json({{"title", evil}}).dump();
  const std::string page = HtmlPage(evil, data);
  EXPECT_EQ(Count(page, "<script"), Count(HtmlPage("", "{}"), "<script"));
  EXPECT_EQ(Count(page, "</script"), Count(HtmlPage("", "{}"), "</script"));
  EXPECT_THAT(DataIn(page), Not(HasSubstr("<")));
  EXPECT_EQ(nlohmann::json::parse(DataIn(page))["title"], evil);
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;&lt;script&gt;alert(1)"));
}

TEST(Page, ForbidsItselfToLoadAnything) {
  const std::string page = HtmlPage("", "{}");
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
  for (const char* element : {"<link", "<img", "<iframe", " src=\""}) EXPECT_THAT(page, Not(HasSubstr(element)));
}

TEST(Page, IsSmall) { EXPECT_LT(HtmlPage("", "{}").size(), 300'000u); }

}  // namespace
}  // namespace resbm::coordinator
