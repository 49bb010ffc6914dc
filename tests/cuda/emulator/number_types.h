// The types of matrix elements in cuBLASLt: cudaDataType numbers, and halves as bits that convert to and from float.
#pragma once
#include <complex>
#include <cstdint>
#include <cstring>

namespace emulator {

enum DataType : int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14,
  CUDA_R_8F_E4M3 = 28,
  CUDA_R_8F_E5M2 = 29,
};

inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) {  // to the nearest, ties to even
    const uint32_t x = bits_of(value), sign = x >> 16 & 0x8000, magnitude = x & 0x7fffffff;
    if (magnitude > 0x7f800000)
      bits = uint16_t(sign | 0x7e00);
    else if (magnitude >= 0x477ff000)
      bits = uint16_t(sign | 0x7c00);
    else if (magnitude < 0x38800000)  // below 2^-14 halves are multiples of 2^-24, as are floats around 1/2
      bits = uint16_t(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
    else
      bits = uint16_t(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
  }
  explicit operator float() const {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    const float value = magnitude < 0x400 ? float(magnitude) * 0x1p-24f : float_of((magnitude << 13) + 0x38000000);
    return sign ? -value : value;
  }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t x = bits_of(value);
    bits = value != value ? 0x7fc0 : uint16_t((x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return float_of(uint32_t(bits) << 16); }
};

// Floats of 8 bits, which are read only.
struct Float8E5M2 {  // the upper half of a Half
  uint8_t bits = 0;
  explicit operator float() const {
    Half half;
    half.bits = uint16_t(bits << 8);
    return float(half);
  }
};
struct Float8E4M3 {
  uint8_t bits = 0;
  explicit operator float() const {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if ((bits & 0x7f) == 0x7f) return float_of(0x7fc00000);
    const float size =
        exponent ? float_of(uint32_t(exponent + 120) << 23) * (1 + float(mantissa) / 8) : float(mantissa) * 0x1p-9f;
    return bits & 0x80 ? -size : size;
  }
};

inline size_t bytes_of(int type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2: return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F:
    case CUDA_R_32I: return 4;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: return 0;
  }
}

// Calls `action` with an element of the type, which says what it is.
template <class F>
auto with_type(int type, F action) {
  switch (type) {
    case CUDA_R_64F: return action(double{});
    case CUDA_R_16F: return action(Half{});
    case CUDA_R_16BF: return action(BFloat16{});
    case CUDA_R_8I: return action(int8_t{});
    case CUDA_R_8F_E4M3: return action(Float8E4M3{});
    case CUDA_R_8F_E5M2: return action(Float8E5M2{});
    case CUDA_R_32I: return action(int32_t{});
    case CUDA_C_32F: return action(std::complex<float>{});
    case CUDA_C_64F: return action(std::complex<double>{});
    default: return action(float{});
  }
}

}  // namespace emulator
