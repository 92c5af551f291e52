#include "coordinator/run/run_setup.h"

#include <algorithm>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/data/load_dataset.h"
#include "coordinator/plan/learning_rate.h"
#include "coordinator/plan/schedule.h"
#include "coordinator/plan/simulate.h"
#include "coordinator/run/programs.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

double BaseLearningRate(const v1::Optimizer& optimizer) {
  if (optimizer.has_muon()) return optimizer.muon().learning_rate();
  return optimizer.has_adamw() ? optimizer.adamw().learning_rate() : optimizer.sgd().learning_rate();
}

absl::Status CheckDataFitsModel(const data::Dataset& data, const ModelPlan& model) {
  const auto& takes = model.layers.front().input_shape();
  const auto& gives = model.layers.back().output_shape();
  const std::vector<std::int64_t> dims = data.input_dims();
  if (!std::equal(takes.begin(), takes.end(), dims.begin(), dims.end())) {
    const data::ImageSize* image = data.image_size();
    if (image == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat("samples of the data are [%s], the model takes [%s]",
                                                        absl::StrJoin(dims, ", "), absl::StrJoin(takes, ", ")));
    }
    return absl::InvalidArgumentError(absl::StrFormat(
        "the data holds images of %d x %d x %d (channels, height, width), which is not the model's input{}; set "
        "input { channels: %d height: %d width: %d }",
        image->channels, image->height, image->width, image->channels, image->height, image->width));
  }
  // Classes are the last dimension: of an image's logits the only one.
  const std::int64_t classes = gives.empty() ? 0 : gives[gives.size() - 1];
  if (classes != data.classes()) {
    return absl::InvalidArgumentError(absl::StrFormat("the data has %d classes, the model %d; set classes: %d",
                                                      data.classes(), classes, data.classes()));
  }
  return absl::OkStatus();
}

std::int64_t TotalSteps(const v1::Run& run, const data::BatchSource& batches) {
  return run.steps() > 0 ? run.steps() : run.epochs() * batches.steps_per_epoch();
}

RunPlan::Timeouts ToTimeouts(const v1::Timeouts& t) {
  RunPlan::Timeouts out;
  out.attach = absl::Seconds(t.attach_seconds());
  out.load = absl::Seconds(t.load_seconds());
  out.stall = absl::Seconds(t.stall_seconds());
  out.step = absl::Seconds(t.step_seconds());
  out.lease = absl::Seconds(t.lease_seconds());
  return out;
}

}  // namespace

absl::StatusOr<RunSetup> SetUpRun(const v1::Job& job, RunKind kind, std::optional<int> stages, std::string job_id) {
  RunSetup setup;
  setup.job = job;
  RESBM_ASSIGN_OR_RETURN(setup.model, ExpandModel(job));
  RESBM_ASSIGN_OR_RETURN(setup.partition, PlanPartition(job, setup.model, stages));
  const int count = setup.stages();
  const bool train = kind == RunKind::kTrain;
  const bool evaluate = !train || job.run().evaluate();

  const std::int64_t context = job.model().transformer().context();
  if (train) {
    RESBM_ASSIGN_OR_RETURN(setup.train, data::LoadDataset(job.data(), data::Split::kTrain, context));
    RESBM_RETURN_IF_ERROR(CheckDataFitsModel(*setup.train, setup.model));
  }
  if (evaluate) {
    RESBM_ASSIGN_OR_RETURN(setup.test, data::LoadDataset(job.data(), data::Split::kTest, context));
    RESBM_RETURN_IF_ERROR(CheckDataFitsModel(*setup.test, setup.model));
  }
  data::BatchSource::Options batches;
  batches.seed = job.seed();
  batches.samples = job.batch().samples();
  batches.micro_batches = job.batch().micro_batches();
  batches.augment = job.data().augment();
  batches.evaluation_micro_batch = job.run().evaluation_micro_batch();
  setup.batches = std::make_shared<const data::BatchSource>(batches, setup.train, setup.test);

  const std::vector<int> asked(job.schedule().windows().begin(), job.schedule().windows().end());
  const v1::Schedule::Kind schedule = job.schedule().kind();
  RESBM_ASSIGN_OR_RETURN(setup.windows, ResolveWindows(schedule, count, job.batch().micro_batches(), asked));
  RESBM_RETURN_IF_ERROR(CheckPrograms(TrainingPrograms(job.batch().micro_batches(), setup.windows)));

  RunPlan& plan = setup.plan;
  plan.job_id = std::move(job_id);
  plan.seed = job.seed();
  plan.origin = absl::StrFormat("%s seed %d", job.DebugString(), job.seed());
  for (int s = 0; s < count; ++s) {
    plan.stages.push_back(MakeStageSpec(job, setup.model, setup.partition, s, setup.windows));
  }
  const std::shared_ptr<const data::BatchSource> source = setup.batches;
  if (train) {
    plan.total_steps = TotalSteps(job.run(), *source);
    plan.step_shape = [source, indices = job.model().transformer().dropout() > 0](std::int64_t step) {
      data::StepBatch batch = source->Plan(step);
      StepShape shape;
      shape.epoch = batch.epoch;
      shape.weight = source->Weight(batch);
      if (indices) shape.sample_indices.assign(batch.indices.begin(), batch.indices.end());
      shape.micro_batches = std::move(batch.micro_batch_sizes);
      return shape;
    };
    const double base = BaseLearningRate(job.optimizer());
    plan.learning_rate = [base, schedule = job.optimizer().schedule(), total = plan.total_steps](std::int64_t step) {
      return base * LearningRateFactor(schedule, step, total);
    };
    plan.clip_norm = job.optimizer().clip_norm();
    plan.scale_loss = job.precision() == v1::FP16;
    plan.trace_steps = job.run().trace_steps();
    plan.train_programs = [windows = setup.windows](std::uint32_t micro_batches) {
      return TrainingProgramMessages(static_cast<int>(micro_batches), windows);
    };
  }
  if (evaluate) {
    plan.evaluation_micro_batches = source->evaluation_sizes();
    plan.evaluation_programs = [count](std::uint32_t micro_batches) {
      return EvaluationProgramMessages(count, static_cast<int>(micro_batches));
    };
  }
  plan.timeouts = ToTimeouts(job.timeouts());
  return setup;
}

std::uint64_t StageParameters(const RunSetup& setup, int stage) {
  const StageRange& range = setup.partition.stages[stage];
  std::uint64_t parameters = 0;
  for (int i = range.first_layer; i <= range.last_layer; ++i) parameters += setup.model.layers[i].parameters();
  for (const v1::BoundarySpec& b : setup.model.boundaries) {
    const int after = static_cast<int>(b.after_layer());
    if (after >= range.first_layer && after <= range.last_layer) parameters += b.encoder_parameters();
    if (after + 1 >= range.first_layer && after + 1 <= range.last_layer) parameters += b.decoder_parameters();
  }
  return parameters;
}

void ConnectStages(absl::Span<const std::string> addresses, const std::string& link_key,
                   std::vector<v1::StageSpec>* stages) {
  for (std::size_t s = 0; s < stages->size(); ++s) {
    v1::StageSpec& stage = (*stages)[s];
    stage.set_link_key(link_key);
    stage.mutable_up()->clear_address();
    stage.mutable_down()->clear_address();
    if (s + 1 < stages->size()) stage.mutable_down()->set_address(addresses[s + 1]);
  }
}

std::string RandomKey() {
  std::random_device device;
  std::string key;
  while (key.size() < 16) key.push_back(static_cast<char>(device() & 0xff));
  return key;
}

std::string NewJobId(const std::string& name) {
  const std::string key = RandomKey();
  return absl::StrFormat("%s-%s", name, absl::BytesToHexString(key.substr(0, 8)));
}

}  // namespace resbm::coordinator
