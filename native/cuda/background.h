// Compiling while the program goes on: a few threads of our own that call NVRTC and touch no device.
#pragma once
#include <functional>

namespace cresset::cuda {

// In the order in which it was asked for; the job must not throw. False: there is no thread for it.
bool in_background(std::function<void()> job);
// Waits until all that was asked for is done.
void finish_background();

}  // namespace cresset::cuda
