// A small decoder-only language model with any of its boundaries, and token batches for it. Torch-free.
#ifndef RESBM_TESTS_MODEL_SUPPORT_GPT_H_
#define RESBM_TESTS_MODEL_SUPPORT_GPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {

struct GptOptions {
  BoundaryKind kind = BoundaryKind::kInBranch;
  Projection projection = Projection::kTruncate;
  double dropout = 0;
  int ratio = 4;
  WireCodec codec = WireCodec::kFp16;
  OptimizerOptions optimizer = AdamWOptions();
  int context = 8;
};

// The kinds of boundary that sequences take; the projections of each, a name of letters to call it by.
struct GptVariant {
  std::string name;
  BoundaryKind kind = BoundaryKind::kInBranch;
  Projection projection = Projection::kTruncate;
};
std::vector<GptVariant> GptVariants();

// Vocabulary 13, width 16, 2 heads, hidden 24: "embedding", "block0" to "block3", "head"; the boundary after each of
// "block0", "block1", "block2": up to 4 stages.
WholeModel SmallGpt(const GptOptions& options);

// The same with the logits flattened for a loss of classes, and an IDENTITY boundary between: cut there, its first
// stage gives logits [context, 13].
WholeModel SmallGptThatShowsItsLogits(const GptOptions& options);

// Random tokens and next tokens, the same for the same seed however they are split, sizes as torch.tensor_split.
// valid_tokens: of each micro-batch, how many labels from its first are not masked; empty: all but about one in eight.
// The samples' indices follow from the seed.
Batch MakeTokenBatch(const WholeModel& model, int samples, int micro_batches, std::uint32_t seed,
                     const std::vector<int>& valid_tokens = {});

}  // namespace resbm::model

#endif  // RESBM_TESTS_MODEL_SUPPORT_GPT_H_
