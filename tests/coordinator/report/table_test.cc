#include "coordinator/report/table.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/report/example_summary.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;

std::size_t Widest(const std::string& text) {
  std::size_t widest = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

TEST(Table, LooksLikeThis) {
  EXPECT_EQ("\n" + FormatTable(ExampleSummary(), Terminal()), R"(
fmnist-r16: 1,875 steps (3 skipped), 180,000 samples in 5:12

  final loss  validation loss    top-1  samples/s  median step s  bubble  waiting for links
      0.2871           0.3312  87.42 %      577.3         0.1661   5.9 %              3.1 %

At the cuts, bytes a step (as ...: the activation before the encoder):
  cut after  direction    codec   r  payload   meta    as fp16    as fp32  vs fp16  vs fp32
  group0.1   activations  fp16   16   75,264  1.3 %  1,204,224  2,408,448    16.0x    32.0x
  group0.1   gradients    fp16   16   75,264  1.3 %  1,204,224  2,408,448    16.0x    32.0x
  group1.0   activations  fp32    1  24.1 MB  0.0 %    12.0 MB    24.1 MB     0.5x     1.0x

Stages, seconds a step (computing: share of wall time):
  stage  device  parameters  forward  backward  waiting  computing  peak memory
  0      cpu      1,234,567   0.0411    0.0822   0.0304     74.2 %     104.9 MB
  1      cuda:0          89   0.0301    0.0612   0.0500     55.0 %       5.0 MB
)");
}

TEST(Table, OfTextShowsBitsAByteAndPerplexity) {
  Summary summary = ExampleSummary();
  summary.bits_per_byte = 2.16404;
  summary.perplexity = 4.48169;
  summary.tokens_per_second = 12345.67;
  const std::string table = FormatTable(summary, Terminal());
  EXPECT_THAT(table, HasSubstr(R"(
  final loss  test loss  bits/byte  perplexity    top-1  tokens/s  step s  bubble  link wait
      0.2871     0.3312     2.1640       4.482  87.42 %   12345.7  0.1661   5.9 %      3.1 %
)"));
}

TEST(Table, IsAtMost100ColumnsWide) {
  EXPECT_LE(Widest(FormatTable(ExampleSummary(), Terminal())), 100u);
  Summary summary = ExampleSummary();
  summary.name = std::string(300, 'n');
  summary.steps = 99'999'999;
  summary.skipped_steps = 9'999'999;
  summary.samples = 99'999'999'999;
  summary.training_seconds = 3.5e7;  // a year and a month
  summary.samples_per_second = 9999999.9;
  for (auto& cut : summary.boundaries) {
    cut = {std::string(300, 'c'), "activations", "fp16+int16", 4096, 9999999, 99999990, {999.9e12, 999.9e12}};
    cut.uncompressed_bytes = {4096 * 9999999.0, 8192 * 9999999.0};
  }
  for (auto& stage : summary.stages) {
    stage.device = std::string(300, 'd');
    stage.parameters = 999'999'999'999;
    stage.forward_seconds = stage.backward_seconds = stage.waiting_up_seconds = 99999;
    stage.peak_memory.total = 999'999'999'999;
  }
  EXPECT_LE(Widest(FormatTable(summary, Terminal())), 100u);
}

TEST(Table, WhatIsNotKnownIsADash) {
  Summary summary;
  summary.name = "empty";
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(FormatTable(summary, Terminal()),
            "empty: 0 steps, 0 samples in 0:00\n\n"
            "  final loss  validation loss  top-1  samples/s  median step s  bubble  waiting for links\n"
            "           -                -      -          -              -       -                  -\n");
}

TEST(Table, HeadingsAreBoldOnlyWhereThereIsColour) {
  Terminal terminal;
  EXPECT_FALSE(absl::StrContains(FormatTable(ExampleSummary(), terminal), "\x1b"));
  terminal.color = true;
  const std::string text = FormatTable(ExampleSummary(), terminal);
  EXPECT_THAT(text, HasSubstr("\x1b[1mfmnist-r16: "));
  EXPECT_THAT(text, HasSubstr("\x1b[1m  stage  device"));
}

TEST(Table, BytesAreExactWhileTheyFit) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(999), "999");
  EXPECT_EQ(FormatBytes(75264), "75,264");
  EXPECT_EQ(FormatBytes(9999999), "9,999,999");
  EXPECT_EQ(FormatBytes(12345678), "12.3 MB");
  EXPECT_EQ(FormatBytes(2.5e9), "2.5 GB");
  EXPECT_EQ(FormatBytes(7e12), "7.0 TB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace resbm::coordinator
