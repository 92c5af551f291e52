// Whether a job makes sense as a whole. Everything that is wrong with it is found and said at once.
#ifndef RESBM_COORDINATOR_JOB_VALIDATE_H_
#define RESBM_COORDINATOR_JOB_VALIDATE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/job/field_errors.h"
#include "coordinator/job/load_job.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// `requested_stages` is how many --stages, else --local-stages, if the command line says so; it beats the
// job's partition. Files are not touched: whether the data is there is the readers' concern.
FieldErrors FindErrors(const v1::Job& job, std::optional<int> requested_stages);

// INVALID_ARGUMENT: one line per error, "job.textproto:14: boundary.ratio: 24 does not divide ...".
absl::Status ValidateJob(const LoadedJob& loaded, std::optional<int> requested_stages);

// LoadJob, CheckSupported and ValidateJob in a row; errors as theirs (all of them mean exit code 2).
absl::StatusOr<LoadedJob> LoadValidJob(const std::string& path, absl::Span<const std::string> overrides,
                                       std::optional<int> requested_stages);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_VALIDATE_H_
