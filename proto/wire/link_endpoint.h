// One end of a link within one fence: what is to be sent, what was sent and may have to be sent again,
// what is expected. Survives broken connections: both ends say in their Hello how many whole tensors
// they have, and the other goes on there. gRPC-free; a LinkConnection is the thin adapter to a stream.
//
//             Send                 OnMessage
//   compute --------> [outgoing] --NextMessage--> connection --> peer
//   compute <-Listener- [expected | assembling] <--OnMessage-- connection <-- peer
//
// Threads: any. Listener and LinkConnection methods are called without the endpoint's lock, but must not
// call back into the endpoint from the same call stack except where said.
#ifndef RESBM_PROTO_WIRE_LINK_ENDPOINT_H_
#define RESBM_PROTO_WIRE_LINK_ENDPOINT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/encoded_tensor.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {

struct ReceivedTensor {
  v1::TensorHeader header;
  EncodedTensor tensor;
};

// A stream to the peer, seen from the endpoint. Implementations start no write and no read by themselves.
class LinkConnection {
 public:
  virtual ~LinkConnection() = default;
  // NextMessage may have something now. Any thread; may be called although nothing is there.
  virtual void WakeWriter() = 0;
  // A message that OnMessage held may be given again, and reading may go on.
  virtual void WakeReader() = 0;
  // End the stream with this status; never called twice. The endpoint has forgotten the connection.
  virtual void Close(const absl::Status& status) = 0;
};

class LinkEndpoint {
 public:
  struct Options {
    std::string job_id;
    v1::Fence fence;
    std::string link_key;  // 16 bytes
    std::uint32_t link = 0;
    v1::Side side = v1::UPSTREAM;  // which end this is
  };

  class Listener {
   public:
    virtual ~Listener() = default;
    // A whole expected tensor, in order, exactly once. May call Expect, Send and Release* of any endpoint.
    virtual void OnTensor(ReceivedTensor tensor) = 0;
    // Everything given to Send so far has been handed to the connection.
    virtual void OnAllSent() = 0;
    // Hellos are exchanged / the stream has ended and a new one is wanted (status says why).
    virtual void OnConnected() = 0;
    virtual void OnDisconnected(const absl::Status& status) = 0;
    // The peer broke the protocol in a way that a new connection does not mend (INVALID_ARGUMENT,
    // RESOURCE_EXHAUSTED; DATA_LOSS only when the same tensor failed three times). Once; the endpoint is
    // dead afterwards.
    virtual void OnError(const absl::Status& status) = 0;
  };

  // `listener` outlives the endpoint's last call; Shutdown ends the calls.
  LinkEndpoint(Options options, Listener* listener);
  ~LinkEndpoint();

  // ---- what crosses
  // Queues a tensor. `header` has kind, work (step or evaluation), micro_batch, tensor_index and
  // tensor_count set; the rest is filled in here. Retained until released.
  void Send(v1::TensorHeader header, EncodedTensor tensor);
  // Forgets retained tensors that were fully sent: of one micro-batch, or all but those of a later step.
  void ReleaseMicroBatch(std::uint64_t step, std::uint32_t micro_batch);
  void ReleaseThroughStep(std::uint64_t step);
  void ReleaseAll();
  // Appends to the tensors that the peer must send next, in order. `dims`, dtype and codec say the rest.
  void Expect(v1::TensorHeader header);
  // Tensors the listener may hold at most before Consumed is called. `hard`: one more is a protocol error
  // (training); otherwise reading pauses (evaluation). 0 = no limit.
  void SetInboxLimit(std::uint32_t tensors, bool hard);
  // The listener's owner has used up one tensor: there is room for another.
  void Consumed();
  // Everything queued was handed to the connection.
  bool AllSent() const;
  std::uint64_t retained_bytes() const;

  // ---- the connection's side
  // A new stream. Returns the Hello to send first. A later dial replaces an earlier one, whose Close is
  // called; `dial_seq`: the dialler's own counter, or what the acceptor read in the peer's Hello.
  // FAILED_PRECONDITION: an older dial_seq than the present connection's.
  absl::StatusOr<OutgoingMessage> Connect(std::shared_ptr<LinkConnection> connection, std::uint64_t dial_seq);
  // The peer's Hello on that connection. FAILED_PRECONDITION: version, job, key, fence, link or side is
  // wrong (says which, with both values), or it wants a tensor that was released.
  absl::Status OnHello(const LinkConnection* connection, const v1::Hello& hello);

  enum class Taken {
    kYes,   // used; read on
    kHold,  // nothing is expected yet, or the inbox is full: keep the message, stop reading, and give
            // it again after WakeReader
  };
  // A chunk on that connection (ignored, kYes, if it is no longer the present one). An error has closed
  // the connection already. OnTensor is called from here.
  absl::StatusOr<Taken> OnChunk(const LinkConnection* connection, const ChunkView& chunk);
  // The next message to write, or nullopt: wait for WakeWriter. Only after OnHello.
  std::optional<OutgoingMessage> NextMessage(const LinkConnection* connection);
  // The write of what NextMessage gave last has completed (the transport took it).
  void OnMessageWritten(const LinkConnection* connection);
  // The stream has ended.
  void OnClosed(const LinkConnection* connection, const absl::Status& status);

  // Closes the connection with `status`; no listener call begins after it returned.
  void Shutdown(const absl::Status& status);

  bool connected() const;
  const Options& options() const { return options_; }

  struct Counters {
    std::uint64_t tensors_sent = 0;
    std::uint64_t tensors_received = 0;
    std::uint64_t messages_sent = 0;
    std::uint64_t payload_bytes_sent = 0;
    // Message bytes less payload, plus gRPC's 5-byte prefix each.
    std::uint64_t metadata_bytes_sent = 0;
    std::uint64_t payload_bytes_resent = 0;
    std::uint64_t connections = 0;
    std::uint64_t inbox_tensors = 0;
  };
  Counters counters() const;

 private:
  const Options options_;
  Listener* const listener_;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_LINK_ENDPOINT_H_
