#include "proto/data/batch_source.h"

#include <cstring>
#include <utility>

#include "proto/data/augment.h"

namespace resbm::data {
namespace {

std::vector<std::int64_t> DimsOf(std::int64_t count, const std::vector<std::int64_t>& of_one) {
  std::vector<std::int64_t> dims = {count};
  dims.insert(dims.end(), of_one.begin(), of_one.end());
  return dims;
}

std::size_t BytesOf(WireDtype dtype, const std::vector<std::int64_t>& dims) {
  std::size_t bytes = SizeOf(dtype);
  for (std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
  return bytes;
}

EncodedTensor RawTensor(WireDtype dtype, std::vector<std::int64_t> dims, SharedBytes payload) {
  EncodedTensor tensor;
  tensor.codec = WireCodec::kRaw;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.payload = std::move(payload);
  return tensor;
}

// `count` samples in one allocation; `write(i, at)` writes the i-th, all of its bytes.
template <typename Write>
EncodedTensor MakeTensor(WireDtype dtype, const std::vector<std::int64_t>& of_one, std::int64_t count, Write write) {
  std::vector<std::int64_t> dims = DimsOf(count, of_one);
  const std::size_t bytes = BytesOf(dtype, dims);
  const std::size_t bytes_of_one = BytesOf(dtype, of_one);
  std::shared_ptr<char[]> buffer(new char[bytes]);
  char* data = buffer.get();
  for (std::int64_t i = 0; i < count; ++i) write(i, data + i * bytes_of_one);
  return RawTensor(dtype, std::move(dims), SharedBytes(std::move(buffer), data, bytes));
}

// The i-th of `count` targets is that of sample `index_of(i)`.
template <typename IndexOf>
EncodedTensor MakeTargets(const Dataset& dataset, std::int64_t count, IndexOf index_of) {
  return MakeTensor(dataset.target_dtype(), dataset.target_dims(), count,
                    [&](std::int64_t i, char* out) { dataset.WriteTarget(index_of(i), out); });
}

}  // namespace

BatchSource::BatchSource(Options options, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> test)
    : options_(std::move(options)),
      train_(std::move(train)),
      test_(std::move(test)),
      planner_(options_.seed, train_ == nullptr ? 0 : train_->size(), options_.samples, options_.micro_batches),
      evaluation_sizes_(ChunkSizes(test_ == nullptr ? 0 : test_->size(), options_.evaluation_micro_batch)) {}

double BatchSource::Weight(const StepBatch& batch) const {
  std::int64_t weight = 0;
  for (std::int64_t index : batch.indices) weight += train_->weight(index);
  return static_cast<double>(weight);
}

EncodedTensor BatchSource::Inputs(const StepBatch& batch, int micro_batch) const {
  const std::vector<std::int64_t> dims = train_->input_dims();
  const std::size_t bytes = BytesOf(WireDtype::kUint8, dims);
  const ImageSize* image = train_->image_size();
  const std::int64_t offset = batch.Offset(micro_batch);
  return MakeTensor(WireDtype::kUint8, dims, batch.micro_batch_sizes[micro_batch], [&](std::int64_t i, char* out) {
    const std::int64_t index = batch.indices[offset + i];
    if (image == nullptr) {
      std::memcpy(out, train_->input(index), bytes);
    } else {
      Augment(DrawAugmentation(options_.augment, options_.seed, batch.epoch, index), *image, train_->input(index),
              reinterpret_cast<std::uint8_t*>(out));
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
  std::vector<std::int64_t> dims = DimsOf(evaluation_sizes_[micro_batch], test_->input_dims());
  const std::size_t bytes = BytesOf(WireDtype::kUint8, dims);
  const std::uint8_t* first = test_->input(micro_batch * evaluation_sizes_[0]);
  return RawTensor(WireDtype::kUint8, std::move(dims), SharedBytes(test_, reinterpret_cast<const char*>(first), bytes));
}

EncodedTensor BatchSource::EvaluationTargets(int micro_batch) const {
  const std::int64_t first = micro_batch * evaluation_sizes_[0];
  return MakeTargets(*test_, evaluation_sizes_[micro_batch], [first](std::int64_t i) { return first + i; });
}

}  // namespace resbm::data
