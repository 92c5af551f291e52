#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"
#include "proto/base/status.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/grpc_status.h"
#include "proto/wire/grpc_timer.h"
#include "proto/wire/link_stream.h"

namespace resbm::wire {
namespace {

constexpr char kMethod[] = "/resbm.v1.StageLink/Exchange";
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

}  // namespace

// busy_ says that a call or a pause is under way: its callback goes on to the other, or finds stopped_.
struct LinkDialler::Impl : std::enable_shared_from_this<LinkDialler::Impl> {
  class Call;

  Impl(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials,
       std::shared_ptr<LinkEndpoint> endpoint)
      : address_(std::move(address)),
        endpoint_(std::move(endpoint)),
        channel_(MakeChannel(address_, std::move(credentials))) {}

  void Dial();
  void CallEnded(bool greeted);

  const std::string address_;
  const std::shared_ptr<LinkEndpoint> endpoint_;
  // Used while busy_. Stop drops it: the last reference must not go on one of gRPC's own threads, which the
  // end of the last channel joins.
  std::shared_ptr<grpc::Channel> channel_;

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ RESBM_GUARDED_BY(mutex_) = false;
  bool busy_ RESBM_GUARDED_BY(mutex_) = false;
  std::shared_ptr<LinkStream> stream_ RESBM_GUARDED_BY(mutex_);
  absl::Duration pause_ RESBM_GUARDED_BY(mutex_) = kFirstPause;
  GrpcTimer timer_ RESBM_GUARDED_BY(mutex_);
};

// Deletes itself in OnDone. A hold keeps the call open for writes and reads that begin outside its
// reactions; Finish gives it up.
class LinkDialler::Impl::Call : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                                public LinkStream::Transport {
 public:
  explicit Call(std::shared_ptr<Impl> owner)
      : owner_(std::move(owner)), stream_(LinkStream::OfDialler(this, owner_->endpoint_)) {}

  const std::shared_ptr<LinkStream>& stream() const { return stream_; }

  // Consumes itself, now or in OnDone.
  void Start(const OutgoingMessage& hello) {
    if (stream_->Begin(hello)) {
      StartCall();
    } else {
      End(absl::CancelledError("closed before it was dialled"));
    }
  }

  void OnReadDone(bool ok) override { stream_->OnRead(ok); }
  void OnWriteDone(bool ok) override { stream_->OnWritten(ok); }
  void OnDone(const grpc::Status& status) override {
    absl::Status why = FromGrpc(status);
    if (why.ok()) why = absl::UnavailableError("the peer ended the stream");
    // Cancelled by this end: it knows why.
    if (absl::IsCancelled(why) && !stream_->end().ok()) why = stream_->end();
    End(why);
  }

  void Open() override {
    grpc::GenericStub(owner_->channel_).PrepareBidiStreamingCall(&context_, kMethod, grpc::StubOptions(), this);
    AddHold();
  }
  void Read(grpc::ByteBuffer* into) override { StartRead(into); }
  void Write(const grpc::ByteBuffer* message) override { StartWrite(message); }
  void Finish(const absl::Status&, bool broken) override {
    // A broken call has its status already: it must not become CANCELLED.
    if (!broken) context_.TryCancel();
    RemoveHold();
  }
  void Cancel() override { context_.TryCancel(); }
  bool Connected() override { return owner_->channel_->GetState(false) == GRPC_CHANNEL_READY; }

 private:
  void End(const absl::Status& why) {
    const bool greeted = stream_->greeted();
    stream_->Detach();
    owner_->endpoint_->OnClosed(stream_.get(), Annotate(why, owner_->address_));
    const std::shared_ptr<Impl> owner = owner_;
    delete this;
    owner->CallEnded(greeted);
  }

  const std::shared_ptr<Impl> owner_;
  const std::shared_ptr<LinkStream> stream_;
  grpc::ClientContext context_;
};

void LinkDialler::Impl::Dial() {
  auto* call = new Call(shared_from_this());
  bool stopped = false;
  {
    MutexLock lock(mutex_);
    stopped = stopped_;
    if (!stopped) stream_ = call->stream();
  }
  absl::StatusOr<OutgoingMessage> hello = absl::CancelledError("stopped");
  if (!stopped) hello = endpoint_->Dial(call->stream());
  if (!hello.ok()) {
    // Stopped, or the endpoint has ended: no use in another dial.
    call->stream()->Detach();
    delete call;
    MutexLock lock(mutex_);
    stream_ = nullptr;
    busy_ = false;
    changed_.NotifyAll();
    return;
  }
  call->Start(*hello);
}

void LinkDialler::Impl::CallEnded(bool greeted) {
  MutexLock lock(mutex_);
  stream_ = nullptr;
  if (stopped_) {
    busy_ = false;
    changed_.NotifyAll();
    return;
  }
  if (greeted) pause_ = kFirstPause;
  timer_.Set(pause_, [self = shared_from_this()](bool) { self->Dial(); });
  pause_ = std::min(2 * pause_, kLongestPause);
}

LinkDialler::LinkDialler(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials,
                         std::shared_ptr<LinkEndpoint> endpoint)
    : impl_(std::make_shared<Impl>(std::move(address), std::move(credentials), std::move(endpoint))) {}

LinkDialler::~LinkDialler() { Stop(); }

void LinkDialler::Start() {
  {
    MutexLock lock(impl_->mutex_);
    if (impl_->stopped_ || impl_->busy_) return;
    impl_->busy_ = true;
  }
  RunSoon([impl = impl_] { impl->Dial(); });
}

void LinkDialler::Stop() {
  std::shared_ptr<LinkStream> stream;
  {
    MutexLock lock(impl_->mutex_);
    impl_->stopped_ = true;
    impl_->timer_.Cancel();
    stream = impl_->stream_;
  }
  if (stream != nullptr) stream->Close(absl::CancelledError("the dialler was stopped"));
  std::shared_ptr<grpc::Channel> channel;
  MutexLock lock(impl_->mutex_);
  while (impl_->busy_) impl_->changed_.Wait(impl_->mutex_);
  channel = std::move(impl_->channel_);
}

}  // namespace resbm::wire
