// A file of the training data, plain or gzip (told apart by its first bytes), read front to back.
#ifndef RESBM_PROTO_DATA_DATA_FILE_H_
#define RESBM_PROTO_DATA_DATA_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace resbm::data {

// For one thread. Messages begin with the path.
class DataFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, ... as open(2) says; INVALID_ARGUMENT: not a regular file.
  static absl::StatusOr<DataFile> Open(const std::string& path);
  ~DataFile();
  DataFile(DataFile&&) noexcept;
  DataFile& operator=(DataFile&&) noexcept;

  // Reads up to `size` bytes; fewer only at the end of the file. DATA_LOSS: the gzip stream is corrupt.
  absl::StatusOr<std::size_t> Read(std::uint8_t* to, std::size_t size);
  // Appends exactly `size` bytes. Memory grows with the bytes that are really there, not with `size`.
  // DATA_LOSS: fewer are left (says how many bytes the file should have and has), or as Read.
  absl::Status Append(std::uint64_t size, std::vector<std::uint8_t>* to);
  // Reads and drops `size` bytes. Errors as Append.
  absl::Status Skip(std::uint64_t size);
  // DATA_LOSS: something follows, or the gzip stream's end or checksum is wrong.
  absl::Status ExpectEnd();

  // No file of this size on disk can hold more bytes than this; of a plain file, exactly its size. Deflate
  // expands at most 1032 to 1 (zlib, "Maximum Compression Factor").
  std::uint64_t max_bytes() const;
  bool compressed() const;
  const std::string& path() const;

 private:
  struct Impl;
  explicit DataFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_DATA_FILE_H_
