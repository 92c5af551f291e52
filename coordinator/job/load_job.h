// Reads a job file (Protocol Buffers text format of proto/resbm/v1/job.proto; docs/job.md) and applies
// --set options to it. Knows nothing of what the fields mean: see unsupported.h and validate.h.
#ifndef RESBM_COORDINATOR_JOB_LOAD_JOB_H_
#define RESBM_COORDINATOR_JOB_LOAD_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/job/source_map.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

struct LoadedJob {
  v1::Job job;
  SourceMap locations;
};

// `overrides` are values of --set, "boundary.ratio=8" (set_field.h), applied in order. NOT_FOUND: no such
// file. INVALID_ARGUMENT: a folder, unreadable, over 1 MiB; or what is wrong with the text, one line each,
// "job.textproto:14:3: boundary: no field "rato"; did you mean "ratio"?"; or a bad override, "--set rato=8:
// no field ...".
absl::StatusOr<LoadedJob> LoadJob(const std::string& path, absl::Span<const std::string> overrides);

// The same from text; `file_name` stands in messages.
absl::StatusOr<LoadedJob> ParseJob(const std::string& text, const std::string& file_name,
                                   absl::Span<const std::string> overrides);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_LOAD_JOB_H_
