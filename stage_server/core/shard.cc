#include "stage_server/core/shard.h"

#include <algorithm>

#include <xxhash.h>

#include "absl/strings/str_cat.h"

namespace resbm::stage_server {

std::uint64_t ShardHash(const std::string& shard) { return XXH3_64bits(shard.data(), shard.size()); }

absl::StatusOr<v1::GetShardReply> ShardPiece(const std::string& shard, std::uint64_t hash, std::uint64_t offset,
                                             std::uint32_t max_bytes) {
  if (offset > shard.size()) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " is beyond the shard's ", shard.size(), " bytes"));
  }
  std::uint64_t bytes = max_bytes == 0 ? kMaxShardPieceBytes : std::min<std::uint64_t>(max_bytes, kMaxShardPieceBytes);
  bytes = std::min<std::uint64_t>(bytes, shard.size() - offset);
  v1::GetShardReply reply;
  reply.set_total_bytes(shard.size());
  reply.set_hash(hash);
  reply.set_data(shard.substr(offset, bytes));
  return reply;
}

absl::Status ShardReceiver::Add(std::uint64_t offset, const std::string& data) {
  if (offset != data_.size()) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " is not the next, which is ", data_.size()));
  }
  if (data.size() > bytes_ - data_.size()) {
    return absl::OutOfRangeError(absl::StrCat("a piece of ", data.size(), " bytes at ", offset,
                                              " goes beyond the announced ", bytes_));
  }
  data_ += data;
  if (complete() && ShardHash(data_) != hash_) {
    return absl::DataLossError(absl::StrCat("the hash of the shard's ", bytes_, " bytes is not the one announced"));
  }
  return absl::OkStatus();
}

}  // namespace resbm::stage_server
