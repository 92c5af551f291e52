#include "proto/wire/link_stream.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/grpc_buffer.h"

namespace resbm::wire {
namespace {

constexpr absl::Duration kFinishPatience = absl::Seconds(2);
constexpr absl::Duration kHeldProbe = absl::Seconds(1);
constexpr char kGone[] = "the peer ended the stream, or the connection was lost";

}  // namespace

std::shared_ptr<LinkStream> LinkStream::OfDialler(Transport* transport, std::shared_ptr<LinkEndpoint> endpoint) {
  return std::shared_ptr<LinkStream>(new LinkStream(transport, std::move(endpoint), nullptr));
}

std::shared_ptr<LinkStream> LinkStream::OfAcceptor(Transport* transport, LinkDirectory* directory) {
  return std::shared_ptr<LinkStream>(new LinkStream(transport, nullptr, directory));
}

bool LinkStream::Begin(const OutgoingMessage& hello) {
  {
    MutexLock lock(mutex_);
    if (ended_) return false;
    opened_ = true;
    transport_->Open();
  }
  WriteHello(hello);
  ReadOn();
  return true;
}

void LinkStream::Accept(absl::Duration hello_timeout) {
  {
    MutexLock lock(mutex_);
    opened_ = true;
    transport_->Open();
    timer_.Set(hello_timeout, [weak = weak_from_this(), hello_timeout](bool expired) {
      const std::shared_ptr<LinkStream> self = weak.lock();
      if (!expired || self == nullptr) return;
      self->Finish(absl::DeadlineExceededError(absl::StrCat("no Hello within ", absl::FormatDuration(hello_timeout))),
                   /*broken=*/false);
    });
  }
  ReadOn();
}

void LinkStream::OnRead(bool ok) {
  if (!ok) {
    OnBroken(absl::UnavailableError(kGone));
    return;
  }
  absl::StatusOr<IncomingMessage> message = absl::UnknownError("");
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    slices_.clear();
    if (!incoming_.Dump(&slices_).ok()) {
      message = absl::InvalidArgumentError("a message that cannot be decompressed");
    } else {
      std::vector<std::string_view> pieces;
      for (const grpc::Slice& slice : slices_) {
        pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
      message = ParseLinkMessage(pieces);
    }
    incoming_.Clear();
    if (message.ok()) {
      chunk_ = std::move(message->chunk);
      if (message->hello != nullptr) timer_.Cancel();
    }
  }
  if (!message.ok()) {
    Reject(message.status());
  } else if (message->hello != nullptr) {
    TakeHello(std::move(message->hello));
  } else {
    TakeChunk();
  }
}

void LinkStream::TakeHello(std::unique_ptr<v1::Hello> hello) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(hello_came_, true);
  }
  if (!first) {
    Reject(absl::InvalidArgumentError("a second Hello"));
  } else if (directory_ == nullptr) {
    if (!endpoint()->OnHello(this, *hello).ok()) return;
    {
      MutexLock lock(mutex_);
      greeted_ = true;
    }
    ReadOn();
  } else if (hello->protocol_version() != kProtocolVersion) {
    // Before anything else of it is believed.
    Finish(absl::FailedPreconditionError(absl::StrCat("the peer speaks protocol version ", hello->protocol_version(),
                                                      ", this end ", kProtocolVersion,
                                                      ": run the same release at both ends")),
           /*broken=*/false);
  } else {
    const v1::Hello& said = *hello;
    directory_->Find(said, [self = shared_from_this(), hello = std::shared_ptr<v1::Hello>(std::move(hello))](
                               absl::StatusOr<std::shared_ptr<LinkEndpoint>> found) {
      self->Found(*hello, std::move(found));
    });
  }
}

void LinkStream::Found(const v1::Hello& hello, absl::StatusOr<std::shared_ptr<LinkEndpoint>> found) {
  absl::Status status = found.status();
  if (status.ok()) status = (*found)->CheckHello(hello);
  if (!status.ok()) {
    Finish(status, /*broken=*/false);
    return;
  }
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    endpoint_ = *found;
  }
  const absl::StatusOr<OutgoingMessage> answer = (*found)->Connect(shared_from_this(), hello.dial_seq());
  if (!answer.ok()) {
    Finish(answer.status(), /*broken=*/false);
    return;
  }
  if (!(*found)->OnHello(this, hello).ok()) return;
  bool ended = false;
  {
    MutexLock lock(mutex_);
    greeted_ = true;
    ended = ended_;
  }
  if (ended) {
    // It broke before the endpoint knew the stream.
    (*found)->OnClosed(this, absl::UnavailableError("the stream broke at its beginning"));
    return;
  }
  WriteHello(*answer);
  ReadOn();
}

void LinkStream::TakeChunk() {
  const std::shared_ptr<LinkEndpoint> to = endpoint();
  if (to == nullptr) {
    Finish(absl::InvalidArgumentError("the first message is no Hello"), /*broken=*/false);
    return;
  }
  for (;;) {
    const ChunkView* chunk = nullptr;
    {
      MutexLock lock(mutex_);
      reader_woken_ = false;
      chunk = chunk_.get();
    }
    const absl::StatusOr<LinkEndpoint::Taken> taken = to->OnChunk(this, *chunk);
    if (!taken.ok()) return;
    if (*taken == LinkEndpoint::Taken::kYes) break;
    {
      MutexLock lock(mutex_);
      if (reader_woken_ && !ended_) continue;
      if (!write_failed_) {
        held_ = true;
        ProbeWhileHeldLocked();
        return;
      }
    }
    Finish(absl::UnavailableError(kGone), /*broken=*/false);
    return;
  }
  ReadOn();
}

void LinkStream::ReadOn() {
  MutexLock lock(mutex_);
  if (ended_) return;
  chunk_.reset();
  slices_.clear();
  transport_->Read(&incoming_);
}

void LinkStream::WakeReader() {
  {
    MutexLock lock(mutex_);
    reader_woken_ = true;
    if (!held_ || ended_) return;
    held_ = false;
    timer_.Cancel();
  }
  RunSoon([self = shared_from_this()] { self->TakeChunk(); });
}

void LinkStream::ProbeWhileHeldLocked() {
  if (ended_) return;
  timer_.Set(kHeldProbe, [weak = weak_from_this()](bool expired) {
    const std::shared_ptr<LinkStream> self = weak.lock();
    if (!expired || self == nullptr) return;
    {
      MutexLock lock(self->mutex_);
      if (!self->held_ || self->ended_) return;
      if (self->transport_->Connected()) {
        self->ProbeWhileHeldLocked();
        return;
      }
    }
    self->Finish(absl::UnavailableError("the connection was lost"), /*broken=*/false);
  });
}

void LinkStream::WriteHello(const OutgoingMessage& hello) {
  MutexLock lock(mutex_);
  if (ended_) return;
  outgoing_ = ToByteBuffer(hello);
  transport_->Write(&outgoing_);
}

void LinkStream::OnWritten(bool ok) {
  if (!ok) {
    OnWriteFailed();
    return;
  }
  std::shared_ptr<LinkEndpoint> of_tensor;
  {
    MutexLock lock(mutex_);
    outgoing_.Clear();
    if (std::exchange(hello_written_, true)) of_tensor = endpoint_;
  }
  if (of_tensor != nullptr) of_tensor->OnMessageWritten(this);
  {
    MutexLock lock(mutex_);
    writing_ = false;
  }
  WriteNext();
}

void LinkStream::OnWriteFailed() {
  const absl::Status status = absl::UnavailableError(kGone);
  if (directory_ != nullptr) {
    OnBroken(status);
    return;
  }
  // gRPC gives a client the status only after the last message: read on, what came is good. A held message
  // would stand in the way for as long as it is held.
  bool held = false;
  {
    MutexLock lock(mutex_);
    write_failed_ = true;
    held = held_;
  }
  if (held) Finish(status, /*broken=*/false);
}

void LinkStream::WakeWriter() {
  {
    MutexLock lock(mutex_);
    writer_woken_ = true;
    if (writing_ || writer_scheduled_ || ended_) return;
    writer_scheduled_ = true;
  }
  RunSoon([self = shared_from_this()] {
    {
      MutexLock lock(self->mutex_);
      self->writer_scheduled_ = false;
    }
    self->WriteNext();
  });
}

void LinkStream::WriteNext() {
  for (;;) {
    std::shared_ptr<LinkEndpoint> from;
    {
      MutexLock lock(mutex_);
      if (writing_ || ended_) return;
      writing_ = true;
      writer_woken_ = false;
      from = endpoint_;
    }
    const std::optional<OutgoingMessage> message = from->NextMessage(this);
    MutexLock lock(mutex_);
    if (ended_) return;
    if (message.has_value()) {
      outgoing_ = ToByteBuffer(*message);
      transport_->Write(&outgoing_);
      return;
    }
    writing_ = false;
    if (!writer_woken_) return;
  }
}

void LinkStream::OnBroken(const absl::Status& status) {
  Finish(status, /*broken=*/true);
  // The dialler's endpoint hears of it with the status that the peer sent, when the call is over.
  if (directory_ == nullptr) return;
  if (const std::shared_ptr<LinkEndpoint> of = endpoint(); of != nullptr) of->OnClosed(this, status);
}

void LinkStream::Reject(const absl::Status& status) {
  if (const std::shared_ptr<LinkEndpoint> of = endpoint(); of != nullptr) of->OnBadMessage(this, status);
  Finish(status, /*broken=*/false);
}

void LinkStream::Finish(const absl::Status& status, bool broken) {
  MutexLock lock(mutex_);
  if (ended_) return;
  ended_ = true;
  end_ = status;
  timer_.Cancel();
  if (!opened_) return;
  transport_->Finish(status, broken);
  if (directory_ == nullptr) return;
  // A peer that does not read does not get the status either.
  timer_.Set(kFinishPatience, [weak = weak_from_this()](bool expired) {
    const std::shared_ptr<LinkStream> self = weak.lock();
    if (!expired || self == nullptr) return;
    MutexLock lock(self->mutex_);
    if (self->transport_ != nullptr) self->transport_->Cancel();
  });
}

void LinkStream::Detach() {
  MutexLock lock(mutex_);
  ended_ = true;
  transport_ = nullptr;
  timer_.Cancel();
}

bool LinkStream::greeted() const {
  MutexLock lock(mutex_);
  return greeted_;
}

absl::Status LinkStream::end() const {
  MutexLock lock(mutex_);
  return end_;
}

std::shared_ptr<LinkEndpoint> LinkStream::endpoint() const {
  MutexLock lock(mutex_);
  return endpoint_;
}

}  // namespace resbm::wire
