#include "stage_server/data/local_line.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/data/sampler.h"

namespace resbm::stage_server {
namespace {

absl::Status Unlike(const v1::TensorHeader& header, const EncodedTensor& tensor) {
  return absl::InvalidArgumentError(absl::StrCat(
      "local data: micro-batch ", header.micro_batch(), " of ",
      header.has_evaluation() ? absl::StrCat("evaluation ", header.evaluation()) : absl::StrCat("step ", header.step()),
      " is [", absl::StrJoin(tensor.dims, ", "), "], the step expects [", absl::StrJoin(header.dims(), ", "),
      "] of the same dtype; is the coordinator of another release?"));
}

}  // namespace

LocalLine::LocalLine(End end, const v1::Fence& fence, const LocalData* data, LinkEvents* events)
    : end_(end), fence_(fence), data_(data), events_(events), thread_([this] { Run(); }) {}

LocalLine::~LocalLine() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void LocalLine::Expect(v1::TensorHeader header) {
  *header.mutable_fence() = fence_;
  MutexLock lock(mutex_);
  expected_.push_back(std::move(header));
  changed_.NotifyAll();
}

void LocalLine::SetInboxLimit(std::uint32_t tensors) {
  MutexLock lock(mutex_);
  limit_ = tensors;
  changed_.NotifyAll();
}

void LocalLine::Consumed() {
  MutexLock lock(mutex_);
  if (held_ > 0) --held_;
  changed_.NotifyAll();
}

void LocalLine::Run() {
  for (;;) {
    v1::TensorHeader header;
    {
      MutexLock lock(mutex_);
      while (!stopped_ && (expected_.empty() || (limit_ > 0 && held_ >= limit_))) changed_.Wait(mutex_);
      if (stopped_) return;
      header = std::move(expected_.front());
      expected_.pop_front();
      ++held_;
    }
    absl::StatusOr<EncodedTensor> tensor = MakeOrSay(header);
    // Events leave under the lock, so that none begins once the line is gone; who takes them does not block.
    MutexLock lock(mutex_);
    if (stopped_) return;
    if (!tensor.ok()) {
      stopped_ = true;
      events_->OnLinkError(fence_, end_, tensor.status());
      return;
    }
    events_->OnTensor(end_, wire::ReceivedTensor{std::move(header), *std::move(tensor)});
  }
}

absl::StatusOr<EncodedTensor> LocalLine::MakeOrSay(const v1::TensorHeader& header) const {
  try {
    return Make(header);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("local data: no memory for a micro-batch");
  }
}

absl::StatusOr<EncodedTensor> LocalLine::Make(const v1::TensorHeader& header) const {
  const std::shared_ptr<const data::BatchSource> source = data_->source();
  if (source == nullptr) return absl::InternalError("local data: nothing is loaded");
  const bool inputs = end_ == End::kUp;
  const std::uint32_t m = header.micro_batch();
  EncodedTensor tensor;
  if (header.has_evaluation()) {
    if (m >= source->evaluation_sizes().size()) return Unlike(header, tensor);
    const int micro_batch = static_cast<int>(m);
    tensor = inputs ? source->EvaluationInputs(micro_batch) : source->EvaluationTargets(micro_batch);
  } else {
    if (!source->has_training_data() || header.step() < 1 ||
        header.step() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Unlike(header, tensor);
    }
    const data::StepBatch batch = source->Plan(static_cast<std::int64_t>(header.step()));
    if (m >= batch.micro_batch_sizes.size()) return Unlike(header, tensor);
    tensor = inputs ? source->Inputs(batch, static_cast<int>(m)) : source->Targets(batch, static_cast<int>(m));
  }
  const bool alike = std::equal(tensor.dims.begin(), tensor.dims.end(), header.dims().begin(), header.dims().end()) &&
                     static_cast<int>(tensor.dtype) == static_cast<int>(header.dtype());
  if (!alike) return Unlike(header, tensor);
  return tensor;
}

}  // namespace resbm::stage_server
