// Numbers of a peer's message as ints.
#ifndef RESBM_STAGE_SERVER_COMPUTE_CHECKED_INTS_H_
#define RESBM_STAGE_SERVER_COMPUTE_CHECKED_INTS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace resbm::stage_server {

// Reads the ints of one message; remembers the first that is too large.
class Ints {
 public:
  int operator()(const char* field, std::uint32_t value) {
    if (value > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
      if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(field, " is ", value));
      return 0;
    }
    return static_cast<int>(value);
  }
  // INVALID_ARGUMENT, naming the field.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_COMPUTE_CHECKED_INTS_H_
