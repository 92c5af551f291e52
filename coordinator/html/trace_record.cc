#include "coordinator/html/trace_record.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <streambuf>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::json;

// More stages or lanes than any trace has.
constexpr std::int64_t kMaxProcess = 4096;
// {"traceEvents": [ {event}, ...: an event is at this depth.
constexpr int kEventDepth = 2;

std::optional<double> Number(const Json& event, const char* name) {
  const auto found = event.find(name);
  if (found == event.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::int64_t Integer(const Json& event, const char* name, std::int64_t absent) {
  const auto found = event.find(name);
  return found != event.end() && found->is_number_integer() ? found->get<std::int64_t>() : absent;
}

std::string Text(const Json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

// Hands on what another stream has, and ends when it is told to.
class EndableBuffer : public std::streambuf {
 public:
  explicit EndableBuffer(std::istream* source) : source_(source) {}

  void End() { ended_ = true; }

 protected:
  int_type underflow() override {
    if (ended_) return traits_type::eof();
    source_->read(bytes_, sizeof(bytes_));
    setg(bytes_, bytes_, bytes_ + source_->gcount());
    return source_->gcount() > 0 ? traits_type::to_int_type(bytes_[0]) : traits_type::eof();
  }

 private:
  std::istream* const source_;
  bool ended_ = false;
  char bytes_[1 << 16];
};

class Collector {
 public:
  explicit Collector(std::size_t max_spans) : max_spans_(max_spans) {}

  bool full() const { return spans_.size() >= max_spans_; }

  void Add(const Json& event) {
    if (!event.is_object() || Text(event, "ph") != "X" || full()) return;
    const auto start = Number(event, "ts"), duration = Number(event, "dur");
    const std::int64_t process = Integer(event, "pid", -1), lane = Integer(event, "tid", -1);
    if (!start || !duration || *duration < 0 || process < 0 || process > kMaxProcess || lane < 0 || lane > 4) return;
    TraceSpan span;
    span.name = Text(event, "name");
    span.category = Text(event, "cat");
    if (const auto args = event.find("args"); args != event.end() && args->is_object()) {
      span.step = Integer(*args, "step", 0);
      span.micro_batch = Integer(*args, "micro_batch", -1);
      span.bytes = Integer(*args, "bytes", 0);
    }
    if (span.step < 1) return;
    if (absl::StartsWith(span.name, "step ")) {
      steps_[span.step] = {span.step, *start, *duration};
      coordinator_ = process;
      return;
    }
    span.stage = static_cast<int>(process);
    span.lane = static_cast<TraceLane>(lane);
    span.start_us = *start;
    span.duration_us = *duration;
    spans_.push_back(std::move(span));
  }

  TraceRecord Finish() {
    TraceRecord trace;
    // Of the last step some are missing where there were too many.
    const std::int64_t cut_off = full() && spans_.front().step != spans_.back().step ? spans_.back().step : 0;
    std::erase_if(spans_, [&](const TraceSpan& span) { return span.stage == coordinator_ || span.step == cut_off; });
    // A step without a span of the coordinator's reaches as far as its stages' do.
    std::map<std::int64_t, std::pair<double, double>> extents;
    for (const TraceSpan& span : spans_) {
      const double end = span.start_us + span.duration_us;
      const auto [at, added] = extents.try_emplace(span.step, span.start_us, end);
      at->second = {std::min(at->second.first, span.start_us), std::max(at->second.second, end)};
      trace.stages = std::max(trace.stages, span.stage + 1);
    }
    for (const auto& [step, extent] : extents) {
      const auto found = steps_.find(step);
      trace.steps.push_back(found != steps_.end() ? found->second
                                                  : TracedStep{step, extent.first, extent.second - extent.first});
    }
    trace.spans = std::move(spans_);
    return trace;
  }

 private:
  const std::size_t max_spans_;
  std::vector<TraceSpan> spans_;
  std::map<std::int64_t, TracedStep> steps_;
  std::int64_t coordinator_ = -1;  // the process of the steps
};

}  // namespace

absl::StatusOr<TraceRecord> ParseTrace(std::istream& json, std::size_t max_spans) {
  Collector collector(max_spans);
  bool has_events = false;
  EndableBuffer buffer(&json);
  std::istream input(&buffer);
  // Each event is dropped as soon as it has been read, and the rest is not read: the trace of a long run is much larger
  // than what is kept of it.
  auto on_part = [&](int depth, Json::parse_event_t part, Json& parsed) {
    if (depth == 1 && part == Json::parse_event_t::key && parsed == "traceEvents") has_events = true;
    if (depth != kEventDepth || part != Json::parse_event_t::object_end) return true;
    collector.Add(parsed);
    if (collector.full()) buffer.End();
    return false;
  };
  const Json whole = Json::parse(input, on_part, /*allow_exceptions=*/false);
  if (!collector.full() && (!whole.is_object() || !has_events)) {
    return absl::InvalidArgumentError("not a trace: no JSON object with traceEvents");
  }
  return collector.Finish();
}

std::vector<TracedStep> TypicalSteps(const TraceRecord& trace, int max_steps, std::size_t max_spans) {
  if (trace.steps.empty()) return {};
  std::map<std::int64_t, std::size_t> spans;
  for (const TraceSpan& span : trace.spans) ++spans[span.step];

  std::vector<std::size_t> order;
  for (std::size_t i = trace.steps.size() > 1 ? 1 : 0; i < trace.steps.size(); ++i) order.push_back(i);
  const auto middle = order.begin() + (order.size() - 1) / 2;
  std::nth_element(order.begin(), middle, order.end(), [&](std::size_t a, std::size_t b) {
    return trace.steps[a].duration_us < trace.steps[b].duration_us;
  });
  std::size_t first = *middle, last = *middle;
  std::size_t total = spans[trace.steps[first].step];
  auto add = [&](std::size_t index) {
    const std::size_t more = spans[trace.steps[index].step];
    if (last - first + 1 >= static_cast<std::size_t>(max_steps) || total + more > max_spans) return false;
    total += more;
    return true;
  };
  if (last + 1 < trace.steps.size() && add(last + 1)) ++last;
  while (first > 0 && add(first - 1)) --first;
  while (last + 1 < trace.steps.size() && add(last + 1)) ++last;
  return {trace.steps.begin() + first, trace.steps.begin() + last + 1};
}

}  // namespace resbm::coordinator
