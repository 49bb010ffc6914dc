// CUDA as a Backend: memory and copies. `install_cuda` plugs it in where there is a driver with a device.
#pragma once
#include "dispatch/call.h"

namespace cresset::cuda {

// Registers the kernels; the driver is not touched before the first use.
void install();

// A contiguous tensor with the same elements, on the same device.
Tensor contiguous_on_device(const Tensor& t);

}  // namespace cresset::cuda
