#include "coordinator/report/table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/report/columns.h"

namespace resbm::coordinator {
namespace {

// The widest row of cuts then has 100 columns, and the first line of a run of a year.
constexpr std::size_t kMaxNameColumns = 10;
constexpr std::size_t kMaxRunNameColumns = 24;

std::string Thousands(std::int64_t value) {
  std::string digits = absl::StrCat(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) digits.insert(at, 1, ',');
  return digits;
}

std::string Decimals(const std::optional<double>& value, int decimals) {
  if (!value.has_value() || !std::isfinite(*value)) return "-";
  return absl::StrFormat("%.*f", decimals, *value);
}

std::string Percent(const std::optional<double>& share, int decimals) {
  if (!share.has_value() || !std::isfinite(*share)) return "-";
  return absl::StrCat(Decimals(100 * *share, decimals), " %");
}

std::string Shortened(const std::string& name, std::size_t columns) {
  return name.size() <= columns ? name : absl::StrCat(name.substr(0, columns - 3), "...");
}

std::string Name(const std::string& name) { return Shortened(name, kMaxNameColumns); }

std::string Megabytes(std::int64_t bytes) { return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6); }

std::string Headline(const Summary& summary) {
  std::string line =
      absl::StrCat(Shortened(summary.name, kMaxRunNameColumns), ": ", Thousands(summary.steps), " steps");
  if (summary.skipped_steps > 0) absl::StrAppend(&line, " (", Thousands(summary.skipped_steps), " skipped)");
  return absl::StrCat(line, ", ", Thousands(summary.samples), " samples in ",
                      FormatDuration(summary.training_seconds));
}

std::string Results(const Summary& summary, const Terminal& terminal) {
  TableRow heading, values;
  const auto add = [&](const char* name, std::string value) {
    heading.push_back(name);
    values.push_back(std::move(value));
  };
  const bool is_text = summary.tokens_per_second.has_value() || summary.bits_per_byte.has_value();
  add("final loss", Decimals(summary.final_loss, 4));
  add(is_text ? "test loss" : "validation loss", Decimals(summary.validation_loss, 4));
  if (is_text) {
    add("bits/byte", Decimals(summary.bits_per_byte, 4));
    add("perplexity", Decimals(summary.perplexity, 3));
  }
  add("top-1", Percent(summary.top1, 2));
  add(is_text ? "tokens/s" : "samples/s",
      Decimals(is_text ? summary.tokens_per_second : summary.samples_per_second, 1));
  add(is_text ? "step s" : "median step s", Decimals(summary.step_seconds_median, 4));
  add("bubble", Percent(summary.bubble_share, 1));
  add(is_text ? "link wait" : "waiting for links", Percent(summary.communication_share_exposed, 1));
  return FormatColumns({heading, values}, 0, terminal);
}

std::string Cuts(const Summary& summary, const Terminal& terminal) {
  std::vector<TableRow> rows = {
      {"cut after", "direction", "codec", "r", "payload", "meta", "as fp16", "as fp32", "vs fp16", "vs fp32"}};
  for (const BoundarySummary& cut : summary.boundaries) {
    auto times_smaller = [&cut](double uncompressed) {
      return cut.payload_bytes > 0 ? absl::StrFormat("%.1fx", uncompressed / cut.payload_bytes) : "-";
    };
    std::optional<double> metadata_share;
    if (cut.payload_bytes > 0) metadata_share = cut.metadata_bytes / cut.payload_bytes;
    const UncompressedBytes& uncompressed = cut.uncompressed_bytes;
    rows.push_back({Name(cut.cut_point), cut.direction, cut.codec, absl::StrCat(cut.ratio),
                    FormatBytes(cut.payload_bytes), Percent(metadata_share, 1), FormatBytes(uncompressed.fp16),
                    FormatBytes(uncompressed.fp32), times_smaller(uncompressed.fp16),
                    times_smaller(uncompressed.fp32)});
  }
  return FormatColumns(rows, 3, terminal);
}

std::string Stages(const Summary& summary, const Terminal& terminal) {
  std::vector<TableRow> rows = {
      {"stage", "device", "parameters", "forward", "backward", "waiting", "computing", "peak memory"}};
  for (const StageSummary& stage : summary.stages) {
    rows.push_back({absl::StrCat(stage.stage), Name(stage.device), Thousands(stage.parameters),
                    Decimals(stage.forward_seconds, 4), Decimals(stage.backward_seconds, 4),
                    Decimals(stage.waiting_up_seconds + stage.waiting_down_seconds, 4), Percent(stage.utilization, 1),
                    Megabytes(stage.peak_memory.total)});
  }
  return FormatColumns(rows, 2, terminal);
}

}  // namespace

std::string FormatBytes(double bytes) {
  if (!(bytes >= 1e7)) return bytes >= 0 ? Thousands(std::llround(bytes)) : "-";
  if (bytes < 1e9) return absl::StrFormat("%.1f MB", bytes / 1e6);
  if (bytes < 1e12) return absl::StrFormat("%.1f GB", bytes / 1e9);
  return absl::StrFormat("%.1f TB", bytes / 1e12);
}

std::string FormatTable(const Summary& summary, const Terminal& terminal) {
  std::string table = absl::StrCat(Bold(terminal, Headline(summary)), "\n\n", Results(summary, terminal));
  if (!summary.boundaries.empty()) {
    absl::StrAppend(&table, "\nAt the cuts, bytes a step (as ...: the activation before the encoder):\n",
                    Cuts(summary, terminal));
  }
  if (!summary.stages.empty()) {
    absl::StrAppend(&table, "\nStages, seconds a step (computing: share of wall time):\n", Stages(summary, terminal));
  }
  return table;
}

}  // namespace resbm::coordinator
