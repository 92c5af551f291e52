#include "coordinator/plan/model_plan_boundary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/model_plan.h"

namespace resbm::coordinator {
namespace {

constexpr int kMostChannels = 8192;
constexpr int kLargestStride = 16;
constexpr int kMostConvolutions = 64;
constexpr int kClassicRatio = 4;
constexpr int kMostOutputNormGroups = 8;

v1::Codec CodecOf(v1::Wire::Dtype dtype) {
  switch (dtype) {
    case v1::Wire::FP32: return v1::CODEC_FP32;
    case v1::Wire::BF16: return v1::CODEC_BF16;
    case v1::Wire::FP16: return v1::CODEC_FP16;
    case v1::Wire::INT8: return v1::CODEC_INT8;
    case v1::Wire::INT4: return v1::CODEC_INT4;
  }
  return v1::CODEC_UNSPECIFIED;
}

// "16 or 32": the divisors of `channels` nearest to a ratio that is none.
std::string NearestDivisors(int ratio, int channels) {
  int below = 0;
  int above = 0;
  for (int d = 1; d <= channels; ++d) {
    if (channels % d != 0) continue;
    if (d < ratio) below = d;
    if (d > ratio && above == 0) above = d;
  }
  if (below == 0) return absl::StrCat(above);
  return above == 0 ? absl::StrCat(below) : absl::StrCat(below, " or ", above);
}

bool KeepsShape(v1::Boundary::Kind kind) {
  return kind == v1::Boundary::IDENTITY || kind == v1::Boundary::IDENTITY_BLOCK;
}

int RatioOf(const v1::Boundary& boundary) {
  return boundary.kind() == v1::Boundary::BOTTLENECK && !boundary.has_ratio() ? kClassicRatio : boundary.ratio();
}

std::uint64_t ConvParameters(std::uint64_t in, std::uint64_t out, std::uint64_t kernel) {
  return in * out * kernel * kernel + out;
}

std::uint64_t ConvFlops(std::uint64_t in, std::uint64_t out, std::uint64_t kernel, std::uint64_t pixels) {
  return 2 * in * out * kernel * kernel * pixels;
}

// Parameters and FLOPs of a part.
struct Cost {
  std::uint64_t parameters = 0;
  std::uint64_t flops = 0;

  void AddConv(std::uint64_t in, std::uint64_t out, std::uint64_t kernel, std::uint64_t pixels) {
    parameters += ConvParameters(in, out, kernel);
    flops += ConvFlops(in, out, kernel, pixels);
  }
  // conv without bias, and norm.
  void AddConvNorm(std::uint64_t in, std::uint64_t out, std::uint64_t kernel, std::uint64_t pixels, int groups) {
    AddConv(in, out, kernel, pixels);
    parameters -= out;
    if (groups > 0) parameters += 2 * out;
  }
};

// Resolves one boundary's fields; `ok` until an error is found.
class Expander {
 public:
  Expander(const v1::Job& job, int index, const v1::LayerSpec& layer, v1::BoundarySpec& spec, FieldErrors& errors)
      : job_(job), index_(index), layer_(layer), boundary_(MergedBoundary(job, index)), spec_(spec), errors_(errors) {}

  void Expand() {
    const v1::Boundary::Kind kind = boundary_.kind();
    switch (kind) {
      case v1::Boundary::IDENTITY: spec_.set_kind(v1::BoundarySpec::IDENTITY); break;
      case v1::Boundary::RESBM: spec_.set_kind(v1::BoundarySpec::RESBM); break;
      case v1::Boundary::LINEAR: spec_.set_kind(v1::BoundarySpec::LINEAR); break;
      case v1::Boundary::BOTTLENECK: spec_.set_kind(v1::BoundarySpec::BOTTLENECK); break;
      case v1::Boundary::IDENTITY_BLOCK: spec_.set_kind(v1::BoundarySpec::IDENTITY_BLOCK); break;
      case v1::Boundary::TOPK:
        errors_.Add(Path("kind"), v1::Boundary::Kind_Name(kind), " is not implemented");
        return;
    }
    if (KeepsShape(kind)) {
      if (boundary_.has_out_channels() && boundary_.out_channels() != channels()) {
        Error("out_channels", "a boundary of kind ", v1::Boundary::Kind_Name(kind), " keeps the ", channels(),
              " channels at \"", layer_.name(), "\"; leave it out");
      }
      if (boundary_.stride() != 1) {
        Error("stride", "a boundary of kind ", v1::Boundary::Kind_Name(kind), " keeps height and width; set it to 1");
      }
    }
    *spec_.mutable_wire_shape() = spec_.input_shape();
    if (kind == v1::Boundary::IDENTITY || !ok_) return;
    if (layer_.output_shape_size() != 3) {
      errors_.Add(absl::StrCat("cut_point[", index_, "].after"), "a ", v1::Boundary::Kind_Name(kind),
                  " boundary needs channels, height and width, but \"", layer_.name(), "\" gives ",
                  layer_.output_shape(0), " values; use boundary { kind: IDENTITY } there or another cut point");
      return;
    }
    SetSizes();
    if (ok_ && kind != v1::Boundary::LINEAR) SetNormGroups();
    if (ok_ && kind != v1::Boundary::LINEAR && kind != v1::Boundary::BOTTLENECK) SetLowDim();
    if (ok_) SetInit();
    if (ok_) SetCosts();
  }

 private:
  std::string Path(const std::string& field) const { return BoundaryPath(job_, index_, field); }
  template <typename... Parts>
  void Error(const std::string& field, const Parts&... parts) {
    errors_.Add(Path(field), parts...);
    ok_ = false;
  }
  void CheckRange(const std::string& field, std::int64_t value, std::int64_t most) {
    if (value < 1) Error(field, value, " is too small; at least 1");
    if (value > most) Error(field, value, " is too large; at most ", most);
  }
  int channels() const { return static_cast<int>(layer_.output_shape(0)); }
  std::int64_t pixels() const { return spec_.output_shape(1) * spec_.output_shape(2); }
  bool whole() const { return boundary_.kind() == v1::Boundary::IDENTITY_BLOCK; }
  bool transmits() const {
    return boundary_.kind() == v1::Boundary::RESBM && boundary_.shortcut() == v1::Boundary::TRANSMIT;
  }

  // Channels and shapes.
  void SetSizes() {
    const int ratio = RatioOf(boundary_);
    if (ratio < 1 || channels() % ratio != 0) {
      Error("ratio", ratio, " does not divide ", channels(), " channels at \"", layer_.name(), "\"; try ",
            NearestDivisors(ratio, channels()));
      return;
    }
    CheckRange("stride", boundary_.stride(), kLargestStride);
    if (boundary_.has_out_channels()) CheckRange("out_channels", boundary_.out_channels(), kMostChannels);
    if (!ok_) return;
    low_ = channels() / ratio;
    out_ = boundary_.has_out_channels() ? boundary_.out_channels() : channels();
    const int stride = boundary_.stride();
    spec_.set_out_channels(out_);
    spec_.set_stride(stride);
    spec_.set_output_shape(0, out_);
    for (int i = 1; i < 3; ++i) spec_.set_output_shape(i, (layer_.output_shape(i) - 1) / stride + 1);
    if (whole()) {
      spec_.set_block_channels(low_);
      return;
    }
    spec_.set_crossing_channels(low_);
    *spec_.mutable_wire_shape() = spec_.output_shape();
    spec_.set_wire_shape(0, transmits() ? 2 * low_ : low_);
  }

  void SetNormGroups() {
    int groups = LowDimNormGroups(low_, spec_.output_shape(1), spec_.output_shape(2));
    if (boundary_.has_norm_groups()) {
      groups = boundary_.norm_groups();
      if (groups < 0 || (groups > 0 && low_ % groups != 0)) {
        Error("norm_groups", groups, " does not divide the ", low_, low_ == 1 ? " channel" : " channels",
              " that cross at \"", layer_.name(), "\"; try ", NearestDivisors(groups, low_), ", or 0 for no norm");
        return;
      }
      if (groups > 0 && low_ / groups * pixels() < 2) {
        Error("norm_groups", groups, " leaves groups of one value at \"", layer_.name(),
              "\"; try fewer, or 0 for no norm");
        return;
      }
    }
    spec_.set_norm_groups(groups);
    if (boundary_.kind() != v1::Boundary::BOTTLENECK) return;
    const int output_groups = LargestDivisor(out_, kMostOutputNormGroups);
    spec_.set_output_norm_groups(out_ / output_groups * pixels() < 2 ? 0 : output_groups);
  }

  void SetLowDim() {
    const v1::Boundary::LowDim& low_dim = boundary_.low_dim();
    CheckRange("low_dim.depth", low_dim.depth(), kMostConvolutions);
    CheckRange("low_dim.width", low_dim.width(), kMostChannels);
    if (!ok_) return;
    if (std::int64_t{low_} * low_dim.width() > kMostChannels) {
      Error("low_dim.width", low_dim.width(), " makes ", std::int64_t{low_} * low_dim.width(),
            " channels of the ", low_, " at \"", layer_.name(), "\"; at most ", kMostChannels);
    }
    if (low_dim.width() > 1 && low_dim.depth() == 1) {
      Error("low_dim.width", low_dim.width(), " needs a second convolution to narrow again; set low_dim.depth to 2");
    }
    v1::BoundarySpec::LowDim& out = *spec_.mutable_low_dim();
    out.set_depth(low_dim.depth());
    out.set_width(low_dim.width());
    // The same numbers.
    out.set_order(static_cast<v1::BoundarySpec::LowDim::Order>(low_dim.order()));
    out.set_attention(static_cast<v1::BoundarySpec::LowDim::Attention>(low_dim.attention()));
    spec_.set_shortcut(static_cast<v1::BoundarySpec::Shortcut>(boundary_.shortcut()));
  }

  void SetInit() {
    const v1::Boundary::Init& init = boundary_.init();
    if (!std::isfinite(init.gain()) || init.gain() <= 0) {
      Error("init.gain", init.gain(), " is out of range; it must be above 0");
    }
    if (init.kind() == v1::Boundary::Init::TIED_ORTHOGONAL) {
      if (boundary_.kind() == v1::Boundary::BOTTLENECK) {
        Error("init.kind", "TIED_ORTHOGONAL ties a compressor and an expander, BOTTLENECK has neither; choose "
              "KAIMING_FAN_OUT or KAIMING_FAN_IN");
      }
      if (out_ != channels()) {
        Error("init.kind", "TIED_ORTHOGONAL needs as many channels after the boundary as before it, not ", out_,
              " and ", channels(), " as at \"", layer_.name(), "\"");
      }
    }
    spec_.mutable_init()->set_kind(static_cast<v1::BoundarySpec::Init::Kind>(init.kind()));
    spec_.mutable_init()->set_gain(init.gain());
  }

  void SetCosts() {
    const std::uint64_t c = channels();
    const std::uint64_t low = low_;
    const std::uint64_t out = out_;
    Cost encoder;
    Cost decoder;
    switch (boundary_.kind()) {
      case v1::Boundary::LINEAR:
        encoder.AddConv(c, low, 1, pixels());
        decoder.AddConv(low, out, 1, pixels());
        break;
      case v1::Boundary::BOTTLENECK:
        encoder.AddConvNorm(c, low, 1, pixels(), spec_.norm_groups());
        decoder.AddConvNorm(low, low, 3, pixels(), spec_.norm_groups());
        decoder.AddConvNorm(low, out, 1, pixels(), spec_.output_norm_groups());
        break;
      default: {
        Cost& down = whole() ? decoder : encoder;
        down.AddConv(c, low, 1, pixels());
        if (boundary_.shortcut() == v1::Boundary::TRANSMIT) down.AddConv(c, low, 1, pixels());
        AddLowDim(decoder);
        decoder.AddConv(low, out, 1, pixels());
        if (boundary_.shortcut() != v1::Boundary::NONE) decoder.AddConv(low, out, 1, pixels());
      }
    }
    spec_.set_encoder_parameters(encoder.parameters);
    spec_.set_decoder_parameters(decoder.parameters);
    spec_.set_encoder_flops(encoder.flops);
    spec_.set_decoder_flops(decoder.flops);
  }

  void AddLowDim(Cost& cost) const {
    const v1::Boundary::LowDim& low_dim = boundary_.low_dim();
    const std::uint64_t low = low_;
    const std::uint64_t wide = low * low_dim.width();
    const bool norm_first = low_dim.order() == v1::Boundary::LowDim::NORM_ACT_CONV;
    const std::uint64_t norm = spec_.norm_groups() > 0 ? 2 : 0;  // of each channel
    for (int i = 1; i <= low_dim.depth(); ++i) {
      const std::uint64_t in = i == 1 ? low : wide;
      cost.AddConv(in, i == low_dim.depth() ? low : wide, 3, pixels());
      if (norm_first) cost.parameters += norm * in;
    }
    if (!norm_first) cost.parameters += norm * low;
    switch (low_dim.attention()) {
      case v1::Boundary::LowDim::NONE: break;
      case v1::Boundary::LowDim::SQUEEZE_EXCITE: {
        const std::uint64_t hidden = std::max<std::uint64_t>(1, low / 4);
        cost.AddConv(low, hidden, 1, 1);
        cost.AddConv(hidden, low, 1, 1);
        break;
      }
      case v1::Boundary::LowDim::SELF_ATTENTION:
        for (int i = 0; i < 4; ++i) cost.AddConv(low, low, 1, pixels());
        cost.flops += 2 * (2 * low * pixels() * pixels());  // scores, and what they read
        break;
    }
  }

  const v1::Job& job_;
  const int index_;
  const v1::LayerSpec& layer_;
  const v1::Boundary boundary_;
  v1::BoundarySpec& spec_;
  FieldErrors& errors_;
  bool ok_ = true;
  int low_ = 0;
  int out_ = 0;
};

}  // namespace

v1::BoundarySpec ExpandBoundary(const v1::Job& job, int index, const v1::LayerSpec& layer, FieldErrors& errors) {
  v1::BoundarySpec spec;
  spec.set_cut_point(layer.name());
  spec.set_after_layer(layer.index());
  spec.set_in_channels(static_cast<std::uint32_t>(layer.output_shape(0)));
  spec.set_out_channels(spec.in_channels());
  *spec.mutable_input_shape() = layer.output_shape();
  *spec.mutable_output_shape() = layer.output_shape();
  const v1::Wire wire = MergedWire(job, index);
  spec.set_activation_codec(CodecOf(wire.activations()));
  spec.set_gradient_codec(CodecOf(wire.gradients()));
  Expander(job, index, layer, spec, errors).Expand();
  return spec;
}

BoundaryChanges ChangesOfBoundaries(const v1::Job& job) {
  BoundaryChanges changes;
  for (int i = 0; i < job.cut_point_size(); ++i) {
    const v1::Boundary boundary = MergedBoundary(job, i);
    if (KeepsShape(boundary.kind())) continue;
    BoundaryChange change;
    if (boundary.out_channels() >= 1 && boundary.out_channels() <= kMostChannels) {
      change.out_channels = boundary.out_channels();
    }
    if (boundary.stride() >= 1 && boundary.stride() <= kLargestStride) change.stride = boundary.stride();
    changes.emplace(job.cut_point(i).after(), change);
  }
  return changes;
}

}  // namespace resbm::coordinator
