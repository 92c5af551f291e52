// Who holds a run up. Pure.
#ifndef RESBM_COORDINATOR_RUN_BLAME_H_
#define RESBM_COORDINATOR_RUN_BLAME_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// What the coordinator last heard of a stage.
struct StageSign {
  absl::Duration since_heard;                  // since any message of it
  std::optional<v1::WaitingFor> waiting_for;   // absent: it computes
  bool done = false;                           // its part of the work is over: it has nothing more to say
};

struct Blame {
  // -1: the coordinator's own link 0; as many as there are stages: its link P.
  int stage = 0;
  std::string reason;
};

// The silent stage (nothing heard for 5 s; stages at work report every second), else the end of the chain of
// waiting_for, else the stage that computes. A stage that is done is at most the far end of a link on which
// what it sent does not arrive.
Blame FindBlame(absl::Span<const StageSign> stages);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_BLAME_H_
