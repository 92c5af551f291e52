// Counts durations by their size, as Prometheus wants them.
#ifndef RESBM_PROTO_METRICS_HISTOGRAM_H_
#define RESBM_PROTO_METRICS_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include <prometheus/client_metric.h>

namespace resbm::metrics {

// Of seconds, from a step of a toy to one over a slow link. Not synchronised.
class Histogram {
 public:
  void Observe(double seconds) {
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += seconds;
  }

  prometheus::ClientMetric::Histogram Read() const {
    prometheus::ClientMetric::Histogram result;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      result.sample_count += counts_[i];
      // Of all that is left: the serializer calls it +Inf.
      if (i < kBounds.size()) result.bucket.push_back({result.sample_count, kBounds[i]});
    }
    result.sample_sum = sum_;
    return result;
  }

 private:
  static constexpr std::array<double, 15> kBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                     2.5,   5,    10,    25,   60,  150,  600};

  std::array<std::uint64_t, kBounds.size() + 1> counts_ = {};
  double sum_ = 0;
};

}  // namespace resbm::metrics

#endif  // RESBM_PROTO_METRICS_HISTOGRAM_H_
