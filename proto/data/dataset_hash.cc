#include "proto/data/dataset_hash.h"

#include <xxhash.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace resbm::data {
namespace {

void AppendNumber(std::int64_t number, std::string* to) {
  for (int i = 0; i < 8; ++i) to->push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i)));
}

std::size_t ProductOf(const std::vector<std::int64_t>& dims) {
  std::size_t product = 1;
  for (const std::int64_t dim : dims) product *= static_cast<std::size_t>(dim);
  return product;
}

}  // namespace

std::uint64_t HashOf(const Dataset& dataset) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::string head;
  AppendNumber(dataset.size(), &head);
  for (const std::int64_t dim : dataset.input_dims()) AppendNumber(dim, &head);
  for (const std::int64_t dim : dataset.target_dims()) AppendNumber(dim, &head);
  AppendNumber(dataset.classes(), &head);
  XXH3_64bits_update(state.get(), head.data(), head.size());
  const std::size_t samples = static_cast<std::size_t>(dataset.size());
  XXH3_64bits_update(state.get(), dataset.input(0), samples * ProductOf(dataset.input_dims()));
  std::string target(SizeOf(dataset.target_dtype()) * ProductOf(dataset.target_dims()), '\0');
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.WriteTarget(i, target.data());
    XXH3_64bits_update(state.get(), target.data(), target.size());
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace resbm::data
