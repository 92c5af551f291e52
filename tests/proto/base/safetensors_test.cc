#include "proto/base/safetensors.h"

#include <cstring>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resbm {
namespace {

using ::testing::HasSubstr;

// A file as the format's description says, from its header.
std::string FileOf(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

SafetensorsFile TwoTensors() {
  static const std::string kWeight(24, 'w');
  static const std::string kBias = "0123";
  SafetensorsFile file;
  file.tensors.push_back({"conv.weight", "F32", {2, 3}, kWeight});
  file.tensors.push_back({"conv.bias \"\xc3\xa9\"", "F16", {2}, kBias});
  file.tensors.push_back({"nothing", "I64", {0, 5}, ""});
  file.tensors.push_back({"scalar", "F64", {}, std::string_view(kWeight).substr(0, 8)});
  file.metadata = {{"format", "pt"}, {"state_id", "17"}};
  return file;
}

void ExpectEqual(const SafetensorsFile& a, const SafetensorsFile& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype);
    EXPECT_EQ(a.tensors[i].shape, b.tensors[i].shape);
    EXPECT_EQ(a.tensors[i].data, b.tensors[i].data);
  }
}

TEST(Safetensors, WhatIsSerializedParsesToTheSame) {
  const auto bytes = SerializeSafetensors(TwoTensors());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ((static_cast<unsigned char>((*bytes)[0])) % 8, 0u) << "the header is padded to 8 bytes";
  const auto parsed = ParseSafetensors(*bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ExpectEqual(*parsed, TwoTensors());
}

TEST(Safetensors, AnEmptyFileRoundTrips) {
  const auto bytes = SerializeSafetensors({});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, FileOf("{}      ", ""));
  const auto parsed = ParseSafetensors(*bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->tensors.empty());
}

TEST(Safetensors, AFileThatPythonWroteIsRead) {
  // safetensors.numpy.save({"b": np.array([1.5, -2], np.float32), "a": np.array([[7]], np.int64)}, {"format": "np"})
  const std::string bytes = FileOf(
      R"({"__metadata__":{"format":"np"},"a":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}   )",
      std::string("\7\0\0\0\0\0\0\0\0\0\xc0\x3f\0\0\0\xc0", 16));
  const auto parsed = ParseSafetensors(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->metadata.at("format"), "np");
  EXPECT_EQ(parsed->tensors[0].name, "a");
  std::int64_t a = 0;
  std::memcpy(&a, parsed->tensors[0].data.data(), sizeof(a));
  EXPECT_EQ(a, 7);
  float b[2] = {};
  ASSERT_EQ(parsed->tensors[1].data.size(), sizeof(b));
  std::memcpy(b, parsed->tensors[1].data.data(), sizeof(b));
  EXPECT_EQ(b[0], 1.5f);
  EXPECT_EQ(b[1], -2.0f);
}

TEST(Safetensors, TensorsComeInTheOrderOfTheirData) {
  const std::string bytes = FileOf(
      R"({"late":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
      R"("early":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      "abc");
  const auto parsed = ParseSafetensors(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->tensors[0].name, "early");
  EXPECT_EQ(parsed->tensors[0].data, "a");
  EXPECT_EQ(parsed->tensors[1].name, "late");
  EXPECT_EQ(parsed->tensors[1].data, "bc");
}

struct Malformed {
  const char* header;
  std::string data;
  const char* message;
};

TEST(Safetensors, EveryMalformedHeaderIsRefusedWithItsReason) {
  const std::vector<Malformed> cases = {
      {"", "", "does not begin with {"},
      {"[]", "", "does not begin with {"},
      {" {}", "", "does not begin with {"},
      {"\xef\xbb\xbf{}", "", "does not begin with {"},
      {"{", "", "not JSON"},
      {"{}x", "", "not JSON"},
      {"{\"a\xff\":1}", "", "not JSON"},
      {R"({"a":1})", "", "1 does not belong"},
      {R"({"a":null})", "", "null does not belong"},
      {R"({"a":true})", "", "boolean does not belong"},
      {R"({"a":"x"})", "", "string does not belong"},
      {R"({"a":[]})", "", "list does not belong"},
      {R"({"a":{}})", "", "lacks its dtype"},
      {R"({"a":{"dtype":"U8"}})", "", "lacks its shape"},
      {R"({"a":{"dtype":"U8","shape":[1]}})", "x", "lacks its data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "x", "has 1 data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", "x", "1 does not belong"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", "x", "unknown field \"more\""},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x", "\"dtype\" twice"},
      {R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "x", "\"shape\" twice"},
      {R"({"a":{"dtype":"U7","shape":[1],"data_offsets":[0,1]}})", "x", "unknown dtype \"U7\""},
      {R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", "x", "8 does not belong"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x", "-1 does not belong"},
      {R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", "x", "1.5 does not belong"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "x", "list does not belong"},
      {R"({"a":{"dtype":"U8","shape":[{}],"data_offsets":[0,1]}})", "x", "object does not belong"},
      {R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", "x", "does not belong"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", "x", "dimension"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "", "too large to count"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,3]}})", "abc", "takes 4 bytes"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "x", "data_offsets [1,0]"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "x", "in 1 bytes of data"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy", "leave a hole"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "xy", "belong to no tensor"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       "xyz", "overlap"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       "xy", "\"a\" comes twice"},
      {R"({"__metadata__":{"k":"v","k":"w"}})", "", "\"k\" comes twice"},
      {R"({"__metadata__":{"k":1}})", "", "1 does not belong"},
      {R"({"__metadata__":{"k":{}}})", "", "object does not belong"},
      {R"({"__metadata__":[]})", "", "list does not belong"},
  };
  for (const Malformed& c : cases) {
    const auto parsed = ParseSafetensors(FileOf(c.header, c.data));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << c.header;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(c.message)) << c.header;
  }
}

TEST(Safetensors, ANulInTheHeaderIsRefused) {
  const auto parsed = ParseSafetensors(FileOf(std::string("{}\0[", 4), ""));
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("NUL"));
}

TEST(Safetensors, EveryTruncationOfAFileIsRefused) {
  const std::string bytes = *SerializeSafetensors(TwoTensors());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ParseSafetensors(std::string_view(bytes).substr(0, size)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
  EXPECT_TRUE(ParseSafetensors(bytes).ok());
}

TEST(Safetensors, AHugeHeaderLengthIsRefused) {
  std::string bytes(64, ' ');
  bytes.replace(0, 8, 8, '\xff');
  EXPECT_THAT(std::string(ParseSafetensors(bytes).status().message()), HasSubstr("does not fit"));
}

TEST(Safetensors, WhatCannotBeWrittenIsRefused) {
  const std::string data(8, 'x');
  const auto message = [](const SafetensorsFile& file) {
    const auto bytes = SerializeSafetensors(file);
    EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(bytes.status().message());
  };
  SafetensorsFile file;
  file.tensors = {{"a", "F99", {2}, data}};
  EXPECT_THAT(message(file), HasSubstr("unknown dtype"));
  file.tensors = {{"a", "F32", {3}, data}};
  EXPECT_THAT(message(file), HasSubstr("takes 12 bytes, but has 8"));
  file.tensors = {{"a", "F32", {-2}, data}};
  EXPECT_THAT(message(file), HasSubstr("negative"));
  file.tensors = {{"a", "F32", {2}, data}, {"a", "F32", {2}, data}};
  EXPECT_THAT(message(file), HasSubstr("comes twice"));
  file.tensors = {{"__metadata__", "F32", {2}, data}};
  EXPECT_THAT(message(file), HasSubstr("__metadata__"));
  file.tensors = {{"\xff", "F32", {2}, data}};
  EXPECT_THAT(message(file), HasSubstr("UTF-8"));
}

TEST(Safetensors, MutatedFilesGiveAFileOrInvalidArgument) {
  const std::string original = *SerializeSafetensors(TwoTensors());
  std::mt19937_64 random(20);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = original;
    const int changes = 1 + random() % 4;
    for (int i = 0; i < changes && !bytes.empty(); ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, random() % 9); break;
        case 2: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 9)); break;
        case 3: bytes[at] = "{}[]\",:0129-"[random() % 12]; break;
      }
    }
    const auto parsed = ParseSafetensors(bytes);
    if (!parsed.ok()) {
      ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    // What is accepted lies within the bytes and survives a round trip.
    for (const SafetensorsEntry& tensor : parsed->tensors) {
      ASSERT_GE(tensor.data.data(), bytes.data());
      ASSERT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
    }
    const auto again = SerializeSafetensors(*parsed);
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectEqual(*ParseSafetensors(*again), *parsed);
  }
  EXPECT_GT(accepted, 100) << "mutations of the data alone are valid files";
}

}  // namespace
}  // namespace resbm
