// What happened at a stage, as one line for its log.
#ifndef RESBM_STAGE_SERVER_HOST_EVENT_LINE_H_
#define RESBM_STAGE_SERVER_HOST_EVENT_LINE_H_

#include <functional>
#include <string>

#include "proto/resbm/v1/control.pb.h"
#include "stage_server/core/stage_machine.h"

namespace resbm::stage_server {

// kStep: once or twice a step, for those who ask for it.
enum class LogLevel { kStep, kInfo, kWarning, kError };
// Any thread.
using LogFunction = std::function<void(LogLevel, const std::string&)>;

// "job=run-1 stage=1/3 fence=1.2 step=40"
std::string WhereLine(const StageMachine& machine);
// "... computed: 3 non-finite values". Empty for events that are not logged (Progress).
std::string EventLine(const v1::ControlEvent& event);
LogLevel EventLevel(const v1::ControlEvent& event);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_EVENT_LINE_H_
