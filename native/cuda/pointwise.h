// Pointwise kernels: the text of a formula (cresset/cuda/printing.py) inside cresset/cuda/kernels/pointwise.cuh.
#pragma once
#include <string>

#include "dispatch/call.h"
#include "tensor/blocks.h"

namespace cresset::cuda {

// The text of a formula: `which` is -1, or the input whose gradient it is. The bindings plug in the Python function that prints it.
extern std::string (*formula_text)(const std::string& operator_name, int which, const char* compute);

// The step of an optimizer, likewise.
extern std::string (*update_text)(const char* name, int flags, const char* compute);

void launch_formula(const PointwiseLaunch& l);
void launch_dense_formula(const DenseLaunch& l);
// Element by element, converted; both on the device.
void launch_copy(const Operand& to, const Operand& from, DimsView sizes, Device device);
void launch_fill(const Operand& to, const void* element, DimsView sizes, Device device);

}  // namespace cresset::cuda
