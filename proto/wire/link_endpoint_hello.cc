// Whether the peer is the one that this end of the link is for.
#include <xxhash.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/wire/link_endpoint.h"

namespace resbm::wire {
namespace {

std::string Name(const v1::Fence& fence) { return absl::StrCat(fence.epoch(), ".", fence.generation()); }

// Enough to see that two keys differ, nothing to guess one from.
std::string Fingerprint(const std::string& key) {
  const std::uint64_t hash = XXH3_64bits(key.data(), key.size());
  return absl::StrFormat("%d bytes, #%04x", key.size(), hash & 0xffff);
}

template <typename A, typename B>
absl::Status WrongHello(const LinkEndpoint::Options& options, absl::string_view field, const A& theirs, const B& ours) {
  return absl::FailedPreconditionError(
      absl::StrCat("link ", options.link, ": the peer's Hello has ", field, " ", theirs, ", this end has ", ours));
}

}  // namespace

absl::Status LinkEndpoint::CheckHello(const v1::Hello& hello) const {
  if (hello.protocol_version() != kProtocolVersion) {
    return WrongHello(options_, "protocol version", hello.protocol_version(), kProtocolVersion);
  }
  if (hello.job_id() != options_.job_id) return WrongHello(options_, "job", hello.job_id(), options_.job_id);
  if (hello.link_key() != options_.link_key) {
    return WrongHello(options_, "a link key with fingerprint", Fingerprint(hello.link_key()),
                      Fingerprint(options_.link_key));
  }
  if (hello.fence().epoch() != options_.fence.epoch() || hello.fence().generation() != options_.fence.generation()) {
    return WrongHello(options_, "fence", Name(hello.fence()), Name(options_.fence));
  }
  if (hello.link() != options_.link) return WrongHello(options_, "link", hello.link(), options_.link);
  if (hello.side() != peer_side()) {
    return WrongHello(options_, "side number", static_cast<int>(hello.side()),
                      absl::StrCat(static_cast<int>(options_.side), " and wants the other"));
  }
  return absl::OkStatus();
}

}  // namespace resbm::wire
