// The fields of the job file with everything that is said about them in proto/resbm/v1/job.proto: types,
// defaults and marks come from the compiled schema, comments from a descriptor set with source information
// that the build makes of the same file and embeds.
#ifndef RESBM_COORDINATOR_JOB_FIELD_DOCS_H_
#define RESBM_COORDINATOR_JOB_FIELD_DOCS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

struct ValueDoc {
  std::string name;
  std::string comment;
  std::string unsupported;  // why it cannot be chosen; empty if it can
};

struct FieldDoc {
  std::string path;                   // "cut_point[i].boundary.ratio"
  std::string name;                   // its last part
  int depth = 0;                      // below where the listing starts
  std::string type;                   // "int32", "enum", "message", "list of string"
  std::string default_value;          // empty: none
  std::string comment;                // sentences on one line
  std::string unsupported;            // why it cannot be set; empty if it can
  std::vector<ValueDoc> values;       // of an enum
  std::vector<std::string> excludes;  // other members of its oneof
  std::string same_as;                // path where the fields of its message are listed instead; empty: they follow
};

// In the order of the schema, each message before its fields. `path` starts the listing at that field
// ("boundary", "cut_point.wire"; indices may be there and do not matter); empty: the whole job.
// INVALID_ARGUMENT: no such field, with the nearest name.
absl::StatusOr<std::vector<FieldDoc>> ListFields(absl::string_view path);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_FIELD_DOCS_H_
