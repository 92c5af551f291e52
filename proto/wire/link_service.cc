#include <memory>

#include <grpcpp/support/server_callback.h>

#include "proto/resbm/v1/link.grpc.pb.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/grpc_status.h"
#include "proto/wire/link_stream.h"

namespace resbm::wire {
namespace {

// Deletes itself in OnDone, which follows the one Finish.
class Acceptance : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>, public LinkStream::Transport {
 public:
  Acceptance(grpc::CallbackServerContext* context, LinkDirectory* directory, absl::Duration hello_timeout)
      : context_(context), stream_(LinkStream::OfAcceptor(this, directory)) {
    stream_->Accept(hello_timeout);
  }

  void OnReadDone(bool ok) override { stream_->OnRead(ok); }
  void OnWriteDone(bool ok) override { stream_->OnWritten(ok); }
  void OnCancel() override { stream_->OnBroken(absl::UnavailableError("the peer went away")); }
  void OnDone() override {
    stream_->Detach();
    delete this;
  }

  void Open() override {}
  void Read(grpc::ByteBuffer* into) override { StartRead(into); }
  void Write(const grpc::ByteBuffer* message) override { StartWrite(message); }
  void Finish(const absl::Status& status, bool) override { ServerBidiReactor::Finish(ToGrpc(status)); }
  void Cancel() override { context_->TryCancel(); }
  // A server is told of a loss by OnCancel.
  bool Connected() override { return true; }

 private:
  grpc::CallbackServerContext* const context_;
  const std::shared_ptr<LinkStream> stream_;
};

class LinkService : public v1::StageLink::WithRawCallbackMethod_Exchange<v1::StageLink::Service> {
 public:
  LinkService(LinkDirectory* directory, absl::Duration hello_timeout)
      : directory_(directory), hello_timeout_(hello_timeout) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(grpc::CallbackServerContext* context) override {
    return new Acceptance(context, directory_, hello_timeout_);
  }

 private:
  LinkDirectory* const directory_;
  const absl::Duration hello_timeout_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLinkService(LinkDirectory* directory, absl::Duration hello_timeout) {
  return std::make_unique<LinkService>(directory, hello_timeout);
}

}  // namespace resbm::wire
