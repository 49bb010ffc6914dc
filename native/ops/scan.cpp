// Scans: cumulative sums, products, extremes and log-sum-exps along one dimension.
//
// The tensor is seen as [outer][n][inner]. A scan along the last dimension runs element by element; along another,
// `inner` scans run side by side. Sums and products of float are kept in double, as PyTorch does.
#include <cmath>

#include "base/exponentials.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset {
namespace {

constexpr int64_t kSideBySide = 256;

// Calls f(offset of the first element, how many scans side by side) so that together the calls cover all scans.
template <class F>
void for_each_strip(const AlongDim& l, F&& f) {
  const int64_t blocks = (l.inner + kSideBySide - 1) / kSideBySide;
  const int64_t work = std::max<int64_t>(1, l.n * std::min(l.inner, kSideBySide));
  parallel_for(l.outer * blocks, std::max<int64_t>(1, kParallelGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * kSideBySide;
      f(i / blocks * l.n * l.inner + column, std::min(kSideBySide, l.inner - column));
    }
  });
}

// ---------------------------------------------------------------- running values

template <class T>
struct RunningSum {
  using Value = wide<T>;
  CRESSET_INLINE Value identity() { return Value(0); }
  CRESSET_INLINE Value next(Value a, T x) { return Add<Value>::combine(a, static_cast<Value>(x)); }
};
template <class T>
struct RunningProduct {
  using Value = wide<T>;
  CRESSET_INLINE Value identity() { return Value(1); }
  CRESSET_INLINE Value next(Value a, T x) { return Multiply<Value>::combine(a, static_cast<Value>(x)); }
};
template <class T>
struct RunningLogSum {
  using Value = wide<T>;
  CRESSET_INLINE Value identity() { return -std::numeric_limits<Value>::infinity(); }
  static Value next(Value a, T x) {
    const Value b = x, high = Extreme<Value, true>::combine(a, b), low = Extreme<Value, false>::combine(a, b);
    return low == high && std::isinf(low) ? high : high + std::log1p(std::exp(low - high));
  }
};
template <class R>
struct RunningLogSum<std::complex<R>> {
  using Value = complex128;
  CRESSET_INLINE Value identity() { return -std::numeric_limits<double>::infinity(); }
  static Value next(Value a, std::complex<R> x) {
    const Value b(x);
    if (std::isnan(a.real()) || std::isnan(a.imag()) || std::isnan(b.real()) || std::isnan(b.imag())) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      return {nan, nan};
    }
    const Value low = a.real() < b.real() ? a : b, high = a.real() < b.real() ? b : a;
    if (std::isinf(low.real()) && low.real() < 0) return high;
    if (std::isinf(low.real()) && low.real() > 0 && low.imag() == high.imag()) return low;
    // log(1 + z) with |1 + z|^2 - 1 = re (2 + re) + im^2, in which nothing cancels for a small z
    const Value z = std::exp(low - high);
    const double excess = z.real() * (2 + z.real()) + z.imag() * z.imag();
    return high + Value(0.5 * std::log1p(excess), std::atan2(z.imag(), 1 + z.real()));
  }
};

template <class Op, class T>
struct ScanLoop {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* out, int64_t n, int64_t step, int64_t count) {
    using Value = typename Op::Value;
    if (count == 1) {
      Value value = Op::identity();
      for (int64_t r = 0; r < n; ++r) out[r * step] = static_cast<T>(value = Op::next(value, x[r * step]));
      return;
    }
    alignas(64) Value values[kSideBySide];
    for (int64_t c = 0; c < count; ++c) values[c] = Op::identity();
    for (int64_t r = 0; r < n; ++r) {
      const T* __restrict from = x + r * step;
      T* __restrict to = out + r * step;
      for (int64_t c = 0; c < count; ++c) {
        values[c] = Op::next(values[c], from[c]);
        to[c] = static_cast<T>(values[c]);
      }
    }
  }
};

// The input contiguous in dtype T; the result in `out` if its dtype is T, by way of another tensor otherwise.
template <class Op, class T>
void scan(const Tensor& input, int64_t dim, const Tensor& out) {
  const Tensor x = contiguous(convert(input, dtype_of<T>));
  const Tensor to = out.dtype() == dtype_of<T> ? out : empty(out.sizes(), dtype_of<T>);
  const AlongDim l = along(x, dim);
  for_each_strip(l, [&](int64_t offset, int64_t count) {
    run_vectorized_256<ScanLoop<Op, T>>(static_cast<const T*>(x.data<T>() + offset), to.data<T>() + offset, l.n,
                                        l.inner, count);
  });
  if (to.get() != out.get()) copy_into(out, to);
}

void infer_cumulative(Call& c) {
  const Tensor t = c.tensor(0);
  wrap_dim(c.integer(1), t.dim());
  // The in-place form keeps its tensor's dtype.
  check(!c.op.inplace || !c.has(2) || c.dtype_or(2, t.dtype()) == t.dtype(), "Bad in-place call: input tensor dtype ",
        name_of(t.dtype()), " and output tensor dtype ", name_of(c.dtype_or(2, t.dtype())), " should match");
  const Dtype dtype = dtype_wanted(c, 2, c.op.inplace || is_differentiable(t.dtype()) ? t.dtype() : Dtype::i64);
  const bool is_copy = t.dim() == 0 || t.numel() == 0;  // one number, or none, is its own sum, also as a bool
  check_implemented(dtype != Dtype::b8 || is_copy, '"', c.op.functional ? c.op.functional->name() : c.op.name(),
                    "_out_cpu\" not implemented for 'Bool'");
  c.promise(t.sizes(), dtype, t.device());
}
template <template <class> class Op>
void run_cumulative(Call& c) {
  if (c.out().dtype() == Dtype::b8) return copy_into(c.out(), c.tensor(0));
  visit_sum(c.out().dtype(), c.op.name().c_str(),
            [&]<class T>() { scan<Op<T>, T>(c.tensor(0), c.integer(1), c.out()); });
}

void infer_logcumsumexp(Call& c) {
  const Tensor t = c.tensor(0);
  wrap_dim(c.integer(1), t.dim());
  check_implemented(is_differentiable(t.dtype()), "\"logcumsumexp_out_cpu\" not implemented for '",
                    legacy_name(t.dtype()), "'");
  c.promise(t.sizes(), t.dtype(), t.device());
}
void run_logcumsumexp(Call& c) {
  visit_sum(c.out().dtype(), "logcumsumexp_out_cpu", [&]<class T>() {
    if constexpr (!std::is_same_v<T, int64_t>) scan<RunningLogSum<T>, T>(c.tensor(0), c.integer(1), c.out());
  });
}

// ---------------------------------------------------------------- extremes

// The last of equal values counts, and nan wins for good.
template <class T, bool kLargest>
struct ExtremeScan {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* values, int64_t* indices, int64_t n, int64_t step, int64_t count) {
    const auto wins = [](T now, T before) __attribute__((always_inline)) {
      return (now != now) | ((before == before) & (kLargest ? now >= before : now <= before));
    };
    if (count == 1 && n > 0) {  // kept in registers: memory would hand it from step to step three times as slowly
      T best = x[0];
      int64_t place = 0;
      for (int64_t r = 0; r < n; ++r) {
        const T now = x[r * step];
        const bool takes = wins(now, best);
        best = takes ? now : best;
        place = takes ? r : place;
        values[r * step] = best, indices[r * step] = place;
      }
      return;
    }
    for (int64_t c = 0; c < count && n > 0; ++c) values[c] = x[c], indices[c] = 0;
    for (int64_t r = 1; r < n; ++r) {
      const int64_t at = r * step;
      for (int64_t c = 0; c < count; ++c) {
        const T now = x[at + c], before = values[at - step + c];
        const bool takes = wins(now, before);
        values[at + c] = takes ? now : before;
        indices[at + c] = takes ? r : indices[at - step + c];
      }
    }
  }
};

template <bool kLargest>
void infer_cummax(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t dim = c.integer(1);
  check_index(t.dim() > 0 || dim == 0 || dim == -1, kLargest ? "cummax" : "cummin",
              "(): Expected reduction dim -1 or 0 for scalar but got ", dim);
  wrap_dim(dim, t.dim());
  check_implemented(!is_complex(t.dtype()) && t.dtype() != Dtype::u64, kLargest ? "\"cummax_cpu\"" : "\"cummin_cpu\"",
                    " not implemented for '", legacy_name(t.dtype()), "'");
  c.promise_like(t);
  c.promise(t.sizes(), Dtype::i64, t.device());
}
template <bool kLargest>
void run_cummax(Call& c) {
  const Tensor t = c.tensor(0);
  visit_sum(t.dtype(), kLargest ? "cummax_cpu" : "cummin_cpu", [&]<class T>() {
    if constexpr (!is_complex_type<T>) {
      const Tensor x = contiguous(convert(t, dtype_of<T>));
      const Tensor values = t.dtype() == dtype_of<T> ? c.out(0) : empty(t.sizes(), dtype_of<T>);
      const AlongDim l = along(x, c.integer(1));
      for_each_strip(l, [&](int64_t offset, int64_t count) {
        run_vectorized_256<ExtremeScan<T, kLargest>>(static_cast<const T*>(x.data<T>() + offset),
                                                     values.data<T>() + offset, c.out(1).data<int64_t>() + offset, l.n,
                                                     l.inner, count);
      });
      if (values.get() != c.out(0).get()) copy_into(c.out(0), values);
    }
  });
}

}  // namespace

REGISTER(scan) {
  r.add("cumsum(Tensor input, int dim, *, ScalarType? dtype=None) -> Tensor", infer_cumulative,
        run_cumulative<RunningSum>, kInplace | kWritesWhole);
  r.add("cumprod(Tensor input, int dim, *, ScalarType? dtype=None) -> Tensor", infer_cumulative,
        run_cumulative<RunningProduct>, kInplace | kWritesWhole);
  r.add("logcumsumexp(Tensor input, int dim) -> Tensor", infer_logcumsumexp, run_logcumsumexp, kWritesWhole);
  r.add("cummax(Tensor input, int dim) -> (Tensor values, Tensor indices)", infer_cummax<true>, run_cummax<true>);
  r.add("cummin(Tensor input, int dim) -> (Tensor values, Tensor indices)", infer_cummax<false>, run_cummax<false>);
}

}  // namespace cresset
