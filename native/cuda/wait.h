// torch.cuda.set_sync_debug_mode: what happens when an operation makes the host wait for a device.
#pragma once

namespace cresset::cuda {

enum class WaitMode : int { silent, warn, raise };
extern WaitMode wait_mode;

[[gnu::cold]] void report_wait();
// Called where the host is about to wait, by whoever holds the interpreter's lock.
inline void note_wait() {
  if (wait_mode != WaitMode::silent) [[unlikely]]
    report_wait();
}

}  // namespace cresset::cuda
