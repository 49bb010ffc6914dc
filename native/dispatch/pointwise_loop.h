// What the generated loops have in common: the level they are compiled for, and how a scalar attribute is read.
//
// The generated files are compiled once per instruction-set level with -DCRESSET_LEVEL=baseline, avx2 or avx512.
#pragma once
#include <type_traits>

#include "dispatch/pointwise.h"

#define CRESSET_CONCATENATE_NOW(a, b) a##b
#define CRESSET_CONCATENATE(a, b) CRESSET_CONCATENATE_NOW(a, b)
#define CRESSET_LEVEL_NAME(name) CRESSET_CONCATENATE(name, CRESSET_LEVEL)

// 1 when CRESSET_LEVEL is the word baseline: CRESSET_IS_baseline is defined, the names for the other levels are not and
// count as 0.
#define CRESSET_IS_baseline 1
#define CRESSET_LEVEL_IS_BASELINE CRESSET_LEVEL_NAME(CRESSET_IS_)

namespace cresset {

namespace pointwise {

using LoopFunction = void(char* const* pointers, const ScalarAttribute* scalars, int64_t count);

// The attribute in the type that the loop asks for: a number of any floating-point, integer, bool or complex type.
template <typename T>
static inline __attribute__((always_inline)) T attribute(const ScalarAttribute& s) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(s.real);
  } else if constexpr (std::is_same_v<T, bool>) {
    return s.integer != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(s.integer);
  } else {
    using Part = decltype(T::re);
    return T(static_cast<Part>(s.real), static_cast<Part>(s.imag));
  }
}

}  // namespace pointwise
}  // namespace cresset
