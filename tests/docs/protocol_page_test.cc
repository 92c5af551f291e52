// The bytes that docs/protocol.md shows are those that this code writes.
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {
namespace {

// The hexadecimal block after <!-- example: NAME -->, as bytes.
std::string Example(const std::string& name) {
  std::ifstream file("docs/protocol.md");
  std::ostringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const std::string begin = absl::StrCat("<!-- example: ", name, " -->\n```text\n");
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << name;
  if (at == std::string::npos) return "";
  const std::string hex = text.substr(at + begin.size(), text.find("```", at + begin.size()) - at - begin.size());
  return absl::HexStringToBytes(absl::StrReplaceAll(hex, {{" ", ""}, {"\n", ""}}));
}

TEST(ProtocolPage, TheMessageIsWhatASenderWrites) {
  v1::TensorHeader header;
  header.set_kind(v1::ACTIVATION);
  header.mutable_fence()->set_epoch(1);
  header.mutable_fence()->set_generation(1);
  header.set_step(5);
  header.set_link(1);
  header.set_towards(v1::DOWNSTREAM);
  header.set_micro_batch(2);
  header.set_tensor_count(1);
  EncodedTensor tensor;
  tensor.codec = WireCodec::kFp16;
  tensor.dtype = WireDtype::kFloat16;
  tensor.dims = {1, 1, 2, 2};
  tensor.scale_exponent = 13;
  // 8192, -4096, 2048 and 24576 as fp16.
  tensor.payload = SharedBytes::CopyOf(absl::HexStringToBytes("007000ec00680076"));
  DescribeTensor(tensor, &header);
  const OutgoingMessage message = EncodeChunk(header.fence(), header.SerializeAsString(), 0, tensor.payload);
  EXPECT_EQ(absl::BytesToHexString(absl::StrCat(message.prefix, std::string(message.payload.view()))),
            absl::BytesToHexString(Example("message")));
}

TEST(ProtocolPage, AReceiverTakesTheMessage) {
  const std::string bytes = Example("message");
  const std::string_view pieces[] = {bytes};
  const auto message = ParseLinkMessage(pieces);
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_NE(message->chunk, nullptr);
  v1::TensorHeader expected;
  ASSERT_TRUE(expected.ParseFromString(message->chunk->header));
  TensorAssembler assembler(expected);
  const auto complete = assembler.Add(*message->chunk);
  ASSERT_TRUE(complete.ok()) << complete.status();
  EXPECT_TRUE(*complete);
  EXPECT_EQ(assembler.Take().payload.view(), absl::HexStringToBytes("007000ec00680076"));
}

TEST(ProtocolPage, TheInt4ExampleHasTheSizeThatTheCodecImplies) {
  EXPECT_EQ(Example("int4").size(), PayloadBytesOf(WireCodec::kInt4, WireDtype::kUint8, 5));
}

}  // namespace
}  // namespace resbm::wire
