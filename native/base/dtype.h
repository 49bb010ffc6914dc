// Element types, their properties and promotion.
#pragma once
#include <complex>
#include <cstdint>

#include "base/error.h"
#include "base/half.h"

namespace cresset {

// The order and the numbers are PyTorch's, where it has them.
enum class Dtype : uint8_t {
  u8,
  i8,
  i16,
  i32,
  i64,
  f16,
  f32,
  f64,
  c32,
  c64,
  c128,
  b8,
  bf16,
  f8e5m2,
  f8e4m3fn,
  f8e5m2fnuz,
  f8e4m3fnuz,
  u16,
  u32,
  u64,
  f8e8m0fnu,
  // Containers: their bytes are kept, moved and seen as other dtypes, and no operator computes with them.
  f4e2m1fn_x2,
  u1,
  u2,
  u3,
  u4,
  u5,
  u6,
  u7,
  i1,
  i2,
  i3,
  i4,
  i5,
  i6,
  i7,
  bits1x8,
  bits2x4,
  bits4x2,
  bits8,
  bits16,
  count,
};
inline constexpr int kDtypes = static_cast<int>(Dtype::count);

struct DtypeFacts {
  const char* name;
  const char* alias;   // PyTorch's second name, or null
  const char* legacy;  // the X of torch.XTensor
  uint8_t size;
  bool floating, complex, integral, is_signed;
};
extern const DtypeFacts kDtypeFacts[kDtypes];

inline const DtypeFacts& facts(Dtype d) { return kDtypeFacts[static_cast<int>(d)]; }
inline int64_t size_of(Dtype d) { return facts(d).size; }
inline bool is_floating(Dtype d) { return facts(d).floating; }
inline bool is_complex(Dtype d) { return facts(d).complex; }
inline bool is_integral(Dtype d) { return facts(d).integral; }  // bool is not integral here
inline bool is_container(Dtype d) { return d >= Dtype::f4e2m1fn_x2; }
inline bool is_differentiable(Dtype d) { return is_floating(d) || is_complex(d); }
inline const char* name_of(Dtype d) { return facts(d).name; }
inline std::ostream& operator<<(std::ostream& out, Dtype d) { return out << name_of(d); }

Dtype promote(Dtype a, Dtype b);
bool can_cast(Dtype from, Dtype to);
Dtype to_real(Dtype d);     // c64 -> f32
Dtype to_complex(Dtype d);  // f32 -> c64
Dtype default_dtype();
void set_default_dtype(Dtype d);

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;
struct ComplexHalf {
  Half real, imag;
};

template <class T>
struct DtypeOf;
#define CRESSET_FOR_EACH_INTEGER(X) \
  X(u8, uint8_t)                    \
  X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define CRESSET_FOR_EACH_HALF(X) X(f16, Half) X(bf16, BFloat16)
#define CRESSET_FOR_EACH_FLOAT8(X) \
  X(f8e5m2, Float8e5m2)            \
  X(f8e4m3fn, Float8e4m3fn) X(f8e5m2fnuz, Float8e5m2fnuz) X(f8e4m3fnuz, Float8e4m3fnuz) X(f8e8m0fnu, Float8e8m0fnu)
#define CRESSET_FOR_EACH_DTYPE(X) \
  CRESSET_FOR_EACH_INTEGER(X)     \
  CRESSET_FOR_EACH_HALF(X)        \
  CRESSET_FOR_EACH_FLOAT8(X)      \
  X(f32, float) X(f64, double) X(b8, bool) X(c64, complex64) X(c128, complex128) X(c32, ComplexHalf)
#define CRESSET_DTYPE_OF(tag, type)            \
  template <>                                  \
  struct DtypeOf<type> {                       \
    static constexpr Dtype value = Dtype::tag; \
  };
CRESSET_FOR_EACH_DTYPE(CRESSET_DTYPE_OF)
#undef CRESSET_DTYPE_OF
template <class T>
inline constexpr Dtype dtype_of = DtypeOf<T>::value;

// What a kernel accumulates in: float for half precision, itself otherwise.
template <class T>
struct Opmath {
  using type = T;
};
template <>
struct Opmath<Half> {
  using type = float;
};
template <>
struct Opmath<BFloat16> {
  using type = float;
};
template <class T>
using opmath = typename Opmath<T>::type;

// visit_xxx(dtype, who, []<class T>() { ... }): calls the lambda with the C++ type behind the dtype.
#define CRESSET_CASE(tag, type) \
  case Dtype::tag: return f.template operator()<type>();

template <class F>
decltype(auto) visit_all(Dtype d, const char* who, F&& f) {
  switch (d) {
    CRESSET_FOR_EACH_INTEGER(CRESSET_CASE)
    CRESSET_FOR_EACH_HALF(CRESSET_CASE)
    CRESSET_CASE(f32, float)
    CRESSET_CASE(f64, double)
    CRESSET_CASE(b8, bool)
    CRESSET_CASE(c64, complex64)
    CRESSET_CASE(c128, complex128)
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", name_of(d), "'");
  }
}
// Everything that is ordered: integers, floats, bool.
template <class F>
decltype(auto) visit_real(Dtype d, const char* who, F&& f) {
  switch (d) {
    CRESSET_FOR_EACH_INTEGER(CRESSET_CASE)
    CRESSET_FOR_EACH_HALF(CRESSET_CASE)
    CRESSET_CASE(f32, float)
    CRESSET_CASE(f64, double)
    CRESSET_CASE(b8, bool)
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", name_of(d), "'");
  }
}
template <class F>
decltype(auto) visit_floating(Dtype d, const char* who, F&& f) {
  switch (d) {
    CRESSET_FOR_EACH_HALF(CRESSET_CASE)
    CRESSET_CASE(f32, float)
    CRESSET_CASE(f64, double)
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", name_of(d), "'");
  }
}
template <class F>
decltype(auto) visit_floating_or_complex(Dtype d, const char* who, F&& f) {
  switch (d) {
    CRESSET_FOR_EACH_HALF(CRESSET_CASE)
    CRESSET_CASE(f32, float)
    CRESSET_CASE(f64, double)
    CRESSET_CASE(c64, complex64)
    CRESSET_CASE(c128, complex128)
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", name_of(d), "'");
  }
}
template <class F>
decltype(auto) visit_integer(Dtype d, const char* who, F&& f) {
  switch (d) {
    CRESSET_FOR_EACH_INTEGER(CRESSET_CASE)
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", name_of(d), "'");
  }
}
// The type only matters as so many bytes: copies, gathers, scatters.
struct Bytes16 {
  uint64_t low, high;
};
template <class F>
decltype(auto) visit_width(int64_t size, F&& f) {
  switch (size) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Bytes16>();
  }
}

}  // namespace cresset
