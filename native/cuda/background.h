// Compiling while the program goes on: a few threads of our own that call NVRTC and touch no device.
#pragma once
#include <functional>

namespace cresset::cuda {

// What a launch waits for goes before what is only faster; else in the order in which it was asked for. The job must
// not throw. False: there is no thread for it.
enum class Urgency : bool { whenever, waited_for };
bool in_background(std::function<void()> job, Urgency urgency);
// Waits until all that was asked for is done.
void finish_background();

}  // namespace cresset::cuda
