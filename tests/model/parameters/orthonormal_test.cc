#include "model/parameters/orthonormal.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/eye.h>
#include <gtest/gtest.h>

namespace resbm::model {
namespace {

at::Tensor Random(at::IntArrayRef shape, std::uint64_t seed) {
  return at::empty(shape, at::TensorOptions().dtype(at::kFloat)).normal_(0, 1, at::detail::createCPUGenerator(seed));
}

double Off(const at::Tensor& rows) { return rows.mm(rows.t()).sub(at::eye(rows.size(0))).abs().max().item<double>(); }

TEST(RetractOrthonormal, MakesTheRowsOfAWideMatrixOrthonormal) {
  at::Tensor matrix = Random({6, 40}, 1);
  RetractOrthonormal(matrix);
  EXPECT_LT(Off(matrix), 1e-6);
}

TEST(RetractOrthonormal, MakesTheColumnsOfATallMatrixOrthonormal) {
  at::Tensor tall = Random({40, 6}, 1);
  at::Tensor wide = tall.t().contiguous();
  RetractOrthonormal(tall);
  RetractOrthonormal(wide);
  EXPECT_LT(Off(tall.t()), 1e-6);
  EXPECT_TRUE(tall.allclose(wide.t(), 1e-6, 1e-6));
}

TEST(RetractOrthonormal, KeepsAnOrthonormalMatrixWithItsSigns) {
  at::Tensor matrix = Random({6, 40}, 2);
  RetractOrthonormal(matrix);
  const at::Tensor before = matrix.clone();
  RetractOrthonormal(matrix);
  EXPECT_TRUE(matrix.allclose(before, 0, 1e-6));
  matrix = before.neg();
  RetractOrthonormal(matrix);
  EXPECT_TRUE(matrix.allclose(before.neg(), 0, 1e-6));
}

TEST(RetractOrthonormal, FollowsASmallStepAndNotAScale) {
  at::Tensor matrix = Random({6, 40}, 3);
  RetractOrthonormal(matrix);
  const at::Tensor before = matrix.clone();
  matrix.add_(Random({6, 40}, 4), 1e-3);
  at::Tensor decayed = matrix.mul(0.9);
  RetractOrthonormal(matrix);
  RetractOrthonormal(decayed);
  EXPECT_LT(matrix.sub(before).abs().max().item<double>(), 0.01);
  EXPECT_GT(matrix.sub(before).abs().max().item<double>(), 1e-4);
  EXPECT_TRUE(matrix.allclose(decayed, 0, 1e-6));
}

TEST(RetractOrthonormal, WorksOnAParameterAndLeavesItsGradientAlone) {
  at::Tensor matrix = Random({3, 5}, 5);
  matrix.requires_grad_(true);
  matrix.mutable_grad() = Random({3, 5}, 6);
  const at::Tensor gradient = matrix.grad().clone();
  RetractOrthonormal(matrix);
  EXPECT_LT(Off(matrix.detach()), 1e-6);
  EXPECT_TRUE(matrix.requires_grad() && matrix.is_leaf());
  EXPECT_TRUE(matrix.grad().equal(gradient));
}

}  // namespace
}  // namespace resbm::model
