#include "cuda/wait.h"

#include "dispatch/call.h"

namespace cresset::cuda {

WaitMode wait_mode = WaitMode::silent;

void report_wait() {
  static constexpr const char* message = "called a synchronizing CUDA operation: the host waits here for the device";
  check(wait_mode != WaitMode::raise, message);
  if (warn) warn(message);
}

}  // namespace cresset::cuda
