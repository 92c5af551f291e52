// Stands where a link to the coordinator would: gives an end stage the tensors that it expects, made of its own copy of
// the data.
#ifndef RESBM_STAGE_SERVER_DATA_LOCAL_LINE_H_
#define RESBM_STAGE_SERVER_DATA_LOCAL_LINE_H_

#include <cstdint>
#include <deque>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/link_endpoint.h"
#include "stage_server/core/link_events.h"
#include "stage_server/data/local_data.h"

namespace resbm::stage_server {

// Tensors are made on a thread of its own, in the order in which they are expected. Methods: for one thread.
class LocalLine {
 public:
  // `data` and `events` outlive it. kUp gives inputs, kDown targets.
  LocalLine(End end, const v1::Fence& fence, const LocalData* data, LinkEvents* events);
  // No event begins afterwards. Waits for the tensor that is being made: milliseconds, and where an epoch begins as long
  // as it takes to shuffle the data.
  ~LocalLine();

  // As LinkEndpoint's. A tensor that the data does not give, or gives otherwise, is OnLinkError, and the last event.
  void Expect(v1::TensorHeader header);
  void SetInboxLimit(std::uint32_t tensors);
  void Consumed();

 private:
  void Run();
  absl::StatusOr<EncodedTensor> MakeOrSay(const v1::TensorHeader& header) const;
  absl::StatusOr<EncodedTensor> Make(const v1::TensorHeader& header) const;

  const End end_;
  const v1::Fence fence_;
  const LocalData* const data_;
  LinkEvents* const events_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::TensorHeader> expected_ RESBM_GUARDED_BY(mutex_);
  std::uint32_t limit_ RESBM_GUARDED_BY(mutex_) = 0;  // 0 = none
  std::uint32_t held_ RESBM_GUARDED_BY(mutex_) = 0;
  bool stopped_ RESBM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_DATA_LOCAL_LINE_H_
