// A named range on the timeline of NVIDIA's tools (NVTX, as Nsight Systems shows it), from its making to its end, on
// the thread that makes it. Costs next to nothing when no tool listens.
#ifndef RESBM_MODEL_PROFILER_RANGE_H_
#define RESBM_MODEL_PROFILER_RANGE_H_

namespace resbm::model {

class ProfilerRange {
 public:
  // LibTorch was built with CUDA, else there are no ranges.
  static bool Available();

  // Only where Available. The name is copied. Ranges of a thread end in the reverse order of their beginning.
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_PROFILER_RANGE_H_
