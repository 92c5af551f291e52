// Language models in a v1::StageSpec: every field comes over, what is not known is refused.
#include "stage_server/compute/spec_from_proto.h"

#include <functional>
#include <variant>

#include <gtest/gtest.h>

#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

void Fill(v1::DecoderBlock* block) {
  block->set_width(64);
  block->set_heads(4);
  block->set_hidden(192);
  block->set_dropout(0.25);
  block->set_rotary_base(5000);
  block->set_norm_epsilon(1e-6);
  block->set_mlp_in_boundary(true);
}

v1::StageSpec Gpt() {
  v1::StageSpec spec = MakeSpec(1, 3);
  spec.clear_layers();
  v1::TokenEmbedding* embedding = spec.add_layers()->mutable_token_embedding();
  embedding->set_vocabulary(256);
  embedding->set_width(64);
  embedding->set_dropout(0.125);
  v1::LayerSpec* block = spec.add_layers();
  block->set_name("block0");
  block->set_recompute(true);
  Fill(block->mutable_decoder_block());
  v1::LanguageHead* head = spec.add_layers()->mutable_language_head();
  head->set_width(64);
  head->set_vocabulary(255);
  head->set_norm_epsilon(1e-4);
  v1::BoundarySpec* boundary = spec.mutable_boundaries(0);
  boundary->set_kind(v1::BoundarySpec::IN_BRANCH);
  boundary->set_projection(v1::BoundarySpec::LEARNED);
  Fill(boundary->mutable_decoder_block());
  boundary->set_recompute(true);
  return spec;
}

void ExpectFilled(const model::DecoderBlock& block) {
  EXPECT_EQ(block.width, 64);
  EXPECT_EQ(block.heads, 4);
  EXPECT_EQ(block.hidden, 192);
  EXPECT_EQ(block.dropout, 0.25);
  EXPECT_EQ(block.rotary_base, 5000);
  EXPECT_EQ(block.norm_epsilon, 1e-6);
  EXPECT_FALSE(block.attention_in_boundary);
  EXPECT_TRUE(block.mlp_in_boundary);
}

TEST(TransformerFromProto, CarriesEveryFieldOver) {
  const auto spec = SpecFromProto(Gpt());
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto& embedding = std::get<model::TokenEmbedding>(spec->layers[0].kind);
  EXPECT_EQ(embedding.vocabulary, 256);
  EXPECT_EQ(embedding.width, 64);
  EXPECT_EQ(embedding.dropout, 0.125);
  ExpectFilled(std::get<model::DecoderBlock>(spec->layers[1].kind));
  EXPECT_TRUE(spec->layers[1].recompute);
  const auto& head = std::get<model::LanguageHead>(spec->layers[2].kind);
  EXPECT_EQ(head.width, 64);
  EXPECT_EQ(head.vocabulary, 255);
  EXPECT_EQ(head.norm_epsilon, 1e-4);
  EXPECT_EQ(spec->boundaries[0].kind, model::BoundaryKind::kInBranch);
  EXPECT_EQ(spec->boundaries[0].projection, model::Projection::kLearned);
  EXPECT_TRUE(spec->boundaries[0].recompute);
  ExpectFilled(spec->boundaries[0].decoder_block);
}

TEST(TransformerFromProto, TakesEveryProjectionOfBothPlacements) {
  v1::StageSpec proto = Gpt();
  for (const auto kind : {v1::BoundarySpec::IN_BRANCH, v1::BoundarySpec::ADAPTER}) {
    proto.mutable_boundaries(0)->set_kind(kind);
    for (const auto& [projection, wanted] : {std::pair(v1::BoundarySpec::TRUNCATE, model::Projection::kTruncate),
                                             std::pair(v1::BoundarySpec::ORTHOGONAL, model::Projection::kOrthogonal),
                                             std::pair(v1::BoundarySpec::LEARNED, model::Projection::kLearned)}) {
      proto.mutable_boundaries(0)->set_projection(projection);
      const auto spec = SpecFromProto(proto);
      ASSERT_TRUE(spec.ok()) << spec.status();
      EXPECT_EQ(spec->boundaries[0].projection, wanted);
    }
  }
  EXPECT_EQ(SpecFromProto(proto)->boundaries[0].kind, model::BoundaryKind::kAdapter);
}

TEST(TransformerFromProto, TakesTheResidualBottleneckAsALayer) {
  v1::StageSpec proto = Gpt();
  v1::BoundarySpec* block = proto.add_layers()->mutable_resbm();
  block->set_kind(v1::BoundarySpec::RESBM);
  block->set_crossing_channels(4);
  block->set_shortcut(v1::BoundarySpec::PROJECTED);
  auto spec = SpecFromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(std::get<model::ResbmLayer>(spec->layers[3].kind).block.crossing_channels, 4);
  EXPECT_EQ(std::get<model::ResbmLayer>(spec->layers[3].kind).block.shortcut, model::Shortcut::kProjected);
  block->set_shortcut(v1::BoundarySpec::DIRECT);
  spec = SpecFromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(std::get<model::ResbmLayer>(spec->layers[3].kind).block.shortcut, model::Shortcut::kDirect);
}

TEST(TransformerFromProto, RefusesWhatItDoesNotKnowAndSaysWhere) {
  const struct {
    std::function<void(v1::StageSpec*)> spoil;
    const char* says;
  } cases[] = {
      {[](v1::StageSpec* s) { s->mutable_boundaries(0)->clear_projection(); }, "boundary \"fc0\": projection 0"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(0)->mutable_decoder_block()->set_heads(0xffffffff); },
       "boundary \"fc0\": heads is 4294967295"},
      {[](v1::StageSpec* s) { s->mutable_layers(1)->mutable_decoder_block()->set_hidden(0x80000000); },
       "layer 0 \"block0\": hidden is 2147483648"},
      {[](v1::StageSpec* s) { s->mutable_layers(0)->mutable_token_embedding()->set_vocabulary(0x80000000); },
       "vocabulary is 2147483648"},
      {[](v1::StageSpec* s) { s->mutable_boundaries(0)->set_kept(~std::uint64_t{0}); }, "boundary \"fc0\": kept is"},
  };
  for (const auto& c : cases) {
    v1::StageSpec proto = Gpt();
    c.spoil(&proto);
    const auto spec = SpecFromProto(proto);
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << c.says;
    EXPECT_NE(spec.status().message().find(c.says), absl::string_view::npos) << spec.status();
  }
}

}  // namespace
}  // namespace resbm::stage_server::testing
