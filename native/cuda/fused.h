// Groups of late values as one kernel each.
#pragma once

namespace cresset::cuda {

// Kernels of groups: asked for, in use, and groups that were run by eager's kernels.
struct FusedStatistics {
  long long asked = 0, launched = 0, unfused = 0, failed = 0;
};
FusedStatistics fused_statistics();
// Waits until the kernels that were asked for are compiled.
void finish_fused_kernels();

}  // namespace cresset::cuda
