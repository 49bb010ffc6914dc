// What the CPU does with memory: its half of a Backend (ops/cpu.cpp) on this floor.
#pragma once
#include "tensor/tensor.h"

namespace cresset {

void copy_on_cpu(const Tensor& to, const Tensor& from);
void fill_on_cpu(const Tensor& t, const Scalar& value);
Scalar item_on_cpu(const Tensor& t);
void transpose_on_cpu(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width);

}  // namespace cresset
