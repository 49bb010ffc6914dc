// Copies on one device between layouts: with the widest words that both sides allow, and by tiles where they have
// different innermost dimensions.
#pragma once
#include "tensor/blocks.h"

namespace cresset::cuda {

// to = from, element by element. Where the dtypes differ they are converted.
void copy_strided(const Operand& to, const Operand& from, DimsView sizes, Device device);

}  // namespace cresset::cuda
