// Protocol Buffers text format with errors for people: all unknown fields are found in one go, each with
// the nearest known name, and positions are those of the word that is wrong.
#ifndef RESBM_COORDINATOR_JOB_PARSE_TEXT_H_
#define RESBM_COORDINATOR_JOB_PARSE_TEXT_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace resbm::coordinator {

// Line and column count from 1.
struct TextError {
  int line = 1;
  int column = 1;
  std::string text;
};

// Fills `message` (cleared first) and, if given, `locations`. Empty: all well. Parsing ends at the first
// error that is not an unknown field, so there is at most one of those. Any text is safe to give.
std::vector<TextError> ParseText(const std::string& text, google::protobuf::Message& message,
                                 google::protobuf::TextFormat::ParseInfoTree* locations = nullptr);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_PARSE_TEXT_H_
