// Which parameters Muon takes: the rest go to AdamW.
#ifndef RESBM_MODEL_PARAMETER_GROUPS_H_
#define RESBM_MODEL_PARAMETER_GROUPS_H_

#include "model/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// Whether it is a weight of two or more dimensions of a boundary or of a hidden layer. Not: the stem and
// embeddings, which read data; the model's last layer, which makes logits; norms, scales and biases. The answer
// for a parameter is the same at every number of stages.
bool MuonTakes(const StageSpec& spec, const Parameter& parameter);

}  // namespace resbm::model

#endif  // RESBM_MODEL_PARAMETER_GROUPS_H_
