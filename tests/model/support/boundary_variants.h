// One boundary of each kind and option, and a model that has it at three cuts. Torch-free.
#ifndef RESBM_TESTS_MODEL_SUPPORT_BOUNDARY_VARIANTS_H_
#define RESBM_TESTS_MODEL_SUPPORT_BOUNDARY_VARIANTS_H_

#include <string>
#include <vector>

#include "tests/model/support/models.h"

namespace resbm::model {

struct BoundaryVariant {
  std::string name;  // fit for a file's
  BoundarySpec spec;
  int ratio = 4;
};

// Of the first tensor that crosses, which is made if there is none.
void SetCodecs(BoundarySpec& spec, WireCodec activations, WireCodec gradients);

// Norms in two groups, codecs fp32.
std::vector<BoundaryVariant> BoundaryVariants();

// The block as a layer, with each of its shortcuts.
std::vector<BoundaryVariant> LayerVariants();

// 1x12x12 grey, stem of 16 channels, blocks "group0.0", "group0.1" of 16 and "group1.0" of 16 channels, pool, head of
// 5 classes; the variant after "stem", "group0.0" and "group0.1": up to 4 stages.
WholeModel VariantResnet(const BoundaryVariant& variant, WireCodec activations, WireCodec gradients);

}  // namespace resbm::model

#endif  // RESBM_TESTS_MODEL_SUPPORT_BOUNDARY_VARIANTS_H_
