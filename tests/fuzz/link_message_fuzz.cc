// Bytes from a peer: parsed as a LinkMessage over random pieces, compared with the generated parser, and
// given to an endpoint that expects a tensor. Whatever comes, the answer is a typed error or right data.
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/link_endpoint.h"
#include "proto/wire/tensor_frame.h"
#include "tests/fuzz/seeded_inputs.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

// Also without assertions of a test framework: libFuzzer reports an abort.
void Check(bool condition) {
  if (!condition) std::abort();
}

// What this parser accepts the generated one accepts, and reads the same in it. (Not the reverse: this one
// refuses groups, oversized headers and a message that holds two.)
void CompareWithGenerated(const std::string& bytes, const IncomingMessage& message) {
  Check((message.hello != nullptr) != (message.chunk != nullptr));
  v1::LinkMessage generated;
  Check(generated.ParseFromString(bytes));
  if (message.hello != nullptr) {
    Check(generated.has_hello());
    Check(generated.hello().SerializeAsString() == message.hello->SerializeAsString());
    return;
  }
  Check(generated.has_chunk());
  std::string payload;
  for (const std::string_view piece : message.chunk->payload) payload += piece;
  Check(payload.size() == message.chunk->payload_bytes);
  Check(generated.chunk().payload() == payload);
  Check(generated.chunk().header() == message.chunk->header);
  Check(generated.chunk().index() == message.chunk->index);
  Check(generated.chunk().checksum() == message.chunk->checksum);
}

bool IsTyped(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

// A downstream end that expects the tensor of link_message_fuzz_test's good inputs.
void GiveToEndpoint(const IncomingMessage& message) {
  End end(v1::DOWNSTREAM);
  const EncodedTensor tensor = TensorOf({4, 25}, WireDtype::kFloat16, 1);
  end.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 7, 3), tensor));
  end.Dial(1);
  if (message.hello != nullptr) {
    const absl::Status status = end.endpoint.OnHello(end.connection.get(), *message.hello);
    Check(status.ok() || IsTyped(status));
    return;
  }
  const v1::Hello hello = End(v1::UPSTREAM).Dial(1);
  Check(end.endpoint.OnHello(end.connection.get(), hello).ok());
  const auto taken = end.endpoint.OnChunk(end.connection.get(), *message.chunk);
  Check(taken.ok() ? *taken == LinkEndpoint::Taken::kYes : IsTyped(taken.status()));
  // One chunk is all of it: accepted means complete, and what the checksum covers is what was sent.
  Check(taken.ok() == (end.listener.count("tensor") == 1));
  if (taken.ok()) Check(end.listener.tensors()[0].tensor.payload.size() == tensor.payload.size());
}

}  // namespace
}  // namespace resbm::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace resbm::wire;  // NOLINT: the entry point has no namespace of its own
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::mt19937_64 random(size);
  const auto message = ParseLinkMessage(Split(bytes, random));
  const std::string_view whole = bytes;
  Check(ParseLinkMessage({&whole, 1}).status() == message.status());
  if (!message.ok()) {
    Check(absl::IsInvalidArgument(message.status()));
    return 0;
  }
  CompareWithGenerated(bytes, *message);
  GiveToEndpoint(*message);
  return 0;
}
