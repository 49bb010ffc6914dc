#include "base/scalar.h"

#include <cmath>
#include <limits>

namespace cresset {
namespace {

// An unsigned type also takes the negative numbers whose magnitude it holds: -1 becomes its largest value.
template <class T>
bool integer_fits(const Scalar& s) {
  if (s.kind == Scalar::Kind::real || s.kind == Scalar::Kind::complex)
    return s.real >= static_cast<double>(std::numeric_limits<T>::min()) &&
           s.real <= static_cast<double>(std::numeric_limits<T>::max());
  if (s.beyond_int64) return std::is_same_v<T, uint64_t>;
  if constexpr (std::is_unsigned_v<T>) {
    const uint64_t magnitude = s.integer < 0 ? -static_cast<uint64_t>(s.integer) : static_cast<uint64_t>(s.integer);
    return magnitude <= std::numeric_limits<T>::max();
  } else {
    return s.integer >= std::numeric_limits<T>::min() && s.integer <= std::numeric_limits<T>::max();
  }
}

double largest(Dtype d) {
  switch (d) {
    case Dtype::f16:
    case Dtype::c32: return 65504;
    case Dtype::bf16: return 3.38953138925153547590470800371487866880e+38;
    case Dtype::f32:
    case Dtype::c64: return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::infinity();  // the 8-bit types take what is too large as their largest or as
                                                       // nan
  }
}

bool float_fits(double v, Dtype d) { return !std::isfinite(v) || std::fabs(v) <= largest(d); }

bool fits(const Scalar& s, Dtype d) {
  if (d == Dtype::b8 || s.kind == Scalar::Kind::boolean) return true;
  if (is_complex(d)) return float_fits(s.real, d) && float_fits(s.imag, d);
  if (s.kind == Scalar::Kind::complex && s.imag != 0) return false;
  if (is_floating(d)) return float_fits(s.real, d);
  switch (d) {
#define CRESSET_FITS(tag, type) \
  case Dtype::tag: return integer_fits<type>(s);
    CRESSET_FOR_EACH_INTEGER(CRESSET_FITS)
#undef CRESSET_FITS
    default: return true;
  }
}

}  // namespace

void check_fits(const Scalar& s, Dtype d) {
  if (fits(s, d)) return;
  if (s.kind == Scalar::Kind::complex)
    fail("value cannot be converted to type ", name_of(d), " without overflow: ", s.real,
         std::signbit(s.imag) ? "" : "+", s.imag, "j");
  if (s.kind == Scalar::Kind::real)
    fail("value cannot be converted to type ", name_of(d), " without overflow: ", s.real);
  if (s.beyond_int64)
    fail("value cannot be converted to type ", name_of(d), " without overflow: ", static_cast<uint64_t>(s.integer));
  fail("value cannot be converted to type ", name_of(d), " without overflow: ", s.integer);
}

}  // namespace cresset
