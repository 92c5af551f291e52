#include "coordinator/run/local_data.h"

#include "proto/data/dataset_hash.h"

namespace resbm::coordinator {

void AskForLocalData(RunSetup* setup) {
  const v1::Job& job = setup->job;
  if (!job.data().has_local()) return;
  v1::LocalData local;
  *local.mutable_data() = job.data();
  local.set_context(job.model().transformer().context());
  local.set_seed(job.seed());
  local.set_samples(job.batch().samples());
  local.set_micro_batches(job.batch().micro_batches());
  local.set_evaluation_micro_batch(job.run().evaluation_micro_batch());
  if (setup->train != nullptr) local.set_train_hash(data::HashOf(*setup->train));
  if (setup->test != nullptr) local.set_test_hash(data::HashOf(*setup->test));
  if (job.data().local().inputs()) {
    v1::LocalData* first = setup->plan.stages.front().mutable_local_data();
    *first = local;
    first->set_inputs(true);
  }
  if (job.data().local().targets()) {
    v1::LocalData* last = setup->plan.stages.back().mutable_local_data();
    const bool inputs = last->inputs();  // of a single stage
    *last = local;
    last->set_inputs(inputs);
    last->set_targets(true);
  }
}

}  // namespace resbm::coordinator
