#include "tests/model/support/boundary_variants.h"

#include <functional>

namespace resbm::model {

void SetCodecs(BoundarySpec& spec, WireCodec activations, WireCodec gradients) {
  if (spec.wire.empty()) spec.wire = {{.name = "z"}};
  spec.wire[0].activation_codec = activations;
  spec.wire[0].gradient_codec = gradients;
}

std::vector<BoundaryVariant> BoundaryVariants() {
  std::vector<BoundaryVariant> variants;
  const auto add = [&](const std::string& name, const std::function<void(BoundarySpec&)>& change) {
    BoundaryVariant variant;
    variant.name = name;
    variant.spec.norm_groups = 2;
    SetCodecs(variant.spec, WireCodec::kFp32, WireCodec::kFp32);
    change(variant.spec);
    variants.push_back(variant);
  };
  const auto kind = [](BoundaryKind kind) { return [kind](BoundarySpec& s) { s.kind = kind; }; };
  add("published", [](BoundarySpec&) {});
  add("no_shortcut", [](BoundarySpec& s) { s.shortcut = Shortcut::kNone; });
  add("transmit", [](BoundarySpec& s) { s.shortcut = Shortcut::kTransmit; });
  add("depth_1", [](BoundarySpec& s) { s.low_dim.depth = 1; });
  add("depth_3_width_2", [](BoundarySpec& s) { s.low_dim.depth = 3, s.low_dim.width = 2; });
  add("conv_conv_norm", [](BoundarySpec& s) { s.low_dim.order = LowDimOrder::kConvConvNorm; });
  add("squeeze_excite", [](BoundarySpec& s) { s.low_dim.attention = LowDimAttention::kSqueezeExcite; });
  add("self_attention", [](BoundarySpec& s) { s.low_dim.attention = LowDimAttention::kSelfAttention; });
  add("fan_in", [](BoundarySpec& s) { s.init = BoundaryInit::kKaimingFanIn, s.init_gain = 0.5; });
  add("tied_orthogonal", [](BoundarySpec& s) { s.init = BoundaryInit::kTiedOrthogonal; });
  add("stride", [](BoundarySpec& s) { s.stride = 2; });
  add("out_channels", [](BoundarySpec& s) { s.out_channels = 24; });
  add("linear", kind(BoundaryKind::kLinear));
  add("identity_block", kind(BoundaryKind::kIdentityBlock));
  add("bottleneck", [](BoundarySpec& s) { s.kind = BoundaryKind::kBottleneck, s.output_norm_groups = 8; });
  add("top_k", kind(BoundaryKind::kTopK));
  return variants;
}

std::vector<BoundaryVariant> LayerVariants() {
  std::vector<BoundaryVariant> variants;
  const auto add = [&](const std::string& name, Shortcut shortcut, int out_channels, int stride) {
    BoundaryVariant variant;
    variant.name = name;
    variant.spec.norm_groups = 2;
    variant.spec.shortcut = shortcut;
    variant.spec.out_channels = out_channels;
    variant.spec.stride = stride;
    variants.push_back(variant);
  };
  add("layer_direct", Shortcut::kDirect, 16, 1);
  add("layer_projected", Shortcut::kProjected, 24, 2);
  add("layer_reconstruct", Shortcut::kReconstruct, 24, 1);
  add("layer_none", Shortcut::kNone, 16, 1);
  return variants;
}

WholeModel VariantResnet(const BoundaryVariant& variant, WireCodec activations, WireCodec gradients) {
  BoundarySpec spec = variant.spec;
  SetCodecs(spec, activations, gradients);
  SgdOptions sgd;
  sgd.momentum = 0.9;
  sgd.weight_decay = 5e-4;
  return ModelBuilder({1, 12, 12})
      .Stem(16, 1, 4)
      .With(spec, variant.ratio)
      .Block("group0.0", 16, 1, 4)
      .With(spec, variant.ratio)
      .Block("group0.1", 16, 1, 4)
      .With(spec, variant.ratio)
      .Block("group1.0", 16, 1, 4)
      .Pool()
      .Dense("head", 5, false)
      .Optimizer(sgd)
      .Build();
}

}  // namespace resbm::model
