// The job schema is complete; this version is not. What it cannot do yet is refused, never ignored.
#ifndef RESBM_COORDINATOR_JOB_UNSUPPORTED_H_
#define RESBM_COORDINATOR_JOB_UNSUPPORTED_H_

#include "absl/status/status.h"
#include "coordinator/job/field_errors.h"
#include "coordinator/job/load_job.h"
#include "google/protobuf/message.h"

namespace resbm::coordinator {

// Fields marked (unsupported) that are set to something else than their default (a message or a list: set
// at all), and enum values marked (unsupported_value), at any depth.
FieldErrors FindUnsupported(const google::protobuf::Message& message);

// UNIMPLEMENTED: one line each, "job.textproto:20: checkpoint.every_steps: checkpoints in mid-run are not implemented".
absl::Status CheckSupported(const LoadedJob& loaded);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_UNSUPPORTED_H_
