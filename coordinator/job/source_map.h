// Where each field of a job was set: a line of its file, or a --set option. Makes errors read
//   job.textproto:14: boundary.ratio: 24 does not divide 32 channels at "group0.1"; try 16 or 32
//
// Paths are field names joined by dots, with [index] at repeated fields: "cut_point[1].boundary.ratio".
#ifndef RESBM_COORDINATOR_JOB_SOURCE_MAP_H_
#define RESBM_COORDINATOR_JOB_SOURCE_MAP_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/job/field_errors.h"

namespace resbm::coordinator {

class SourceMap {
 public:
  // `file_name` stands in messages as it is given here.
  explicit SourceMap(std::string file_name = "job") : file_name_(std::move(file_name)) {}

  const std::string& file_name() const { return file_name_; }

  // `line` counts from 1.
  void RecordLine(const std::string& path, int line);

  // `setting` is the option's value, "boundary.ratio=24". Replaces what is known of the path and of
  // everything below it; messages on the way that nobody wrote count as set by it too.
  void RecordOverride(const std::string& path, absl::string_view setting);

  // "job.textproto:14", "--set boundary.ratio=24". A path that was not set is where the nearest message
  // around it was set, at last the file: "job.textproto".
  std::string Locate(absl::string_view path) const;

  // "location: path: text"
  std::string Describe(const FieldError& error) const;

  // OK when there are none; otherwise `code` with one line each: those of the file as a whole, then by
  // line, then those of options.
  absl::Status ToStatus(const FieldErrors& errors, absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;

 private:
  struct Location {
    int line = 0;        // 0: the file as a whole
    std::string option;  // not empty: set by it, not by the file
  };
  Location Find(absl::string_view path) const;

  std::string file_name_;
  std::map<std::string, Location, std::less<>> locations_;  // by path
};

// "a.b[1].c" -> "a.b[1]" -> "a.b" -> "a" -> "".
absl::string_view ParentPath(absl::string_view path);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_SOURCE_MAP_H_
