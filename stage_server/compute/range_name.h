// What a piece of work is called on a profiler's timeline.
#ifndef RESBM_STAGE_SERVER_COMPUTE_RANGE_NAME_H_
#define RESBM_STAGE_SERVER_COMPUTE_RANGE_NAME_H_

#include <string>

#include "stage_server/core/work.h"

namespace resbm::stage_server {

// "F3 step 40" and "B3 step 40": forward and backward of micro-batch 3; "finish step 40", "commit step 40"; "E3": of an
// evaluation; "load", "drop", "save", "unload".
std::string RangeName(const Work& work);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_COMPUTE_RANGE_NAME_H_
