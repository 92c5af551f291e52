// What is wrong with a job, field by field: a job is checked to the end, and all that was found is said at
// once.
#ifndef RESBM_COORDINATOR_JOB_FIELD_ERRORS_H_
#define RESBM_COORDINATOR_JOB_FIELD_ERRORS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace resbm::coordinator {

// `path` as in "cut_point[1].boundary.ratio"; empty for the job as a whole.
struct FieldError {
  std::string path;
  std::string text;

  friend bool operator==(const FieldError&, const FieldError&) = default;
};

class FieldErrors {
 public:
  // The text is the parts put together.
  template <typename... Parts>
  void Add(std::string path, const Parts&... parts) {
    errors_.push_back({std::move(path), absl::StrCat(parts...)});
  }

  bool empty() const { return errors_.empty(); }
  const std::vector<FieldError>& errors() const { return errors_; }

  // One line each, "path: text", for where no file is known.
  std::string ToString() const {
    std::string lines;
    for (const FieldError& e : errors_) {
      absl::StrAppend(&lines, lines.empty() ? "" : "\n", e.path, e.path.empty() ? "" : ": ", e.text);
    }
    return lines;
  }

 private:
  std::vector<FieldError> errors_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_FIELD_ERRORS_H_
