// v1::StageSpec as model/'s structs, which know no protobuf.
#ifndef RESBM_STAGE_SERVER_COMPUTE_SPEC_FROM_PROTO_H_
#define RESBM_STAGE_SERVER_COMPUTE_SPEC_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "model/spec.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

// INVALID_ARGUMENT, naming the layer or boundary and the field: a kind that is not set, a number that an int
// does not hold, an unknown codec, optimizer or loss. Whether it all fits together is the model's to say.
absl::StatusOr<model::StageSpec> SpecFromProto(const v1::StageSpec& spec);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_COMPUTE_SPEC_FROM_PROTO_H_
