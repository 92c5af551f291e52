// --set path=value: changes one field of a message, whatever its type.
//
//   boundary.ratio=8                  nested; messages on the way are made
//   boundary.kind=IDENTITY            an enum by name
//   cut_point[1].boundary.ratio=8     an entry of a repeated field, also written cut_point.1.boundary.ratio
//   cut_point[2].after=group1.0       index == size appends
//   optimizer.sgd.momentum=0.9        chooses the member of a oneof and drops the other
//   data.mnist.directory=/data/mnist  strings without quotes
//   batch={samples: 8}                a whole message, in text format; replaces what was there
//   schedule.windows=[4, 2]           a whole repeated field
#ifndef RESBM_COORDINATOR_JOB_SET_FIELD_H_
#define RESBM_COORDINATOR_JOB_SET_FIELD_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace resbm::coordinator {

// Returns the path in its usual form ("cut_point[1].after"). INVALID_ARGUMENT, and `root` is as before: no
// "=", a field or index that does not exist (names the nearest), a value of another type (says which is
// expected, or lists the enum's values).
absl::StatusOr<std::string> SetField(absl::string_view setting, google::protobuf::Message& root);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_SET_FIELD_H_
