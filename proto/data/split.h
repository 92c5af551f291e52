// Which part of the data.
#ifndef RESBM_PROTO_DATA_SPLIT_H_
#define RESBM_PROTO_DATA_SPLIT_H_

namespace resbm::data {

enum class Split { kTrain, kTest };

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_SPLIT_H_
