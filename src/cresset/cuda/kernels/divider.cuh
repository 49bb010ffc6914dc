// Division by a number that is known before the launch: a product and a shift. The same struct as in
// native/cuda/divider.h.
#pragma once
#include "types.cuh"

namespace cresset {

struct Divider {
  uint32_t divisor, magic, shift, unused;
  // For n below 2^31.
  CRESSET_INLINE uint32_t quotient(uint32_t n) const { return (__umulhi(n, magic) + n) >> shift; }
};

// n / d; where Index is 32 bits wide for n below 2^31.
template <class Index>
CRESSET_INLINE Index divided(Index n, const Divider& d) {
  if constexpr (sizeof(Index) == 8)
    return n / d.divisor;
  else
    return d.quotient(n);
}

}  // namespace cresset
