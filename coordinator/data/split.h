// Which part of the data.
#ifndef RESBM_COORDINATOR_DATA_SPLIT_H_
#define RESBM_COORDINATOR_DATA_SPLIT_H_

namespace resbm::coordinator {

enum class Split { kTrain, kTest };

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_DATA_SPLIT_H_
