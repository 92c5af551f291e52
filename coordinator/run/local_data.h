// Jobs whose end stages read copies of the data of their own (data.local).
#ifndef RESBM_COORDINATOR_RUN_LOCAL_DATA_H_
#define RESBM_COORDINATOR_RUN_LOCAL_DATA_H_

#include "coordinator/run/run_setup.h"

namespace resbm::coordinator {

// Tells the end stages of setup->plan what to read and which hash it has. Nothing if the job does not ask for it. A
// pass over the data.
void AskForLocalData(RunSetup* setup);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_LOCAL_DATA_H_
