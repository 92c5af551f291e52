// v1::BoundarySpec as model/'s struct. A part of spec_from_proto.
#ifndef RESBM_STAGE_SERVER_COMPUTE_BOUNDARY_FROM_PROTO_H_
#define RESBM_STAGE_SERVER_COMPUTE_BOUNDARY_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "model/spec.h"
#include "proto/resbm/v1/layer.pb.h"
#include "stage_server/compute/checked_ints.h"

namespace resbm::stage_server {

// low_dim, init and stride where they are absent: the residual bottleneck in its published form. INVALID_ARGUMENT,
// naming the field: a kind or value that is not known here, a number that an int does not hold.
absl::StatusOr<model::BoundarySpec> BoundaryFromProto(const v1::BoundarySpec& spec);

// `ints` remembers what an int does not hold.
model::DecoderBlock DecoderBlockFromProto(const v1::DecoderBlock& spec, Ints& ints);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_COMPUTE_BOUNDARY_FROM_PROTO_H_
