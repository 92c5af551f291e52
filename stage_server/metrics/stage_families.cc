#include "stage_server/metrics/stage_families.h"

#include <cstddef>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/fence.h"
#include "stage_server/core/stage_links.h"

namespace resbm::stage_server {
namespace {

using metrics::Kind;

// `end`: "up" towards the input (link `stage` of the job), "down" towards the output (the link after it).
constexpr metrics::Metric kMetrics[] = {
    {"resbm_stage_build_info", Kind::kGauge, "version,protocol,libtorch,device,device_name,cpu_capability",
     "1; the labels say what the server is."},
    {"resbm_stage_memory_limit_bytes", Kind::kGauge, "", "The server's --memory-limit; absent without one."},
    {"resbm_stage_ready", Kind::kGauge, "",
     "1 when it can be given a job or gets on with one, as the health service \"ready\" says, else 0."},
    {"resbm_stage_state", Kind::kGauge, "state", "1 for the state that the stage is in, 0 for the others."},
    {"resbm_stage_attached", Kind::kGauge, "", "1 while a coordinator's control stream is open, else 0."},
    {"resbm_stage_job_info", Kind::kGauge, "job,stage,stages,fence",
     "1; the labels say whose the stage is and which place it has. Absent when it is free."},
    {"resbm_stage_link_info", Kind::kGauge, "end,link,cut_point",
     "1; which link of the job an end is: up is towards the input, down towards the output. cut_point is empty where "
     "the "
     "coordinator is the neighbour. Absent when no link is open."},
    {"resbm_stage_last_step", Kind::kGauge, "", "The last step that was committed, of the present job."},
    {"resbm_stage_steps_total", Kind::kCounter, "decision",
     "Steps committed: \"apply\", or \"skip\" for a non-finite value."},
    {"resbm_stage_step_seconds", Kind::kHistogram, "", "From a step's Begin to its last action."},
    {"resbm_stage_evaluation_seconds", Kind::kHistogram, "", "From the beginning of an evaluation to its last action."},
    {"resbm_stage_phase_seconds_total", Kind::kCounter, "phase",
     "Where the time of steps went: forward, backward, waiting_up, waiting_down (idle for want of a "
     "tensor from there), commit. Waiting over the sum of resbm_stage_step_seconds is the share of bubbles and links."},
    {"resbm_stage_waiting_seconds", Kind::kGauge, "end",
     "How long it has been waiting for a tensor of that end, or for one to leave; absent while it does not wait."},
    {"resbm_stage_micro_batches_in_flight", Kind::kGauge, "",
     "Micro-batches forwarded and not yet taken backward; absent outside a step."},
    {"resbm_stage_window_micro_batches", Kind::kGauge, "", "Most that may be in flight; absent without a job."},
    {"resbm_stage_link_payload_bytes_total", Kind::kCounter, "end,direction",
     "Tensors' bytes, sent (again included) and received (each byte once)."},
    {"resbm_stage_link_resent_bytes_total", Kind::kCounter, "end",
     "Payload that was sent again after a link broke; part of what was sent."},
    {"resbm_stage_link_metadata_bytes_total", Kind::kCounter, "end",
     "Sent beside the payload: headers, checksums, gRPC's prefixes; not HTTP/2, TLS, IP."},
    {"resbm_stage_link_messages_total", Kind::kCounter, "end", "Messages sent."},
    {"resbm_stage_link_tensors_total", Kind::kCounter, "end,direction", "Whole tensors, each once."},
    {"resbm_stage_link_connections_total", Kind::kCounter, "end", "Connections that got as far as both Hellos."},
    {"resbm_stage_link_reconnections_total", Kind::kCounter, "end", "Connections after a link broke."},
    {"resbm_stage_link_connected", Kind::kGauge, "end", "1 while connected, else 0; absent when no link is open."},
    {"resbm_stage_link_retained_bytes", Kind::kGauge, "end",
     "Sent and kept, should the link break; absent when no link is open."},
    {"resbm_stage_link_inbox_tensors", Kind::kGauge, "end",
     "Tensors that came and were not used yet; absent when no link is open."},
    {"resbm_stage_inbox_bytes", Kind::kGauge, "", "Bytes of the tensors that came and were not used yet."},
    {"resbm_stage_memory_bytes", Kind::kGauge, "part",
     "At the peak of the last step or evaluation: weights, optimizer, buffers (gradients, inbox, retained), "
     "activations."},
    {"resbm_stage_memory_peak_bytes", Kind::kGauge, "", "The peak of the last step or evaluation."},
    {"resbm_stage_memory_live_bytes", Kind::kGauge, "", "In use when the last step or evaluation ended."},
    {"resbm_stage_memory_planned_bytes", Kind::kGauge, "part",
     "What the loaded stage needs by plan: weights, gradients, optimizer, buffers."},
    {"resbm_stage_non_finite_values_total", Kind::kCounter, "where",
     "Non-finite values of the present job: a boundary and direction, \"loss\", or a parameter; from the first on."},
    {"resbm_stage_failures_total", Kind::kCounter, "code", "Failures reported to a coordinator; from the first on."},
    {"resbm_stage_stale_messages_total", Kind::kCounter, "",
     "Dropped: of an old fence, or of a stream that was replaced."},
    {"resbm_stage_refused_attaches_total", Kind::kCounter, "",
     "Coordinators sent away: an old fence, another job's stage, no common version."},
    {"resbm_stage_dropped_steps_total", Kind::kCounter, "", "Unfinished work that a newer fence stopped."},
};

constexpr State kStates[] = {State::kEmpty,  State::kFenced,   State::kLoading,  State::kReady,     State::kRunning,
                             State::kFailed, State::kComputed, State::kApplying, State::kEvaluating};
static_assert(std::size(kStates) == static_cast<std::size_t>(State::kEvaluating) + 1);

const char* NameOf(End end) { return end == End::kUp ? "up" : "down"; }
double AsNumber(bool yes) { return yes ? 1 : 0; }

void AddLinks(const StageSnapshot& s, metrics::Families* families) {
  for (End end : kEnds) {
    const int i = static_cast<int>(end);
    const std::string name = NameOf(end);
    const LinkTotals& totals = s.links[i];
    families->Set("resbm_stage_link_payload_bytes_total", totals.payload_bytes_sent, {name, "sent"});
    families->Set("resbm_stage_link_payload_bytes_total", totals.payload_bytes_received, {name, "received"});
    families->Set("resbm_stage_link_resent_bytes_total", totals.payload_bytes_resent, {name});
    families->Set("resbm_stage_link_metadata_bytes_total", totals.metadata_bytes_sent, {name});
    families->Set("resbm_stage_link_messages_total", totals.messages_sent, {name});
    families->Set("resbm_stage_link_tensors_total", totals.tensors_sent, {name, "sent"});
    families->Set("resbm_stage_link_tensors_total", totals.tensors_received, {name, "received"});
    families->Set("resbm_stage_link_connections_total", totals.connections, {name});
    families->Set("resbm_stage_link_reconnections_total", totals.reconnections, {name});
    if (end == End::kUp ? !s.now.has_up() : !s.now.has_down()) continue;
    const v1::LinkState& link = end == End::kUp ? s.now.up() : s.now.down();
    families->Set("resbm_stage_link_info", 1, {name, absl::StrCat(s.now.stage() + i), s.cut_points[i]});
    families->Set("resbm_stage_link_connected", AsNumber(link.connected()), {name});
    families->Set("resbm_stage_link_retained_bytes", link.retained_bytes(), {name});
    families->Set("resbm_stage_link_inbox_tensors", link.inbox_tensors(), {name});
  }
  families->Set("resbm_stage_inbox_bytes", s.inbox_bytes);
}

void AddSteps(const StageSnapshot& s, metrics::Families* families) {
  families->Set("resbm_stage_steps_total", s.counters.applied_steps, {"apply"});
  families->Set("resbm_stage_steps_total", s.counters.skipped_steps, {"skip"});
  families->Set("resbm_stage_step_seconds", s.totals.step_seconds);
  families->Set("resbm_stage_evaluation_seconds", s.totals.evaluation_seconds);
  families->Set("resbm_stage_phase_seconds_total", s.totals.forward_seconds, {"forward"});
  families->Set("resbm_stage_phase_seconds_total", s.totals.backward_seconds, {"backward"});
  families->Set("resbm_stage_phase_seconds_total", s.totals.waiting_up_seconds, {"waiting_up"});
  families->Set("resbm_stage_phase_seconds_total", s.totals.waiting_down_seconds, {"waiting_down"});
  families->Set("resbm_stage_phase_seconds_total", s.totals.commit_seconds, {"commit"});
  if (s.now.has_progress()) {
    const v1::Progress& progress = s.now.progress();
    // An evaluation has no step, and nothing goes back.
    if (progress.step() > 0 && progress.forwards() >= progress.backwards()) {
      families->Set("resbm_stage_micro_batches_in_flight", progress.forwards() - progress.backwards());
    }
    if (progress.has_waiting_for()) {
      const End end = progress.waiting_for().direction() == v1::UP ? End::kUp : End::kDown;
      families->Set("resbm_stage_waiting_seconds", progress.waiting_for().seconds(), {NameOf(end)});
    }
  }
  for (const auto& [where, count] : s.totals.non_finite) {
    families->Set("resbm_stage_non_finite_values_total", static_cast<double>(count), {where});
  }
  for (const auto& [code, count] : s.totals.failures) {
    families->Set("resbm_stage_failures_total", static_cast<double>(count), {code});
  }
}

// Of what is loaded.
void AddMemory(const StageSnapshot& s, metrics::Families* families) {
  if (!s.memory_plan.has_value()) return;
  families->Set("resbm_stage_memory_planned_bytes", s.memory_plan->weights_bytes(), {"weights"});
  families->Set("resbm_stage_memory_planned_bytes", s.memory_plan->gradients_bytes(), {"gradients"});
  families->Set("resbm_stage_memory_planned_bytes", s.memory_plan->optimizer_bytes(), {"optimizer"});
  families->Set("resbm_stage_memory_planned_bytes", s.memory_plan->buffers_bytes(), {"buffers"});
  if (s.window > 0) families->Set("resbm_stage_window_micro_batches", s.window);
  if (!s.totals.memory.has_value() || s.totals.job_id != s.now.job_id()) return;
  const v1::MemoryUse& memory = *s.totals.memory;
  families->Set("resbm_stage_memory_peak_bytes", memory.peak_bytes());
  families->Set("resbm_stage_memory_live_bytes", memory.live_bytes());
  families->Set("resbm_stage_memory_bytes", memory.weights_bytes(), {"weights"});
  families->Set("resbm_stage_memory_bytes", memory.optimizer_bytes(), {"optimizer"});
  families->Set("resbm_stage_memory_bytes", memory.buffers_bytes(), {"buffers"});
  families->Set("resbm_stage_memory_bytes", memory.activations_bytes(), {"activations"});
}

}  // namespace

metrics::Catalogue StageMetrics() { return kMetrics; }

std::vector<prometheus::MetricFamily> StageFamilies(const v1::DescribeReply& identity, const StageSnapshot* snapshot) {
  metrics::Families families(kMetrics);
  families.Set("resbm_stage_build_info", 1,
               {identity.server_version(), absl::StrCat(identity.max_protocol_version()), identity.libtorch_version(),
                identity.device(), identity.device_name(), identity.cpu_capability()});
  if (identity.memory_limit_bytes() > 0) families.Set("resbm_stage_memory_limit_bytes", identity.memory_limit_bytes());
  if (snapshot == nullptr) return families.Take();
  const StageSnapshot& s = *snapshot;
  families.Set("resbm_stage_ready", AsNumber(s.ready));
  for (State state : kStates) {
    families.Set("resbm_stage_state", AsNumber(s.now.state() == StateName(state)), {StateName(state)});
  }
  families.Set("resbm_stage_attached", AsNumber(s.attached));
  if (!s.now.job_id().empty()) {
    families.Set("resbm_stage_job_info", 1,
                 {s.now.job_id(), absl::StrCat(s.now.stage()), absl::StrCat(s.now.stages()),
                  wire::FenceText(s.now.fence())});
    families.Set("resbm_stage_last_step", s.now.step());
  }
  AddSteps(s, &families);
  AddLinks(s, &families);
  AddMemory(s, &families);
  families.Set("resbm_stage_stale_messages_total", s.counters.stale_messages);
  families.Set("resbm_stage_refused_attaches_total", s.counters.refused_attaches);
  families.Set("resbm_stage_dropped_steps_total", s.counters.dropped_steps);
  return families.Take();
}

}  // namespace resbm::stage_server
