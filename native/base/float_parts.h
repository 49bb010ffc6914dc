// A float as a mantissa and a power of two, from its bits.
//
// CUDA kernels include this file too: native/cuda/bits.cpp.
#pragma once
#ifndef CRESSET_KERNEL
#include <cstdint>
#ifndef CRESSET_DEVICE
#define CRESSET_DEVICE
#endif
#endif

namespace cresset {

// x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1; zeros, infinities and nan are their own mantissa.
template <class Real>
struct FloatParts {
  Real mantissa;
  int32_t exponent;
};

template <class Real, class Bits, int kDigits, int kExponentBits>
CRESSET_DEVICE inline FloatParts<Real> split_bits(Real x) {
  constexpr Bits kMask = (Bits(1) << kExponentBits) - 1;
  constexpr int32_t kHalf = (1 << (kExponentBits - 1)) - 2;  // the stored exponent of 1/2
  Bits bits = __builtin_bit_cast(Bits, x);
  if ((bits >> kDigits & kMask) == kMask || Bits(bits << 1) == 0) return {x, 0};
  int32_t lifted = 0;
  if ((bits >> kDigits & kMask) == 0) {  // a subnormal number is first made a normal one
    bits = __builtin_bit_cast(Bits, x * static_cast<Real>(Bits(1) << kDigits));
    lifted = kDigits;
  }
  const int32_t exponent = static_cast<int32_t>(bits >> kDigits & kMask) - kHalf - lifted;
  bits = (bits & ~(kMask << kDigits)) | Bits(kHalf) << kDigits;
  return {__builtin_bit_cast(Real, bits), exponent};
}
CRESSET_DEVICE inline FloatParts<float> split(float x) { return split_bits<float, uint32_t, 23, 8>(x); }
CRESSET_DEVICE inline FloatParts<double> split(double x) { return split_bits<double, uint64_t, 52, 11>(x); }

}  // namespace cresset
