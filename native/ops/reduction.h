// What reductions share: the commonest lane operations, their types, and how the dims of a call are read.
#pragma once
#include <limits>

#include "dispatch/call.h"
#include "dispatch/casting.h"
#include "ops/fold.h"

namespace cresset {

template <class T>
inline constexpr bool is_complex_type = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using real_of = typename RealOf<T>::type;

template <class T>
struct Add {
  using Value = T;
  CRESSET_INLINE T identity() { return T(0); }
  CRESSET_INLINE T map(T x) { return x; }
  CRESSET_INLINE T combine(T a, T b) {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
  template <class A>
  CRESSET_INLINE A merge(const A& a, const A& b) {
    if constexpr (std::is_same_v<A, T>)
      return combine(a, b);
    else
      return a + b;
  }
};

template <class T>
struct Multiply {
  using Value = T;
  CRESSET_INLINE T identity() { return T(1); }
  CRESSET_INLINE T map(T x) { return x; }
  CRESSET_INLINE T combine(T a, T b) {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (is_complex_type<T>)
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    else
      return a * b;
  }
  template <class A>
  CRESSET_INLINE A merge(const A& a, const A& b) {
    return combine(a, b);
  }
};

// The largest or the smallest; nan wins.
template <class T, bool kLargest>
struct Extreme {
  using Value = T;
  using Limits = std::numeric_limits<T>;
  CRESSET_INLINE T identity() {
    if constexpr (Limits::has_infinity)
      return kLargest ? -Limits::infinity() : Limits::infinity();
    else
      return kLargest ? Limits::lowest() : Limits::max();
  }
  CRESSET_INLINE T map(T x) { return x; }
  CRESSET_INLINE bool beats(T b, T a) { return kLargest ? b > a : b < a; }
  CRESSET_INLINE T ordered(T a, T b) { return beats(b, a) ? b : a; }
  // Two choices of one condition each: in this form the compiler vectorizes them.
  CRESSET_INLINE T combine(T a, T b) {
    const T winner = ordered(a, b);
    return b != b ? b : winner;
  }
  template <class A>
  CRESSET_INLINE A merge(const A& a, const A& b) {
    return combine(a, b);
  }
};

// How many are not zero: the elements are converted to bool.
struct CountTrue {
  using Value = int32_t;
  CRESSET_INLINE int32_t identity() { return 0; }
  CRESSET_INLINE int32_t map(bool x) { return x; }
  CRESSET_INLINE int32_t combine(int32_t a, int32_t b) { return a + b; }
  template <class A>
  CRESSET_INLINE A merge(A a, A b) {
    return a + b;
  }
};
struct Count : LaneKernel<CountTrue, bool, int64_t> {
  using Result = int64_t;
  void finish(int64_t acc, int64_t, int64_t* out) const { *out = acc; }
};

// Sums of float are merged in double: chunks are short enough for float, a tensor may not be.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<float> {
  using type = double;
};
template <>
struct Wide<complex64> {
  using type = complex128;
};
template <class T>
using wide = typename Wide<T>::type;

// ---------------------------------------------------------------- arguments and shapes

// A set of dims is the bits of one word.
inline void check_dims_fit(const Tensor& t) {
  check(t.dim() <= 64, "only tensors with up to 64 dims are supported, this one has ", t.dim());
}

inline uint64_t all_dims(const Tensor& t) {
  check_dims_fit(t);
  return t.dim() == 64 ? ~uint64_t{0} : (uint64_t{1} << t.dim()) - 1;
}

// The dims of argument `i` as bits; none given, or an empty list, means all.
inline uint64_t dims_at(const Call& c, int i, const Tensor& t) {
  if (!c.has(i) || c.integers(i).empty()) return all_dims(t);
  uint64_t bits = 0;
  for (const int64_t d : wrap_dims(c.integers(i), t.dim())) bits |= uint64_t{1} << d;
  return bits;
}
inline uint64_t dim_at(const Call& c, int i, const Tensor& t) {
  if (!c.has(i)) return all_dims(t);
  check_dims_fit(t);
  return uint64_t{1} << wrap_dim(c.integer(i), t.dim());
}

// The order in which a norm is computed: of single numbers, all but the number of those that are not zero are the
// absolute value.
inline double order_of_norm(double order, const Tensor& t, uint64_t reduced) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (reduced >> d & 1 && t.size(d) != 1) return order;
  return order == 0 ? 0 : 1;
}

// Complex numbers as pairs of real ones, in one dimension more; and the absolute values (reduction_moments.cpp).
Tensor as_pairs(const Tensor& t);
Tensor absolute(const Tensor& t);

inline void promise_reduced(Call& c, const Tensor& t, uint64_t reduced, bool keepdim, Dtype dtype) {
  TensorInfo info{{}, {}, dtype, t.device()};
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (!(reduced >> d & 1))
      info.sizes.push_back(t.size(d));
    else if (keepdim)
      info.sizes.push_back(1);
  }
  c.promise(std::move(info));
}

// A tensor seen as [outer][n][inner], where n is one of its dimensions.
struct AlongDim {
  int64_t outer = 1, n = 1, inner = 1;
};
inline AlongDim along(const Tensor& t, int64_t dim) {
  AlongDim a;
  dim = wrap_dim(dim, t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? a.outer : d == dim ? a.n : a.inner) *= t.size(d);
  return a;
}

inline const char* legacy_name(Dtype d) { return facts(d).legacy; }

// The dtype asked for: by the argument, else by out=, else `otherwise`.
// dtype= and out= must agree.
inline void check_asked(const Call& c, int i) {
  if (c.has(i) && c.given_out && c.target) check_own_dtype(c.op.name().c_str(), *c.target, c.args[i].dtype_);
}

inline Dtype dtype_wanted(const Call& c, int i, Dtype otherwise) {
  check_asked(c, i);
  return c.has(i) ? c.args[i].dtype_ : c.given_out && c.target ? c.target->dtype() : otherwise;
}

// The same for what has the dtype of its operands: an out= on the CPU that holds more digits gets them.
inline Dtype dtype_wanted(const Call& c, Dtype own) {
  if (!c.given_out || !c.target || !c.target->device().is_cpu()) return own;
  const Dtype wide = c.target->dtype();
  return is_differentiable(own) && wide != Dtype::c32 && promote(own, wide) == wide ? wide : own;
}

// What sums of a dtype are computed in: float for half precision, int64 for all integers and bool.
template <class F>
void visit_sum(Dtype d, const char* who, F&& f) {
  switch (d) {
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32: return f.template operator()<float>();
    case Dtype::f64: return f.template operator()<double>();
    case Dtype::c64: return f.template operator()<complex64>();
    case Dtype::c128: return f.template operator()<complex128>();
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i16:
    case Dtype::i32:
    case Dtype::i64:
    case Dtype::u16:
    case Dtype::u32:
    case Dtype::u64:
    case Dtype::b8: return f.template operator()<int64_t>();
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", legacy_name(d), "'");
  }
}

template <class F>
void fold_into(const Call& c, const Tensor& t, uint64_t reduced, const F& f) {
  run_fold(t, reduced, make_fold(f), {c.outputs.data(), static_cast<size_t>(c.outputs.size())});
}

// Of a real tensor, over the dims whose bit is set; sums of squares are divided by n - correction.
void variance_and_mean(const Tensor& t, uint64_t reduced, double correction, const Tensor& variance,
                       const Tensor& mean);

}  // namespace cresset
