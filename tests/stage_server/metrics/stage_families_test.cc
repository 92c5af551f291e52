#include "stage_server/metrics/stage_families.h"

#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "absl/strings/str_cat.h"
#include "tests/support/http_get.h"

namespace resbm::stage_server {
namespace {

v1::DescribeReply Identity() {
  v1::DescribeReply identity;
  identity.set_server_version("0.1.0");
  identity.set_max_protocol_version(1);
  identity.set_libtorch_version("2.13.0");
  identity.set_device("cpu");
  identity.set_device_name("A processor");
  identity.set_cpu_capability("AVX512");
  return identity;
}

// Stage 1 of 3 in the middle of step 8.
StageSnapshot Busy() {
  StageSnapshot s;
  s.now.set_job_id("run-1");
  s.now.mutable_fence()->set_epoch(1);
  s.now.mutable_fence()->set_generation(2);
  s.now.set_state("RUNNING");
  s.now.set_stage(1);
  s.now.set_stages(3);
  s.now.set_step(7);
  s.now.mutable_progress()->set_step(8);
  s.now.mutable_progress()->set_forwards(5);
  s.now.mutable_progress()->set_backwards(2);
  s.now.mutable_progress()->mutable_waiting_for()->set_direction(v1::DOWN);
  s.now.mutable_progress()->mutable_waiting_for()->set_seconds(12);
  s.now.mutable_up()->set_connected(true);
  s.now.mutable_up()->set_retained_bytes(100);
  s.now.mutable_up()->set_inbox_tensors(2);
  s.now.mutable_down();
  s.attached = s.ready = true;
  s.counters.applied_steps = 6;
  s.counters.skipped_steps = 1;
  s.counters.stale_messages = 4;
  s.links[0].payload_bytes_sent = 1000;
  s.links[0].payload_bytes_received = 2000;
  s.links[0].payload_bytes_resent = 30;
  s.links[1].connections = 3;
  s.links[1].reconnections = 2;
  s.inbox_bytes = 512;
  s.memory_plan.emplace().set_weights_bytes(4096);
  s.window = 3;
  s.cut_points = {"group0.1", "group1.0"};
  v1::ControlEvent event;
  v1::Computed* computed = event.mutable_computed();
  computed->mutable_times()->set_forward_seconds(1);
  computed->mutable_times()->set_waiting_down_seconds(0.5);
  computed->mutable_times()->set_total_seconds(2);
  computed->mutable_memory()->set_peak_bytes(9000);
  v1::NonFinite* count = computed->add_non_finite();
  count->set_where("loss");
  count->set_count(2);
  s.totals.Add(event, "run-1");
  event.mutable_evaluated()->mutable_times()->set_total_seconds(3);
  s.totals.Add(event, "run-1");
  event.mutable_failed()->set_code(static_cast<std::uint32_t>(absl::StatusCode::kDataLoss));
  s.totals.Add(event, "run-1");
  return s;
}

std::map<std::string, double> Samples(const v1::DescribeReply& identity, const StageSnapshot* snapshot) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, StageFamilies(identity, snapshot));
  return resbm::testing::ParseSamples(text.str());
}

TEST(StageFamilies, SayWhatTheSnapshotSays) {
  const StageSnapshot busy = Busy();
  auto samples = Samples(Identity(), &busy);
  const std::map<std::string, double> expected = {
      {"resbm_stage_build_info{version=\"0.1.0\",protocol=\"1\",libtorch=\"2.13.0\",device=\"cpu\",device_name=\"A "
       "processor\",cpu_capability=\"AVX512\"}",
       1},
      {"resbm_stage_job_info{job=\"run-1\",stage=\"1\",stages=\"3\",fence=\"1.2\"}", 1},
      {"resbm_stage_link_info{end=\"up\",link=\"1\",cut_point=\"group0.1\"}", 1},
      {"resbm_stage_link_info{end=\"down\",link=\"2\",cut_point=\"group1.0\"}", 1},
      {"resbm_stage_state{state=\"RUNNING\"}", 1},
      {"resbm_stage_state{state=\"EMPTY\"}", 0},
      {"resbm_stage_ready", 1},
      {"resbm_stage_attached", 1},
      {"resbm_stage_last_step", 7},
      {"resbm_stage_steps_total{decision=\"apply\"}", 6},
      {"resbm_stage_steps_total{decision=\"skip\"}", 1},
      {"resbm_stage_step_seconds_count", 1},
      {"resbm_stage_step_seconds_sum", 2},
      {"resbm_stage_evaluation_seconds_sum", 3},
      {"resbm_stage_phase_seconds_total{phase=\"forward\"}", 1},
      {"resbm_stage_phase_seconds_total{phase=\"waiting_down\"}", 0.5},
      {"resbm_stage_waiting_seconds{end=\"down\"}", 12},
      {"resbm_stage_micro_batches_in_flight", 3},
      {"resbm_stage_window_micro_batches", 3},
      {"resbm_stage_link_payload_bytes_total{end=\"up\",direction=\"sent\"}", 1000},
      {"resbm_stage_link_payload_bytes_total{end=\"up\",direction=\"received\"}", 2000},
      {"resbm_stage_link_resent_bytes_total{end=\"up\"}", 30},
      {"resbm_stage_link_connections_total{end=\"down\"}", 3},
      {"resbm_stage_link_reconnections_total{end=\"down\"}", 2},
      {"resbm_stage_link_connected{end=\"up\"}", 1},
      {"resbm_stage_link_connected{end=\"down\"}", 0},
      {"resbm_stage_link_retained_bytes{end=\"up\"}", 100},
      {"resbm_stage_link_inbox_tensors{end=\"up\"}", 2},
      {"resbm_stage_inbox_bytes", 512},
      {"resbm_stage_memory_planned_bytes{part=\"weights\"}", 4096},
      {"resbm_stage_non_finite_values_total{where=\"loss\"}", 2},
      {"resbm_stage_failures_total{code=\"DATA_LOSS\"}", 1},
      {"resbm_stage_stale_messages_total", 4},
  };
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(samples.count(name), 1u) << name;
    EXPECT_EQ(samples[name], value) << name;
  }
  EXPECT_EQ(samples.count("resbm_stage_waiting_seconds{end=\"up\"}"), 0u);
}

TEST(StageFamilies, EveryMetricOfTheCatalogueIsThereWhenEverythingHasAValue) {
  const StageSnapshot busy = Busy();
  v1::DescribeReply identity = Identity();
  identity.set_memory_limit_bytes(1 << 30);
  std::set<std::string> present, catalogue;
  for (const prometheus::MetricFamily& family : StageFamilies(identity, &busy)) present.insert(family.name);
  for (const metrics::Metric& metric : StageMetrics()) catalogue.insert(std::string(metric.name));
  EXPECT_EQ(present, catalogue);
}

TEST(StageFamilies, OfAFreeStageWhatDoesNotExistIsAbsent) {
  StageSnapshot free;
  free.now.set_state("EMPTY");
  const auto samples = Samples(Identity(), &free);
  EXPECT_EQ(samples.count("resbm_stage_state{state=\"EMPTY\"}"), 1u);
  EXPECT_EQ(samples.count("resbm_stage_link_payload_bytes_total{end=\"up\",direction=\"sent\"}"), 1u)
      << "a counter is 0";
  for (const char* absent : {"resbm_stage_job_info", "resbm_stage_link_info", "resbm_stage_link_connected",
                             "resbm_stage_memory", "resbm_stage_waiting", "resbm_stage_micro_batches",
                             "resbm_stage_window", "resbm_stage_last_step", "resbm_stage_non_finite"}) {
    const auto found = samples.lower_bound(absent);
    EXPECT_FALSE(found != samples.end() && found->first.rfind(absent, 0) == 0) << found->first;
  }
}

TEST(StageFamilies, AnEvaluationHasNothingInFlight) {
  StageSnapshot snapshot = Busy();
  snapshot.now.mutable_progress()->clear_step();
  EXPECT_EQ(Samples(Identity(), &snapshot).count("resbm_stage_micro_batches_in_flight"), 0u);
}

TEST(StageFamilies, OfAStageThatDoesNotAnswerOnlyTheIdentityComes) {
  const auto samples = Samples(Identity(), nullptr);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples.begin()->first.rfind("resbm_stage_build_info{", 0), 0u);
}

TEST(StageTotals, PlacesOfNonFiniteValuesAreForgottenWithTheJobAndNeverMoreThanTheirLimit) {
  StageTotals totals;
  v1::ControlEvent event;
  for (int i = 0; i < 100; ++i) {
    v1::NonFinite* count = event.mutable_computed()->add_non_finite();
    count->set_where(absl::StrCat("layer.", i));
    count->set_count(1);
  }
  totals.Add(event, "run-1");
  totals.Add(event, "run-1");
  EXPECT_EQ(totals.non_finite.size(), StageTotals::kMaxPlaces + 1);
  EXPECT_EQ(totals.non_finite["layer.0"], 2u);
  EXPECT_EQ(totals.non_finite[StageTotals::kOtherPlaces], 2 * (100 - StageTotals::kMaxPlaces));
  event.mutable_computed()->clear_non_finite();
  totals.Add(event, "run-2");
  EXPECT_TRUE(totals.non_finite.empty());
  EXPECT_EQ(totals.step_seconds.Read().sample_count, 3u) << "what counts steps goes on";
}

TEST(LinkTotals, FencesAddUpAndTheFirstConnectionOfEachIsNoReconnection) {
  LinkTotals totals;
  wire::LinkEndpoint::Counters fence;
  fence.payload_bytes_sent = 10;
  fence.connections = 1;
  totals.Add(fence);
  fence.connections = 3;
  totals.Add(fence);
  fence.connections = 0;
  totals.Add(fence);
  EXPECT_EQ(totals.payload_bytes_sent, 30u);
  EXPECT_EQ(totals.connections, 4u);
  EXPECT_EQ(totals.reconnections, 2u);
}

}  // namespace
}  // namespace resbm::stage_server
