// A Python number as C++ sees it.
#pragma once
#include <complex>
#include <cstdint>

#include "base/dtype.h"

namespace cresset {

struct Scalar {
  enum class Kind : uint8_t { boolean, integer, real, complex };
  Kind kind = Kind::integer;
  int64_t integer = 0;
  double real = 0, imag = 0;
  bool beyond_int64 = false;  // an integer in (2^63, 2^64): `integer` holds its bits

  Scalar() = default;
  Scalar(bool v) : kind(Kind::boolean), integer(v), real(v) {}
  Scalar(int64_t v) : kind(Kind::integer), integer(v), real(static_cast<double>(v)) {}
  Scalar(int v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(double v) : kind(Kind::real), integer(v >= -9.2e18 && v <= 9.2e18 ? static_cast<int64_t>(v) : 0), real(v) {}
  Scalar(std::complex<double> v)
      : kind(Kind::complex), integer(static_cast<int64_t>(v.real())), real(v.real()), imag(v.imag()) {}

  bool is_integral() const { return kind == Kind::integer || kind == Kind::boolean; }
  // The dtype a Python number has on its own.
  Dtype dtype() const {
    switch (kind) {
      case Kind::boolean: return Dtype::b8;
      case Kind::integer: return Dtype::i64;
      case Kind::real: return default_dtype();
      default: return to_complex(default_dtype());
    }
  }
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      using R = typename T::value_type;
      return T(static_cast<R>(real), static_cast<R>(imag));
    } else if constexpr (std::is_same_v<T, ComplexHalf>) {
      return ComplexHalf{Half(static_cast<float>(real)), Half(static_cast<float>(imag))};
    } else if constexpr (std::is_same_v<T, bool>) {
      return kind == Kind::real || kind == Kind::complex ? real != 0 || imag != 0 : integer != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(integer);
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      return static_cast<T>(real);
    } else {
      return T(static_cast<float>(real));
    }
  }
};

// Raises when a tensor of this dtype cannot hold the number: 300 in uint8, 1e300 in float32, 1j in a real type, nan in
// an integer type.
void check_fits(const Scalar& value, Dtype dtype);

}  // namespace cresset
