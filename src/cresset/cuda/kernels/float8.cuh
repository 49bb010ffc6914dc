// Floats of 8 bits: storage, computed with as float. The codes are those of native/base/half.h, bit for bit.
#pragma once

namespace cresset {

// 2^n, -126 <= n <= 127
CRESSET_INLINE float power_of_two(int n) { return __builtin_bit_cast(float, static_cast<uint32_t>(n + 127) << 23); }

// `exponent` and `mantissa` bits, a bias, and how infinities and nan are spelt.
template <int kExponent, int kMantissa, int kBias, bool kHasInf, bool kUnsignedZero>
struct Float8Format {
  static constexpr int kTop = (1 << kExponent) - 1, kOne = 1 << kMantissa;

  CRESSET_DEVICE static float decode(uint8_t code) {
    const int exponent = code >> kMantissa & kTop, mantissa = code & (kOne - 1);
    if (kUnsignedZero && code == 0x80) return NAN;
    if (!kUnsignedZero && exponent == kTop) {
      if (kHasInf) return mantissa ? NAN : code >> 7 ? -INFINITY : INFINITY;
      if (mantissa == kOne - 1) return NAN;
    }
    const int units = exponent ? mantissa + kOne : mantissa;
    const float size = static_cast<float>(units) * power_of_two((exponent ? exponent : 1) - kBias - kMantissa);
    return code >> 7 ? -size : size;
  }
  CRESSET_DEVICE static uint8_t encode(float f) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, f), sign = bits >> 31 << 7;
    const float size = math::abs(f);
    const int largest = kUnsignedZero ? 0x7f : kHasInf ? (kTop << kMantissa) - 1 : 0x7e;
    // Too large: infinity where there is one, nan where zero has no sign; the other stays at its largest value.
    const uint32_t overflow = kHasInf ? sign | kTop << kMantissa : kUnsignedZero ? 0x80 : sign | largest;
    if (f != f) return static_cast<uint8_t>(kUnsignedZero ? 0x80 : sign | 0x7f);
    if (size == INFINITY) return static_cast<uint8_t>(overflow);
    int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + kBias;
    if (exponent < 1) exponent = 1;
    // The value in units of the last place, rounded to even.
    int units = static_cast<int>(::rintf(size * power_of_two(kMantissa - (exponent - kBias))));
    if (units == 0) return static_cast<uint8_t>(kUnsignedZero ? 0 : sign);
    if (units >= 2 * kOne) units >>= 1, ++exponent;
    const int code = units < kOne ? units : (exponent << kMantissa) + (units - kOne);
    return static_cast<uint8_t>(code > largest ? overflow : sign | code);
  }
};

// Only an exponent: the powers of two from 2^-127 to 2^127, without sign or zero.
struct Float8Exponent {
  CRESSET_DEVICE static float decode(uint8_t code) {
    if (code == 0xff) return NAN;
    return code ? power_of_two(code - 127) : __builtin_bit_cast(float, 0x400000u);
  }
  CRESSET_DEVICE static uint8_t encode(float f) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, f), exponent = bits >> 23 & 0xff, rest = bits & 0x7fffff;
    const bool up = exponent < 0xff && (rest > 0x400000 || (rest == 0x400000 && exponent > 0));
    return static_cast<uint8_t>(exponent + up);
  }
};

template <class Format>
struct Float8 {
  uint8_t bits;
  Float8() = default;
  CRESSET_DEVICE explicit Float8(float f) : bits(Format::encode(f)) {}
  CRESSET_DEVICE explicit operator float() const { return Format::decode(bits); }
};

}  // namespace cresset
