// A job as flat fields, to say in which ones two jobs differ.
#ifndef RESBM_COORDINATOR_COMPARE_JOB_FIELDS_H_
#define RESBM_COORDINATOR_COMPARE_JOB_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// Path (as --set takes it) to value in text format. A field that holds its default is left out, but not within
// cut_point, where being set is what matters; an empty message that was chosen ("adamw {}") stands as "{}". One that is
// not set and means something else than its default (the ratio of a BOTTLENECK, the wire of bf16) stands as what it means.
std::map<std::string, std::string> JobFields(const v1::Job& job);

// Of the result of JobFields: the value of a field that is there, else its default, else "-" (within cut_point:
// not set there).
std::string FieldValue(const std::map<std::string, std::string>& fields, const std::string& path);

// Last part of a path: "boundary.ratio" -> "ratio".
std::string ShortName(const std::string& path);

struct FieldDifference {
  std::string path;
  std::string from, to;  // as FieldValue

  friend bool operator==(const FieldDifference&, const FieldDifference&) = default;
};

// In the order of the paths. `seed` and `name` are no difference: they say which run, not what is run.
std::vector<FieldDifference> JobDifferences(const v1::Job& from, const v1::Job& to);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_JOB_FIELDS_H_
