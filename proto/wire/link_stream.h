// One Exchange stream, whichever end: moves messages between a gRPC reactor and a LinkEndpoint. The
// reactors of LinkDialler and of the link service are shells around it.
//
// Threads: gRPC's (OnRead, OnWritten, ...) and the endpoint's callers (WakeWriter, WakeReader, Close). One
// mutex guards the state; gRPC operations are started under it, so that none follows the Finish; the
// endpoint is never called under it. What a wake asks for is done on one of gRPC's threads, so that Send
// and Expect cost their callers neither a checksum nor a system call.
#ifndef RESBM_PROTO_WIRE_LINK_STREAM_H_
#define RESBM_PROTO_WIRE_LINK_STREAM_H_

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "proto/base/mutex.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/grpc_timer.h"
#include "proto/wire/link_endpoint.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {

class LinkStream : public LinkConnection, public std::enable_shared_from_this<LinkStream> {
 public:
  // The reactor, as the stream sees it. Called under the stream's mutex; lives until Detach.
  class Transport {
   public:
    virtual ~Transport() = default;
    // The first call. A stream that is closed before is never opened.
    virtual void Open() = 0;
    virtual void Read(grpc::ByteBuffer* into) = 0;
    virtual void Write(const grpc::ByteBuffer* message) = 0;
    // No Read or Write follows. `broken`: the stream has ended already. A client cannot send the status.
    virtual void Finish(const absl::Status& status, bool broken) = 0;
    // At once, without a status, after a Finish that the peer does not take.
    virtual void Cancel() = 0;
    // False when the connection below is lost. Asked once a second while nothing is read (a client learns
    // of a loss only by reading or writing).
    virtual bool Connected() = 0;
  };

  // The dialler's end: writes `hello`, reads the peer's.
  static std::shared_ptr<LinkStream> OfDialler(Transport* transport, std::shared_ptr<LinkEndpoint> endpoint);
  // False when the endpoint closed the stream before: the transport was not opened.
  bool Begin(const OutgoingMessage& hello);
  // The acceptor's end: reads a Hello, asks `directory`, then answers.
  static std::shared_ptr<LinkStream> OfAcceptor(Transport* transport, LinkDirectory* directory);
  void Accept(absl::Duration hello_timeout);

  // ---- from the reactor
  void OnRead(bool ok);
  void OnWritten(bool ok);
  // The stream broke, `status` says how. Ends it.
  void OnBroken(const absl::Status& status);
  // The reactor goes away.
  void Detach();

  // ---- from the endpoint
  void WakeWriter() override;
  void WakeReader() override;
  void Close(const absl::Status& status) override { Finish(status, /*broken=*/false); }

  // Both Hellos went well.
  bool greeted() const;
  // Why this end finished; OK until then.
  absl::Status end() const;

 private:
  LinkStream(Transport* transport, std::shared_ptr<LinkEndpoint> endpoint, LinkDirectory* directory)
      : transport_(transport), directory_(directory), endpoint_(std::move(endpoint)) {}

  void Finish(const absl::Status& status, bool broken) RESBM_EXCLUDES(mutex_);
  void Reject(const absl::Status& status) RESBM_EXCLUDES(mutex_);
  std::shared_ptr<LinkEndpoint> endpoint() const RESBM_EXCLUDES(mutex_);
  void ReadOn() RESBM_EXCLUDES(mutex_);
  void WriteHello(const OutgoingMessage& hello) RESBM_EXCLUDES(mutex_);
  void TakeHello(std::unique_ptr<v1::Hello> hello) RESBM_EXCLUDES(mutex_);
  void Found(const v1::Hello& hello, absl::StatusOr<std::shared_ptr<LinkEndpoint>> found) RESBM_EXCLUDES(mutex_);
  void TakeChunk() RESBM_EXCLUDES(mutex_);
  void WriteNext() RESBM_EXCLUDES(mutex_);
  void OnWriteFailed() RESBM_EXCLUDES(mutex_);
  void ProbeWhileHeldLocked() RESBM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Transport* transport_ RESBM_GUARDED_BY(mutex_);  // null after Detach
  LinkDirectory* const directory_;                 // null at the dialler's end
  std::shared_ptr<LinkEndpoint> endpoint_ RESBM_GUARDED_BY(mutex_);
  bool opened_ RESBM_GUARDED_BY(mutex_) = false;
  bool ended_ RESBM_GUARDED_BY(mutex_) = false;
  absl::Status end_ RESBM_GUARDED_BY(mutex_);
  bool hello_came_ RESBM_GUARDED_BY(mutex_) = false;
  bool greeted_ RESBM_GUARDED_BY(mutex_) = false;
  GrpcTimer timer_ RESBM_GUARDED_BY(mutex_);  // for the Hello, a held message, or an unfinished Finish

  // Of the read in progress, then of the message being used; the views lie in the slices.
  grpc::ByteBuffer incoming_ RESBM_GUARDED_BY(mutex_);
  std::vector<grpc::Slice> slices_ RESBM_GUARDED_BY(mutex_);
  std::unique_ptr<ChunkView> chunk_ RESBM_GUARDED_BY(mutex_);
  bool held_ RESBM_GUARDED_BY(mutex_) = false;
  bool reader_woken_ RESBM_GUARDED_BY(mutex_) = false;

  grpc::ByteBuffer outgoing_ RESBM_GUARDED_BY(mutex_);
  bool hello_written_ RESBM_GUARDED_BY(mutex_) = false;
  bool writing_ RESBM_GUARDED_BY(mutex_) = true;  // until the Hello is written
  bool writer_woken_ RESBM_GUARDED_BY(mutex_) = false;
  bool writer_scheduled_ RESBM_GUARDED_BY(mutex_) = false;
  bool write_failed_ RESBM_GUARDED_BY(mutex_) = false;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_LINK_STREAM_H_
