// Which kinds of boundaries stand after which kinds of layers. A part of model_plan.
#ifndef RESBM_COORDINATOR_PLAN_BOUNDARY_KINDS_H_
#define RESBM_COORDINATOR_PLAN_BOUNDARY_KINDS_H_

#include <string>
#include <vector>

#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

// What a layer gives, by the number of its dimensions: values, [tokens, width], [channels, height, width].
enum class Form { kValues = 1, kSequence = 2, kImage = 3 };

Form FormOf(const v1::LayerSpec& layer);
// "a sequence".
std::string Describe(Form form);

struct KindInfo {
  v1::Boundary::Kind kind;
  v1::BoundarySpec::Kind spec_kind;
  std::vector<Form> takes;

  bool Takes(Form form) const;
};

const KindInfo& InfoOf(v1::Boundary::Kind kind);

// Other kinds may change the channels and the size of an image.
bool KeepsShape(v1::Boundary::Kind kind, Form form);

// "IDENTITY, LINEAR or TOPK": the kinds that fit there.
std::string KindsFor(Form form);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_BOUNDARY_KINDS_H_
