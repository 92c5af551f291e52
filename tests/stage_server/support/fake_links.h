// Links that only write down what they were asked, and say what the test wants.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_FAKE_LINKS_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_FAKE_LINKS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stage_server/core/stage_links.h"

namespace resbm::stage_server::testing {

class FakeLinks : public StageLinks {
 public:
  struct Line {
    std::deque<v1::TensorHeader> expected;  // the test takes from the front what it delivers
    std::vector<std::pair<v1::TensorHeader, EncodedTensor>> sent;
    std::uint32_t limit = 0;
    bool hard = false;
    int consumed = 0;
    bool all_sent = true;
    bool connected = true;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> released_micro_batches;
    std::vector<std::uint64_t> released_steps;
    int released_all = 0;
    std::uint64_t retained_bytes = 0;
    LinkCounters counters;
    bool recording = false;
    std::vector<wire::Transfer> transfers;  // the test puts here what has crossed
  };

  void Open(const LinkSetup& setup) override {
    setup_ = setup;
    open_ = true;
    ++opens_;
    lines_[0] = Line();
    lines_[1] = Line();
  }
  void Close(const absl::Status& status) override {
    open_ = false;
    closed_with_ = status;
  }
  void Expect(End end, const v1::TensorHeader& header) override { line(end).expected.push_back(header); }
  void SetInboxLimit(End end, std::uint32_t tensors, bool hard) override {
    line(end).limit = tensors;
    line(end).hard = hard;
  }
  void Consumed(End end) override { ++line(end).consumed; }
  void Send(End end, const v1::TensorHeader& header, EncodedTensor tensor) override {
    line(end).counters.payload_bytes += tensor.payload.size();
    line(end).counters.metadata_bytes += 50;
    line(end).counters.messages += 1;
    line(end).sent.emplace_back(header, std::move(tensor));
  }
  void ReleaseMicroBatch(End end, std::uint64_t step, std::uint32_t mb) override {
    line(end).released_micro_batches.emplace_back(step, mb);
  }
  void ReleaseThroughStep(End end, std::uint64_t step) override { line(end).released_steps.push_back(step); }
  void ReleaseAll(End end) override { ++line(end).released_all; }
  bool AllSent(End end) const override { return lines_[static_cast<int>(end)].all_sent; }
  bool Connected(End end) const override { return lines_[static_cast<int>(end)].connected; }
  std::uint64_t RetainedBytes(End end) const override { return lines_[static_cast<int>(end)].retained_bytes; }
  LinkCounters Counters(End end) const override { return lines_[static_cast<int>(end)].counters; }
  void RecordTransfers(End end, bool on) override { line(end).recording = on; }
  std::vector<wire::Transfer> TakeTransfers(End end, std::uint64_t step) override {
    std::vector<wire::Transfer> taken;
    std::vector<wire::Transfer> left;
    for (const wire::Transfer& transfer : line(end).transfers) (transfer.step <= step ? taken : left).push_back(transfer);
    line(end).transfers = left;
    return taken;
  }

  Line& line(End end) { return lines_[static_cast<int>(end)]; }
  Line& up() { return lines_[0]; }
  Line& down() { return lines_[1]; }
  const LinkSetup& setup() const { return setup_; }
  bool open() const { return open_; }
  int opens() const { return opens_; }
  const absl::Status& closed_with() const { return closed_with_; }

 private:
  LinkSetup setup_;
  bool open_ = false;
  int opens_ = 0;
  absl::Status closed_with_;
  Line lines_[2];
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_FAKE_LINKS_H_
