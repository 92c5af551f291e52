// Small valid messages for tests of the stage server: a chain of linear layers, one a stage, cut after each.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_SPECS_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_SPECS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server::testing {

inline constexpr std::int64_t kWidth = 4;

inline v1::Fence MakeFence(std::uint64_t epoch, std::uint64_t generation) {
  v1::Fence fence;
  fence.set_epoch(epoch);
  fence.set_generation(generation);
  return fence;
}

inline v1::StageSpec MakeSpec(std::uint32_t stage, std::uint32_t stages, std::uint32_t window = 0) {
  v1::StageSpec spec;
  spec.set_stage(stage);
  spec.set_stages(stages);
  v1::LayerSpec* layer = spec.add_layers();
  layer->set_index(stage);
  layer->set_name(absl::StrCat("fc", stage));
  layer->mutable_linear()->set_in_features(kWidth);
  layer->mutable_linear()->set_out_features(kWidth);
  layer->add_input_shape(kWidth);
  layer->add_output_shape(kWidth);
  layer->set_parameters(kWidth * kWidth + kWidth);
  for (std::uint32_t cut = stage == 0 ? 0 : stage - 1; cut <= stage && cut + 1 < stages; ++cut) {
    v1::BoundarySpec* boundary = spec.add_boundaries();
    boundary->set_cut_point(absl::StrCat("fc", cut));
    boundary->set_after_layer(cut);
    boundary->set_kind(v1::BoundarySpec::IDENTITY);
    boundary->set_in_channels(kWidth);
    boundary->set_out_channels(kWidth);
    v1::WireTensor* z = boundary->add_wire();
    z->set_name("z");
    z->set_activation_codec(v1::CODEC_FP32);
    z->set_gradient_codec(v1::CODEC_FP32);
    z->add_shape(kWidth);
    boundary->add_input_shape(kWidth);
    boundary->add_output_shape(kWidth);
  }
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  spec.set_loss(v1::StageSpec::CROSS_ENTROPY);
  spec.set_threads(1);
  spec.set_deterministic(true);
  spec.add_input_shape(kWidth);
  if (window > 0) {
    for (std::uint32_t s = 0; s < stages; ++s) spec.add_windows(window);
  }
  spec.set_link_key("0123456789abcdef");
  return spec;
}

inline v1::Attach MakeAttach(std::uint32_t stage, std::uint32_t stages, double lease_seconds = 60) {
  v1::Attach attach;
  attach.set_min_protocol_version(wire::kProtocolVersion);
  attach.set_max_protocol_version(wire::kProtocolVersion);
  attach.set_job_id("job-a");
  attach.set_stage(stage);
  attach.set_stages(stages);
  attach.set_lease_seconds(lease_seconds);
  return attach;
}

inline v1::Resume MakeInit(const v1::StageSpec& spec, std::uint64_t state_id = 100, std::uint64_t step = 0) {
  v1::Resume resume;
  resume.mutable_init()->set_seed(7);
  *resume.mutable_stage() = spec;
  resume.set_state_id(state_id);
  resume.set_step(step);
  return resume;
}

// "F0 F1 B0 B1"
inline v1::DefineProgram MakeProgram(std::uint32_t id, const std::string& actions, std::uint32_t window,
                                     v1::DefineProgram::Mode mode = v1::DefineProgram::TRAIN) {
  v1::DefineProgram program;
  program.set_program_id(id);
  program.set_mode(mode);
  program.set_window(window);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i] != 'F' && actions[i] != 'B') continue;
    v1::Action* action = program.add_actions();
    action->set_kind(actions[i] == 'F' ? v1::Action::FORWARD : v1::Action::BACKWARD);
    action->set_micro_batch(static_cast<std::uint32_t>(std::stoul(actions.substr(i + 1))));
  }
  return program;
}

inline v1::Begin MakeBegin(const v1::Fence& fence, std::uint64_t step, std::uint64_t base, std::uint32_t program,
                           const std::vector<std::int64_t>& samples, const std::vector<std::int64_t>& prefetch = {}) {
  v1::Begin begin;
  *begin.mutable_attempt()->mutable_fence() = fence;
  begin.mutable_attempt()->set_step(step);
  begin.set_base_state_id(base);
  begin.set_program_id(program);
  double weight = 0;
  for (std::int64_t n : samples) {
    begin.add_micro_batches()->set_samples(n);
    weight += static_cast<double>(n);
  }
  for (std::int64_t n : prefetch) begin.add_prefetch()->set_samples(n);
  begin.set_total_weight(weight);
  return begin;
}

inline v1::Commit MakeCommit(const v1::Fence& fence, std::uint64_t step, std::uint64_t base, std::uint64_t next,
                             v1::Commit::Decision decision = v1::Commit::APPLY) {
  v1::Commit commit;
  *commit.mutable_attempt()->mutable_fence() = fence;
  commit.mutable_attempt()->set_step(step);
  commit.set_decision(decision);
  commit.set_gradient_scale(0.5f);
  commit.set_learning_rate(0.1);
  commit.set_base_state_id(base);
  commit.set_new_state_id(next);
  return commit;
}

inline v1::Evaluate MakeEvaluate(std::uint64_t id, std::uint32_t program, const std::vector<std::int64_t>& samples) {
  v1::Evaluate evaluate;
  evaluate.set_evaluation(id);
  evaluate.set_program_id(program);
  for (std::int64_t n : samples) evaluate.add_micro_batches()->set_samples(n);
  return evaluate;
}

// What the peer would send for `header`: its payload repeats `fill`.
inline EncodedTensor MakeTensor(const v1::TensorHeader& header, char fill) {
  EncodedTensor tensor;
  tensor.codec = static_cast<WireCodec>(header.codec());
  tensor.dtype = static_cast<WireDtype>(header.dtype());
  tensor.dims.assign(header.dims().begin(), header.dims().end());
  tensor.payload = SharedBytes::CopyOf(std::string(header.payload_bytes(), fill));
  return tensor;
}

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_SPECS_H_
