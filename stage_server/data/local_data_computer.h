// Loads a stage's copy of the data with the stage: where it may take its time.
#ifndef RESBM_STAGE_SERVER_DATA_LOCAL_DATA_COMPUTER_H_
#define RESBM_STAGE_SERVER_DATA_LOCAL_DATA_COMPUTER_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "proto/base/status.h"
#include "stage_server/core/work.h"
#include "stage_server/data/local_data.h"

namespace resbm::stage_server {

// Everything else is the inner computer's.
class LocalDataComputer : public Computer {
 public:
  // `data` outlives it.
  LocalDataComputer(std::unique_ptr<Computer> inner, LocalData* data) : inner_(std::move(inner)), data_(data) {}

  WorkResult Run(const Work& work) override {
    if (std::holds_alternative<Unload>(work)) data_->Clear();
    if (const Load* load = std::get_if<Load>(&work)) {
      data_->Clear();
      if (load->spec.has_local_data()) {
        if (const absl::Status status = data_->Load(load->spec.local_data()); !status.ok()) {
          // What was loaded before is gone, as after any failed Load.
          inner_->Run(Unload{});
          WorkResult result;
          result.status = Annotate(status, "local data");
          return result;
        }
      }
    }
    return inner_->Run(work);
  }

 private:
  const std::unique_ptr<Computer> inner_;
  LocalData* const data_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_DATA_LOCAL_DATA_COMPUTER_H_
