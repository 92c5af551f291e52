#include "coordinator/run/init_from.h"

#include <fstream>
#include <sstream>
#include <utility>

#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/run/weights.h"
#include "proto/base/safetensors.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (!in || !(bytes << in.rdbuf())) {
    return absl::NotFoundError(absl::StrFormat("init_from.path: cannot read %s, or it is empty", path));
  }
  return std::move(bytes).str();
}

std::string Count(std::size_t n, const char* what) { return absl::StrCat(n, " ", what, n == 1 ? "" : "s"); }

}  // namespace

absl::StatusOr<InitialWeights> InitialWeights::Read(const v1::InitFrom& init_from,
                                                    absl::Span<const v1::StageSpec> stages) {
  InitialWeights weights;
  weights.path_ = init_from.path();
  weights.strict_ = init_from.strict();
  RESBM_ASSIGN_OR_RETURN(const std::string file, ReadFile(init_from.path()));
  weights.hash_ = XXH3_64bits(file.data(), file.size());
  std::vector<std::string> left_out;
  absl::StatusOr<std::vector<std::string>> shards =
      SplitWeights(file, stages, init_from.strict() ? nullptr : &left_out);
  if (!shards.ok()) return Annotate(shards.status(), absl::StrCat("init_from: ", init_from.path()));
  weights.shards_ = *std::move(shards);
  weights.left_out_ = left_out.size();
  for (const std::string& shard : weights.shards_) {
    RESBM_ASSIGN_OR_RETURN(const SafetensorsFile part, ParseSafetensors(shard));
    for (const SafetensorsEntry& tensor : part.tensors) ++weights.sent_[tensor.name];
  }
  return weights;
}

void InitialWeights::AddTo(RunPlan* plan) const {
  plan->origin += absl::StrFormat(" from %016x", hash_);
  for (const std::string& shard : shards_) {
    v1::Resume::Restore restore;
    restore.set_bytes(shard.size());
    restore.set_hash(XXH3_64bits(shard.data(), shard.size()));
    if (!strict_) restore.set_seed(plan->seed);
    plan->restore.push_back(restore);
  }
}

absl::StatusOr<std::string> InitialWeights::Check(absl::Span<const v1::Ready> ready) const {
  // A boundary's tensors go to both its stages: only what neither uses is no parameter's.
  std::map<std::string, int> unused;
  std::size_t seeded = 0;
  std::string first_seeded;
  for (const v1::Ready& stage : ready) {
    for (const std::string& name : stage.unused_tensors()) ++unused[name];
    if (seeded == 0 && stage.seeded_parameters_size() > 0) first_seeded = stage.seeded_parameters(0);
    seeded += static_cast<std::size_t>(stage.seeded_parameters_size());
  }
  std::size_t loaded = 0;
  for (const auto& [name, stages] : sent_) {
    const auto found = unused.find(name);
    if (found == unused.end() || found->second < stages) {
      ++loaded;
    } else if (strict_) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "init_from: %s holds \"%s\", which is no parameter of the job's model; set init_from.strict: false to leave "
          "such tensors out",
          path_, name));
    }
  }
  const std::size_t left_out = sent_.size() - loaded + left_out_;
  if (loaded == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "init_from: none of the %s of %s is a parameter of the job's model; is it of another model?",
        Count(left_out, "tensor"), path_));
  }
  std::string line = absl::StrFormat("initial weights: %s from %s", Count(loaded, "tensor"), path_);
  if (seeded > 0) {
    absl::StrAppend(&line, "; ", Count(seeded, "parameter"), " from the seed (", first_seeded, seeded > 1 ? ", ...)" : ")");
  }
  if (left_out > 0) absl::StrAppend(&line, "; ", Count(left_out, "tensor"), " of the file left out");
  return line;
}

}  // namespace resbm::coordinator
