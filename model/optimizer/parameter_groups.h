// How each parameter is trained: by Muon or AdamW, at what share of the rate, with what decay.
#ifndef RESBM_MODEL_OPTIMIZER_PARAMETER_GROUPS_H_
#define RESBM_MODEL_OPTIMIZER_PARAMETER_GROUPS_H_

#include "model/optimizer/optimizer.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// Whether it is a weight of two or more dimensions of a boundary or of a hidden layer. Not: the stem and
// embeddings, which read data; the model's last layer, which makes logits; norms, scales and biases; projections that
// are kept orthonormal, which every step would turn as a whole. The answer for a parameter is the same at every number
// of stages.
bool MuonTakes(const StageSpec& spec, const Parameter& parameter);

// With the first of the spec's parameter groups whose pattern its name matches.
OptimizedParameter InGroup(const StageSpec& spec, const Parameter& parameter);

}  // namespace resbm::model

#endif  // RESBM_MODEL_OPTIMIZER_PARAMETER_GROUPS_H_
