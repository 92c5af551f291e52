// Checks of the fields that say how to train: batch, optimizer, learning rate, run, timeouts. A part of
// validate.
#ifndef RESBM_COORDINATOR_JOB_VALIDATE_TRAINING_H_
#define RESBM_COORDINATOR_JOB_VALIDATE_TRAINING_H_

#include "coordinator/job/field_errors.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

void CheckBatch(const v1::Batch& batch, FieldErrors& errors);
void CheckOptimizer(const v1::Optimizer& optimizer, FieldErrors& errors);
void CheckRun(const v1::Run& run, FieldErrors& errors);
void CheckTimeouts(const v1::Timeouts& timeouts, FieldErrors& errors);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_VALIDATE_TRAINING_H_
