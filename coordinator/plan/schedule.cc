#include "coordinator/plan/schedule.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace resbm::coordinator {

std::string ToString(const Action& action) {
  return absl::StrCat(action.kind == Action::Kind::kForward ? "F" : "B", action.micro_batch);
}

std::string ToString(const Program& program) {
  return absl::StrJoin(program, " ",
                       [](std::string* out, const Action& action) { absl::StrAppend(out, ToString(action)); });
}

absl::StatusOr<std::vector<int>> ResolveWindows(v1::Schedule::Kind kind, int stages, int micro_batches,
                                                absl::Span<const int> windows) {
  if (stages < 1) return absl::InvalidArgumentError(absl::StrCat("a pipeline needs at least 1 stage, not ", stages));
  if (micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch.micro_batches: a step needs at least 1 micro-batch, not ", micro_batches));
  }
  if (!windows.empty() && windows.size() != static_cast<std::size_t>(stages)) {
    return absl::InvalidArgumentError(absl::StrCat("schedule.windows: ", windows.size(), " windows for ", stages,
                                                   " stages; give one per stage, or none for automatic ones"));
  }
  std::vector<int> resolved(stages);
  for (int s = 0; s < stages; ++s) {
    int window = kind == v1::Schedule::GPIPE ? micro_batches : stages - s;
    if (!windows.empty()) window = windows[s];
    if (window < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule.windows: ", window, " at stage ", s, "; a window is at least 1"));
    }
    resolved[s] = std::min(window, s == 0 ? micro_batches : resolved[s - 1]);
  }
  return resolved;
}

std::vector<Program> TrainingPrograms(int micro_batches, absl::Span<const int> windows) {
  std::vector<Program> programs;
  programs.reserve(windows.size());
  for (int window : windows) {
    Program& program = programs.emplace_back();
    int forwarded = 0;
    auto forward = [&] { program.push_back({Action::Kind::kForward, forwarded++}); };
    const int ahead = std::min(std::max(window, 1), micro_batches);
    while (forwarded < ahead) forward();
    for (int backward = 0; backward < micro_batches; ++backward) {
      program.push_back({Action::Kind::kBackward, backward});
      if (forwarded < micro_batches) forward();
    }
  }
  return programs;
}

std::vector<Program> EvaluationPrograms(int stages, int micro_batches) {
  Program program;
  for (int m = 0; m < micro_batches; ++m) program.push_back({Action::Kind::kForward, m});
  return std::vector<Program>(std::max(stages, 0), program);
}

}  // namespace resbm::coordinator
