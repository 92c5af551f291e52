// A StageMachine among fakes, one stage of several, with everything that a test wants to do to it as a word.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_HARNESS_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_HARNESS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stage_server/core/stage_machine.h"
#include "tests/stage_server/support/fake_computer.h"
#include "tests/stage_server/support/fake_links.h"
#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {

inline absl::StatusCode Code(const v1::Failed& failed) { return static_cast<absl::StatusCode>(failed.code()); }

class Harness : public StageEffects {
 public:
  explicit Harness(std::uint32_t stage = 1, std::uint32_t stages = 3, StageMachineOptions options = {})
      : stage_(stage), stages_(stages), machine_(WithIncarnation(options), clock_, this, &links_) {}

  // ---- StageEffects
  void Emit(SessionId session, const v1::ControlEvent& event) override { events_[session].push_back(event); }
  void EndSession(SessionId session, const absl::Status& status) override { ended_.emplace(session, status); }
  void Start(Work work) override {
    works_.push_back(WorkName(work));
    running_ = std::move(work);
  }

  // ---- the compute thread
  bool busy() const { return running_.has_value(); }
  void FinishWork() {
    const Work work = *std::move(running_);
    running_.reset();
    WorkResult result = computer_.Run(work);
    result.began = clock_.Now();
    clock_.Advance(absl::Milliseconds(250));
    machine_.OnWorkDone(std::move(result));
  }
  void FinishAllWork() {
    while (busy()) FinishWork();
  }

  // ---- the coordinator
  v1::ControlRequest Request() const {
    v1::ControlRequest request;
    *request.mutable_fence() = fence_;
    return request;
  }
  void Send(const v1::ControlRequest& request) { machine_.OnRequest(session_, request); }
  void Attach(std::uint64_t epoch = 1, std::uint64_t generation = 1, SessionId session = 1) {
    fence_ = MakeFence(epoch, generation);
    session_ = session;
    v1::ControlRequest request = Request();
    *request.mutable_attach() = MakeAttach(stage_, stages_);
    Send(request);
  }
  void Resume(const v1::Resume& resume) {
    v1::ControlRequest request = Request();
    *request.mutable_resume() = resume;
    Send(request);
  }
  void Init(std::uint64_t state_id = 100) { Resume(MakeInit(Spec(), state_id)); }
  void Keep(std::uint64_t state_id, std::uint64_t step) {
    v1::Resume resume;
    resume.mutable_keep();
    *resume.mutable_stage() = Spec();
    resume.set_state_id(state_id);
    resume.set_step(step);
    Resume(resume);
  }
  void Define(const v1::DefineProgram& program) {
    v1::ControlRequest request = Request();
    *request.mutable_define_program() = program;
    Send(request);
  }
  void Begin(const v1::Begin& begin) {
    v1::ControlRequest request = Request();
    *request.mutable_begin() = begin;
    Send(request);
  }
  void Begin(std::uint64_t step, std::uint64_t base) { Begin(MakeBegin(fence_, step, base, 1, {2, 2})); }
  void Commit(const v1::Commit& commit) {
    v1::ControlRequest request = Request();
    *request.mutable_commit() = commit;
    Send(request);
  }
  void Evaluate(const v1::Evaluate& evaluate) {
    v1::ControlRequest request = Request();
    *request.mutable_evaluate() = evaluate;
    Send(request);
  }
  void Release() {
    v1::ControlRequest request = Request();
    request.mutable_release();
    Send(request);
  }
  v1::StageSpec Spec() const { return MakeSpec(stage_, stages_); }

  // ---- the neighbours
  // Delivers the next expected tensor; false if none is expected.
  bool Deliver(End end, char fill = 1) {
    auto& expected = links_.line(end).expected;
    if (expected.empty()) return false;
    v1::TensorHeader header = expected.front();
    expected.pop_front();
    *header.mutable_fence() = fence_;
    machine_.OnTensor(end, header, MakeTensor(header, fill));
    return true;
  }
  void DeliverAll() {
    while (Deliver(End::kUp) || Deliver(End::kDown)) {
    }
  }
  // Lets everything happen that can.
  void Settle() {
    for (bool moved = true; moved;) {
      moved = Deliver(End::kUp) || Deliver(End::kDown);
      if (busy()) {
        FinishWork();
        moved = true;
      }
    }
  }

  // ---- ways to a state
  void Attached() { Attach(); }
  void Ready() {
    Attach();
    Init();
    FinishAllWork();
    Define(MakeProgram(1, "F0 F1 B0 B1", 2));
    Define(MakeProgram(2, "F0 F1", 2, v1::DefineProgram::EVALUATE));
  }
  void Running() {
    Ready();
    Begin(1, 100);
  }
  void Computed() {
    Running();
    Settle();
  }
  void Reach(State state) {
    switch (state) {
      case State::kEmpty:  // still attached: its load failed
        Attach();
        computer_.FailNext("Load", absl::InternalError("no"));
        Init();
        FinishAllWork();
        break;
      case State::kFenced: Attach(); break;
      case State::kLoading:
        Attach();
        Init();
        break;
      case State::kReady: Ready(); break;
      case State::kRunning: Running(); break;
      case State::kFailed:
        Running();
        machine_.OnLinkError(fence_, End::kUp, absl::DataLossError("no"));
        FinishAllWork();
        break;
      case State::kComputed: Computed(); break;
      case State::kApplying:
        Computed();
        Commit(MakeCommit(fence_, 1, 100, 101));
        break;
      case State::kEvaluating:
        Ready();
        Evaluate(MakeEvaluate(1, 2, {2, 2}));
        break;
    }
  }

  // ---- what came of it
  std::vector<v1::ControlEvent>& events(SessionId session) { return events_[session]; }
  std::vector<v1::ControlEvent>& events() { return events_[session_]; }
  // The kinds emitted to the present session, oldest first, and forgets them: "attached ready".
  std::string TakeEvents() {
    std::string text;
    for (const v1::ControlEvent& event : events_[session_]) {
      const auto* field = v1::ControlEvent::descriptor()->FindFieldByNumber(event.kind_case());
      text += (text.empty() ? "" : " ") + field->name();
    }
    events_[session_].clear();
    return text;
  }
  const v1::ControlEvent& last_event() { return events_[session_].back(); }
  const v1::Failed& last_failure() { return events_[session_].back().failed(); }
  std::string TakeWorks() {
    std::string text;
    for (const std::string& work : works_) text += (text.empty() ? "" : ", ") + work;
    works_.clear();
    return text;
  }
  const std::map<SessionId, absl::Status>& ended() const { return ended_; }

  FakeClock& clock() { return clock_; }
  FakeLinks& links() { return links_; }
  FakeComputer& computer() { return computer_; }
  StageMachine& machine() { return machine_; }
  State state() const { return machine_.state(); }
  const v1::Fence& fence() const { return fence_; }
  SessionId session() const { return session_; }

 private:
  static StageMachineOptions WithIncarnation(StageMachineOptions options) {
    options.incarnation = 4711;
    return options;
  }

  const std::uint32_t stage_;
  const std::uint32_t stages_;
  FakeClock clock_;
  FakeLinks links_;
  FakeComputer computer_;
  std::optional<Work> running_;
  std::vector<std::string> works_;
  std::map<SessionId, std::vector<v1::ControlEvent>> events_;
  std::map<SessionId, absl::Status> ended_;
  v1::Fence fence_;
  SessionId session_ = 0;
  StageMachine machine_;
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_HARNESS_H_
