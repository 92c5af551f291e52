#include "coordinator/plan/model_plan_boundary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/plan/boundary_kinds.h"
#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/model_plan_transformer.h"

namespace resbm::coordinator {
namespace {

constexpr int kMostChannels = 8192;
constexpr int kLargestStride = 16;
constexpr int kMostConvolutions = 64;
constexpr int kClassicRatio = 4;
constexpr int kMostOutputNormGroups = 8;
constexpr std::int64_t kMostIndicesOfInt16 = 1 << 15;

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
  // `path`: of a field of `boundary`.
  Expander(v1::Boundary boundary, std::function<std::string(const std::string&)> path, std::string place, Form form,
           v1::BoundarySpec& spec, FieldErrors& errors)
      : boundary_(std::move(boundary)),
        path_(std::move(path)),
        place_(std::move(place)),
        form_(form),
        spec_(spec),
        errors_(errors) {}

  // A boundary between two layers; `layer_path` is the field that names the first.
  void Expand(const v1::LayerSpec& layer, const v1::LayerSpec& next, const std::string& layer_path) {
    const v1::Boundary::Kind kind = boundary_.kind();
    spec_.set_kind(InfoOf(kind).spec_kind);
    CheckFits(layer, next, layer_path);
    if (boundary_.shortcut() == v1::Boundary::DIRECT || boundary_.shortcut() == v1::Boundary::PROJECTED) {
      Error("shortcut", v1::Boundary::Shortcut_Name(boundary_.shortcut()),
            " is of blocks within a stage: x itself does not cross; choose RECONSTRUCT, TRANSMIT or NONE");
    }
    if (ok_ && KeepsShape(kind, form_)) CheckKeepsShape();
    if (!ok_) return;
    if (kind == v1::Boundary::IN_BRANCH) *spec_.mutable_decoder_block() = layer.decoder_block();
    if (kind == v1::Boundary::TOPK) return SetTopK();
    *spec_.mutable_wire(0)->mutable_shape() = spec_.input_shape();
    if (kind == v1::Boundary::IDENTITY) return;
    if (form_ == Form::kSequence) return ExpandSequence();
    SetSizes();
    if (ok_ && kind != v1::Boundary::LINEAR) SetNormGroups();
    if (ok_ && kind != v1::Boundary::LINEAR && kind != v1::Boundary::BOTTLENECK) SetLowDim();
    if (ok_) SetInit();
    if (ok_) SetCosts();
  }

  // A ResBM block as a layer, out_channels and stride set.
  void ExpandLayer() {
    spec_.set_kind(v1::BoundarySpec::RESBM);
    spec_.add_wire();  // for SetSizes; nothing crosses
    if (boundary_.shortcut() == v1::Boundary::DIRECT &&
        (boundary_.stride() != 1 || boundary_.out_channels() != channels())) {
      Error("shortcut", "DIRECT needs as many channels after \"", place_,
            "\" as before it, and no stride; choose PROJECTED or RECONSTRUCT");
    }
    if (ok_) SetSizes();
    if (ok_) SetNormGroups();
    if (ok_) SetLowDim();
    if (ok_) SetInit();
    if (ok_) SetCosts();
    spec_.clear_wire();
  }

 private:
  template <typename... Parts>
  void Error(const std::string& field, const Parts&... parts) {
    errors_.Add(path_(field), parts...);
    ok_ = false;
  }
  void CheckRange(const std::string& field, std::int64_t value, std::int64_t most) {
    if (value < 1) Error(field, value, " is too small; at least 1");
    if (value > most) Error(field, value, " is too large; at most ", most);
  }
  // Of an image; of a sequence the width.
  int channels() const { return static_cast<int>(spec_.in_channels()); }
  std::int64_t pixels() const { return spec_.output_shape(1) * spec_.output_shape(2); }
  bool whole() const { return boundary_.kind() == v1::Boundary::IDENTITY_BLOCK; }
  bool transmits() const {
    return boundary_.kind() == v1::Boundary::RESBM && boundary_.shortcut() == v1::Boundary::TRANSMIT;
  }

  // The kind suits what the layers around it give and are.
  void CheckFits(const v1::LayerSpec& layer, const v1::LayerSpec& next, const std::string& layer_path) {
    const KindInfo& info = InfoOf(boundary_.kind());
    const std::string name = v1::Boundary::Kind_Name(info.kind);
    const auto PlaceError = [&](const auto&... parts) {
      errors_.Add(layer_path, parts...);
      ok_ = false;
    };
    if (!info.Takes(form_)) {
      const auto append_form = [](std::string* out, Form form) { out->append(Describe(form)); };
      PlaceError("a boundary of kind ", name, " takes ", absl::StrJoin(info.takes, " or ", append_form), ", but \"",
                 place_, "\" gives ", Describe(form_), "; choose boundary.kind ", KindsFor(form_),
                 ", or another cut point");
    } else if (info.kind == v1::Boundary::IN_BRANCH && !(layer.has_decoder_block() && next.has_decoder_block())) {
      PlaceError("a boundary of kind ", name, " stands between two blocks, not between \"", place_, "\" and \"",
                 next.name(), "\"; choose boundary.kind ADAPTER there, or another cut point");
    }
  }

  void CheckKeepsShape() {
    const std::string name = v1::Boundary::Kind_Name(boundary_.kind());
    if (boundary_.has_out_channels() && boundary_.out_channels() != channels()) {
      Error("out_channels", "a boundary of kind ", name, " keeps the ", channels(),
            form_ == Form::kSequence ? " coordinates" : " channels", " at \"", place_, "\"; leave it out");
    }
    if (boundary_.stride() != 1) {
      Error("stride", "a boundary of kind ", name,
            form_ == Form::kSequence ? " keeps the length; set it to 1" : " keeps height and width; set it to 1");
    }
  }

  bool CheckRatio() {
    const int ratio = RatioOf(boundary_);
    if (ratio >= 1 && channels() % ratio == 0) return true;
    const char* what = form_ == Form::kSequence ? " coordinates" : " channels";
    Error("ratio", ratio, " does not divide ", channels(), what, " at \"", place_, "\"; try ",
          NearestDivisors(ratio, channels()));
    return false;
  }

  // The job's codecs are those of the values.
  void SetTopK() {
    if (boundary_.ratio() < 1) return Error("ratio", boundary_.ratio(), " is too small; at least 1");
    std::int64_t values = 1;
    for (const std::int64_t dim : spec_.input_shape()) values *= dim;
    // Of a sequence, as many at each position.
    const std::int64_t positions = form_ == Form::kSequence ? spec_.input_shape(0) : 1;
    const std::int64_t kept = positions * std::max<std::int64_t>(1, values / positions / boundary_.ratio());
    spec_.set_kept(static_cast<std::uint64_t>(kept));
    spec_.mutable_wire(0)->set_name("values");
    v1::WireTensor& indices = *spec_.add_wire();
    indices.set_name("indices");
    indices.set_activation_codec(v1::CODEC_RAW);
    indices.set_dtype(values <= kMostIndicesOfInt16 ? v1::INT16 : v1::INT32);
    for (v1::WireTensor& tensor : *spec_.mutable_wire()) tensor.add_shape(kept);
  }

  // LINEAR, IN_BRANCH and ADAPTER of a sequence [tokens, width].
  void ExpandSequence() {
    if (!CheckRatio()) return;
    low_ = channels() / RatioOf(boundary_);
    out_ = channels();
    spec_.set_crossing_channels(low_);
    spec_.set_stride(1);
    spec_.mutable_wire(0)->set_shape(1, low_);
    if (boundary_.kind() != v1::Boundary::LINEAR) {
      // One number apart: PROJECTION_UNSPECIFIED is 0.
      spec_.set_projection(static_cast<v1::BoundarySpec::Projection>(boundary_.projection() + 1));
      if (boundary_.init().kind() != v1::Boundary::Init::KAIMING_FAN_OUT) {
        return Error("init.kind", v1::Boundary::Init::Kind_Name(boundary_.init().kind()), " is not of kind ",
                     v1::Boundary::Kind_Name(boundary_.kind()), ", which starts as blocks do; leave it out");
      }
    }
    if (boundary_.kind() == v1::Boundary::IN_BRANCH) {
      v1::DecoderBlock& block = *spec_.mutable_decoder_block();
      block.clear_attention_in_boundary();
      block.clear_mlp_in_boundary();
    }
    SetInit();
    if (ok_) SetSequenceBoundaryCosts(&spec_);
  }

  // Channels and shapes.
  void SetSizes() {
    if (!CheckRatio()) return;
    const int ratio = RatioOf(boundary_);
    CheckRange("stride", boundary_.stride(), kLargestStride);
    if (boundary_.has_out_channels()) CheckRange("out_channels", boundary_.out_channels(), kMostChannels);
    if (!ok_) return;
    low_ = channels() / ratio;
    out_ = boundary_.has_out_channels() ? boundary_.out_channels() : channels();
    const int stride = boundary_.stride();
    spec_.set_out_channels(out_);
    spec_.set_stride(stride);
    spec_.set_output_shape(0, out_);
    for (int i = 1; i < 3; ++i) spec_.set_output_shape(i, (spec_.input_shape(i) - 1) / stride + 1);
    if (whole()) {
      spec_.set_block_channels(low_);
      return;
    }
    spec_.set_crossing_channels(low_);
    v1::WireTensor* z = spec_.mutable_wire(0);
    *z->mutable_shape() = spec_.output_shape();
    z->set_shape(0, transmits() ? 2 * low_ : low_);
  }

  void SetNormGroups() {
    int groups = LowDimNormGroups(low_, spec_.output_shape(1), spec_.output_shape(2));
    if (boundary_.has_norm_groups()) {
      groups = boundary_.norm_groups();
      if (groups < 0 || (groups > 0 && low_ % groups != 0)) {
        Error("norm_groups", groups, " does not divide the ", low_, low_ == 1 ? " channel" : " channels",
              " that cross at \"", place_, "\"; try ", NearestDivisors(groups, low_), ", or 0 for no norm");
        return;
      }
      if (groups > 0 && low_ / groups * pixels() < 2) {
        Error("norm_groups", groups, " leaves groups of one value at \"", place_,
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
            " channels of the ", low_, " at \"", place_, "\"; at most ", kMostChannels);
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
    spec_.set_shortcut(static_cast<v1::BoundarySpec::Shortcut>(boundary_.shortcut()));  // the same numbers
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
              " and ", channels(), " as at \"", place_, "\"");
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
        switch (boundary_.shortcut()) {
          case v1::Boundary::RECONSTRUCT:
          case v1::Boundary::TRANSMIT: decoder.AddConv(low, out, 1, pixels()); break;
          case v1::Boundary::PROJECTED: decoder.AddConv(c, out, 1, pixels()); break;
          case v1::Boundary::NONE:
          case v1::Boundary::DIRECT: break;
        }
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

  const v1::Boundary boundary_;
  const std::function<std::string(const std::string&)> path_;
  const std::string place_;  // the layer after which, or as which, it stands
  const Form form_;
  v1::BoundarySpec& spec_;
  FieldErrors& errors_;
  bool ok_ = true;
  int low_ = 0;
  int out_ = 0;
};

}  // namespace

int RatioOf(const v1::Boundary& boundary) {
  return boundary.kind() == v1::Boundary::BOTTLENECK && !boundary.has_ratio() ? kClassicRatio : boundary.ratio();
}

v1::BoundarySpec ExpandBoundary(const v1::Job& job, int index, const v1::LayerSpec& layer, const v1::LayerSpec& next,
                                FieldErrors& errors) {
  v1::BoundarySpec spec;
  spec.set_cut_point(layer.name());
  spec.set_after_layer(layer.index());
  spec.set_in_channels(static_cast<std::uint32_t>(layer.output_shape(FormOf(layer) == Form::kSequence ? 1 : 0)));
  spec.set_out_channels(spec.in_channels());
  *spec.mutable_input_shape() = layer.output_shape();
  *spec.mutable_output_shape() = layer.output_shape();
  const v1::Wire wire = MergedWire(job, index);
  const v1::Wire::Dtype unset = UnsetWireDtype(job);
  v1::WireTensor* z = spec.add_wire();
  z->set_name("z");
  z->set_activation_codec(CodecOf(wire.has_activations() ? wire.activations() : unset));
  z->set_gradient_codec(CodecOf(wire.has_gradients() ? wire.gradients() : unset));
  const auto path = [&](const std::string& field) { return BoundaryPath(job, index, field); };
  Expander(MergedBoundary(job, index), path, layer.name(), FormOf(layer), spec, errors)
      .Expand(layer, next, absl::StrCat("cut_point[", index, "].after"));
  return spec;
}

v1::BoundarySpec ExpandResbmLayer(v1::Boundary block, const std::string& path, const std::string& name,
                                  const std::vector<std::int64_t>& input_shape, FieldErrors& errors) {
  v1::BoundarySpec spec;
  spec.set_in_channels(static_cast<std::uint32_t>(input_shape[0]));
  spec.set_out_channels(spec.in_channels());
  spec.mutable_input_shape()->Assign(input_shape.begin(), input_shape.end());
  *spec.mutable_output_shape() = spec.input_shape();
  block.set_kind(v1::Boundary::RESBM);
  const auto field_path = [&](const std::string& field) { return absl::StrCat(path, ".", field); };
  Expander(std::move(block), field_path, name, Form::kImage, spec, errors).ExpandLayer();
  return spec;
}

BoundaryChanges ChangesOfBoundaries(const v1::Job& job) {
  BoundaryChanges changes;
  for (int i = 0; i < job.cut_point_size(); ++i) {
    const v1::Boundary boundary = MergedBoundary(job, i);
    if (KeepsShape(boundary.kind(), Form::kImage)) continue;
    BoundaryChange change;
    change.splits_block = boundary.kind() == v1::Boundary::IN_BRANCH;
    if (boundary.out_channels() >= 1 && boundary.out_channels() <= kMostChannels) {
      change.out_channels = boundary.out_channels();
    }
    if (boundary.stride() >= 1 && boundary.stride() <= kLargestStride) change.stride = boundary.stride();
    changes.emplace(job.cut_point(i).after(), change);
  }
  return changes;
}

}  // namespace resbm::coordinator
