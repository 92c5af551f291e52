// What happened at a stage, as one line for its log: for people or for programs, with the same fields.
#ifndef RESBM_STAGE_SERVER_HOST_EVENT_LINE_H_
#define RESBM_STAGE_SERVER_HOST_EVENT_LINE_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "proto/resbm/v1/control.pb.h"
#include "stage_server/core/stage_machine.h"

namespace resbm::stage_server {

// kStep: once or twice a step, for those who ask for it.
enum class LogLevel { kStep, kInfo, kWarning, kError };

struct LogEvent {
  LogEvent(LogLevel event_level, std::string event_name) : level(event_level), name(std::move(event_name)) {}

  LogEvent& With(const char* key, nlohmann::ordered_json value) {
    fields[key] = std::move(value);
    return *this;
  }

  LogLevel level;
  // One word: "link_disconnected".
  std::string name;
  // Strings and numbers by name, in the order in which they are shown.
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
};

// Any thread.
using LogFunction = std::function<void(const LogEvent&)>;

// Whose the stage is: job, stage, stages, fence and step; none where it is free.
nlohmann::ordered_json Where(const StageMachine& machine);
// nullopt for events that are not logged (Progress).
std::optional<LogEvent> ToLogEvent(const v1::ControlEvent& event);

// link_disconnected job=run-1 stage=1 step=40 error="UNAVAILABLE: the peer went away"
std::string TextLine(const LogEvent& event);
// The inside of a JSON object, without its braces: "event":"link_disconnected","job":"run-1","stage":1
// What is no UTF-8 is replaced.
std::string JsonFields(const LogEvent& event);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_EVENT_LINE_H_
