#include "proto/base/safetensors.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "proto/base/status.h"

namespace resbm {
namespace {

constexpr std::size_t kLengthBytes = 8;
// The limit of the reference implementation.
constexpr std::size_t kMaxHeaderBytes = 100'000'000;
constexpr char kMetadataKey[] = "__metadata__";

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(absl::StrCat("safetensors: ", what)); }

std::optional<std::uint64_t> DtypeBytes(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> kBytes = {
      {"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4},  {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8},
  };
  const auto it = kBytes.find(dtype);
  if (it == kBytes.end()) return std::nullopt;
  return it->second;
}

// Bytes of a tensor, or INVALID_ARGUMENT: unknown dtype, a negative dimension, more than 2^64 bytes.
absl::StatusOr<std::uint64_t> TensorBytes(const std::string& name, const std::string& dtype,
                                          const std::vector<std::int64_t>& shape) {
  const std::optional<std::uint64_t> element = DtypeBytes(dtype);
  if (!element) return Bad(absl::StrCat("tensor \"", name, "\" has unknown dtype \"", dtype, "\""));
  std::uint64_t bytes = *element;
  bool overflow = false;
  bool zero = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return Bad(absl::StrCat("tensor \"", name, "\" has a negative dimension ", dim));
    zero |= dim == 0;
    overflow |= __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes);
  }
  if (zero) return 0;
  if (overflow) {
    return Bad(absl::StrCat("tensor \"", name, "\" has a shape too large to count: [", absl::StrJoin(shape, ","), "]"));
  }
  return bytes;
}

struct Described {
  std::string name;
  std::optional<std::string> dtype;
  bool has_shape = false;
  std::vector<std::int64_t> shape;
  bool has_offsets = false;
  std::vector<std::uint64_t> offsets;
};

// Reads the header as events, so that nothing is built that the format does not have: three levels at
// most, no key twice (a JSON document object would keep the last silently).
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Fail("null"); }
  bool boolean(bool) override { return Fail("a boolean"); }
  bool number_float(double, const std::string& text) override { return Fail(absl::StrCat("the number ", text)); }
  bool binary(binary_t&) override { return Fail("binary data"); }
  bool number_integer(std::int64_t value) override { return Fail(absl::StrCat("the negative number ", value)); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return Fail(absl::StrCat("the dimension ", value));
      }
      tensors_.back().shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets && tensors_.back().offsets.size() < 2) {
      tensors_.back().offsets.push_back(value);
      return true;
    }
    return Fail(absl::StrCat("the number ", value));
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata && !field_.spent()) {
      metadata_[field_.Use()] = value;
      return true;
    }
    if (place_ == Place::kTensor && field_.is("dtype")) {
      field_.Use();
      tensors_.back().dtype = value;
      return true;
    }
    return Fail("a string");
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kBefore) {
      place_ = Place::kTop;
      return true;
    }
    if (place_ != Place::kTop) return Fail("an object");
    const std::string name = field_.Use();
    if (name == kMetadataKey) {
      place_ = Place::kMetadata;
    } else {
      place_ = Place::kTensor;
      tensors_.emplace_back().name = name;
    }
    return true;
  }

  bool key(std::string& name) override {
    if (place_ == Place::kTop) {
      if (!names_.insert(name).second) return Say(absl::StrCat("the name \"", name, "\" comes twice"));
    } else if (place_ == Place::kMetadata) {
      if (metadata_.count(name) > 0) return Say(absl::StrCat("the metadata key \"", name, "\" comes twice"));
    } else {
      const Described& tensor = tensors_.back();
      const bool known = name == "dtype" || name == "shape" || name == "data_offsets";
      if (!known) return Say(absl::StrCat("tensor \"", tensor.name, "\" has an unknown field \"", name, "\""));
      if ((name == "dtype" && tensor.dtype) || (name == "shape" && tensor.has_shape) ||
          (name == "data_offsets" && tensor.has_offsets)) {
        return Say(absl::StrCat("tensor \"", tensor.name, "\" has its field \"", name, "\" twice"));
      }
    }
    field_.Set(name);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      const Described& tensor = tensors_.back();
      if (!tensor.dtype || !tensor.has_shape || !tensor.has_offsets) {
        return Say(absl::StrCat("tensor \"", tensor.name, "\" lacks its ",
                                !tensor.dtype ? "dtype" : (!tensor.has_shape ? "shape" : "data_offsets")));
      }
      if (tensor.offsets.size() != 2) {
        return Say(absl::StrCat("tensor \"", tensor.name, "\" has ", tensor.offsets.size(), " data_offsets, not 2"));
      }
    }
    place_ = place_ == Place::kTop ? Place::kAfter : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && field_.is("shape")) {
      place_ = Place::kShape;
      tensors_.back().has_shape = true;
    } else if (place_ == Place::kTensor && field_.is("data_offsets")) {
      place_ = Place::kOffsets;
      tensors_.back().has_offsets = true;
    } else {
      return Fail("a list");
    }
    field_.Use();
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    return Say(absl::StrCat("the header is not JSON at byte ", position, ": ", error.what()));
  }

  const std::string& error() const { return error_; }
  std::vector<Described>& tensors() { return tensors_; }
  std::map<std::string, std::string>& metadata() { return metadata_; }

 private:
  enum class Place { kBefore, kTop, kMetadata, kTensor, kShape, kOffsets, kAfter };

  // The key whose value comes next.
  class Field {
   public:
    void Set(std::string name) { name_ = std::move(name), used_ = false; }
    std::string Use() {
      used_ = true;
      return name_;
    }
    bool is(std::string_view name) const { return !used_ && name_ == name; }
    bool spent() const { return used_; }

   private:
    std::string name_;
    bool used_ = true;
  };

  bool Say(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }
  bool Fail(absl::string_view found) {
    const bool in_tensor = place_ == Place::kTensor || place_ == Place::kShape || place_ == Place::kOffsets;
    return Say(absl::StrCat(found, " does not belong in ",
                            in_tensor ? absl::StrCat("tensor \"", tensors_.back().name, "\"") : "the header"));
  }

  Place place_ = Place::kBefore;
  Field field_;
  std::set<std::string> names_;
  std::vector<Described> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string error_;
};

}  // namespace

absl::StatusOr<SafetensorsFile> ParseSafetensors(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return Bad(absl::StrCat(bytes.size(), " bytes are too few for a header length"));
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  if (header_bytes > bytes.size() - kLengthBytes || header_bytes > kMaxHeaderBytes) {
    return Bad(absl::StrCat("header length ", header_bytes, " does not fit a file of ", bytes.size(),
                            " bytes; it is truncated or no safetensors file"));
  }
  const std::string_view header = bytes.substr(kLengthBytes, header_bytes);
  const std::string_view data = bytes.substr(kLengthBytes + header_bytes);
  // The JSON reader skips a byte order mark and takes a NUL for the end.
  if (header.empty() || header.front() != '{') return Bad("the header does not begin with {");
  if (header.find('\0') != std::string_view::npos) return Bad("the header has a NUL byte");

  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader)) return Bad(reader.error());

  std::vector<Described>& described = reader.tensors();
  std::stable_sort(described.begin(), described.end(), [](const Described& a, const Described& b) {
    return std::tie(a.offsets[0], a.offsets[1]) < std::tie(b.offsets[0], b.offsets[1]);
  });
  SafetensorsFile file;
  file.metadata = std::move(reader.metadata());
  std::uint64_t position = 0;
  for (Described& tensor : described) {
    const std::uint64_t begin = tensor.offsets[0];
    const std::uint64_t end = tensor.offsets[1];
    if (end < begin || end > data.size()) {
      return Bad(absl::StrCat("tensor \"", tensor.name, "\" has data_offsets [", begin, ",", end, "] in ", data.size(),
                              " bytes of data"));
    }
    if (begin != position) {
      return Bad(absl::StrCat("tensor \"", tensor.name, "\" begins at ", begin, " where ", position,
                              " was expected: ranges overlap or leave a hole"));
    }
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t size, TensorBytes(tensor.name, *tensor.dtype, tensor.shape));
    if (size != end - begin) {
      return Bad(absl::StrCat("tensor \"", tensor.name, "\" of ", *tensor.dtype, " [", absl::StrJoin(tensor.shape, ","),
                              "] takes ", size, " bytes, its data_offsets give ", end - begin));
    }
    position = end;
    file.tensors.push_back({std::move(tensor.name), std::move(*tensor.dtype), std::move(tensor.shape),
                            data.substr(begin, end - begin)});
  }
  if (position != data.size()) {
    return Bad(absl::StrCat(data.size() - position, " bytes of data at the end belong to no tensor"));
  }
  return file;
}

absl::StatusOr<std::string> SerializeSafetensors(const SafetensorsFile& file) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header[kMetadataKey] = file.metadata;
  std::set<std::string_view> names;
  std::uint64_t position = 0;
  for (const SafetensorsEntry& tensor : file.tensors) {
    if (tensor.name == kMetadataKey) return Bad("a tensor may not be called __metadata__");
    if (!names.insert(tensor.name).second) return Bad(absl::StrCat("the name \"", tensor.name, "\" comes twice"));
    RESBM_ASSIGN_OR_RETURN(const std::uint64_t size, TensorBytes(tensor.name, tensor.dtype, tensor.shape));
    if (size != tensor.data.size()) {
      return Bad(absl::StrCat("tensor \"", tensor.name, "\" of ", tensor.dtype, " [", absl::StrJoin(tensor.shape, ","),
                              "] takes ", size, " bytes, but has ", tensor.data.size()));
    }
    nlohmann::ordered_json& description = header[tensor.name];
    description["dtype"] = tensor.dtype;
    description["shape"] = tensor.shape;
    description["data_offsets"] = {position, position + size};
    position += size;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    return Bad(absl::StrCat("a name or metadata is not UTF-8: ", error.what()));
  }
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) return Bad(absl::StrCat("the header would have ", text.size(), " bytes"));

  std::string bytes;
  bytes.reserve(kLengthBytes + text.size() + position);
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  bytes += text;
  for (const SafetensorsEntry& tensor : file.tensors) bytes += tensor.data;
  return bytes;
}

}  // namespace resbm
