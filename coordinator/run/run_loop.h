// The loop around a RunDriver: what comes in, then the time.
#ifndef RESBM_COORDINATOR_RUN_RUN_LOOP_H_
#define RESBM_COORDINATOR_RUN_RUN_LOOP_H_

#include "coordinator/run/event_queue.h"
#include "coordinator/run/run_driver.h"
#include "proto/base/clock.h"

namespace resbm::coordinator {

// Runs the events, which call `driver`, until it has finished. The driver judges the time only when everything
// that has come in was handled; time in which nobody looked at the queue (Ctrl-Z) does not count.
void RunUntilFinished(EventQueue* events, const Clock& clock, RunDriver* driver);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_RUN_LOOP_H_
