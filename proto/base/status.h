// The two macros that this Abseil lacks, and a helper to say where an error happened.
#ifndef RESBM_PROTO_BASE_STATUS_H_
#define RESBM_PROTO_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define RESBM_RETURN_IF_ERROR(expr)                       \
  do {                                                    \
    if (absl::Status status_ = (expr); !status_.ok()) {   \
      return status_;                                     \
    }                                                     \
  } while (false)

#define RESBM_CONCAT_INNER_(a, b) a##b
#define RESBM_CONCAT_(a, b) RESBM_CONCAT_INNER_(a, b)
#define RESBM_ASSIGN_OR_RETURN(lhs, expr) RESBM_ASSIGN_OR_RETURN_IMPL_(RESBM_CONCAT_(status_or_, __LINE__), lhs, expr)
#define RESBM_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) {                                   \
    return std::move(tmp).status();                  \
  }                                                  \
  lhs = std::move(tmp).value()

namespace resbm {

// The same code, "prefix: message".
inline absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_STATUS_H_
