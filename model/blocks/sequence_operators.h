// What works on sequences [N, T, width] as modules: parameters and the operator that uses them.
#ifndef RESBM_MODEL_BLOCKS_SEQUENCE_OPERATORS_H_
#define RESBM_MODEL_BLOCKS_SEQUENCE_OPERATORS_H_

#include <cstdint>
#include <string>

#include "model/parameters/parameters.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// x W^T over the last dimension, no bias. Adds name.weight [out_features, in_features].
class MatrixMap {
 public:
  MatrixMap(ParameterList& parameters, const std::string& name, int in_features, int out_features, Start start);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  const at::Tensor weight_;
};

// x / sqrt(mean(x^2) + epsilon) * weight over the last dimension (Zhang and Sennrich 2019), in fp32 whatever the
// precision. Adds name.weight [width], ones.
class RmsNormalisation {
 public:
  RmsNormalisation(ParameterList& parameters, const std::string& name, int width, double epsilon);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  const at::Tensor weight_;
  const double epsilon_;
};

// Rotary position embedding (Su et al. 2021, "RoFormer"), the halves convention of GPT-NeoX and Llama: coordinates i
// and i + size/2 of a head are turned together, at position t by the angle t * base^(-2 i / size).
class RotaryPositions {
 public:
  // Makes the tables of all positions on the device. `size`, of a head, is even. Throws c10::Error.
  RotaryPositions(std::int64_t positions, int size, double base, c10::Device device);
  // [N, positions, ..., size], with one dimension or more between -> the same.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor cosines_;  // [positions, size / 2]
  at::Tensor sines_;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_SEQUENCE_OPERATORS_H_
