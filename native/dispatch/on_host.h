// Operators that a device has no kernel for are computed on the CPU: their arguments travel there and the results back.
#pragma once
#include "dispatch/call.h"

namespace cresset {

// Warns once for each operator. What the kernel writes to (in-place forms, out=, running statistics) is written back.
void execute_on_host(Call& c, Device device);
// Says so once for each name, or refuses (see refuses_host).
void note_host(const std::string& name, Device device);
// The operators that were computed so, in order of their first call.
std::vector<std::string> operators_on_host();
extern bool refuses_host;  // raise NotImplementedError instead, for tests and for those who look for slow places

}  // namespace cresset
