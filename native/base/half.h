// The floating types narrower than 32 bits, as storage with conversions to and from float (round to nearest even).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace cresset {

inline float half_to_float(uint16_t h) {
  // Shift exponent and mantissa into place, then rescale by 2^112: normals and denormals alike. Inf and nan are mended
  // after; a nan becomes a quiet one, as processors make it.
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(rest) * 5.192296858534828e33f;
  const uint32_t quiet = rest > (0x7c00u << 13) ? 0x00400000u : 0u;
  const uint32_t special = std::bit_cast<uint32_t>(scaled) | 0x7f800000u | quiet;
  const uint32_t bits = rest >= (0x7c00u << 13) ? special : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  // Denormal results: adding 0.5 lets the hardware round at the right place.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t odd = (magnitude >> 13) & 1u;
  const uint32_t normal = (magnitude + 0xc8000fffu + odd) >> 13;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
  return static_cast<uint16_t>((magnitude >= 0x47800000u ? special : finite) | (sign >> 16));
}

inline float bfloat16_to_float(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

inline uint16_t float_to_bfloat16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

// Eight-bit floats: `exponent` and `mantissa` bits, a bias, and how infinities and nan are spelt.
template <int kExponent, int kMantissa, int kBias, bool kHasInf, bool kUnsignedZero>
struct Float8Format {
  static float decode(uint8_t v) {
    if (kUnsignedZero && v == 0x80) return std::nanf("");
    const int sign = v >> 7, exponent = (v >> kMantissa) & ((1 << kExponent) - 1),
              mantissa = v & ((1 << kMantissa) - 1);
    if (!kUnsignedZero && exponent == (1 << kExponent) - 1) {
      if (kHasInf) return mantissa ? std::nanf("") : sign ? -INFINITY : INFINITY;
      if (mantissa == (1 << kMantissa) - 1) return std::nanf("");
    }
    const float value = exponent
                            ? std::ldexp(1.0f + std::ldexp(static_cast<float>(mantissa), -kMantissa), exponent - kBias)
                            : std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa);
    return sign ? -value : value;
  }
  static uint8_t encode(float f) {
    const bool negative = std::signbit(f);
    const uint8_t sign = negative ? 0x80 : 0;
    const int top = (1 << kExponent) - 1;
    const uint8_t nan = kUnsignedZero ? 0x80 : static_cast<uint8_t>(sign | 0x7f);
    const int largest = kUnsignedZero ? 0x7f : kHasInf ? (top << kMantissa) - 1 : 0x7e;
    // Too large: infinity where there is one; e4m3fn stays at its largest value, as in PyTorch.
    const uint8_t overflow = kHasInf         ? static_cast<uint8_t>(sign | (top << kMantissa))
                             : kUnsignedZero ? nan
                                             : static_cast<uint8_t>(sign | largest);
    if (std::isnan(f)) return nan;
    if (std::isinf(f)) return overflow;
    float a = std::fabs(f);
    int e;
    std::frexp(a, &e);
    int exponent = e - 1 + kBias;
    if (exponent < 1) exponent = 1;
    // The value in units of the last place; nearbyint rounds to even.
    int units = static_cast<int>(std::nearbyint(std::ldexp(a, kMantissa - (exponent - kBias))));
    if (units == 0) return kUnsignedZero ? 0 : sign;
    if (units >= (2 << kMantissa)) units >>= 1, ++exponent;
    const int code = units < (1 << kMantissa) ? units : (exponent << kMantissa) + (units - (1 << kMantissa));
    if (code > largest) return overflow;
    return static_cast<uint8_t>(sign | code);
  }
};

// Only an exponent: the powers of two from 2^-127 to 2^127, without sign or zero. For scales.
struct Float8Exponent {
  static float decode(uint8_t v) { return v == 0xff ? std::nanf("") : std::ldexp(1.0f, v - 127); }
  static uint8_t encode(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const uint32_t exponent = (bits >> 23) & 0xff, mantissa = bits & 0x7fffff, half = 0x400000;
    const bool up = exponent < 0xff && (mantissa > half || (mantissa == half && exponent > 0));
    return static_cast<uint8_t>(exponent + up);
  }
};

struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float f) : bits(float_to_half(f)) {}
  explicit operator float() const { return half_to_float(bits); }
};
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float f) : bits(float_to_bfloat16(f)) {}
  explicit operator float() const { return bfloat16_to_float(bits); }
};
template <class Format>
struct Float8 {
  uint8_t bits;
  Float8() = default;
  explicit Float8(float f) : bits(Format::encode(f)) {}
  explicit operator float() const { return Format::decode(bits); }
};
using Float8e4m3fn = Float8<Float8Format<4, 3, 7, false, false>>;
using Float8e5m2 = Float8<Float8Format<5, 2, 15, true, false>>;
using Float8e4m3fnuz = Float8<Float8Format<4, 3, 8, false, true>>;
using Float8e5m2fnuz = Float8<Float8Format<5, 2, 16, false, true>>;
using Float8e8m0fnu = Float8<Float8Exponent>;

}  // namespace cresset
