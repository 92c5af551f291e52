#include "stage_server/core/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace resbm::stage_server {

absl::StatusOr<Program> Program::FromProto(const v1::DefineProgram& definition) {
  const auto invalid = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat("program ", definition.program_id(), ": ", text...));
  };
  Program program;
  switch (definition.mode()) {
    case v1::DefineProgram::TRAIN: break;
    case v1::DefineProgram::EVALUATE: program.evaluation = true; break;
    default: return invalid("mode is neither TRAIN nor EVALUATE");
  }
  if (definition.actions_size() == 0) return invalid("it has no actions");
  if (definition.actions_size() > kMaxActions) {
    return invalid(definition.actions_size(), " actions, at most ", kMaxActions, " are allowed");
  }
  if (definition.window() == 0) return invalid("window is 0; at least 1 micro-batch must be allowed in flight");
  program.window = definition.window();

  // Forwards and backwards ascend: what a neighbour sends next is then known without its program, and
  // gradient sums are added in one order under every schedule.
  std::uint32_t forwards = 0;
  std::uint32_t backwards = 0;
  program.actions.reserve(definition.actions_size());
  for (int i = 0; i < definition.actions_size(); ++i) {
    const v1::Action& action = definition.actions(i);
    const std::uint32_t micro_batch = action.micro_batch();
    if (action.kind() == v1::Action::FORWARD) {
      if (micro_batch != forwards) {
        return invalid("action ", i, " forwards micro-batch ", micro_batch, " where ", forwards,
                       " is next; each is forwarded once, ascending");
      }
      ++forwards;
    } else if (action.kind() == v1::Action::BACKWARD) {
      if (program.evaluation) return invalid("action ", i, " is a backward; an evaluation has forwards only");
      if (micro_batch != backwards) {
        return invalid("action ", i, " takes micro-batch ", micro_batch, " backward where ", backwards,
                       " is next; each goes backward once, ascending");
      }
      if (micro_batch >= forwards) {
        return invalid("action ", i, " takes micro-batch ", micro_batch, " backward before its forward");
      }
      ++backwards;
    } else {
      return invalid("action ", i, " is neither FORWARD nor BACKWARD");
    }
    if (!program.evaluation) {
      const std::uint32_t in_flight = forwards - backwards;
      if (in_flight > program.window) {
        return invalid("action ", i, " puts ", in_flight, " micro-batches in flight, its window is ", program.window);
      }
      program.most_in_flight = std::max(program.most_in_flight, in_flight);
    }
    program.actions.push_back({action.kind() == v1::Action::BACKWARD, micro_batch});
  }
  if (!program.evaluation && backwards != forwards) {
    return invalid("micro-batch ", backwards, " is forwarded and never taken backward");
  }
  program.micro_batches = forwards;
  return program;
}

}  // namespace resbm::stage_server
