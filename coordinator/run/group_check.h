// Whether the job's parameter groups are of parameters that are there: only stages know their names.
#ifndef RESBM_COORDINATOR_RUN_GROUP_CHECK_H_
#define RESBM_COORDINATOR_RUN_GROUP_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// INVALID_ARGUMENT: a pattern that no parameter of any stage matches (names the field and the nearest parameter), which
// would otherwise do nothing without a word.
absl::Status CheckParameterGroups(const v1::Optimizer& optimizer, const std::vector<v1::Ready>& stages);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_GROUP_CHECK_H_
