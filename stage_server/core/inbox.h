// Tensors that came and wait for their action, by link and micro-batch. Those of the next step may come
// early (prefetch), so it lives longer than a step.
#ifndef RESBM_STAGE_SERVER_CORE_INBOX_H_
#define RESBM_STAGE_SERVER_CORE_INBOX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "proto/base/encoded_tensor.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/core/tensor_plan.h"

namespace resbm::stage_server {

class Inbox {
 public:
  void Put(End end, WorkId id, std::uint32_t micro_batch, EncodedTensor tensor) {
    bytes_ += tensor.payload.size();
    if (bytes_ > peak_bytes_) peak_bytes_ = bytes_;
    tensors_[Key(end, id, micro_batch)].push_back(std::move(tensor));
    ++size_;
  }

  // Whether all `count` tensors of the micro-batch are here.
  bool Has(End end, WorkId id, std::uint32_t micro_batch, std::size_t count) const {
    const auto found = tensors_.find(Key(end, id, micro_batch));
    return found != tensors_.end() && found->second.size() >= count;
  }

  // In the order in which they came. Only where Has.
  EncodedTensors Take(End end, WorkId id, std::uint32_t micro_batch) {
    const auto found = tensors_.find(Key(end, id, micro_batch));
    EncodedTensors tensors = std::move(found->second);
    tensors_.erase(found);
    for (const EncodedTensor& tensor : tensors) bytes_ -= tensor.payload.size();
    size_ -= tensors.size();
    return tensors;
  }

  void Clear() {
    tensors_.clear();
    size_ = 0;
    bytes_ = 0;
  }

  std::size_t size() const { return size_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  void ResetPeak() { peak_bytes_ = bytes_; }

 private:
  using Key_ = std::tuple<End, bool, std::uint64_t, std::uint32_t>;
  static Key_ Key(End end, WorkId id, std::uint32_t micro_batch) { return {end, id.evaluation, id.number, micro_batch}; }

  std::map<Key_, EncodedTensors> tensors_;
  std::size_t size_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_INBOX_H_
