#include "coordinator/data/batch_source.h"

#include <cstring>
#include <utility>

#include "coordinator/data/augment.h"

namespace resbm::coordinator {
namespace {

// One allocation; `fill` writes all of its bytes.
template <typename Fill>
EncodedTensor MakeTensor(WireDtype dtype, std::vector<std::int64_t> dims, Fill fill) {
  std::size_t bytes = SizeOf(dtype);
  for (std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
  std::shared_ptr<char[]> buffer(new char[bytes]);
  char* data = buffer.get();
  fill(data);
  EncodedTensor tensor;
  tensor.codec = WireCodec::kRaw;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.payload = SharedBytes(std::move(buffer), data, bytes);
  return tensor;
}

std::vector<std::int64_t> ImageDims(std::int64_t count, const ImageSize& size) {
  return {count, size.channels, size.height, size.width};
}

// Labels of `count` samples, the i-th being sample `index_of(i)`.
template <typename IndexOf>
EncodedTensor MakeTargets(const Dataset& dataset, std::int64_t count, IndexOf index_of) {
  return MakeTensor(WireDtype::kInt64, {count}, [&](char* out) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = dataset.label(index_of(i));
      std::memcpy(out + i * sizeof(label), &label, sizeof(label));
    }
  });
}

}  // namespace

BatchSource::BatchSource(Options options, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> test)
    : options_(std::move(options)),
      train_(std::move(train)),
      test_(std::move(test)),
      planner_(options_.seed, train_ == nullptr ? 0 : train_->size(), options_.samples, options_.micro_batches),
      evaluation_sizes_(ChunkSizes(test_ == nullptr ? 0 : test_->size(), options_.evaluation_micro_batch)) {}

EncodedTensor BatchSource::Inputs(const StepBatch& batch, int micro_batch) const {
  const ImageSize& size = train_->image_size();
  const std::int64_t offset = batch.Offset(micro_batch);
  const std::int64_t count = batch.micro_batch_sizes[micro_batch];
  return MakeTensor(WireDtype::kUint8, ImageDims(count, size), [&](char* out) {
    auto* to = reinterpret_cast<std::uint8_t*>(out);
    for (std::int64_t i = 0; i < count; ++i, to += size.bytes()) {
      const std::int64_t index = batch.indices[offset + i];
      Augment(DrawAugmentation(options_.augment, options_.seed, batch.epoch, index), size, train_->image(index), to);
    }
  });
}

EncodedTensor BatchSource::Targets(const StepBatch& batch, int micro_batch) const {
  const std::int64_t offset = batch.Offset(micro_batch);
  return MakeTargets(*train_, batch.micro_batch_sizes[micro_batch],
                     [&](std::int64_t i) { return batch.indices[offset + i]; });
}

// Every evaluation micro-batch but the last has the size of the first.
EncodedTensor BatchSource::EvaluationInputs(int micro_batch) const {
  const ImageSize& size = test_->image_size();
  const std::int64_t count = evaluation_sizes_[micro_batch];
  return MakeTensor(WireDtype::kUint8, ImageDims(count, size), [&](char* out) {
    std::memcpy(out, test_->image(micro_batch * evaluation_sizes_[0]), count * size.bytes());
  });
}

EncodedTensor BatchSource::EvaluationTargets(int micro_batch) const {
  const std::int64_t first = micro_batch * evaluation_sizes_[0];
  return MakeTargets(*test_, evaluation_sizes_[micro_batch], [first](std::int64_t i) { return first + i; });
}

}  // namespace resbm::coordinator
