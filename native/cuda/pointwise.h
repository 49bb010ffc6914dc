// Pointwise kernels: the text of a formula (printed.h) inside cresset/cuda/kernels/pointwise.cuh.
#pragma once
#include "dispatch/call.h"
#include "tensor/blocks.h"

namespace cresset::cuda {

void launch_formula(const PointwiseLaunch& l);
void launch_dense_formula(const DenseLaunch& l);
// Element by element, converted; both on the device.
void launch_copy(const Operand& to, const Operand& from, DimsView sizes, Device device);
void launch_fill(const Operand& to, const void* element, DimsView sizes, Device device);

}  // namespace cresset::cuda
