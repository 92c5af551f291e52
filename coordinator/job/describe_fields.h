// The job file explained: `resbm fields [path]`, and the reference in docs/job.md.
#ifndef RESBM_COORDINATOR_JOB_DESCRIBE_FIELDS_H_
#define RESBM_COORDINATOR_JOB_DESCRIBE_FIELDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// A tree for people: name, type, default, comment, values of enums, what is not implemented. `path` as in
// field_docs.h. INVALID_ARGUMENT: no such field.
absl::StatusOr<std::string> DescribeFields(absl::string_view path);

// The same for programs: a JSON array in the order of the schema, each with "path", "type", "default" (null: none),
// "comment", "unsupported" (null: can be set), "values" (of enums), "excludes" and "same_as" (null: its own fields).
absl::StatusOr<std::string> FieldsJson(absl::string_view path);

// The whole job as Markdown tables: one of the job's own fields, then one for each message among them.
std::string FieldTables();

// `page` with what stands between the lines kTablesBegin and kTablesEnd replaced by FieldTables().
// INVALID_ARGUMENT: a line is missing.
absl::StatusOr<std::string> WithFieldTables(const std::string& page);
inline constexpr char kTablesBegin[] =
    "<!-- Generated from proto/resbm/v1/job.proto by tests/coordinator/job:update_docs. -->\n";
inline constexpr char kTablesEnd[] = "<!-- End of the generated part. -->\n";

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_DESCRIBE_FIELDS_H_
