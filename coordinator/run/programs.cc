#include "coordinator/run/programs.h"

#include "coordinator/plan/schedule.h"

namespace resbm::coordinator {
namespace {

constexpr int kEvaluationWindow = 2;

std::vector<v1::DefineProgram> ToMessages(const std::vector<Program>& programs, v1::DefineProgram::Mode mode,
                                          absl::Span<const int> windows) {
  std::vector<v1::DefineProgram> messages;
  for (std::size_t s = 0; s < programs.size(); ++s) {
    v1::DefineProgram message;
    message.set_mode(mode);
    message.set_window(static_cast<std::uint32_t>(windows[s]));
    for (const Action& action : programs[s]) {
      v1::Action* a = message.add_actions();
      a->set_kind(action.kind == Action::Kind::kForward ? v1::Action::FORWARD : v1::Action::BACKWARD);
      a->set_micro_batch(static_cast<std::uint32_t>(action.micro_batch));
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace

std::vector<v1::DefineProgram> TrainingProgramMessages(int micro_batches, absl::Span<const int> windows) {
  return ToMessages(TrainingPrograms(micro_batches, windows), v1::DefineProgram::TRAIN, windows);
}

std::vector<v1::DefineProgram> EvaluationProgramMessages(int stages, int micro_batches) {
  return ToMessages(EvaluationPrograms(stages, micro_batches), v1::DefineProgram::EVALUATE,
                    std::vector<int>(stages, kEvaluationWindow));
}

}  // namespace resbm::coordinator
