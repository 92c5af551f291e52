// The top-k baseline: which values cross, what returns, and indices that a peer made up.
#include "model/boundaries/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/model/support/boundary_variants.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

BoundarySpec Spec() {
  BoundarySpec spec;
  spec.kind = BoundaryKind::kTopK;
  spec.kept = 2;
  spec.input_shape = spec.output_shape = {1, 2, 2};
  spec.wire = {{.name = "values", .shape = {2}},
               {.name = "indices", .shape = {2}, .activation_codec = WireCodec::kRaw, .dtype = WireDtype::kInt16}};
  return spec;
}

template <typename T>
std::vector<T> Values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<T>(), flat.const_data_ptr<T>() + flat.numel()};
}

at::Tensor TwoSamples() {
  return at::tensor({1.f, -5.f, 2.f, 0.f, 4.f, 3.f, -1.f, -6.f}).view({2, 1, 2, 2});
}

TEST(TopK, TheLargestMagnitudesOfEachSampleCrossWithTheirPlaces) {
  const Tensors crossed = TopKEncoder(Spec()).Forward(TwoSamples(), Pass());
  ASSERT_EQ(crossed.size(), 2u);
  EXPECT_THAT(Values<float>(crossed[0]), testing::ElementsAre(-5, 2, 4, -6));
  ASSERT_EQ(crossed[1].scalar_type(), at::kShort);
  EXPECT_THAT(Values<std::int16_t>(crossed[1]), testing::ElementsAre(1, 2, 0, 3));
  const at::Tensor out = TopKDecoder(Spec()).Forward(crossed, Pass());
  EXPECT_THAT(Values<float>(out), testing::ElementsAre(0, -5, 2, 0, 4, 0, 0, -6));
}

TEST(TopK, TheGradientReturnsToTheSamePlacesOnly) {
  at::Tensor x = TwoSamples();
  x.requires_grad_(true);
  Tensors crossed = TopKEncoder(Spec()).Forward(x, Pass());
  const at::Tensor out = TopKDecoder(Spec()).Forward(crossed, Pass());
  out.backward(at::tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f}).view({2, 1, 2, 2}));
  EXPECT_THAT(Values<float>(x.grad()), testing::ElementsAre(0, 2, 3, 0, 5, 0, 0, 8));
}

TEST(TopK, AnIndexOutsideTheSampleThrows) {
  for (const int index : {-1, 4}) {
    const Tensors crossed = {at::tensor({1.f, 2.f}).view({1, 2}), at::tensor({0, index}).view({1, 2}).to(at::kShort)};
    EXPECT_THROW(TopKDecoder(Spec()).Forward(crossed, Pass()), c10::IndexError) << index;
  }
}

// What a peer sends is refused, nothing more.
TEST(TopK, AStageRefusesIndicesOutOfRangeAndGoesOn) {
  BoundaryVariant variant;
  for (const BoundaryVariant& v : BoundaryVariants()) {
    if (v.name == "top_k") variant = v;
  }
  const WholeModel model = VariantResnet(variant, WireCodec::kFp32, WireCodec::kFp32);
  Pipeline pipeline(model, {1});
  pipeline.Initialise(1);
  const Batch batch = MakeBatch(model, 2, 1, 1);
  EncodedTensors crossed = pipeline.stages()[0]->Forward(0, {batch.images[0]}, nullptr)->activations;
  ASSERT_EQ(crossed.size(), 2u);
  StageModel& last = *pipeline.stages()[1];
  std::string indices(crossed[1].payload.view());
  const std::int16_t outside = 30000;
  std::memcpy(indices.data(), &outside, sizeof(outside));
  EncodedTensors spoiled = crossed;
  spoiled[1].payload = SharedBytes::CopyOf(indices);
  const absl::Status status = last.Forward(0, spoiled, &batch.labels[0]).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("30000"));
  spoiled.pop_back();
  EXPECT_EQ(last.Forward(0, spoiled, &batch.labels[0]).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(last.Forward(0, crossed, &batch.labels[0]).ok());
  const BackwardResult backward = *last.Backward(0, {});
  EXPECT_EQ(backward.gradients.size(), 1u);  // of the values; integers get none
}

}  // namespace
}  // namespace resbm::model
