// CUDA as a Backend: memory and copies, and where its work is started. The driver is not touched before the first use.
#pragma once
#include "dispatch/call.h"
#include "ops/update.h"

namespace cresset::cuda {

// A contiguous tensor with the same elements, on the same device.
Tensor contiguous_on_device(const Tensor& t);

void run_updates(const UpdateLaunch& work);  // update.cpp

}  // namespace cresset::cuda
