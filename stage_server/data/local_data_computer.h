// Loads a stage's copy of the data with the stage: where it may take its time.
#ifndef RESBM_STAGE_SERVER_DATA_LOCAL_DATA_COMPUTER_H_
#define RESBM_STAGE_SERVER_DATA_LOCAL_DATA_COMPUTER_H_

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
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
        if (const absl::Status status = LoadData(load->spec.local_data()); !status.ok()) {
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
  // As of any work: what is thrown must not end the process.
  absl::Status LoadData(const v1::LocalData& spec) {
    try {
      return data_->Load(spec);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("the copy of the data does not fit into this machine's memory");
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    }
  }

  const std::unique_ptr<Computer> inner_;
  LocalData* const data_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_DATA_LOCAL_DATA_COMPUTER_H_
