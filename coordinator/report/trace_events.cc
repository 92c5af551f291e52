#include "coordinator/report/trace_events.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {
namespace {

constexpr char kSeparator[] = ",\n";

int ThreadOf(const v1::Span& span) {
  const bool down = span.direction() == v1::DOWN;
  switch (span.kind()) {
    case v1::Span::SEND: return down ? TraceEvents::kSendDown : TraceEvents::kSendUp;
    case v1::Span::RECEIVE: return down ? TraceEvents::kReceiveDown : TraceEvents::kReceiveUp;
    default: return TraceEvents::kCompute;
  }
}

const char* CategoryOf(v1::Span::Kind kind) {
  switch (kind) {
    case v1::Span::FORWARD: return "forward";
    case v1::Span::BACKWARD: return "backward";
    case v1::Span::WAIT: return "wait";
    case v1::Span::SEND: return "send";
    case v1::Span::RECEIVE: return "receive";
    case v1::Span::COMMIT: return "commit";
    case v1::Span::FINISH: return "finish";
    default: return "other";
  }
}

// What crosses: activations go down, gradients up; the outermost links carry inputs and targets.
std::string TensorName(const v1::Span& span, int stage, int stages) {
  const bool down = span.direction() == v1::DOWN;
  const bool received = span.kind() == v1::Span::RECEIVE;
  if (received && !down && stage == 0) return absl::StrCat("input ", span.micro_batch());
  if (received && down && stage == stages - 1) return absl::StrCat("target ", span.micro_batch());
  return absl::StrCat(down == received ? "B" : "F", span.micro_batch());
}

std::string NameOf(const v1::Span& span, int stage, int stages) {
  switch (span.kind()) {
    case v1::Span::FORWARD: return absl::StrCat("F", span.micro_batch());
    case v1::Span::BACKWARD: return absl::StrCat("B", span.micro_batch());
    case v1::Span::WAIT: return span.direction() == v1::DOWN ? "wait down" : "wait up";
    case v1::Span::SEND: return absl::StrCat("send ", TensorName(span, stage, stages));
    case v1::Span::RECEIVE: return absl::StrCat("receive ", TensorName(span, stage, stages));
    case v1::Span::COMMIT: return "commit";
    case v1::Span::FINISH: return "finish";
    default: return "other";
  }
}

// Microseconds, as the format wants them.
std::string Micros(std::int64_t nanos) { return absl::StrFormat("%d.%03d", nanos / 1000, nanos % 1000); }

std::string Metadata(const char* name, int process, int thread, const nlohmann::ordered_json& args) {
  const nlohmann::ordered_json event = {{"ph", "M"}, {"name", name}, {"pid", process}, {"tid", thread}, {"args", args}};
  return event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

TraceEvents::TraceEvents(int stages, absl::Duration zero) : stages_(stages), zero_(zero), busy_until_(stages) {
  for (auto& threads : busy_until_) threads.fill(0);
}

std::pair<std::string, std::string> TraceEvents::Names(const std::vector<std::string>& addresses) {
  const int stages = static_cast<int>(addresses.size());
  const std::string first = Metadata("process_name", stages, 0, {{"name", "coordinator"}});
  std::vector<std::string> rest = {Metadata("process_sort_index", stages, 0, {{"sort_index", stages}}),
                                   Metadata("thread_name", stages, 0, {{"name", "steps"}})};
  const char* const threads[kThreads] = {"compute", "send down", "receive down", "send up", "receive up"};
  for (int s = 0; s < stages; ++s) {
    rest.push_back(Metadata("process_name", s, 0, {{"name", absl::StrFormat("stage %d (%s)", s, addresses[s])}}));
    rest.push_back(Metadata("process_sort_index", s, 0, {{"sort_index", s}}));
    for (int t = 0; t < kThreads; ++t) {
      rest.push_back(Metadata("thread_name", s, t, {{"name", threads[t]}}));
      rest.push_back(Metadata("thread_sort_index", s, t, {{"sort_index", t}}));
    }
  }
  std::string text;
  for (const std::string& event : rest) absl::StrAppend(&text, kSeparator, event);
  return {first, text};
}

// A step's start is the trace's earliest time; that a clock is not known exactly must not put a span before it.
std::int64_t TraceEvents::TimeOf(absl::Duration time) const {
  return std::max<std::int64_t>(0, absl::ToInt64Nanoseconds(time - zero_));
}

std::string TraceEvents::Of(const StepSpans& step, absl::Span<const ClockModel> clocks) {
  const std::int64_t begin = TimeOf(step.began);
  std::string events =
      absl::StrCat(kSeparator, "{\"ph\":\"X\",\"name\":\"step ", step.step, "\",\"cat\":\"step\",\"pid\":", stages_,
                   ",\"tid\":0,\"ts\":", Micros(begin), ",\"dur\":", Micros(TimeOf(step.ended) - begin),
                   ",\"args\":{\"step\":", step.step, "}}");
  sent_.clear();
  received_.clear();
  for (int s = 0; s < std::min<int>(stages_, static_cast<int>(step.spans.size())); ++s) {
    if (!clocks[s].known()) continue;
    std::array<std::vector<Slice>, kThreads> threads;
    for (const v1::Span& span : step.spans[s]) {
      const absl::Duration start = absl::Nanoseconds(span.start_nanos());
      Slice slice;
      slice.begin = TimeOf(clocks[s].ToLocal(start));
      slice.end = std::max(slice.begin, TimeOf(clocks[s].ToLocal(start + absl::Nanoseconds(span.duration_nanos()))));
      slice.span = &span;
      threads[ThreadOf(span)].push_back(slice);
    }
    for (int t = 0; t < kThreads; ++t) AddThread(s, t, step.step, std::move(threads[t]), &events);
  }
  AddArrows(&events);
  return events;
}

void TraceEvents::AddThread(int stage, int thread, std::int64_t step, std::vector<Slice> slices, std::string* events) {
  // Of tensors that were ready at once, the one that left first.
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  std::int64_t& busy_until = busy_until_[stage][thread];
  for (Slice& slice : slices) {
    const v1::Span& span = *slice.span;
    slice.queued = std::max<std::int64_t>(0, std::min(busy_until, slice.end) - slice.begin);
    slice.begin = std::max(slice.begin, busy_until);
    slice.end = std::max(slice.begin, slice.end);
    busy_until = slice.end;
    absl::StrAppend(events, kSeparator, "{\"ph\":\"X\",\"name\":\"", NameOf(span, stage, stages_), "\",\"cat\":\"",
                    CategoryOf(span.kind()), "\",\"pid\":", stage, ",\"tid\":", thread, ",\"ts\":", Micros(slice.begin),
                    ",\"dur\":", Micros(slice.end - slice.begin), ",\"args\":{\"step\":",
                    // Reported with the step after it.
                    span.kind() == v1::Span::COMMIT ? step - 1 : step);
    if (span.kind() != v1::Span::COMMIT && span.kind() != v1::Span::FINISH) {
      absl::StrAppend(events, ",\"micro_batch\":", span.micro_batch());
    }
    if (thread != kCompute) absl::StrAppend(events, ",\"bytes\":", span.bytes(), ",\"tensor\":", span.tensor_index());
    if (span.kind() == v1::Span::SEND) absl::StrAppend(events, ",\"queued_us\":", Micros(slice.queued));
    absl::StrAppend(events, "}}");

    const bool down = span.direction() == v1::DOWN;
    if (span.kind() == v1::Span::SEND) {
      sent_[{down ? stage : stage - 1, down, span.micro_batch(), span.tensor_index()}] = {stage, thread, slice.begin};
    } else if (span.kind() == v1::Span::RECEIVE) {
      received_[{down ? stage : stage - 1, !down, span.micro_batch(), span.tensor_index()}] = {stage, thread,
                                                                                               slice.begin};
    }
  }
}

void TraceEvents::AddArrows(std::string* events) {
  for (const auto& [key, from] : sent_) {
    const auto to = received_.find(key);
    if (to == received_.end()) continue;
    ++arrows_;
    const std::string common = absl::StrCat("\"name\":\"", std::get<1>(key) ? "F" : "B", std::get<2>(key),
                                            "\",\"cat\":\"transfer\",\"id\":", arrows_);
    absl::StrAppend(events, kSeparator, "{\"ph\":\"s\",", common, ",\"pid\":", from.stage, ",\"tid\":", from.thread,
                    ",\"ts\":", Micros(from.time), "}");
    absl::StrAppend(events, kSeparator, "{\"ph\":\"f\",\"bp\":\"e\",", common, ",\"pid\":", to->second.stage,
                    ",\"tid\":", to->second.thread, ",\"ts\":", Micros(to->second.time), "}");
  }
}

}  // namespace resbm::coordinator
