// A ResBM block as an ordinary layer: each shortcut is what its name says.
#include <gtest/gtest.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <string>
#include <vector>

#include "model/parameters/initialise.h"
#include "model/layers/layers.h"
#include "model/parameters/parameters.h"

namespace resbm::model {
namespace {

LayerSpec Spec(Shortcut shortcut, int out_channels = 8, int stride = 1) {
  ResbmLayer layer;
  layer.block.in_channels = 8;
  layer.block.out_channels = out_channels;
  layer.block.crossing_channels = 2;
  layer.block.stride = stride;
  layer.block.shortcut = shortcut;
  LayerSpec spec;
  spec.index = 3;
  spec.name = "group0.1";
  spec.kind = layer;
  return spec;
}

// A layer with its parameters, started from one seed: those that two layers share are alike.
struct Built {
  explicit Built(const LayerSpec& spec) : list(c10::Device(c10::DeviceType::CPU), false) {
    layer = MakeLayer(spec, list);
    for (const Parameter& parameter : list.all()) Initialise(7, parameter);
  }
  at::Tensor operator()(const at::Tensor& x) const {
    c10::NoGradGuard no_grad;
    return layer->Forward(x, Pass());
  }
  at::Tensor Named(const std::string& name) const {
    for (const Parameter& parameter : list.all()) {
      if (parameter.name == "group0.1." + name) return parameter.tensor.detach();
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }
  ParameterList list;
  std::unique_ptr<Layer> layer;
};

TEST(ResbmLayer, DirectAddsItsInput) {
  const at::Tensor x = at::randn({2, 8, 5, 5});
  const at::Tensor before = x.clone();
  const Built none(Spec(Shortcut::kNone));
  const Built direct(Spec(Shortcut::kDirect));
  EXPECT_EQ(direct.list.all().size(), none.list.all().size());
  EXPECT_TRUE(at::allclose(direct(x), none(x).add(x)));
  EXPECT_TRUE(x.equal(before));
}

TEST(ResbmLayer, ProjectedAddsAConvolutionOfItsInputWithTheStride) {
  const at::Tensor x = at::randn({2, 8, 5, 5});
  const Built none(Spec(Shortcut::kNone, 12, 2));
  const Built projected(Spec(Shortcut::kProjected, 12, 2));
  const at::Tensor shortcut =
      at::conv2d(x, projected.Named("shortcut_conv.weight"), projected.Named("shortcut_conv.bias"), 2);
  ASSERT_EQ(shortcut.sizes(), (std::vector<std::int64_t>{2, 12, 3, 3}));
  EXPECT_TRUE(at::allclose(projected(x), none(x).add(shortcut)));
}

TEST(ResbmLayer, ReconstructAddsWhatIsRebuiltFromTheLowDimension) {
  const at::Tensor x = at::randn({2, 8, 5, 5});
  const Built none(Spec(Shortcut::kNone));
  const Built rebuilt(Spec(Shortcut::kReconstruct));
  const at::Tensor z = at::conv2d(x, rebuilt.Named("compressor.weight"), rebuilt.Named("compressor.bias"));
  const at::Tensor shortcut =
      at::conv2d(z, rebuilt.Named("shortcut_recon.weight"), rebuilt.Named("shortcut_recon.bias"));
  EXPECT_TRUE(at::allclose(rebuilt(x), none(x).add(shortcut)));
}

}  // namespace
}  // namespace resbm::model
