// The learning rate over a run. Stages hold no schedule state: the rate of each step travels in Commit.
#ifndef RESBM_COORDINATOR_PLAN_LEARNING_RATE_H_
#define RESBM_COORDINATOR_PLAN_LEARNING_RATE_H_

#include <cstdint>

#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// What the optimizer's learning_rate is multiplied by in `step`. Steps count from 1 to total_steps; one
// outside is taken as the nearest inside.
//   warm-up    step / warmup_steps in the first warmup_steps steps, then the schedule over the rest
//   constant   1 (also when no schedule is set)
//   cosine     as torch.optim.lr_scheduler.CosineAnnealingLR over the rest: its k-th step (from 0) of R has
//              final + (1 - final) (1 + cos(pi k / R)) / 2
//   one-cycle  as torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps, pct_start=rise,
//              div_factor=start_div, final_div_factor=final_div), anneal_strategy "cos",
//              three_phase False; takes no warm-up. Where PyTorch divides by zero (rise * total_steps
//              equal to 1) the rate is 1.
double LearningRateFactor(const v1::LearningRateSchedule& schedule, std::int64_t step, std::int64_t total_steps);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_LEARNING_RATE_H_
