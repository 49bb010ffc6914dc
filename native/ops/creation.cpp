// New tensors: empty, filled, ranges, identity, index pairs; fill_ and zero_; complex numbers from their parts.
#include "ops/creation.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "base/circular_functions.h"
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/registration.h"

namespace cresset {

NewOptions new_options(const Call& c, int at, Dtype dtype, Device device) {
  NewOptions o{c.target ? c.target->dtype() : dtype, c.target ? c.target->device() : device};
  if (c.has(at)) {
    o.dtype = c.args[at].dtype_;
    check(!c.target || c.target->dtype() == o.dtype, c.op.name(), ": dtype ", facts(o.dtype).legacy,
          " does not match dtype of out parameter (", facts(c.target->dtype()).legacy, ")");
  }
  check_implemented(!c.has(at + 1) || c.args[at + 1].layout_ == LayoutKind::strided, c.op.name(),
                    ": only layout=torch.strided is supported");
  if (c.has(at + 2)) {
    o.device = resolve(c.args[at + 2].device_);
    check(!c.target || c.target->device() == o.device, c.op.name(), ": device ", o.device,
          " does not match device of out parameter (", c.target->device(), ")");
  }
  if (c.boolean(at + 3)) {
    check(pinning_backend(), c.op.name(),
          ": pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
          "this system");
    check(o.device.is_cpu(), c.op.name(), ": only dense CPU tensors can be pinned, the device is ", o.device);
    if (!c.target) o.device.index = kPinned;
  }
  return o;
}

namespace {

Dims strides_in(const char* who, DimsView sizes, MemoryFormat format) {
  if (format == MemoryFormat::contiguous) return {};
  check(format != MemoryFormat::preserve, who,
        ": unsupported memory format Preserve: there is no tensor whose order of dimensions could be kept");
  const size_t rank = format == MemoryFormat::channels_last ? 4 : 5;
  check(sizes.size() == rank, who, ": required rank ", rank, " tensor to use ",
        rank == 4 ? "channels_last" : "channels_last_3d", " format, got sizes ", list(sizes));
  return channels_last_strides(sizes);
}

}  // namespace

TensorInfo info_like(const Call& c, const Tensor& like, const NewOptions& o, int format) {
  const MemoryFormat wanted = c.has(format) ? c.args[format].memory_format_ : MemoryFormat::preserve;
  if (wanted != MemoryFormat::preserve)
    return {like.sizes(), strides_in(c.op.name().c_str(), like.sizes(), wanted), o.dtype, o.device};
  const bool as_it_is = like.is_contiguous() && like.numel() > 0;
  return {like.sizes(), as_it_is ? like.strides() : dense_strides_like(like.sizes(), like.strides()), o.dtype,
          o.device};
}

namespace {

// ---------------------------------------------------------------- empty and filled

std::atomic<bool> fills_uninitialized{false};

void fill_conspicuously(const Tensor& t) {
  if (t.is_meta() || t.numel() == 0) return;
  if (is_differentiable(t.dtype())) return fill(t, Scalar(std::numeric_limits<double>::quiet_NaN()));
  if (t.dtype() == Dtype::b8) return fill(t, Scalar(true));
  const int bits = 8 * static_cast<int>(size_of(t.dtype()));
  const bool has_sign =
      t.dtype() == Dtype::i8 || t.dtype() == Dtype::i16 || t.dtype() == Dtype::i32 || t.dtype() == Dtype::i64;
  fill(t, bits == 64 && !has_sign ? Scalar(int64_t{-1})
                                  : Scalar(static_cast<int64_t>(~uint64_t{0} >> (64 - bits + has_sign))));
}

void leave_empty(Call& c) {
  if (fills_uninitialized)
    fill_conspicuously(c.out());
  else if (c.out().dtype() == Dtype::b8)
    fill(c.out(), Scalar(false));  // any other byte is no bool
}
void fill_zeros(Call& c) { fill(c.out(), Scalar(0)); }
void fill_ones(Call& c) { fill(c.out(), Scalar(1)); }

void infer_size_and_options(Call& c) {
  const NewOptions o = new_options(c, 1, default_dtype());
  c.promise(c.integers(0), o.dtype, o.device);
}
void infer_zeros(Call& c) {
  for (int64_t s : c.integers(0))
    check(s >= 0, "zeros: Dimension size must be non-negative. Trying to create tensor with negative dimension ", s,
          ": ", list(c.integers(0)));
  infer_size_and_options(c);
}
void infer_empty(Call& c) {
  const NewOptions o = new_options(c, 1, default_dtype());
  const Dims sizes(c.integers(0));
  c.promise({sizes, c.has(6) ? strides_in("empty", sizes, c.args[6].memory_format_) : Dims(), o.dtype, o.device});
}
void infer_full(Call& c) {
  const Dtype kind = c.scalar(1).dtype();
  const NewOptions o = new_options(c, 2, kind == Dtype::c32 ? Dtype::c64 : kind);
  check_fits(c.scalar(1), o.dtype);
  c.promise(c.integers(0), o.dtype, o.device);
}
void run_full(Call& c) { fill(c.out(), c.scalar(1)); }

void infer_like(Call& c) {
  const Tensor t = c.tensor(0);
  c.promise(info_like(c, t, new_options(c, 1, t.dtype(), t.device()), 6));
}
void infer_full_like(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 2, t.dtype(), t.device());
  check_fits(c.scalar(1), o.dtype);
  c.promise(info_like(c, t, o, 7));
}

void infer_new(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 2, t.dtype(), t.device());
  c.promise(c.integers(1), o.dtype, o.device);
}
void infer_new_full(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 3, t.dtype(), t.device());
  check_fits(c.scalar(2), o.dtype);
  c.promise(c.integers(1), o.dtype, o.device);
}
void run_new_full(Call& c) { fill(c.out(), c.scalar(2)); }

void infer_scalar_tensor(Call& c) {
  const NewOptions o = new_options(c, 1, default_dtype());
  check_fits(c.scalar(0), o.dtype);
  c.promise(DimsView(), o.dtype, o.device);
}
void run_scalar_tensor(Call& c) { fill(c.out(), c.scalar(0)); }

// Memory that reaches exactly as far as the strides do, gaps included.
Tensor make_strided(const char* who, DimsView sizes, DimsView strides, const NewOptions& o) {
  check(sizes.size() == strides.size(), who, ": dimensionality of sizes (", sizes.size(),
        ") must match dimensionality of strides (", strides.size(), ")");
  const Tensor memory =
      empty(Dims{bytes_needed(who, sizes, strides, 0, o.dtype) / size_of(o.dtype)}, o.dtype, o.device);
  if (o.dtype == Dtype::b8) fill(memory, Scalar(false));
  return view_as_dtype(memory, o.dtype, sizes, strides, 0);
}
void run_empty_strided(Call& c) {
  c.give(make_strided("empty_strided", c.integers(0), c.integers(1), new_options(c, 2, default_dtype())));
  leave_empty(c);
}
void run_new_empty_strided(Call& c) {
  const Tensor t = c.tensor(0);
  c.give(make_strided("new_empty_strided", c.integers(1), c.integers(2), new_options(c, 3, t.dtype(), t.device())));
  leave_empty(c);
}

// ---------------------------------------------------------------- fill and zero_

void check_fill(Call& c) {
  if (c.args[1].is_tensor()) {
    const Tensor value = c.tensor(1);
    check(value.dim() == 0, c.op.name(), " only supports 0-dimension value tensor but got tensor with ", value.dim(),
          " dimensions.");
  } else {
    check_fits(c.scalar(1), c.tensor(0).dtype());
  }
}
void fill_with(Call& c, const Tensor& t) { c.args[1].is_tensor() ? copy_into(t, c.tensor(1)) : fill(t, c.scalar(1)); }
void run_fill_inplace(Call& c) {
  if (c.args[1].is_tensor())
    check_no_internal_overlap("fill_", c.tensor(0));  // a number is the same wherever it is written
  fill_with(c, c.tensor(0));
}
void infer_fill(Call& c) {
  check_fill(c);
  const Tensor t = c.tensor(0);
  c.promise({t.sizes(), dense_strides_like(t.sizes(), t.strides()), t.dtype(), t.device()});
}
void run_fill(Call& c) { fill_with(c, c.out()); }
void run_zero_inplace(Call& c) { fill(c.tensor(0), Scalar(0)); }

// ---------------------------------------------------------------- ranges

// PyTorch counts in 64-bit integers for integer types and in double for float; half precision it computes in float.
template <class T>
using Step =
    std::conditional_t<std::is_integral_v<T>, int64_t,
                       std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, double>, double, float>>;

template <class F>
void visit_range_dtype(Dtype d, const char* who, F&& f) {
  check_implemented(d != Dtype::b8, '"', who, "\" not implemented for 'Bool'");
  visit_real(d, who, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) f.template operator()<T>();
  });
}

// How many numbers there are from start by step: before end (arange), or up to and including it (range).
int64_t count_steps(const char* who, const Scalar& start, const Scalar& end, const Scalar& step, Dtype dtype,
                    bool including_end) {
  for (const Scalar* s : {&start, &end, &step})
    check(s->kind != Scalar::Kind::complex, who,
          ": value cannot be converted to type double without overflow: start, end and step must be real");
  check(step.real > 0 || step.real < 0, who, ": step must be nonzero");
  check(std::isfinite(start.real) && std::isfinite(end.real), who, ": unsupported range: ", start.real, " -> ",
        end.real);
  const bool in_integers = dtype == Dtype::i64;
  const bool ordered = in_integers ? (step.integer > 0 ? end.integer >= start.integer : end.integer <= start.integer)
                                   : (step.real > 0 ? end.real >= start.real : end.real <= start.real);
  check(ordered, who, ": upper bound and lower bound inconsistent with step sign, got start=", start.real,
        ", end=", end.real, " and step=", step.real);
  if (in_integers && !including_end) {
    check(step.integer != 0, who, ": step must be nonzero, got ", step.real, " for an integer dtype");
    // Unsigned, so that the distance between any two integers can be said.
    const uint64_t distance = step.integer > 0
                                  ? static_cast<uint64_t>(end.integer) - static_cast<uint64_t>(start.integer)
                                  : static_cast<uint64_t>(start.integer) - static_cast<uint64_t>(end.integer);
    const uint64_t stride =
        step.integer > 0 ? static_cast<uint64_t>(step.integer) : -static_cast<uint64_t>(step.integer);
    const uint64_t count = distance / stride + (distance % stride != 0);
    check(count <= static_cast<uint64_t>(INT64_MAX), who, ": invalid size, possible overflow: ", count, " elements");
    return static_cast<int64_t>(count);
  }
  const double steps = (end.real - start.real) / step.real;
  const double count = including_end ? std::floor(steps) + 1 : std::ceil(steps);
  check(count >= 0 && count <= 9e18, who, ": invalid size, possible overflow: ", count, " elements");
  return static_cast<int64_t>(count);
}

template <class T>
void count_up(T* out, int64_t n, Step<T> start, Step<T> step) {
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    // Integers count modulo 2^64, so that a huge step overflows nothing on its way.
    using Count = std::conditional_t<std::is_integral_v<Step<T>>, uint64_t, Step<T>>;
    for (int64_t i = begin; i < end; ++i)
      out[i] = static_cast<T>(
          static_cast<Step<T>>(static_cast<Count>(start) + static_cast<Count>(step) * static_cast<Count>(i)));
  });
}
void count_up(const Tensor& out, const char* who, const Scalar& start, const Scalar& step) {
  visit_range_dtype(out.dtype(), who,
                    [&]<class T>() { count_up(out.data<T>(), out.numel(), start.to<Step<T>>(), step.to<Step<T>>()); });
}

Dtype range_dtype(std::initializer_list<const Scalar*> bounds) {
  for (const Scalar* s : bounds)
    if (!s->is_integral()) return default_dtype();
  return Dtype::i64;
}

// A line of numbers. An out= of as many elements keeps its shape and is filled in the order of its elements.
void promise_line(Call& c, int64_t count, const NewOptions& o) {
  const bool fits = c.given_out && c.target && c.target->numel() == count;
  c.promise(fits ? c.target->sizes() : Dims{count}, o.dtype, o.device);
}

// The same, where it is the step that decides how many there are.
void promise_range(Call& c, int64_t count, const NewOptions& o) {
  if (warn && c.given_out && c.target && c.target->numel() != 0 && c.target->numel() != count)
    warn(join("arange: there are ", count, " elements and out= has shape ", list(c.target->sizes()),
              "; a step that is rounded may be the reason. The out tensor will be resized to shape [", count, ']'));
  promise_line(c, count, o);
}

// Said before an out= is resized.
void check_range_dtype(const Call& c, const NewOptions& o) {
  const Dtype dtype = c.target ? c.target->dtype() : o.dtype;
  check_implemented(dtype != Dtype::b8 && !is_complex(dtype), "\"arange_cpu\" not implemented for '",
                    facts(dtype).legacy, "'");
}

void infer_arange_to(Call& c) {
  const Scalar zero(0), one(1), end = c.scalar(0);
  const NewOptions o = new_options(c, 1, range_dtype({&end}));
  check_range_dtype(c, o);
  promise_range(c, count_steps("arange", zero, end, one, o.dtype, false), o);
}
void run_arange_to(Call& c) { count_up(c.out(), "arange_cpu", Scalar(0), Scalar(1)); }
void infer_arange(Call& c) {
  const Scalar start = c.scalar(0), end = c.scalar(1), step = c.scalar(2);
  const NewOptions o = new_options(c, 3, range_dtype({&start, &end, &step}));
  check_range_dtype(c, o);
  promise_range(c, count_steps("arange", start, end, step, o.dtype, false), o);
}
void infer_range(Call& c) {
  const NewOptions o = new_options(c, 3, default_dtype());
  promise_line(c, count_steps("range", c.scalar(0), c.scalar(1), c.scalar(2), o.dtype, true), o);
  if (warn)
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. "
        "Instead, use torch.arange, which produces values in [start, end).");
}
void run_range(Call& c) { count_up(c.out(), "range_cpu", c.scalar(0), c.scalar(2)); }

// ---- linspace and logspace

// A number, or the one in a 0-d tensor.
void infer_space(Call& c, int options) {
  const int64_t dims[2] = {c.args[0].is_tensor() ? c.tensor(0).dim() : 0,
                           c.args[1].is_tensor() ? c.tensor(1).dim() : 0};
  check(dims[0] == 0 && dims[1] == 0, c.op.name(),
        " only supports 0-dimensional start and end tensors, but got start with ", dims[0],
        " dimension(s) and end with ", dims[1], " dimension(s).");
  const auto complex_bound = [&](int i) {
    return c.args[i].is_tensor() ? is_complex(c.tensor(i).dtype()) : c.scalar(i).kind == Scalar::Kind::complex;
  };
  const bool any_complex = complex_bound(0) || complex_bound(1);
  const Dtype inferred = any_complex ? to_complex(default_dtype()) : default_dtype();
  const NewOptions o = new_options(c, options, inferred);
  check(!any_complex || is_complex(o.dtype), "torch.", c.op.name(), "(): inferred dtype ", facts(inferred).legacy,
        " can't be safely cast to passed dtype ", facts(o.dtype).legacy);
  check(c.integer(2) >= 0, c.op.name(), ": number of steps must be non-negative, got ", c.integer(2));
  // Between two bools lies nothing, but one alone can be had.
  check_implemented(o.dtype != Dtype::b8 || c.integer(2) < 2, '"', c.op.name(), "_cpu\" not implemented for 'Bool'");
  promise_line(c, c.integer(2), o);
}
void infer_linspace(Call& c) {
  infer_space(c, 3);
  for (int i = 0; i < std::min<int64_t>(c.integer(2), 2); ++i) check_fits(bound(c, i), c.promised[0].dtype);
}
void infer_logspace(Call& c) { infer_space(c, 4); }

// Counts up from the start in the first half and down from the end in the second: both ends are exact and the middle
// symmetric. `gap` elements lie between neighbors, so that the parts of complex numbers are done one after the other.
template <class T>
struct LinearSpace {
  template <class Fma>
  CRESSET_INLINE void run(T* out, int64_t gap, int64_t begin, int64_t end, int64_t count, T start, T stop) {
    const T step = (stop - start) / static_cast<T>(count - 1);
    const int64_t half = count / 2;
    for (int64_t i = begin; i < std::min(end, half); ++i) out[i * gap] = Fma::fma(step, static_cast<T>(i), start);
    for (int64_t i = std::max(begin, half); i < end; ++i)
      out[i * gap] = Fma::fma(-step, static_cast<T>(count - 1 - i), stop);
  }
};
template <class T>
void linear_space(T* out, int64_t gap, int64_t n, T start, T stop) {
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    run_vectorized<LinearSpace<T>>(out, gap, begin, end, n, start, stop);
  });
}

// The same in a number type of any kind, with something done to each number.
template <class T, class Number, class Finish>
void spaced(T* out, int64_t n, Number start, Number stop, Finish finish) {
  const Number step = (stop - start) / Number(static_cast<double>(n - 1));
  for (int64_t i = 0; i < n; ++i)
    out[i] = finish(i < n / 2 ? start + step * Number(static_cast<double>(i))
                              : stop - step * Number(static_cast<double>(n - 1 - i)));
}

// Half-precision arithmetic: every step is rounded, as PyTorch does it here.
template <class T>
struct Rounded {
  T value;
  explicit Rounded(double v) : value(static_cast<float>(v)) {}
  friend Rounded operator+(Rounded a, Rounded b) {
    return Rounded(static_cast<float>(a.value) + static_cast<float>(b.value));
  }
  friend Rounded operator-(Rounded a, Rounded b) {
    return Rounded(static_cast<float>(a.value) - static_cast<float>(b.value));
  }
  friend Rounded operator*(Rounded a, Rounded b) {
    return Rounded(static_cast<float>(a.value) * static_cast<float>(b.value));
  }
  friend Rounded operator/(Rounded a, Rounded b) {
    return Rounded(static_cast<float>(a.value) / static_cast<float>(b.value));
  }
};

void run_linspace(Call& c) {
  const Tensor& out = c.out();
  const int64_t n = out.numel();
  const Scalar start = bound(c, 0), stop = bound(c, 1);
  if (n == 0) return;
  if (n == 1) return fill(out, start);
  visit_all(out.dtype(), "linspace_cpu", [&]<class T>() {
    T* to = out.data<T>();
    const T first = start.to<T>(), last = stop.to<T>();
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      linear_space(to, 1, n, first, last);
    } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      auto* parts = reinterpret_cast<typename T::value_type*>(to);
      linear_space(parts, 2, n, first.real(), last.real());
      linear_space(parts + 1, 2, n, first.imag(), last.imag());
    } else if constexpr (std::is_integral_v<T>) {
      spaced(to, n, static_cast<double>(first), static_cast<double>(last), [](double v) { return static_cast<T>(v); });
    } else {
      spaced(to, n, Rounded<T>(static_cast<float>(first)), Rounded<T>(static_cast<float>(last)),
             [](Rounded<T> v) { return v.value; });
    }
  });
}

void run_logspace(Call& c) {
  const Tensor& out = c.out();
  const int64_t n = out.numel();
  const Scalar start = bound(c, 0), stop = bound(c, 1);
  const double base = c.real(3);
  if (n == 0) return;
  visit_all(out.dtype(), "logspace_cpu", [&]<class T>() {
    if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      const auto power = [&](complex128 exponent) { return static_cast<T>(std::pow(complex128(base), exponent)); };
      const complex128 first = start.to<complex128>(), last = stop.to<complex128>();
      if (n == 1)
        out.data<T>()[0] = power(first);
      else
        spaced(out.data<T>(), n, first, last, power);
    } else {
      const auto power = [&](double exponent) {
        const double value = std::pow(base, exponent);
        if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
          return static_cast<T>(value);
        else
          return static_cast<T>(static_cast<float>(value));
      };
      if (n == 1) {
        out.data<T>()[0] = power(start.real);
        return;
      }
      // The ends are numbers of the result's dtype.
      const double first = std::is_integral_v<T> ? static_cast<double>(start.integer) : start.real,
                   last = std::is_integral_v<T> ? static_cast<double>(stop.integer) : stop.real;
      spaced(out.data<T>(), n, first, last, power);
    }
  });
}

// ---------------------------------------------------------------- identity and index pairs

void infer_eye(Call& c) {
  const int64_t n = c.integer(0), m = c.has(1) ? c.integer(1) : n;
  check(n >= 0, "eye: n must be greater or equal to 0, got ", n);
  check(m >= 0, "eye: m must be greater or equal to 0, got ", m);
  const NewOptions o = new_options(c, 2, default_dtype());
  c.promise(Dims{n, m}, o.dtype, o.device);
}
void run_eye(Call& c) {
  const Tensor& t = c.out();
  fill(t, Scalar(0));
  fill(view_of(t, Dims{std::min(t.size(0), t.size(1))}, Dims{t.stride(0) + t.stride(1)}, t.offset()), Scalar(1));
}

// The columns [begin, end) that belong to the lower (or upper) triangle in one row.
struct Columns {
  int64_t begin, end;
};
Columns triangle_row(bool upper, int64_t row, int64_t columns, int64_t offset) {
  if (upper) return {std::clamp<int64_t>(row + offset, 0, columns), columns};
  return {0, std::clamp<int64_t>(row + offset + 1, 0, columns)};
}
// How many elements the lower triangle has: rows grow from `first` on, and are full from `full` on.
__int128 lower_triangle_size(__int128 rows, __int128 columns, __int128 offset) {
  const __int128 first = std::clamp<__int128>(-offset, 0, rows),
                 full = std::clamp<__int128>(columns - offset - 1, first, rows);
  return (full - first) * (first + full + 1 + 2 * offset) / 2 + (rows - full) * columns;
}
void infer_triangle(Call& c, bool upper) {
  const int64_t rows = c.integer(0), columns = c.integer(1);
  check(rows >= 0, c.op.name(), ": row must be non-negative, got ", rows);
  check(columns >= 0, c.op.name(), ": col must be non-negative, got ", columns);
  const NewOptions o = new_options(c, 3, Dtype::i64);
  check_implemented(o.dtype == Dtype::i64 || o.dtype == Dtype::i32, '"', c.op.name(), "\" not implemented for '",
                    facts(o.dtype).legacy, "'");
  const int64_t offset = std::clamp(c.integer(2), -rows, columns);
  const __int128 lower = lower_triangle_size(rows, columns, upper ? offset - 1 : offset);
  const __int128 count = upper ? static_cast<__int128>(rows) * columns - lower : lower;
  check(count < (int64_t{1} << 58), c.op.name(), ": Storage size calculation overflowed with sizes=[", rows, ", ",
        columns, "]");
  c.promise(Dims{2, static_cast<int64_t>(count)}, o.dtype, o.device);
}
void run_triangle(Call& c, bool upper) {
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  const int64_t offset = std::clamp(c.integer(2), -c.integer(0), c.integer(1));
  const auto write = [&]<class T>(T* rows) {
    T *columns = rows + out.size(1), *end = columns;
    for (int64_t r = upper ? 0 : std::max<int64_t>(-offset, 0); rows < end; ++r) {
      const Columns row = triangle_row(upper, r, c.integer(1), offset);
      for (int64_t k = row.begin; k < row.end; ++k) {
        *rows++ = static_cast<T>(r);
        *columns++ = static_cast<T>(k);
      }
    }
  };
  out.dtype() == Dtype::i64 ? write(out.data<int64_t>()) : write(out.data<int32_t>());
}
void infer_tril_indices(Call& c) { infer_triangle(c, false); }
void infer_triu_indices(Call& c) { infer_triangle(c, true); }
void run_tril_indices(Call& c) { run_triangle(c, false); }
void run_triu_indices(Call& c) { run_triangle(c, true); }

// ---------------------------------------------------------------- complex numbers

void infer_complex(Call& c) {
  const Tensor real = c.tensor(0), imag = c.tensor(1);
  const auto fits = [](Dtype d) { return d == Dtype::f16 || d == Dtype::f32 || d == Dtype::f64; };
  check(fits(real.dtype()) && fits(imag.dtype()), c.op.name(),
        ": Expected both inputs to be Half, Float or Double tensors but got ", facts(real.dtype()).legacy, " and ",
        facts(imag.dtype()).legacy);
  check(real.dtype() == imag.dtype(), c.op.name(), ": Expected object of scalar type ", facts(real.dtype()).legacy,
        " but got scalar type ", facts(imag.dtype()).legacy, " for second argument");
  if (c.target && c.target->dtype() != to_complex(real.dtype()))
    fail(c.op.name(), ": Expected object of scalar type ", facts(to_complex(real.dtype())).legacy,
         " but got scalar type ", facts(c.target->dtype()).legacy, " for argument 'out'");
  const Dims sizes = broadcast("complex", real.sizes(), imag.sizes());
  const Dims operands[] = {expanded_strides("complex", real, sizes), expanded_strides("complex", imag, sizes)};
  c.promise({sizes, result_strides(sizes, operands), to_complex(real.dtype()), real.device()});
}
// An operand with the shape of the result, and its elements in the result's order, one after another.
Tensor laid_out_as(const Tensor& out, const Tensor& t) {
  const Tensor shown = view_of(t, out.sizes(), expanded_strides("complex", t, out.sizes()), t.offset());
  if (shown.strides() == out.strides()) return shown;
  const Tensor copy = empty(TensorInfo{out.sizes(), out.strides(), t.dtype(), t.device()});
  copy_into(copy, shown);
  return copy;
}

template <class T>
struct PairLoop {
  template <class Fma>
  CRESSET_INLINE void run(const T* real, const T* imag, T* pairs, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      pairs[2 * i] = real[i];
      pairs[2 * i + 1] = imag[i];
    }
  }
};
void run_complex(Call& c) {
  const Tensor& out = c.out();
  const Tensor real = laid_out_as(out, c.tensor(0)), imag = laid_out_as(out, c.tensor(1));
  visit_width(size_of(real.dtype()), [&]<class T>() {
    const T *const re = reinterpret_cast<const T*>(real.bytes()), *const im = reinterpret_cast<const T*>(imag.bytes());
    T* const pairs = reinterpret_cast<T*>(out.bytes());
    parallel_for(out.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
      run_vectorized_256<PairLoop<T>>(re + begin, im + begin, pairs + 2 * begin, end - begin);
    });
  });
}

// Pairs of abs cos(angle) and abs sin(angle), for angles of which none is large; false where one is.
template <class T>
struct PolarLoop {
  template <class Fma>
  CRESSET_INLINE void run(const T* abs, const T* angle, T* pairs, int64_t n, bool* done) {
    bool large = false;
    for (int64_t i = 0; i < n; ++i) large |= math::is_large_angle(angle[i]);
    *done = !large;
    if (large) return;
    for (int64_t i = 0; i < n; ++i) {
      pairs[2 * i] = abs[i] * math::quick::cos<Fma>(angle[i]);
      pairs[2 * i + 1] = abs[i] * math::quick::sin<Fma>(angle[i]);
    }
  }
};

void infer_polar(Call& c) {
  infer_complex(c);
  const Dtype d = c.tensor(0).dtype();
  check_implemented(d == Dtype::f32 || d == Dtype::f64, "polar: \"polar\" not implemented for ", name_of(d),
                    "; float32 and float64 are");
}
void run_polar(Call& c) {
  const Tensor& out = c.out();
  const Tensor first = laid_out_as(out, c.tensor(0)), second = laid_out_as(out, c.tensor(1));
  visit_floating(first.dtype(), "polar", [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const T *abs = first.data<T>(), *angle = second.data<T>();
      T* const pairs = out.data<T>();
      constexpr int64_t kBlock = 1024;
      parallel_for(out.numel(), kParallelGrain / 4, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kBlock) {
          const int64_t count = std::min(kBlock, end - at);
          if constexpr (std::is_same_v<T, float>) {
            bool done;
            run_vectorized_256<PolarLoop<T>>(abs + at, angle + at, pairs + 2 * at, count, &done);
            if (done) continue;
          }
          for (int64_t i = at; i < at + count; ++i) {
            pairs[2 * i] = abs[i] * math::cos(angle[i]);
            pairs[2 * i + 1] = abs[i] * math::sin(angle[i]);
          }
        }
      });
    }
  });
}

}  // namespace

void set_fill_uninitialized(bool on) { fills_uninitialized = on; }
void fill_uninitialized(const Tensor& t) {
  if (fills_uninitialized) fill_conspicuously(t);
}

REGISTER(creation) {
  constexpr uint32_t constant = kNotDifferentiable, filled = constant | kAnyDevice,
                     function = filled | kFunctionOnly | kReadsNothing, method = filled | kMethodOnly | kReadsNothing;
  r.add("empty(int[...] size, *, " CRESSET_NEW ", MemoryFormat? memory_format=None) -> Tensor", infer_empty,
        leave_empty, filled);
  r.add("empty_strided(int[] size, int[] stride, *, " CRESSET_NEW ") -> Tensor", nullptr, run_empty_strided, filled);
  r.add("zeros(int[...] size, *, " CRESSET_NEW ") -> Tensor", infer_zeros, fill_zeros, filled);
  r.add("ones(int[...] size, *, " CRESSET_NEW ") -> Tensor", infer_size_and_options, fill_ones, filled);
  r.add("full(int[] size, Scalar fill_value, *, " CRESSET_NEW ") -> Tensor", infer_full, run_full, filled);
  r.add("scalar_tensor(Scalar s, *, " CRESSET_NEW ") -> Tensor", infer_scalar_tensor, run_scalar_tensor, filled);

  r.add("empty_like(Tensor input, *, " CRESSET_NEW ", MemoryFormat? memory_format=None) -> Tensor", infer_like,
        leave_empty, function);
  r.add("zeros_like(Tensor input, *, " CRESSET_NEW ", MemoryFormat? memory_format=None) -> Tensor", infer_like,
        fill_zeros, function);
  r.add("ones_like(Tensor input, *, " CRESSET_NEW ", MemoryFormat? memory_format=None) -> Tensor", infer_like,
        fill_ones, function);
  r.add("full_like(Tensor input, Scalar fill_value, *, " CRESSET_NEW ", MemoryFormat? memory_format=None) -> Tensor",
        infer_full_like, run_full, function);

  r.add("new_empty(Tensor input, int[...] size, *, " CRESSET_NEW ") -> Tensor", infer_new, leave_empty, method);
  r.add("new_empty_strided(Tensor input, int[] size, int[] stride, *, " CRESSET_NEW ") -> Tensor", nullptr,
        run_new_empty_strided, method);
  r.add("new_zeros(Tensor input, int[...] size, *, " CRESSET_NEW ") -> Tensor", infer_new, fill_zeros, method);
  r.add("new_ones(Tensor input, int[...] size, *, " CRESSET_NEW ") -> Tensor", infer_new, fill_ones, method);
  r.add("new_full(Tensor input, int[] size, Scalar fill_value, *, " CRESSET_NEW ") -> Tensor", infer_new_full,
        run_new_full, method);

  r.add("fill_(Tensor input, Operand value) -> Tensor", check_fill, run_fill_inplace, kMutates | kAnyDevice,
        "FillBackward2");
  r.add("fill(Tensor input, Operand value) -> Tensor", infer_fill, run_fill, kFunctionOnly | kAnyDevice,
        "FillBackward0");
  r.add("zero_(Tensor input) -> Tensor", nullptr, run_zero_inplace, kMutates | kAnyDevice, "ZeroBackward0");

  r.add("arange(Scalar end, *, " CRESSET_NEW ") -> Tensor", infer_arange_to, run_arange_to, constant);
  r.add("arange.start(Scalar start, Scalar end, Scalar step=1, *, " CRESSET_NEW ") -> Tensor", infer_arange, run_range,
        constant);
  r.add("range(Scalar start, Scalar end, Scalar step=1, *, " CRESSET_NEW ") -> Tensor", infer_range, run_range,
        constant);
  r.add("linspace(Operand start, Operand end, int steps, *, " CRESSET_NEW ") -> Tensor", infer_linspace, run_linspace,
        constant);
  r.add("logspace(Operand start, Operand end, int steps, float base=10.0, *, " CRESSET_NEW ") -> Tensor",
        infer_logspace, run_logspace, constant);

  r.add("eye(SymInt n, SymInt? m=None, *, " CRESSET_NEW ") -> Tensor", infer_eye, run_eye, filled);
  r.add("tril_indices(int row, int col, int offset=0, *, " CRESSET_NEW ") -> Tensor", infer_tril_indices,
        run_tril_indices, constant);
  r.add("triu_indices(int row, int col, int offset=0, *, " CRESSET_NEW ") -> Tensor", infer_triu_indices,
        run_triu_indices, constant);
  r.add("complex(Tensor real, Tensor imag) -> Tensor", infer_complex, run_complex, kAnyDevice);
  r.add("polar(Tensor abs, Tensor angle) -> Tensor", infer_polar, run_polar, kFunctionOnly);
}

}  // namespace cresset
