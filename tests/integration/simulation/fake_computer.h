// A Computer without LibTorch whose "weights" are a hash of everything that happened to them: a tensor
// lost, doubled, changed or out of order gives other weights. Checks the order of its work itself.
#ifndef RESBM_TESTS_INTEGRATION_SIMULATION_FAKE_COMPUTER_H_
#define RESBM_TESTS_INTEGRATION_SIMULATION_FAKE_COMPUTER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proto/resbm/v1/control.pb.h"
#include "stage_server/core/work.h"

namespace resbm::simulation {

class FakeComputer : public stage_server::Computer {
 public:
  stage_server::WorkResult Run(const stage_server::Work& work) override;

  std::uint64_t weights() const { return weights_; }
  int live_graphs() const { return static_cast<int>(graphs_.size()); }
  int most_live_graphs() const { return most_live_graphs_; }
  int applied() const { return applied_; }
  // What was done against the rules; empty when all is well.
  const std::vector<std::string>& violations() const { return violations_; }
  // The next backward reports a non-finite value.
  void PoisonNextBackward() { poison_ = true; }

 private:
  // All that crosses the boundary one way, made of a hash.
  EncodedTensors Make(const v1::BoundarySpec& boundary, bool gradients, std::int64_t samples, std::uint64_t hash) const;
  static EncodedTensor MakeOne(const v1::WireTensor& spec, WireCodec codec, WireDtype dtype, std::int64_t samples,
                               std::uint64_t hash);
  void Forward(const stage_server::Forward& work, stage_server::WorkResult* result);
  void Backward(const stage_server::Backward& work, stage_server::WorkResult* result);

  v1::StageSpec spec_;
  std::uint64_t weights_ = 0;
  std::uint64_t gradient_ = 0;
  struct Graph {
    std::uint32_t micro_batch;
    std::int64_t samples;
    std::uint64_t hash;
  };
  std::vector<Graph> graphs_;
  int most_live_graphs_ = 0;
  int applied_ = 0;
  int next_forward_ = 0;
  int next_backward_ = 0;
  bool poison_ = false;
  std::vector<std::string> violations_;
};

}  // namespace resbm::simulation

#endif  // RESBM_TESTS_INTEGRATION_SIMULATION_FAKE_COMPUTER_H_
