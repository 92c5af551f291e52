// Weights in pieces: what PutShard puts together and GetShard hands out.
#ifndef RESBM_STAGE_SERVER_CORE_SHARD_H_
#define RESBM_STAGE_SERVER_CORE_SHARD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

using GetShardDone = std::function<void(absl::StatusOr<v1::GetShardReply>)>;
using PutShardDone = std::function<void(absl::StatusOr<v1::PutShardReply>)>;

// Most that one GetShardReply carries.
inline constexpr std::uint64_t kMaxShardPieceBytes = 1024 * 1024;

// XXH3-64 of the whole.
std::uint64_t ShardHash(const std::string& shard);

// A piece of `shard`. OUT_OF_RANGE: offset beyond the end (the end itself gives an empty piece).
absl::StatusOr<v1::GetShardReply> ShardPiece(const std::string& shard, std::uint64_t hash, std::uint64_t offset,
                                             std::uint32_t max_bytes);

// Grows as pieces come: an announced size allocates nothing.
class ShardReceiver {
 public:
  ShardReceiver(std::uint64_t bytes, std::uint64_t hash) : bytes_(bytes), hash_(hash) {}

  // OUT_OF_RANGE: not the next piece, or more than announced. DATA_LOSS: complete, and its hash is another.
  absl::Status Add(std::uint64_t offset, const std::string& data);
  bool complete() const { return data_.size() == bytes_; }
  std::uint64_t received() const { return data_.size(); }
  // Once complete.
  std::shared_ptr<const std::string> Take() { return std::make_shared<const std::string>(std::move(data_)); }

 private:
  const std::uint64_t bytes_;
  const std::uint64_t hash_;
  std::string data_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_SHARD_H_
