// Which runs a sweep consists of.
#ifndef RESBM_COORDINATOR_SWEEP_SWEEP_PLAN_H_
#define RESBM_COORDINATOR_SWEEP_SWEEP_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

struct SweepArm {
  std::string name;              // "ratio=8", "kind=IDENTITY"
  std::string value;             // "8"; empty for a baseline that is no value of the field
  std::vector<std::string> set;  // overrides, as --set takes them
};

struct SweepSpec {
  std::string field;
  std::vector<std::string> values;
  // An override ("boundary.kind=IDENTITY") for an arm that comes first; "none": the first value is the baseline.
  // Empty: uncompressed (boundary.kind=IDENTITY) for fields of a boundary or the wire, else none.
  std::string baseline;
};

// The baseline first, then the values in their order. INVALID_ARGUMENT: no values, one twice, no field.
absl::StatusOr<std::vector<SweepArm>> PlanSweep(const SweepSpec& spec);

// At commas outside of {}, [] and quotes. "4, 8" -> {"4", "8"}.
std::vector<std::string> SplitValues(absl::string_view text);

// For the name of a folder: what is not a letter, digit, '.', '-' or '_' becomes '_', and at most 80 characters stay.
std::string FolderName(absl::string_view name);
// Of each arm, in their order; those that would be the same are numbered.
std::vector<std::string> FolderNames(const std::vector<SweepArm>& arms);

// Whether both train the same model in the same way: what a cut point sets itself, a field of the job's boundary does
// not change, and some fields have no meaning for some kinds. Jobs that do not expand are not the same.
bool TrainTheSame(const v1::Job& a, const v1::Job& b);

// How many of `samples` training samples a fraction leaves: at least one batch, at most all.
std::int64_t FractionOfSamples(std::int64_t samples, double fraction, std::int64_t batch);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_SWEEP_SWEEP_PLAN_H_
