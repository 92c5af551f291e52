#include "model/stage_io.h"

#include <ATen/ops/tensor.h>

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "model/codec/codec.h"
#include "model/codec/encoded_check.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

void Count(std::uint64_t non_finite, const std::string& where, std::vector<NonFiniteCount>& counts) {
  if (non_finite > 0) counts.push_back({where, non_finite});
}

std::size_t GradientsOf(const BoundarySpec& boundary) {
  std::size_t count = 0;
  for (const WireTensor& tensor : boundary.wire) count += tensor.has_gradient() ? 1 : 0;
  return count;
}

absl::Status CheckNumber(const std::string& what, std::size_t given, std::size_t wanted) {
  if (given == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", given, " tensors, ", wanted, " are expected"));
}

at::Tensor PerChannel(const std::vector<float>& values, c10::Device device) {
  return at::tensor(at::ArrayRef<float>(values)).view({-1, 1, 1}).to(device);
}

}  // namespace

StageIo::StageIo(const StageSpec& spec, bool channels_last, c10::Device device)
    : spec_(spec), channels_last_(channels_last), device_(device), where_(absl::StrCat("stage ", spec.stage)) {
  if (!spec_.is_first() || spec_.input != InputKind::kImages) return;
  mean_ = PerChannel(spec_.input_mean, device_);
  std_ = PerChannel(spec_.input_std, device_);
}

// Canonical NCHW as decoded, or with channels innermost: the same whether it crossed a cut or not.
at::Tensor StageIo::Laid(const at::Tensor& decoded) const {
  if (!channels_last_ || decoded.dim() != 4) return decoded;
  return decoded.contiguous(at::MemoryFormat::ChannelsLast);
}

absl::StatusOr<at::Tensor> StageIo::ModelInput(const EncodedTensors& input) const {
  const bool images = spec_.input == InputKind::kImages;
  const std::string what = absl::StrCat(where_, images ? ": images" : ": tokens");
  RESBM_RETURN_IF_ERROR(CheckNumber(what, input.size(), 1));
  RESBM_RETURN_IF_ERROR(CheckExpected(input[0], what, WireCodec::kRaw, WireDtype::kUint8, spec_.input_shape, 0));
  if (images) {
    RESBM_ASSIGN_OR_RETURN(const at::Tensor decoded, Decode(input[0], device_));
    return Laid(decoded.to(at::kFloat).div_(255).sub_(mean_).div_(std_));
  }
  // On a GPU a token out of range would end the process.
  if (const auto* embedding = std::get_if<TokenEmbedding>(&spec_.layers.front().kind)) {
    for (const char byte : input[0].payload.view()) {
      const int token = static_cast<unsigned char>(byte);
      if (token < embedding->vocabulary) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": token ", token, " is not one of ", embedding->vocabulary, "; check the data"));
    }
  }
  RESBM_ASSIGN_OR_RETURN(const at::Tensor decoded, Decode(input[0], device_));
  return decoded.to(at::kLong);
}

absl::StatusOr<at::Tensor> StageIo::Labels(const EncodedTensor* target, std::int64_t samples) const {
  if (target == nullptr) return absl::InvalidArgumentError(absl::StrCat(where_, ": the last stage needs labels"));
  const std::vector<std::int64_t>& logits = spec_.layers.back().output_shape;
  const bool tokens = spec_.loss == Loss::kTokenCrossEntropy;
  const std::vector<std::int64_t> shape(logits.begin(), logits.end() - 1);
  RESBM_RETURN_IF_ERROR(CheckExpected(*target, absl::StrCat(where_, ": labels"), WireCodec::kRaw,
                                      tokens ? WireDtype::kInt16 : WireDtype::kInt64, shape, samples));
  RESBM_ASSIGN_OR_RETURN(const at::Tensor decoded, Decode(*target, c10::Device(c10::DeviceType::CPU)));
  const at::Tensor labels = decoded.to(at::kLong);
  // On a GPU a label out of range would end the process.
  const std::int64_t classes = logits.back();
  const std::int64_t lowest = tokens ? -1 : 0;
  const auto* values = labels.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    if (values[i] < lowest || values[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": label ", values[i], " of ",
                                                     tokens ? "token " : "sample ", i, " is not one of ", classes,
                                                     tokens ? " tokens" : " classes", "; check the data"));
    }
  }
  return labels.to(device_);
}

absl::StatusOr<at::Tensor> StageIo::DecodeOne(const EncodedTensor& encoded, const std::string& what, WireCodec codec,
                                              const WireTensor& tensor, std::int64_t samples) const {
  const WireDtype dtype = PayloadDtypeOf(codec).value_or(tensor.dtype);
  RESBM_RETURN_IF_ERROR(CheckExpected(encoded, what, codec, dtype, tensor.shape, samples));
  RESBM_ASSIGN_OR_RETURN(const at::Tensor decoded, Decode(encoded, device_));
  return Laid(decoded);
}

absl::StatusOr<Tensors> StageIo::DecodeActivations(const BoundarySpec& boundary, const EncodedTensors& encoded,
                                                   std::int64_t samples) const {
  const std::string what = absl::StrCat(where_, ": activation of \"", boundary.cut_point, "\"");
  RESBM_RETURN_IF_ERROR(CheckNumber(what, encoded.size(), boundary.wire.size()));
  Tensors tensors;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    const WireTensor& tensor = boundary.wire[i];
    RESBM_ASSIGN_OR_RETURN(at::Tensor decoded,
                           DecodeOne(encoded[i], what, tensor.activation_codec, tensor, samples));
    samples = decoded.size(0);
    tensors.push_back(std::move(decoded));
  }
  return tensors;
}

absl::StatusOr<Tensors> StageIo::DecodeGradients(const BoundarySpec& boundary, const EncodedTensors& encoded,
                                                 std::int64_t samples) const {
  const std::string what = absl::StrCat(where_, ": gradient of \"", boundary.cut_point, "\"");
  RESBM_RETURN_IF_ERROR(CheckNumber(what, encoded.size(), GradientsOf(boundary)));
  Tensors tensors;
  for (const WireTensor& tensor : boundary.wire) {
    if (!tensor.has_gradient()) continue;
    RESBM_ASSIGN_OR_RETURN(at::Tensor decoded,
                           DecodeOne(encoded[tensors.size()], what, tensor.gradient_codec, tensor, samples));
    tensors.push_back(std::move(decoded));
  }
  return tensors;
}

EncodedTensors StageIo::EncodeActivations(const BoundarySpec& boundary, const Tensors& tensors,
                                          std::vector<NonFiniteCount>& counts) const {
  EncodedTensors encoded;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor tensor = tensors[i].is_floating_point() ? tensors[i].to(at::kFloat) : tensors[i];
    encoded.push_back(Encode(tensor, boundary.wire[i].activation_codec));
    Count(encoded.back().non_finite, absl::StrCat(boundary.cut_point, " activation"), counts);
  }
  return encoded;
}

EncodedTensors StageIo::EncodeGradients(const BoundarySpec& boundary, const Tensors& gradients,
                                        std::vector<NonFiniteCount>& counts) const {
  EncodedTensors encoded;
  for (const WireTensor& tensor : boundary.wire) {
    if (!tensor.has_gradient()) continue;
    encoded.push_back(Encode(gradients[encoded.size()].to(at::kFloat), tensor.gradient_codec));
    Count(encoded.back().non_finite, absl::StrCat(boundary.cut_point, " gradient"), counts);
  }
  return encoded;
}

}  // namespace resbm::model
