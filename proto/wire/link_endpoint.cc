#include "proto/wire/link_endpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/base/status.h"

namespace resbm::wire {
namespace {

// Damage on the way that comes back at once is no accident.
constexpr int kMaxFailuresOfATensor = 3;
constexpr std::uint64_t kGrpcPrefixBytes = 5;

// How deep this thread is in listener calls, of any endpoint.
thread_local int listener_depth = 0;

std::string Name(const v1::TensorHeader& header) {
  const std::string work = header.has_evaluation() ? absl::StrCat("evaluation ", header.evaluation())
                                                   : absl::StrCat("step ", header.step());
  return absl::StrCat("link ", header.link(), ", ", v1::TensorKind_Name(header.kind()), " of ", work, ", micro-batch ",
                      header.micro_batch(), ", tensor ", header.tensor_index());
}

}  // namespace

LinkEndpoint::LinkEndpoint(Options options, Listener* listener) : options_(std::move(options)), listener_(listener) {}

LinkEndpoint::~LinkEndpoint() { Shutdown(absl::CancelledError("the endpoint was destroyed")); }

void LinkEndpoint::Send(v1::TensorHeader header, EncodedTensor tensor) {
  *header.mutable_fence() = options_.fence;
  header.set_link(options_.link);
  header.set_towards(peer_side());
  DescribeTensor(tensor, &header);
  const absl::StatusOr<std::uint64_t> bytes = PayloadBytes(tensor.dims, tensor.dtype, tensor.codec);
  if (!bytes.ok() || *bytes != tensor.payload.size()) {
    EndWithError(absl::InternalError(absl::StrCat(Name(header), " was given to Send with ", tensor.payload.size(),
                                                  " bytes, its dims say ",
                                                  bytes.ok() ? absl::StrCat(*bytes) : bytes.status().ToString())));
    return;
  }
  std::shared_ptr<LinkConnection> wake;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    transfers_.Queued(outgoing_.total(), header);
    outgoing_.Add(std::move(header), std::move(tensor.payload));
    if (greeted_ && !writing_) wake = connection_;
  }
  if (wake != nullptr) wake->WakeWriter();
}

void LinkEndpoint::ReleaseMicroBatch(std::uint64_t step, std::uint32_t micro_batch) {
  MutexLock lock(mutex_);
  outgoing_.Release([&](const v1::TensorHeader& header) {
    return header.has_step() && header.step() == step && header.micro_batch() == micro_batch;
  });
}

void LinkEndpoint::ReleaseThroughStep(std::uint64_t step) {
  MutexLock lock(mutex_);
  outgoing_.Release([&](const v1::TensorHeader& header) { return !header.has_step() || header.step() <= step; });
}

void LinkEndpoint::ReleaseAll() {
  MutexLock lock(mutex_);
  outgoing_.Release([](const v1::TensorHeader&) { return true; });
}

void LinkEndpoint::Expect(v1::TensorHeader header) {
  *header.mutable_fence() = options_.fence;
  header.set_link(options_.link);
  header.set_towards(options_.side);
  const absl::StatusOr<std::uint64_t> bytes =
      PayloadBytes(absl::MakeConstSpan(header.dims().data(), header.dims_size()),
                   static_cast<WireDtype>(header.dtype()), static_cast<WireCodec>(header.codec()));
  if (!bytes.ok()) {
    EndWithError(Annotate(bytes.status(), absl::StrCat(Name(header), " cannot be expected")));
    return;
  }
  header.set_block_size(BlockSizeOf(static_cast<WireCodec>(header.codec())));
  header.set_payload_bytes(*bytes);
  header.set_chunk_count(ChunkCount(*bytes));
  std::shared_ptr<LinkConnection> wake;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    incoming_.Expect(std::move(header));
    wake = TakeHeldReaderLocked();
  }
  if (wake != nullptr) wake->WakeReader();
}

void LinkEndpoint::SetInboxLimit(std::uint32_t tensors, bool hard) {
  std::shared_ptr<LinkConnection> wake;
  {
    MutexLock lock(mutex_);
    incoming_.SetLimit(tensors, hard);
    wake = TakeHeldReaderLocked();
  }
  if (wake != nullptr) wake->WakeReader();
}

void LinkEndpoint::Consumed() {
  std::shared_ptr<LinkConnection> wake;
  {
    MutexLock lock(mutex_);
    incoming_.Consumed();
    wake = TakeHeldReaderLocked();
  }
  if (wake != nullptr) wake->WakeReader();
}

void LinkEndpoint::RecordTransfers(const Clock* clock) {
  MutexLock lock(mutex_);
  transfers_.Start(clock);
}

std::vector<Transfer> LinkEndpoint::TakeTransfers(std::uint64_t step) {
  MutexLock lock(mutex_);
  return transfers_.Take(step);
}

bool LinkEndpoint::AllSent() const {
  MutexLock lock(mutex_);
  return AllSentLocked();
}

std::uint64_t LinkEndpoint::retained_bytes() const {
  MutexLock lock(mutex_);
  return outgoing_.retained_bytes();
}

absl::StatusOr<OutgoingMessage> LinkEndpoint::Connect(std::shared_ptr<LinkConnection> connection,
                                                      std::uint64_t dial_seq) {
  return Take(std::move(connection), dial_seq);
}

absl::StatusOr<OutgoingMessage> LinkEndpoint::Dial(std::shared_ptr<LinkConnection> connection) {
  return Take(std::move(connection), std::nullopt);
}

absl::StatusOr<OutgoingMessage> LinkEndpoint::Take(std::shared_ptr<LinkConnection> connection,
                                                   std::optional<std::uint64_t> number) {
  Forgotten replaced;
  OutgoingMessage message;
  {
    MutexLock lock(mutex_);
    if (ended_) {
      return absl::FailedPreconditionError(absl::StrCat("link ", options_.link, " of fence ", options_.fence.epoch(), ".",
                                                        options_.fence.generation(), " has ended here: ",
                                                        end_.ToString()));
    }
    // The same number again where there is no greater one.
    const std::uint64_t dial_seq = number.value_or(std::max(dial_seq_ + 1, dial_seq_));
    if (dial_seq < dial_seq_) {
      return absl::AbortedError(
          absl::StrCat("link ", options_.link, ": dial ", dial_seq, " is older than dial ", dial_seq_));
    }
    replaced = ForgetLocked(absl::AbortedError(absl::StrCat("link ", options_.link, ": replaced by dial ", dial_seq)));
    dial_seq_ = dial_seq;
    connection_ = std::move(connection);
    v1::Hello hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.set_job_id(options_.job_id);
    *hello.mutable_fence() = options_.fence;
    hello.set_link_key(options_.link_key);
    hello.set_link(options_.link);
    hello.set_side(options_.side);
    hello.set_dial_seq(dial_seq);
    hello.set_received_tensors(incoming_.received());
    message = EncodeHello(hello);
    ++counters_.messages_sent;
    counters_.metadata_bytes_sent += message.size() + kGrpcPrefixBytes;
  }
  replaced.Close();
  return message;
}

absl::Status LinkEndpoint::OnHello(const LinkConnection* connection, const v1::Hello& hello) {
  absl::Status status = CheckHello(hello);
  Forgotten forgotten;
  std::shared_ptr<LinkConnection> wake;
  {
    MutexLock lock(mutex_);
    if (!IsPresentLocked(connection)) return absl::AbortedError("the connection was replaced");
    if (greeted_) status = absl::InvalidArgumentError(absl::StrCat("link ", options_.link, ": a second Hello"));
    const bool all_sent = AllSentLocked();
    bool final = false;
    if (status.ok()) {
      status = Annotate(outgoing_.ResumeAt(hello.received_tensors()), absl::StrCat("link ", options_.link));
      final = !status.ok();
    }
    if (final) {
      // The next Hello would say the same.
      forgotten = EndLocked(status);
    } else if (status.ok()) {
      greeted_ = true;
      ++counters_.connections;
      events_.push_back({Event::Kind::kConnected, {}, {}});
      NoteWrittenLocked(all_sent);
      wake = connection_;
    } else {
      forgotten = ForgetLocked(status);
      events_.push_back({Event::Kind::kDisconnected, {}, status});
    }
  }
  forgotten.Close();
  if (wake != nullptr) wake->WakeWriter();
  Deliver();
  return status;
}

absl::StatusOr<LinkEndpoint::Taken> LinkEndpoint::OnChunk(const LinkConnection* connection, const ChunkView& chunk) {
  Forgotten forgotten;
  const absl::StatusOr<Taken> taken = TakeChunk(connection, chunk, &forgotten);
  forgotten.Close();
  Deliver();
  return taken;
}

absl::StatusOr<LinkEndpoint::Taken> LinkEndpoint::TakeChunk(const LinkConnection* connection, const ChunkView& chunk,
                                                            Forgotten* forgotten) {
  std::unique_ptr<TensorAssembler> assembler;
  {
    MutexLock lock(mutex_);
    if (!IsPresentLocked(connection)) return Taken::kYes;
    absl::Status refused;
    if (!greeted_) {
      refused = absl::InvalidArgumentError(absl::StrCat("link ", options_.link, ": a chunk before the Hello"));
    } else {
      switch (incoming_.next()) {
        case IncomingTensors::Next::kTake: break;
        case IncomingTensors::Next::kHold: reader_held_ = true; return Taken::kHold;
        case IncomingTensors::Next::kTooMany:
          refused = absl::ResourceExhaustedError(
              absl::StrCat(Name(incoming_.front()), " came while ", incoming_.inbox(),
                           " tensors wait to be used, and the window is ", incoming_.limit()));
      }
    }
    if (!refused.ok()) {
      *forgotten = EndLocked(refused);
      return refused;
    }
    transfers_.MessageCame();
    assembler = incoming_.TakeAssembler();
  }

  const absl::StatusOr<bool> complete = assembler->Add(chunk);

  MutexLock lock(mutex_);
  // The connection may have been replaced meanwhile: then the tensor comes again on the other.
  if (!IsPresentLocked(connection)) return Taken::kYes;
  if (!complete.ok()) {
    const absl::Status status = Annotate(complete.status(), Name(incoming_.front()));
    if (absl::IsDataLoss(status) && incoming_.CountFailure() < kMaxFailuresOfATensor) {
      *forgotten = ForgetLocked(status);
      events_.push_back({Event::Kind::kDisconnected, {}, status});
    } else {
      *forgotten = EndLocked(status);
    }
    return status;
  }
  incoming_.NoteBytes(assembler->received_bytes());
  if (*complete) {
    transfers_.Received(incoming_.front());
    incoming_.Complete();
    ReceivedTensor received{assembler->header(), assembler->Take()};
    events_.push_back({Event::Kind::kTensor, std::move(received), {}});
  } else {
    incoming_.PutBack(std::move(assembler));
  }
  return Taken::kYes;
}

void LinkEndpoint::OnBadMessage(const LinkConnection* connection, const absl::Status& status) {
  Forgotten forgotten;
  {
    MutexLock lock(mutex_);
    if (!IsPresentLocked(connection)) return;
    forgotten = EndLocked(Annotate(status, absl::StrCat("link ", options_.link)));
  }
  forgotten.Close();
  Deliver();
}

std::optional<OutgoingMessage> LinkEndpoint::NextMessage(const LinkConnection* connection) {
  std::optional<OutgoingTensors::Chunk> chunk;
  {
    MutexLock lock(mutex_);
    if (!IsPresentLocked(connection) || !greeted_ || writing_) return std::nullopt;
    chunk = outgoing_.Next();
    if (!chunk) return std::nullopt;
    writing_ = true;
  }
  OutgoingMessage message = EncodeChunk(options_.fence, *chunk->header_bytes, chunk->index, chunk->payload);
  MutexLock lock(mutex_);
  ++counters_.messages_sent;
  counters_.payload_bytes_sent += message.payload.size();
  if (chunk->resent) counters_.payload_bytes_resent += message.payload.size();
  counters_.metadata_bytes_sent += message.prefix.size() + kGrpcPrefixBytes;
  return message;
}

void LinkEndpoint::OnMessageWritten(const LinkConnection* connection) {
  {
    MutexLock lock(mutex_);
    if (!IsPresentLocked(connection) || !writing_) return;
    const bool all_sent = AllSentLocked();
    writing_ = false;
    outgoing_.Written();
    NoteWrittenLocked(all_sent);
  }
  Deliver();
}

void LinkEndpoint::OnClosed(const LinkConnection* connection, const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (!IsPresentLocked(connection)) return;
    if (absl::IsFailedPrecondition(status)) {
      EndLocked(status);
    } else {
      if (absl::IsAborted(status)) dial_seq_ = std::max(dial_seq_, 2 * dial_seq_);
      ForgetLocked(status);
      events_.push_back({Event::Kind::kDisconnected, {}, status});
    }
  }
  Deliver();
}

void LinkEndpoint::Shutdown(const absl::Status& status) {
  Forgotten forgotten;
  {
    MutexLock lock(mutex_);
    if (!ended_) forgotten = EndLocked(status);
    events_.clear();
  }
  forgotten.Close();
  if (listener_depth > 0) return;
  MutexLock lock(mutex_);
  while (delivering_) delivered_.Wait(mutex_);
}

bool LinkEndpoint::connected() const {
  MutexLock lock(mutex_);
  return greeted_;
}

LinkEndpoint::Counters LinkEndpoint::counters() const {
  MutexLock lock(mutex_);
  Counters counters = counters_;
  counters.tensors_sent = outgoing_.written();
  counters.tensors_received = incoming_.received();
  counters.payload_bytes_received = incoming_.bytes();
  counters.inbox_tensors = incoming_.inbox();
  return counters;
}

LinkEndpoint::Forgotten LinkEndpoint::ForgetLocked(const absl::Status& status) {
  greeted_ = writing_ = reader_held_ = false;
  incoming_.Restart();
  return {std::exchange(connection_, nullptr), status};
}

LinkEndpoint::Forgotten LinkEndpoint::EndLocked(const absl::Status& status) {
  ended_ = true;
  end_ = status;
  Forgotten forgotten = ForgetLocked(status);
  outgoing_.Clear();
  incoming_.Clear();
  events_.push_back({Event::Kind::kError, {}, status});
  return forgotten;
}

void LinkEndpoint::EndWithError(const absl::Status& status) {
  Forgotten forgotten;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    forgotten = EndLocked(status);
  }
  forgotten.Close();
  Deliver();
}

void LinkEndpoint::NoteWrittenLocked(bool all_sent_before) {
  transfers_.Written(outgoing_.written());
  if (!all_sent_before && AllSentLocked()) events_.push_back({Event::Kind::kAllSent, {}, {}});
}

std::shared_ptr<LinkConnection> LinkEndpoint::TakeHeldReaderLocked() {
  return std::exchange(reader_held_, false) ? connection_ : nullptr;
}

std::optional<LinkEndpoint::Event> LinkEndpoint::TakeEvent(bool delivering) {
  MutexLock lock(mutex_);
  if (delivering_ && !delivering) return std::nullopt;
  delivering_ = !events_.empty();
  if (!delivering_) {
    delivered_.NotifyAll();
    return std::nullopt;
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void LinkEndpoint::Deliver() {
  std::optional<Event> event = TakeEvent(/*delivering=*/false);
  for (; event; event = TakeEvent(/*delivering=*/true)) {
    ++listener_depth;
    switch (event->kind) {
      case Event::Kind::kTensor: listener_->OnTensor(std::move(event->tensor)); break;
      case Event::Kind::kAllSent: listener_->OnAllSent(); break;
      case Event::Kind::kConnected: listener_->OnConnected(); break;
      case Event::Kind::kDisconnected: listener_->OnDisconnected(event->status); break;
      case Event::Kind::kError: listener_->OnError(event->status); break;
    }
    --listener_depth;
  }
}

}  // namespace resbm::wire
