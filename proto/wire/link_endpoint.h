// One end of a link within one fence: what is to be sent, what was sent and may have to be sent again,
// what is expected. Survives broken connections: both ends say in their Hello how many whole tensors
// they have, and the other goes on there. gRPC-free; a LinkConnection is the thin adapter to a stream.
//
//   compute -----Send----> [outgoing] ---------------NextMessage--> connection --> peer
//   compute <--OnTensor--- [expected | assembling] <---OnChunk----- connection <-- peer
//
// Threads: any. The locking rule:
//   - One mutex guards everything below; it is held for bookkeeping only, never while bytes are copied,
//     checksums computed, or a LinkConnection or Listener called.
//   - Listener calls go through a queue filled under the mutex and emptied by one thread at a time: so they
//     come one by one, in the order in which things happened. The thread that finds the queue being
//     emptied goes on; its event is delivered by the other.
//   - LinkConnection calls are made directly after the mutex is left, so WakeWriter and WakeReader may come
//     late, after Close, or before OnChunk has returned the kHold that they are about.
// Listener and LinkConnection methods must not call back into the endpoint from the same call stack except
// where said.
#ifndef RESBM_PROTO_WIRE_LINK_ENDPOINT_H_
#define RESBM_PROTO_WIRE_LINK_ENDPOINT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/encoded_tensor.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/incoming_tensors.h"
#include "proto/wire/outgoing_tensors.h"
#include "proto/wire/tensor_frame.h"
#include "proto/wire/transfer_log.h"

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
  // A chunk that OnChunk held may be given again, and reading may go on.
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
    // Everything given to Send so far has been handed to the connection (ask AllSent: a Send may have come
    // meanwhile). Not called again for tensors that are only sent again.
    virtual void OnAllSent() = 0;
    // Hellos are exchanged / the stream has ended and a new one is wanted (status says why). A stream that
    // ended before its Hellos gives OnDisconnected alone, one that a newer dial replaced OnConnected alone.
    virtual void OnConnected() = 0;
    virtual void OnDisconnected(const absl::Status& status) = 0;
    // The link cannot go on, and a new connection would not mend it: the peer broke the protocol
    // (INVALID_ARGUMENT, RESOURCE_EXHAUSTED; DATA_LOSS only when the same tensor failed three times), or one of
    // the ends will not have the other (FAILED_PRECONDITION). Once; the endpoint is dead afterwards.
    virtual void OnError(const absl::Status& status) = 0;
  };

  // `listener` outlives the endpoint's last call; Shutdown ends the calls. The destructor calls Shutdown.
  LinkEndpoint(Options options, Listener* listener);
  ~LinkEndpoint();

  // ---- what crosses
  // Queues a tensor. `header` has kind, work (step or evaluation), micro_batch, tensor_index and
  // tensor_count set; the rest is filled in here. Retained until released. A payload that does not fit its
  // dims ends the endpoint with OnError(INTERNAL). Nothing happens once the endpoint has ended.
  void Send(v1::TensorHeader header, EncodedTensor tensor);
  // Forgets retained tensors that were fully sent: of one micro-batch of a step, or all but those of a
  // later step (so evaluation's too). There are no acks: release what the peer is known to have used, for a
  // peer whose Hello wants a released tensor is refused.
  void ReleaseMicroBatch(std::uint64_t step, std::uint32_t micro_batch);
  void ReleaseThroughStep(std::uint64_t step);
  void ReleaseAll();
  // Appends to the tensors that the peer must send next, in order. `header` has what Send's has, and dims,
  // dtype and codec; the rest is filled in here. Dims that PayloadBytes refuses end the endpoint with
  // OnError(INVALID_ARGUMENT): check them first.
  void Expect(v1::TensorHeader header);
  // Tensors the listener may hold at most before Consumed is called. `hard`: one more is a protocol error
  // (training); otherwise reading pauses (evaluation). A tensor that is not expected yet is held in either
  // case. 0 = no limit.
  void SetInboxLimit(std::uint32_t tensors, bool hard);
  // The listener's owner has used up one tensor: there is room for another.
  void Consumed();
  // From now on it is written down when tensors of steps cross, until it is null. `clock` outlives the endpoint.
  void RecordTransfers(const Clock* clock);
  // See TransferLog::Take.
  std::vector<Transfer> TakeTransfers(std::uint64_t step);
  // Everything queued was handed to the connection.
  bool AllSent() const;
  std::uint64_t retained_bytes() const;

  // ---- the connection's side
  // A new stream. Returns the Hello to send first. A later dial replaces an earlier one, whose Close is
  // called; `dial_seq`: the dialler's own counter, or what the acceptor read in the peer's Hello.
  // ABORTED: an older dial_seq than the newest so far. FAILED_PRECONDITION: the endpoint has ended (Shutdown,
  // OnError). An acceptor asks CheckHello first, so that a stranger does not replace a good connection.
  absl::StatusOr<OutgoingMessage> Connect(std::shared_ptr<LinkConnection> connection, std::uint64_t dial_seq);
  // For the dialler: the same with a number greater than any so far, so never ABORTED.
  absl::StatusOr<OutgoingMessage> Dial(std::shared_ptr<LinkConnection> connection);
  // FAILED_PRECONDITION: version, job, key, fence, link or side is wrong; says which, with both values (of
  // keys only fingerprints).
  absl::Status CheckHello(const v1::Hello& hello) const;
  // The peer's Hello on that connection. FAILED_PRECONDITION: as CheckHello; or it wants a tensor that was
  // released or has one that was never sent, which ends the endpoint; INVALID_ARGUMENT: a second one. The
  // connection is closed then.
  absl::Status OnHello(const LinkConnection* connection, const v1::Hello& hello);

  enum class Taken {
    kYes,   // used; read on
    kHold,  // nothing is expected yet, or the inbox is full: keep the message, stop reading, and give
            // it again after WakeReader
  };
  // A chunk on that connection (ignored, kYes, if it is no longer the present one). An error has closed
  // the connection already. OnTensor is called from here. One call at a time per connection.
  absl::StatusOr<Taken> OnChunk(const LinkConnection* connection, const ChunkView& chunk);
  // What came is no message at all (status says why): the endpoint ends with OnError.
  void OnBadMessage(const LinkConnection* connection, const absl::Status& status);
  // The next message to write, or nullopt: wait for WakeWriter. Only after OnHello; nullopt, too, until the
  // message before was reported by OnMessageWritten.
  std::optional<OutgoingMessage> NextMessage(const LinkConnection* connection);
  // The write of what NextMessage gave last has completed (the transport took it).
  void OnMessageWritten(const LinkConnection* connection);
  // The stream has ended. With FAILED_PRECONDITION the peer has refused the link itself: the endpoint ends.
  // ABORTED: it has seen a newer dial; the next number leaps, so that a few dials catch up.
  void OnClosed(const LinkConnection* connection, const absl::Status& status);

  // Closes the connection with `status` and drops all tensors; no listener call begins after it returned.
  // Waits for a listener call that runs on another thread: so hold no lock that the listener takes. Inside
  // any endpoint's listener call it does not wait (two endpoints might for each other).
  void Shutdown(const absl::Status& status);

  bool connected() const;
  const Options& options() const { return options_; }

  struct Counters {
    // Whole tensors, each once however often it was sent.
    std::uint64_t tensors_sent = 0;
    std::uint64_t tensors_received = 0;
    // Hellos, too.
    std::uint64_t messages_sent = 0;
    // Of every chunk given to a connection, those of payload_bytes_resent included.
    std::uint64_t payload_bytes_sent = 0;
    // Message bytes less payload, plus gRPC's 5-byte prefix each.
    std::uint64_t metadata_bytes_sent = 0;
    // Of chunks that an earlier connection had been given already.
    std::uint64_t payload_bytes_resent = 0;
    // Each once however often it came; of the unfinished tensor as far as any connection brought it.
    std::uint64_t payload_bytes_received = 0;
    // That got as far as both Hellos.
    std::uint64_t connections = 0;
    // Received and not Consumed.
    std::uint64_t inbox_tensors = 0;
  };
  Counters counters() const;

 private:
  // One listener call to come.
  struct Event {
    enum class Kind { kTensor, kAllSent, kConnected, kDisconnected, kError } kind;
    ReceivedTensor tensor;
    absl::Status status;
  };
  // A connection that has been forgotten and is to be closed once the mutex is left.
  struct Forgotten {
    std::shared_ptr<LinkConnection> connection;
    absl::Status status;
    void Close() {
      if (connection != nullptr) connection->Close(status);
    }
  };

  v1::Side peer_side() const { return options_.side == v1::UPSTREAM ? v1::DOWNSTREAM : v1::UPSTREAM; }
  bool IsPresentLocked(const LinkConnection* connection) const RESBM_REQUIRES(mutex_) {
    return !ended_ && connection != nullptr && connection == connection_.get();
  }
  // Connect, and Dial where there is no number.
  absl::StatusOr<OutgoingMessage> Take(std::shared_ptr<LinkConnection> connection, std::optional<std::uint64_t> number);
  absl::StatusOr<Taken> TakeChunk(const LinkConnection* connection, const ChunkView& chunk, Forgotten* forgotten);
  Forgotten ForgetLocked(const absl::Status& status) RESBM_REQUIRES(mutex_);
  Forgotten EndLocked(const absl::Status& status) RESBM_REQUIRES(mutex_);
  void EndWithError(const absl::Status& status);
  // More may be written than before, when all was or was not.
  void NoteWrittenLocked(bool all_sent_before) RESBM_REQUIRES(mutex_);
  bool AllSentLocked() const RESBM_REQUIRES(mutex_) { return outgoing_.written() == outgoing_.total(); }
  std::shared_ptr<LinkConnection> TakeHeldReaderLocked() RESBM_REQUIRES(mutex_);
  std::optional<Event> TakeEvent(bool delivering) RESBM_EXCLUDES(mutex_);
  void Deliver() RESBM_EXCLUDES(mutex_);

  const Options options_;
  Listener* const listener_;

  mutable Mutex mutex_;
  OutgoingTensors outgoing_ RESBM_GUARDED_BY(mutex_);
  IncomingTensors incoming_ RESBM_GUARDED_BY(mutex_);
  TransferLog transfers_ RESBM_GUARDED_BY(mutex_);
  std::shared_ptr<LinkConnection> connection_ RESBM_GUARDED_BY(mutex_);
  // Of the present connection.
  bool greeted_ RESBM_GUARDED_BY(mutex_) = false;
  bool writing_ RESBM_GUARDED_BY(mutex_) = false;
  bool reader_held_ RESBM_GUARDED_BY(mutex_) = false;

  std::uint64_t dial_seq_ RESBM_GUARDED_BY(mutex_) = 0;
  bool ended_ RESBM_GUARDED_BY(mutex_) = false;
  absl::Status end_ RESBM_GUARDED_BY(mutex_);
  Counters counters_ RESBM_GUARDED_BY(mutex_);

  std::deque<Event> events_ RESBM_GUARDED_BY(mutex_);
  bool delivering_ RESBM_GUARDED_BY(mutex_) = false;
  CondVar delivered_;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_LINK_ENDPOINT_H_
