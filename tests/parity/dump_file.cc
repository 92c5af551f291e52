#include "tests/parity/dump_file.h"

#include <exception>
#include <fstream>
#include <iostream>

namespace resbm::model {
namespace {

std::string DtypeOf(const EncodedTensor& encoded) {
  switch (encoded.dtype) {
    case WireDtype::kFloat32: return "F32";
    case WireDtype::kUint8: return "U8";
    case WireDtype::kInt16: return "I16";
    case WireDtype::kInt32: return "I32";
    case WireDtype::kInt64: return "I64";
    case WireDtype::kBfloat16:
    case WireDtype::kFloat16: break;
  }
  throw std::runtime_error("a tensor that a codec has compressed");
}

}  // namespace

void Dump::Add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape, std::string bytes) {
  tensors_.push_back({name, dtype, std::move(shape), {}});
  bytes_.push_back(std::move(bytes));
}

void Dump::AddEncoded(const std::string& name, const EncodedTensor& encoded) {
  Add(name, DtypeOf(encoded), encoded.dims, std::string(encoded.payload.view()));
}

void Dump::AddFile(const std::string& prefix, const std::string& safetensors) {
  const SafetensorsFile file = Must(ParseSafetensors(safetensors));
  for (const SafetensorsEntry& entry : file.tensors) {
    Add(prefix + entry.name, entry.dtype, entry.shape, std::string(entry.data));
  }
}

void Dump::AddNumber(const std::string& name, double value) {
  Add(name, "F64", {}, std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
}

void Dump::Write(const std::string& path) const {
  SafetensorsFile file;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    file.tensors.push_back(tensors_[i]);
    file.tensors.back().data = bytes_[i];
  }
  const std::string bytes = Must(SerializeSafetensors(file));
  std::ofstream out(path, std::ios::binary);
  if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw std::runtime_error("cannot write " + path);
  }
}

EncodedTensor Uniform(const std::vector<std::int64_t>& dims, std::uint32_t seed) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  std::vector<float> values;
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / (1 << 23) - 1);
  }
  EncodedTensor encoded;
  encoded.dims = dims;
  encoded.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  return encoded;
}

int DumpMain(int argc, char** argv, const std::function<void(const std::string& folder)>& dump) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  try {
    dump(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace resbm::model
