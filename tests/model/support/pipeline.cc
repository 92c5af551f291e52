#include "tests/model/support/pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/safetensors.h"

namespace resbm::model {
namespace {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// As after a network: other memory, at an odd address.
EncodedTensor Crossed(const EncodedTensor& sent) {
  EncodedTensor received = sent;
  const SharedBytes bytes = SharedBytes::CopyOf("x" + std::string(sent.payload.view()));
  received.payload = SharedBytes(bytes.owner(), bytes.data() + 1, sent.payload.size());
  return received;
}

EncodedTensors Crossed(const EncodedTensors& sent) {
  EncodedTensors received;
  for (const EncodedTensor& tensor : sent) received.push_back(Crossed(tensor));
  return received;
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint32_t operator()() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 16;
  }

 private:
  std::uint32_t state_;
};

struct Action {
  bool forward = true;
  int micro_batch = 0;
};

std::deque<Action> ProgramOf(Order order, int stage, int stages, int micro_batches) {
  const int window = order == Order::kGpipe ? micro_batches : std::min(stages - stage, micro_batches);
  std::deque<Action> program;
  int forwards = 0;
  for (int backwards = 0; backwards < micro_batches; ++backwards) {
    while (forwards < micro_batches && forwards - backwards < window) program.push_back({true, forwards++});
    program.push_back({false, backwards});
  }
  return program;
}

}  // namespace

std::map<std::string, std::string> BytesByName(const std::string& safetensors) {
  std::map<std::string, std::string> bytes;
  const SafetensorsFile file = Must(ParseSafetensors(safetensors));
  for (const SafetensorsEntry& entry : file.tensors) bytes[entry.name] = std::string(entry.data);
  return bytes;
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Batch MakeBatch(const WholeModel& model, int samples, int micro_batches, std::uint32_t seed) {
  Random random(seed);
  std::int64_t image_size = 1;
  for (const std::int64_t dim : model.input_shape) image_size *= dim;
  Batch batch;
  batch.samples = samples;
  for (int m = 0; m < micro_batches; ++m) {
    const int size = samples / micro_batches + (m < samples % micro_batches ? 1 : 0);
    std::string pixels;
    std::vector<std::int64_t> labels;
    for (int i = 0; i < size; ++i) {
      labels.push_back(static_cast<std::int64_t>(random()) % model.classes());
      for (std::int64_t p = 0; p < image_size; ++p) pixels.push_back(static_cast<char>(random() & 255));
    }
    EncodedTensor image;
    image.codec = WireCodec::kRaw;
    image.dtype = WireDtype::kUint8;
    image.dims = {size};
    image.dims.insert(image.dims.end(), model.input_shape.begin(), model.input_shape.end());
    image.payload = SharedBytes::CopyOf(pixels);
    batch.images.push_back(image);
    EncodedTensor label;
    label.codec = WireCodec::kRaw;
    label.dtype = WireDtype::kInt64;
    label.dims = {size};
    label.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(labels.data()), labels.size() * 8});
    batch.labels.push_back(label);
  }
  return batch;
}

Pipeline::Pipeline(const WholeModel& model, const std::vector<int>& cuts, const ComputeOptions& options) {
  for (const StageSpec& spec : Cut(model, cuts)) stages_.push_back(Must(StageModel::Create(spec, options)));
}

void Pipeline::Initialise(std::uint64_t seed) {
  for (auto& stage : stages_) Must(stage->Initialise(seed));
}

void Pipeline::LoadWeights(const std::string& safetensors) {
  for (auto& stage : stages_) Must(stage->LoadWeights(safetensors));
}

StepResult Pipeline::Compute(const Batch& batch, Order order) {
  const int count = static_cast<int>(stages_.size());
  const int micro_batches = static_cast<int>(batch.images.size());
  std::vector<std::deque<Action>> programs;
  for (int s = 0; s < count; ++s) programs.push_back(ProgramOf(order, s, count, micro_batches));
  // What waits for a stage: activations from above, gradients from below.
  std::vector<std::map<int, EncodedTensors>> activations(stages_.size());
  std::vector<std::map<int, EncodedTensors>> gradients(stages_.size());
  for (int m = 0; m < micro_batches; ++m) activations[0][m] = {batch.images[static_cast<std::size_t>(m)]};

  StepResult step;
  step.peak_graphs.assign(stages_.size(), 0);
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (programs[s].empty()) continue;
      const bool last = s + 1 == stages_.size();
      const Action action = programs[s].front();
      const int m = action.micro_batch;
      std::vector<NonFiniteCount> non_finite;
      if (action.forward) {
        if (activations[s].count(m) == 0) continue;
        ForwardResult result = Must(
            stages_[s]->Forward(m, activations[s].at(m), last ? &batch.labels[static_cast<std::size_t>(m)] : nullptr,
                                batch.ids.empty() ? SampleIds() : batch.ids[static_cast<std::size_t>(m)]));
        activations[s].erase(m);
        step.loss_sum += result.loss_sum;
        step.weight += result.weight;
        if (!last) activations[s + 1][m] = Crossed(result.activations);
        non_finite = result.non_finite;
      } else {
        if (!last && gradients[s].count(m) == 0) continue;
        BackwardResult result = Must(stages_[s]->Backward(m, last ? EncodedTensors() : gradients[s].at(m)));
        gradients[s].erase(m);
        if (s > 0) gradients[s - 1][m] = Crossed(result.gradients);
        non_finite = result.non_finite;
      }
      step.non_finite.insert(step.non_finite.end(), non_finite.begin(), non_finite.end());
      step.peak_graphs[s] = std::max(step.peak_graphs[s], stages_[s]->live_graphs());
      programs[s].pop_front();
      progress = true;
    }
  }
  for (const auto& program : programs) {
    if (!program.empty()) throw std::runtime_error("the pipeline hangs");
  }
  double squares = 0;
  for (auto& stage : stages_) {
    for (const double square : Must(stage->SquaredNorms())) squares += square;
  }
  step.norm = std::sqrt(squares) / step.weight;
  return step;
}

void Pipeline::Apply(const StepResult& step, double clip_norm, double learning_rate) {
  const double clip = clip_norm > 0 && step.norm > clip_norm ? clip_norm / step.norm : 1;
  for (auto& stage : stages_) Must(stage->ApplyStep(static_cast<float>(clip / step.weight), learning_rate));
}

double Pipeline::EvaluateLoss(const Batch& batch) {
  double loss = 0;
  for (std::size_t m = 0; m < batch.images.size(); ++m) {
    EncodedTensors x = {batch.images[m]};
    for (auto& stage : stages_) {
      const bool last = stage == stages_.back();
      ForwardResult result = Must(stage->Evaluate(x, last ? &batch.labels[m] : nullptr));
      loss += result.loss_sum;
      if (!last) x = Crossed(result.activations);
    }
  }
  return loss;
}

std::map<std::string, std::string> Pipeline::Weights() const {
  std::map<std::string, std::string> all;
  for (const auto& stage : stages_) all.merge(BytesByName(Must(stage->SaveWeights())));
  return all;
}

std::map<std::string, std::string> Pipeline::Gradients() const {
  std::map<std::string, std::string> all;
  for (const auto& stage : stages_) all.merge(BytesByName(Must(stage->SaveGradients())));
  return all;
}

std::vector<std::string> Pipeline::ParameterNames() const {
  std::vector<std::string> names;
  for (const auto& stage : stages_) {
    for (const ParameterInfo& info : stage->parameters()) names.push_back(info.name);
  }
  return names;
}

}  // namespace resbm::model
