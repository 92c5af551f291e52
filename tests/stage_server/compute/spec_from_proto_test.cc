#include "stage_server/compute/spec_from_proto.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

v1::StageSpec Full() {
  v1::StageSpec spec = MakeSpec(1, 3);
  spec.clear_layers();
  v1::LayerSpec* stem = spec.add_layers();
  stem->set_index(1);
  stem->set_name("stem");
  stem->mutable_stem()->set_in_channels(1);
  stem->mutable_stem()->set_out_channels(32);
  stem->mutable_stem()->set_kernel(3);
  stem->mutable_stem()->set_stride(2);
  stem->mutable_stem()->set_norm_groups(8);
  stem->add_input_shape(1);
  stem->add_input_shape(28);
  stem->add_input_shape(28);
  v1::LayerSpec* block = spec.add_layers();
  block->set_index(2);
  block->set_name("group0.0");
  block->mutable_residual_block()->set_bottleneck(true);
  block->mutable_residual_block()->set_in_channels(32);
  block->mutable_residual_block()->set_out_channels(64);
  block->mutable_residual_block()->set_stride(2);
  block->mutable_residual_block()->set_norm_groups(8);
  block->mutable_residual_block()->set_inner_norm_groups(4);
  spec.add_layers()->mutable_global_pool();
  spec.add_layers()->mutable_flatten();
  v1::LayerSpec* head = spec.add_layers();
  head->mutable_linear()->set_in_features(64);
  head->mutable_linear()->set_out_features(10);
  head->mutable_linear()->set_relu(true);
  v1::BoundarySpec* boundary = spec.mutable_boundaries(0);
  boundary->set_kind(v1::BoundarySpec::RESBM);
  boundary->set_crossing_channels(2);
  boundary->set_norm_groups(1);
  boundary->mutable_wire(0)->set_activation_codec(v1::CODEC_FP16);
  boundary->mutable_wire(0)->set_gradient_codec(v1::CODEC_BF16);
  spec.add_input_mean(0.25f);
  spec.add_input_std(0.5f);
  return spec;
}

TEST(SpecFromProto, CarriesEveryFieldOver) {
  const auto spec = SpecFromProto(Full());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->stage, 1);
  EXPECT_EQ(spec->stages, 3);
  ASSERT_EQ(spec->layers.size(), 5u);
  EXPECT_EQ(spec->layers[0].index, 1);
  EXPECT_EQ(spec->layers[0].name, "stem");
  EXPECT_EQ(spec->layers[0].input_shape, (std::vector<std::int64_t>{1, 28, 28}));
  const auto& stem = std::get<model::ConvStem>(spec->layers[0].kind);
  EXPECT_EQ(stem.in_channels, 1);
  EXPECT_EQ(stem.out_channels, 32);
  EXPECT_EQ(stem.kernel, 3);
  EXPECT_EQ(stem.stride, 2);
  EXPECT_EQ(stem.norm_groups, 8);
  const auto& block = std::get<model::ResidualBlock>(spec->layers[1].kind);
  EXPECT_TRUE(block.bottleneck);
  EXPECT_EQ(block.in_channels, 32);
  EXPECT_EQ(block.out_channels, 64);
  EXPECT_EQ(block.stride, 2);
  EXPECT_EQ(block.norm_groups, 8);
  EXPECT_EQ(block.inner_norm_groups, 4);
  EXPECT_TRUE(std::holds_alternative<model::GlobalPool>(spec->layers[2].kind));
  EXPECT_TRUE(std::holds_alternative<model::Flatten>(spec->layers[3].kind));
  const auto& head = std::get<model::Linear>(spec->layers[4].kind);
  EXPECT_EQ(head.in_features, 64);
  EXPECT_EQ(head.out_features, 10);
  EXPECT_TRUE(head.relu);
  ASSERT_EQ(spec->boundaries.size(), 2u);
  EXPECT_EQ(spec->boundaries[0].cut_point, "fc0");
  EXPECT_EQ(spec->boundaries[0].kind, model::BoundaryKind::kResbm);
  EXPECT_EQ(spec->boundaries[0].crossing_channels, 2);
  EXPECT_EQ(spec->boundaries[0].norm_groups, 1);
  EXPECT_EQ(spec->boundaries[0].wire[0].activation_codec, WireCodec::kFp16);
  EXPECT_EQ(spec->boundaries[0].wire[0].gradient_codec, WireCodec::kBf16);
  EXPECT_EQ(spec->boundaries[0].wire[0].shape, (std::vector<std::int64_t>{kWidth}));
  EXPECT_EQ(spec->boundaries[1].kind, model::BoundaryKind::kIdentity);
  EXPECT_EQ(spec->boundaries[1].after_layer, 1);
  EXPECT_EQ(std::get<model::SgdOptions>(spec->optimizer).momentum, 0.9);
  EXPECT_EQ(spec->input_mean, std::vector<float>{0.25f});
  EXPECT_EQ(spec->input_std, std::vector<float>{0.5f});
  EXPECT_EQ(spec->input_shape, (std::vector<std::int64_t>{kWidth}));
}

TEST(SpecFromProto, CarriesEveryOptionOfABoundaryOver) {
  v1::StageSpec proto = Full();
  v1::BoundarySpec* boundary = proto.mutable_boundaries(0);
  boundary->set_kind(v1::BoundarySpec::IDENTITY_BLOCK);
  boundary->set_shortcut(v1::BoundarySpec::TRANSMIT);
  boundary->mutable_low_dim()->set_depth(3);
  boundary->mutable_low_dim()->set_width(4);
  boundary->mutable_low_dim()->set_order(v1::BoundarySpec::LowDim::CONV_CONV_NORM);
  boundary->mutable_low_dim()->set_attention(v1::BoundarySpec::LowDim::SELF_ATTENTION);
  boundary->mutable_init()->set_kind(v1::BoundarySpec::Init::TIED_ORTHOGONAL);
  boundary->mutable_init()->set_gain(0.5);
  boundary->set_stride(2);
  boundary->set_block_channels(5);
  boundary->set_output_norm_groups(6);
  const auto spec = SpecFromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const model::BoundarySpec& got = spec->boundaries[0];
  EXPECT_EQ(got.kind, model::BoundaryKind::kIdentityBlock);
  EXPECT_EQ(got.shortcut, model::Shortcut::kTransmit);
  EXPECT_EQ(got.low_dim.depth, 3);
  EXPECT_EQ(got.low_dim.width, 4);
  EXPECT_EQ(got.low_dim.order, model::LowDimOrder::kConvConvNorm);
  EXPECT_EQ(got.low_dim.attention, model::LowDimAttention::kSelfAttention);
  EXPECT_EQ(got.init, model::BoundaryInit::kTiedOrthogonal);
  EXPECT_EQ(got.init_gain, 0.5);
  EXPECT_EQ(got.stride, 2);
  EXPECT_EQ(got.block_channels, 5);
  EXPECT_EQ(got.output_norm_groups, 6);
}

TEST(SpecFromProto, OptionsThatAreAbsentGiveThePublishedBlock) {
  const auto spec = SpecFromProto(Full());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->boundaries[0].low_dim.depth, 2);
  EXPECT_EQ(spec->boundaries[0].low_dim.width, 1);
  EXPECT_EQ(spec->boundaries[0].shortcut, model::Shortcut::kReconstruct);
  EXPECT_EQ(spec->boundaries[0].stride, 1);
  EXPECT_EQ(spec->boundaries[0].init_gain, 1);
}

TEST(SpecFromProto, TakesAdamW) {
  v1::StageSpec proto = Full();
  v1::AdamWOptions* adamw = proto.mutable_optimizer()->mutable_adamw();
  adamw->set_beta1(0.8);
  adamw->set_beta2(0.95);
  adamw->set_epsilon(1e-6);
  adamw->set_weight_decay(0.1);
  const auto spec = SpecFromProto(proto);
  ASSERT_TRUE(spec.ok());
  const auto& options = std::get<model::AdamWOptions>(spec->optimizer);
  EXPECT_EQ(options.beta1, 0.8);
  EXPECT_EQ(options.beta2, 0.95);
  EXPECT_EQ(options.epsilon, 1e-6);
  EXPECT_EQ(options.weight_decay, 0.1);
}

TEST(SpecFromProto, TakesMuonWithItsAdamW) {
  v1::StageSpec proto = Full();
  v1::MuonOptions* muon = proto.mutable_optimizer()->mutable_muon();
  muon->set_momentum(0.8);
  muon->set_nesterov(true);
  muon->set_weight_decay(0.2);
  muon->set_ns_steps(4);
  muon->set_adjust(v1::MuonOptions::MATCH_RMS_ADAMW);
  muon->mutable_adamw()->set_beta2(0.95);
  muon->set_adamw_rate_ratio(0.25);
  const auto spec = SpecFromProto(proto);
  ASSERT_TRUE(spec.ok());
  const auto& options = std::get<model::MuonOptions>(spec->optimizer);
  EXPECT_EQ(options.momentum, 0.8);
  EXPECT_TRUE(options.nesterov);
  EXPECT_EQ(options.weight_decay, 0.2);
  EXPECT_EQ(options.ns_steps, 4);
  EXPECT_EQ(options.adjust, model::MuonOptions::Adjust::kMatchRmsAdamW);
  EXPECT_EQ(options.adamw.beta2, 0.95);
  EXPECT_EQ(options.adamw_rate_ratio, 0.25);
  muon->clear_adjust();
  EXPECT_FALSE(SpecFromProto(proto).ok());
}

TEST(SpecFromProto, RefusesWhatItDoesNotKnowAndSaysWhere) {
  const struct {
    std::function<void(v1::StageSpec*)> spoil;
    const char* says;
  } cases[] = {
      {[](v1::StageSpec* s) { s->mutable_layers(1)->clear_kind(); }, "layer 2 \"group0.0\": its kind is not known"},
      {[](v1::StageSpec* s) { s->mutable_layers(0)->mutable_stem()->set_kernel(0xffffffff); },
       "layer 1 \"stem\": kernel is 4294967295"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(0)->clear_kind(); }, "boundary \"fc0\": its kind"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(1)->mutable_wire(0)->set_gradient_codec(v1::CODEC_RAW); },
       "boundary \"fc1\": wire \"z\": gradient_codec is 4"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(1)->set_in_channels(0x80000000); }, "boundary \"fc1\": in_channels"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(0)->set_shortcut(static_cast<v1::BoundarySpec::Shortcut>(9)); },
       "boundary \"fc0\": shortcut 9"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(0)->mutable_low_dim()->set_depth(0xffffffff); },
       "boundary \"fc0\": low_dim.depth"},
      {[](v1::StageSpec* s) { s->clear_optimizer(); }, "the optimizer is not known"},
      {[](v1::StageSpec* s) { s->clear_loss(); }, "loss 0"},
      {[](v1::StageSpec* s) { s->set_stages(0xffffffff); }, "stages is 4294967295"},
  };
  for (const auto& c : cases) {
    v1::StageSpec proto = Full();
    c.spoil(&proto);
    const auto spec = SpecFromProto(proto);
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << c.says;
    EXPECT_NE(spec.status().message().find(c.says), absl::string_view::npos) << spec.status();
  }
}

}  // namespace
}  // namespace resbm::stage_server::testing
