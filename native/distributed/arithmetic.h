// Sums and the like of elements that came from different processes.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace cresset::mpi {

enum class Reduction : uint8_t { sum, product, minimum, maximum, bits_and, bits_or, bits_xor };

// Whether `combine` can do this. The rest (complex numbers, bits of bools) is left to MPI.
bool combines(Dtype dtype, Reduction reduction);
// Elements that are first multiplied by a factor, if they are floating.
struct Operand {
  const void* at;
  double factor = 1;
};
// to[i] = x[i] and y[i] reduced; `to` may be one of them.
void combine(Dtype dtype, Reduction reduction, const Operand& x, const Operand& y, void* to, int64_t count);
// to[i] = from[i] * factor, of floating and complex types; other types are copied.
void scale(Dtype dtype, const void* from, void* to, int64_t count, double factor);

}  // namespace cresset::mpi
