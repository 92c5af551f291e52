#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {
namespace {

// A Hello has a job id and a key; far below this.
constexpr std::size_t kMaxHelloBytes = 4096;

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a LinkMessage: ", what));
}

// Reads Protocol Buffers fields (https://protobuf.dev/programming-guides/encoding/) off consecutive pieces.
class FieldReader {
 public:
  explicit FieldReader(absl::Span<const std::string_view> pieces) : pieces_(pieces) {
    for (const std::string_view piece : pieces_) left_ += piece.size();
  }

  std::uint64_t left() const { return left_; }

  absl::StatusOr<std::uint64_t> Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (left_ == 0) return Bad("it ends within a number");
      const std::uint64_t byte = Byte();
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Bad("a number longer than 64 bits");
  }

  absl::StatusOr<std::uint64_t> Fixed64() {
    if (left_ < 8) return Bad("it ends within a number");
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8) value |= std::uint64_t{Byte()} << shift;
    return value;
  }

  // The length of a field that is there in full.
  absl::StatusOr<std::uint64_t> Length() {
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t length, Varint());
    if (length > left_) return Bad(absl::StrCat("a field of ", length, " bytes where ", left_, " are left"));
    return length;
  }

  // The next `size` (<= left()) bytes as views.
  std::vector<std::string_view> Views(std::uint64_t size) {
    std::vector<std::string_view> views;
    left_ -= size;
    while (size > 0) {
      const std::string_view rest = Rest();
      const std::string_view part = rest.substr(0, std::min<std::uint64_t>(size, rest.size()));
      views.push_back(part);
      offset_ += part.size();
      size -= part.size();
    }
    return views;
  }

  // Passes over a field of an unknown number.
  absl::Status Skip(std::uint64_t wire_type) {
    switch (wire_type) {
      case 0: return Varint().status();
      case 1: return Fixed64().status();
      case 2: {
        RESBM_ASSIGN_OR_RETURN(const std::uint64_t length, Length());
        Views(length);
        return absl::OkStatus();
      }
      case 5:
        if (left_ < 4) return Bad("it ends within a number");
        Views(4);
        return absl::OkStatus();
      default: return Bad(absl::StrCat("a field of wire type ", wire_type));
    }
  }

  absl::StatusOr<std::uint64_t> Tag() {
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t tag, Varint());
    if (tag >> 3 == 0 || tag > std::numeric_limits<std::uint32_t>::max()) return Bad(absl::StrCat("the tag ", tag));
    return tag;
  }

 private:
  // What is left of the present piece; only while bytes are left.
  std::string_view Rest() {
    while (offset_ == pieces_[piece_].size()) {
      ++piece_;
      offset_ = 0;
    }
    return pieces_[piece_].substr(offset_);
  }
  unsigned char Byte() {
    const char byte = Rest().front();
    ++offset_;
    --left_;
    return static_cast<unsigned char>(byte);
  }

  const absl::Span<const std::string_view> pieces_;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;
  std::uint64_t left_ = 0;
};

std::string Joined(const std::vector<std::string_view>& views) {
  std::string joined;
  for (const std::string_view view : views) joined += view;
  return joined;
}

absl::StatusOr<std::unique_ptr<v1::Hello>> ParseHello(const std::vector<std::string_view>& views, std::uint64_t size) {
  if (size > kMaxHelloBytes) return Bad(absl::StrCat("a Hello of ", size, " bytes"));
  auto hello = std::make_unique<v1::Hello>();
  if (!hello->ParseFromString(Joined(views))) return Bad("its Hello cannot be read");
  return hello;
}

absl::StatusOr<std::unique_ptr<ChunkView>> ParseChunk(const std::vector<std::string_view>& views) {
  FieldReader reader(views);
  auto chunk = std::make_unique<ChunkView>();
  while (reader.left() > 0) {
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t tag, reader.Tag());
    switch (tag) {
      case 1 << 3 | 2: {
        RESBM_ASSIGN_OR_RETURN(const std::uint64_t length, reader.Length());
        if (length > kMaxHeaderBytes) return Bad(absl::StrCat("a tensor header of ", length, " bytes"));
        chunk->header = Joined(reader.Views(length));
        break;
      }
      case 2 << 3 | 0: {
        RESBM_ASSIGN_OR_RETURN(const std::uint64_t index, reader.Varint());
        if (index > std::numeric_limits<std::uint32_t>::max()) return Bad(absl::StrCat("the chunk index ", index));
        chunk->index = static_cast<std::uint32_t>(index);
        break;
      }
      case 3 << 3 | 1: {
        RESBM_ASSIGN_OR_RETURN(chunk->checksum, reader.Fixed64());
        break;
      }
      case 4 << 3 | 2: {
        RESBM_ASSIGN_OR_RETURN(const std::uint64_t length, reader.Length());
        chunk->payload = reader.Views(length);
        chunk->payload_bytes = length;
        break;
      }
      default: RESBM_RETURN_IF_ERROR(reader.Skip(tag & 7));
    }
  }
  return chunk;
}

}  // namespace

absl::StatusOr<IncomingMessage> ParseLinkMessage(absl::Span<const std::string_view> pieces) {
  FieldReader reader(pieces);
  IncomingMessage message;
  while (reader.left() > 0) {
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t tag, reader.Tag());
    if (tag != (1 << 3 | 2) && tag != (2 << 3 | 2)) {
      RESBM_RETURN_IF_ERROR(reader.Skip(tag & 7));
      continue;
    }
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t length, reader.Length());
    if (message.hello != nullptr || message.chunk != nullptr) return Bad("it holds more than one Hello or chunk");
    const std::vector<std::string_view> views = reader.Views(length);
    if (tag >> 3 == 1) {
      RESBM_ASSIGN_OR_RETURN(message.hello, ParseHello(views, length));
    } else {
      RESBM_ASSIGN_OR_RETURN(message.chunk, ParseChunk(views));
    }
  }
  if (message.hello == nullptr && message.chunk == nullptr) return Bad("it holds neither a Hello nor a chunk");
  return message;
}

}  // namespace resbm::wire
