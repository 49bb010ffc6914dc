// Contiguous conversion between any two dtypes.
#pragma once
#include "base/dtype.h"

namespace cresset {

using Convert = void (*)(const char* from, char* to, int64_t n);
Convert converter(Dtype from, Dtype to);

// One element, with PyTorch's rules: floats truncate towards zero, complex drops its imaginary part, bool is "not
// zero".
template <class To, class From>
inline To convert_element(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16> || requires { From::bits; }) {
    return convert_element<To>(static_cast<float>(v));
  } else if constexpr (std::is_same_v<From, complex64> || std::is_same_v<From, complex128>) {
    if constexpr (std::is_same_v<To, complex64> || std::is_same_v<To, complex128>) {
      using R = typename To::value_type;
      return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return v.real() != 0 || v.imag() != 0;
    } else {
      return convert_element<To>(v.real());
    }
  } else if constexpr (std::is_same_v<To, complex64> || std::is_same_v<To, complex128>) {
    return To(static_cast<typename To::value_type>(v), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      return v < From(9223372036854775808.0) ? static_cast<uint64_t>(static_cast<int64_t>(v))
                                             : static_cast<uint64_t>(v);
    } else if constexpr (sizeof(To) >= 4 && std::is_signed_v<To>) {
      return static_cast<To>(v);
    } else if constexpr (sizeof(To) == 1 && std::is_same_v<From, float>) {
      // The same byte as by way of 64 bits, and it vectorizes: a float beyond the 32 bits is a multiple of 256.
      return static_cast<To>(static_cast<int32_t>(v));
    } else {
      return static_cast<To>(static_cast<int64_t>(v));
    }
  } else if constexpr (std::is_arithmetic_v<To>) {
    return static_cast<To>(v);
  } else {
    return To(static_cast<float>(v));
  }
}

}  // namespace cresset
