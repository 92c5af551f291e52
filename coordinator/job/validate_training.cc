#include "coordinator/job/validate_training.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace resbm::coordinator {
namespace {

// Both ends, as protocol.md says: ping after 20 s of silence, give up after 20 s more.
constexpr double kKeepaliveSeconds = 20 + 20;
// Of a stall_seconds of 0, at the least.
constexpr double kShortestDefaultStallSeconds = 60;

constexpr std::int64_t kMostSamples = 1 << 20;
constexpr std::int64_t kMostMicroBatches = 4096;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostNewtonSchulzSteps = 99;  // as PyTorch

void CheckRange(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& path,
                FieldErrors& errors) {
  if (value < least) errors.Add(path, value, " is too small; at least ", least);
  if (value > most) errors.Add(path, value, " is too large; at most ", most);
}

void CheckFinite(double value, bool good, const char* rule, const std::string& path, FieldErrors& errors) {
  if (!std::isfinite(value) || !good) errors.Add(path, value, " is out of range; ", rule);
}

void CheckPositive(double value, const std::string& path, FieldErrors& errors) {
  CheckFinite(value, value > 0, "it must be above 0", path, errors);
}

void CheckNotNegative(double value, const std::string& path, FieldErrors& errors) {
  CheckFinite(value, value >= 0, "it must be 0 or more", path, errors);
}

// What exponential averages take.
void CheckDecay(double value, const std::string& path, FieldErrors& errors) {
  CheckFinite(value, value >= 0 && value < 1, "it must be from 0 to below 1", path, errors);
}

void CheckSgd(const v1::Optimizer::Sgd& sgd, FieldErrors& errors) {
  const std::string path = "optimizer.sgd.";
  CheckPositive(sgd.learning_rate(), path + "learning_rate", errors);
  CheckDecay(sgd.momentum(), path + "momentum", errors);
  CheckNotNegative(sgd.weight_decay(), path + "weight_decay", errors);
  CheckFinite(sgd.dampening(), sgd.dampening() >= 0 && sgd.dampening() <= 1, "it must be from 0 to 1",
              path + "dampening", errors);
  if (sgd.nesterov() && sgd.momentum() == 0) errors.Add(path + "nesterov", "needs a momentum; set momentum: 0.9");
  if (sgd.nesterov() && sgd.dampening() != 0) errors.Add(path + "nesterov", "does not go with dampening; set it to 0");
}

void CheckAdamW(const v1::Optimizer::AdamW& adamw, const std::string& path, FieldErrors& errors) {
  CheckPositive(adamw.learning_rate(), path + "learning_rate", errors);
  CheckDecay(adamw.beta1(), path + "beta1", errors);
  CheckDecay(adamw.beta2(), path + "beta2", errors);
  CheckPositive(adamw.epsilon(), path + "epsilon", errors);
  CheckNotNegative(adamw.weight_decay(), path + "weight_decay", errors);
}

void CheckMuon(const v1::Optimizer::Muon& muon, FieldErrors& errors) {
  const std::string path = "optimizer.muon.";
  CheckPositive(muon.learning_rate(), path + "learning_rate", errors);
  CheckDecay(muon.momentum(), path + "momentum", errors);
  CheckNotNegative(muon.weight_decay(), path + "weight_decay", errors);
  CheckRange(muon.ns_steps(), 1, kMostNewtonSchulzSteps, path + "ns_steps", errors);
  CheckAdamW(muon.adamw(), path + "adamw.", errors);
}

void CheckSchedule(const v1::LearningRateSchedule& schedule, FieldErrors& errors) {
  const std::string path = "optimizer.schedule.";
  if (schedule.warmup_steps() < 0) {
    errors.Add(path + "warmup_steps", schedule.warmup_steps(), " is negative; 0 is no warm-up");
  }
  if (schedule.has_cosine()) {
    const double factor = schedule.cosine().final_factor();
    CheckFinite(factor, factor >= 0 && factor <= 1, "it must be from 0 to 1", path + "cosine.final_factor", errors);
  }
  if (schedule.has_one_cycle()) {
    const v1::LearningRateSchedule::OneCycle& cycle = schedule.one_cycle();
    if (schedule.warmup_steps() > 0) {
      errors.Add(path + "warmup_steps",
                 "one_cycle has a rise of its own; leave warmup_steps out, or set one_cycle.rise");
    }
    CheckFinite(cycle.rise(), cycle.rise() > 0 && cycle.rise() < 1, "it must be between 0 and 1",
                path + "one_cycle.rise", errors);
    CheckFinite(cycle.start_div(), cycle.start_div() >= 1, "it must be 1 or more", path + "one_cycle.start_div",
                errors);
    CheckFinite(cycle.final_div(), cycle.final_div() >= 1, "it must be 1 or more", path + "one_cycle.final_div",
                errors);
  }
}

}  // namespace

void CheckBatch(const v1::Batch& batch, FieldErrors& errors) {
  CheckRange(batch.samples(), 1, kMostSamples, "batch.samples", errors);
  CheckRange(batch.micro_batches(), 1, kMostMicroBatches, "batch.micro_batches", errors);
  if (batch.samples() >= 1 && batch.samples() < batch.micro_batches()) {
    errors.Add("batch.samples", batch.samples(), " samples cannot fill ", batch.micro_batches(),
               " micro-batches; raise samples or lower micro_batches");
  }
}

void CheckOptimizer(const v1::Optimizer& optimizer, FieldErrors& errors) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd: CheckSgd(optimizer.sgd(), errors); break;
    case v1::Optimizer::kAdamw: CheckAdamW(optimizer.adamw(), "optimizer.adamw.", errors); break;
    case v1::Optimizer::kMuon: CheckMuon(optimizer.muon(), errors); break;
    case v1::Optimizer::KIND_NOT_SET:
      errors.Add("optimizer", "says no kind of optimizer; choose sgd {}, adamw {} or muon {}");
      break;
  }
  CheckNotNegative(optimizer.clip_norm(), "optimizer.clip_norm", errors);
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const v1::Optimizer::ParameterGroup& group = optimizer.group(i);
    const std::string path = absl::StrCat("optimizer.group[", i, "].");
    if (group.match().empty()) errors.Add(path + "match", "is empty; give a pattern such as \"boundaries.*\"");
    CheckNotNegative(group.rate_ratio(), path + "rate_ratio", errors);
    CheckNotNegative(group.weight_decay(), path + "weight_decay", errors);
  }
  CheckSchedule(optimizer.schedule(), errors);
}

void CheckRun(const v1::Run& run, FieldErrors& errors) {
  if (run.steps() < 0) errors.Add("run.steps", run.steps(), " is negative; 0 is as many as the epochs have");
  if (run.steps() <= 0 && run.epochs() < 1) {
    errors.Add("run.epochs", run.epochs(), " epochs are nothing to do; set epochs or steps to 1 or more");
  }
  CheckRange(run.threads_per_stage(), 1, kMostThreads, "run.threads_per_stage", errors);
  CheckRange(run.evaluation_micro_batch(), 1, kMostSamples, "run.evaluation_micro_batch", errors);
  if (run.trace_steps() < -1) {
    errors.Add("run.trace_steps", run.trace_steps(), " is too small; -1 traces all steps, 0 none");
  }
}

void CheckTimeouts(const v1::Timeouts& timeouts, FieldErrors& errors) {
  CheckPositive(timeouts.connect_seconds(), "timeouts.connect_seconds", errors);
  CheckPositive(timeouts.attach_seconds(), "timeouts.attach_seconds", errors);
  CheckPositive(timeouts.load_seconds(), "timeouts.load_seconds", errors);
  CheckNotNegative(timeouts.step_seconds(), "timeouts.step_seconds", errors);
  CheckNotNegative(timeouts.stall_seconds(), "timeouts.stall_seconds", errors);
  const double stall = timeouts.stall_seconds();
  if (stall > 0 && stall <= kKeepaliveSeconds) {
    errors.Add("timeouts.stall_seconds", stall, " s is not above the ", kKeepaliveSeconds,
               " s after which a connection counts as dead; raise it, or 0 for the default");
  }
  const double longest = stall > 0 ? stall : kShortestDefaultStallSeconds;
  if (!(timeouts.lease_seconds() > longest) || !std::isfinite(timeouts.lease_seconds())) {
    errors.Add("timeouts.lease_seconds", timeouts.lease_seconds(), " s is not above the stall time of ", longest,
               " s: a stage would forget the job before the coordinator gives it up; raise it");
  }
}

}  // namespace resbm::coordinator
