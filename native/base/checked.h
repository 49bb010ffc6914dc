// Arithmetic with sizes that users give. What does not fit in 64 bits is an error, never a smaller number.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace cresset {

inline int64_t checked_sum(const char* who, int64_t a, int64_t b) {
  int64_t sum;
  check(!__builtin_add_overflow(a, b, &sum), who, ": integer overflow: the size ", a, " + ", b,
        " does not fit in 64 bits");
  return sum;
}
inline int64_t checked_product(const char* who, int64_t a, int64_t b) {
  int64_t product;
  check(!__builtin_mul_overflow(a, b, &product), who, ": integer overflow: the size ", a, " * ", b,
        " does not fit in 64 bits");
  return product;
}
// For strides along dimensions that nobody walks: those of an empty tensor, or of size one, may be any number.
inline int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace cresset
