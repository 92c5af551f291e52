// What a stage does at the moment, in a few words for people.
#ifndef RESBM_COORDINATOR_STATUS_DOING_H_
#define RESBM_COORDINATOR_STATUS_DOING_H_

#include <string>

#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// Who is at that end of the stage: "stage 1", or "coordinator".
std::string NeighbourName(const v1::DescribeReply& stage, v1::Direction direction);

// "step 41: waits 12 s for micro-batch 3 from stage 1: link 1 is down", "step 41: computes, 3 forward and 2 backward
// are done", "free".
std::string Doing(const v1::DescribeReply& stage);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_STATUS_DOING_H_
