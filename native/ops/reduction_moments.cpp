// Variance and standard deviation, norms, and the logarithm of a sum of exponentials.
#include <cmath>

#include "base/exponentials.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset {

Tensor as_pairs(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return view_as_dtype(t, to_real(t.dtype()), sizes, strides, t.offset() * 2);
}
Tensor absolute(const Tensor& t) {
  static const Operator& abs = *Registry::instance().find("abs");
  Call inner(abs);
  inner.args[0] = Value(t);
  execute(inner);
  return inner.outputs[0];
}

namespace {

// ---------------------------------------------------------------- norms

enum class Order { one, two, infinity, minus_infinity, other };

// |x| to the power `p`, summed; or the extremes of |x|.
template <class T, Order kOrder>
struct NormTerm {
  using Value = T;
  static constexpr bool kExtreme = kOrder == Order::infinity || kOrder == Order::minus_infinity;

  CRESSET_INLINE T identity() { return kOrder == Order::minus_infinity ? std::numeric_limits<T>::infinity() : T(0); }
  CRESSET_INLINE T map(T x) { return kOrder == Order::two ? x * x : math::abs(x); }
  CRESSET_INLINE T combine(T a, T b) { return merge(a, b); }
  template <class A>
  CRESSET_INLINE A merge(A a, A b) {
    if constexpr (kExtreme)
      return Extreme<A, kOrder == Order::infinity>::combine(a, b);
    else
      return a + b;
  }
};
template <class T>
struct NormTerm<T, Order::other> : Add<T> {
  static constexpr bool heavy = true;
  T p = 0;
  CRESSET_INLINE_MEMBER T map(T x) const { return math::pow(math::abs(x), p); }
};

template <class T, Order kOrder>
struct Norm : LaneKernel<NormTerm<T, kOrder>, T, wide<T>> {
  using Result = T;
  void finish(wide<T> acc, int64_t, T* out) const {
    if constexpr (kOrder == Order::two)
      *out = static_cast<T>(std::sqrt(acc));
    else if constexpr (kOrder == Order::other)
      *out = static_cast<T>(std::pow(acc, 1 / static_cast<wide<T>>(this->op.p)));
    else
      *out = static_cast<T>(acc);
  }
};

// ---------------------------------------------------------------- log of a sum of exponentials

// `sum` is of exp(x - reference), where the reference is the largest x, or 0 if that is infinite.
template <class T>
struct LogSum {
  T largest;
  wide<T> sum;
};
template <class T>
CRESSET_INLINE T reference_of(T largest) {
  return math::abs(largest) <= std::numeric_limits<T>::max() ? largest : T(0);
}

template <class T>
struct AddExp {
  using Value = T;
  static constexpr bool heavy = true;
  T reference;
  CRESSET_INLINE T identity() { return T(0); }
  CRESSET_INLINE_MEMBER T map(T x) const { return math::exp(x - reference); }
  CRESSET_INLINE T combine(T a, T b) { return a + b; }
};

template <class T>
struct LogSumExp {
  using Kernel = LogSumExp;
  using Element = T;
  using Accumulator = LogSum<T>;
  using Result = T;
  using Op = Extreme<T, true>;
  static constexpr bool ordered = false;

  CRESSET_INLINE_MEMBER LogSum<T> run(const T* x, int64_t n, int64_t) const {
    const T largest = fold_run(Op(), x, n);
    return {largest, fold_run(AddExp<T>{reference_of(largest)}, x, n)};
  }
  CRESSET_INLINE_MEMBER void columns(const T* x, int64_t step, int64_t rows, int64_t count, int64_t,
                                     LogSum<T>* accs) const {
    alignas(64) T largest[kFoldColumns], references[kFoldColumns], sums[kFoldColumns];
    fold_columns(Op(), x, step, rows, count, largest);
    for (int64_t c = 0; c < count; ++c) references[c] = reference_of(largest[c]), sums[c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const T* __restrict row = x + r * step;
      for (int64_t c = 0; c < count; ++c) sums[c] += math::exp(row[c] - references[c]);
    }
    for (int64_t c = 0; c < count; ++c) accs[c] = {largest[c], sums[c]};
  }
  static wide<T> moved(const LogSum<T>& a, T reference) {
    return a.sum == 0 ? 0 : a.sum * std::exp(static_cast<wide<T>>(reference_of(a.largest)) - reference);
  }
  static void merge(LogSum<T>& into, const LogSum<T>& from) {
    const T largest = Op::combine(into.largest, from.largest), reference = reference_of(largest);
    into = {largest, moved(into, reference) + moved(from, reference)};
  }
  void finish(const LogSum<T>& acc, int64_t, T* out) const {
    *out = static_cast<T>(std::log(acc.sum) + reference_of(acc.largest));
  }
};

// The reference of complex numbers is their largest real part.
template <class R>
struct ComplexLogSum {
  R largest;
  complex128 sum;
};
template <class R>
struct ComplexLogSumExp {
  using Kernel = ComplexLogSumExp;
  using Element = std::complex<R>;
  using Accumulator = ComplexLogSum<R>;
  using Result = std::complex<R>;
  static constexpr bool ordered = false;

  static Accumulator strided(const Element* x, int64_t step, int64_t n) {
    R largest = -std::numeric_limits<R>::infinity();
    for (int64_t i = 0; i < n; ++i) largest = Extreme<R, true>::combine(largest, x[i * step].real());
    complex128 sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(complex128(x[i * step] - reference_of(largest)));
    return {largest, sum};
  }
  Accumulator run(const Element* x, int64_t n, int64_t) const { return strided(x, 1, n); }
  void columns(const Element* x, int64_t step, int64_t rows, int64_t count, int64_t, Accumulator* accs) const {
    for (int64_t c = 0; c < count; ++c) accs[c] = strided(x + c, step, rows);
  }
  static complex128 moved(const Accumulator& a, R reference) {
    return a.sum == complex128(0) ? 0 : a.sum * std::exp(static_cast<double>(reference_of(a.largest)) - reference);
  }
  static void merge(Accumulator& into, const Accumulator& from) {
    const R largest = Extreme<R, true>::combine(into.largest, from.largest), reference = reference_of(largest);
    into = {largest, moved(into, reference) + moved(from, reference)};
  }
  void finish(const Accumulator& acc, int64_t, Result* out) const {
    *out = Result(std::log(acc.sum) + complex128(reference_of(acc.largest)));
  }
};

// ---------------------------------------------------------------- moments

// How many elements, their mean, and the sum of squared distances from it. Two of them become one by Chan's formula.
struct Moments {
  double count = 0, mean = 0, squares = 0;
};

template <class T>
struct AddDistance {
  using Value = T;
  T mean;
  CRESSET_INLINE T identity() { return T(0); }
  CRESSET_INLINE_MEMBER T map(T x) const { return x - mean; }
  CRESSET_INLINE T combine(T a, T b) { return a + b; }
};
template <class T>
struct AddSquare : AddDistance<T> {
  CRESSET_INLINE_MEMBER T map(T x) const { return (x - this->mean) * (x - this->mean); }
};

// Whether a sum of `n` squares is that of numbers whose squares neither vanish nor overflow: both passes below are
// exact enough then. A sum of zero may be one of equal numbers or of very small ones, so it is not.
template <class T>
CRESSET_INLINE bool is_well_scaled(T squares, double n) {
  constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min()) / std::numeric_limits<T>::epsilon();
  return squares >= kLeast * n && squares <= std::numeric_limits<T>::max();
}

// One pass in the wider type, number by number (Welford): for numbers whose squares, or whose sum, T cannot hold.
template <class T>
Moments careful_moments(const T* x, int64_t step, int64_t n) {
  Moments m;
  for (int64_t i = 0; i < n; ++i) {
    const double value = x[i * step], apart = value - m.mean;
    m.count += 1;
    m.mean += apart / m.count;
    m.squares += apart * (value - m.mean);
  }
  return m;
}

// The sum of squares around the true mean, from that around a mean which `distance` says is a little off.
inline double around_mean(double squares, double distance, double inverse) {
  const double centered = squares - distance * distance * inverse;
  return centered < 0 ? 0 : centered;  // rounding, where all numbers are the same
}

template <class T>
struct Variance {
  using Kernel = Variance;
  using Element = T;
  using Accumulator = Moments;
  using Result = T;
  static constexpr bool ordered = false;
  double correction;
  bool root;  // the standard deviation

  // Two passes over a chunk, which is in the nearest cache by then; what rounding left in the mean is put right by the
  // sum of distances.
  CRESSET_INLINE_MEMBER Moments run(const T* x, int64_t n, int64_t) const {
    if (n == 0) return {};
    const double count = static_cast<double>(n);
    const T mean = static_cast<T>(static_cast<double>(fold_run(Add<T>(), x, n)) / count);
    const T squares = fold_run(AddSquare<T>{{mean}}, x, n);
    if (!is_well_scaled(squares, count)) [[unlikely]]
      return careful_moments(x, 1, n);
    const double distance = fold_run(AddDistance<T>{mean}, x, n);
    return {count, mean + distance / count, around_mean(squares, distance, 1 / count)};
  }
  CRESSET_INLINE_MEMBER void columns(const T* x, int64_t step, int64_t rows, int64_t count, int64_t,
                                     Moments* accs) const {
    constexpr int64_t kFew = 32;  // rows that stay in the cache between the two passes
    alignas(64) T sums[kFoldColumns], means[kFoldColumns], squares[kFoldColumns];
    alignas(64) double all_means[kFoldColumns], all_squares[kFoldColumns];
    for (int64_t c = 0; c < count; ++c) all_means[c] = all_squares[c] = 0;
    for (int64_t r = 0; r < rows; r += kFew) {
      const int64_t few = rows - r < kFew ? rows - r : kFew;
      const T* tile = x + r * step;
      fold_columns(Add<T>(), tile, step, few, count, sums);
      const T share = static_cast<T>(1.0 / static_cast<double>(few));
      for (int64_t c = 0; c < count; ++c) means[c] = sums[c] * share, sums[c] = squares[c] = 0;
      for (int64_t k = 0; k < few; ++k)
        for (int64_t c = 0; c < count; ++c) {
          const T d = tile[k * step + c] - means[c];
          sums[c] += d;
          squares[c] += d * d;
        }
      const double before = static_cast<double>(r), now = static_cast<double>(few), total = before + now;
      const double weight = now / total, cross = before * now / total, inverse = 1 / now;
      bool well_scaled = true;
      for (int64_t c = 0; c < count; ++c) well_scaled &= is_well_scaled(squares[c], now);
      const auto add = [&](int64_t c, double mean, double around) {
        const double apart = mean - all_means[c];
        all_means[c] += apart * weight;
        all_squares[c] +=
            around + (r ? apart * apart * cross : 0);  // before the first rows there is no mean to be apart from
      };
      if (well_scaled) [[likely]] {
        for (int64_t c = 0; c < count; ++c)
          add(c, means[c] + sums[c] * inverse, around_mean(squares[c], sums[c], inverse));
        continue;
      }
      for (int64_t c = 0; c < count; ++c) {
        const Moments m = careful_moments(tile + c, step, few);
        add(c, m.mean, m.squares);
      }
    }
    for (int64_t c = 0; c < count; ++c) accs[c] = {static_cast<double>(rows), all_means[c], all_squares[c]};
  }
  static void merge(Moments& a, const Moments& b) {
    if (b.count == 0) return;
    if (a.count == 0) return void(a = b);
    const double total = a.count + b.count;
    const double apart = b.mean - a.mean;
    a.mean += apart * (b.count / total);
    a.squares += b.squares + apart * apart * (a.count * b.count / total);
    a.count = total;
  }
  T spread(const Moments& m, int64_t n) const {
    const double variance = n == 0 ? std::numeric_limits<double>::quiet_NaN()
                                   : m.squares / std::max(0.0, static_cast<double>(n) - correction);
    return static_cast<T>(root ? std::sqrt(variance) : variance);
  }
  void finish(const Moments& m, int64_t n, T* out) const { *out = spread(m, n); }
};
template <class T>
struct VarianceAndMean : Variance<T> {
  using Result2 = T;
  void finish(const Moments& m, int64_t n, T* spread, T* mean) const {
    *spread = this->spread(m, n);
    *mean = static_cast<T>(n ? m.mean : std::numeric_limits<double>::quiet_NaN());
  }
};

// The variance of complex numbers is that of the real parts and of the imaginary parts together.
struct ComplexMoments {
  double count = 0, squares = 0;
  complex128 mean = 0;
};
template <class R>
struct ComplexVariance {
  using Kernel = ComplexVariance;
  using Element = std::complex<R>;
  using Accumulator = ComplexMoments;
  using Result = R;
  static constexpr bool ordered = false;
  double correction;
  bool root;

  static ComplexMoments strided(const Element* x, int64_t step, int64_t n) {
    if (n == 0) return {};
    complex128 sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += complex128(x[i * step]);
    ComplexMoments m{static_cast<double>(n), 0, sum / static_cast<double>(n)};
    for (int64_t i = 0; i < n; ++i) m.squares += std::norm(complex128(x[i * step]) - m.mean);
    return m;
  }
  ComplexMoments run(const Element* x, int64_t n, int64_t) const { return strided(x, 1, n); }
  void columns(const Element* x, int64_t step, int64_t rows, int64_t count, int64_t, ComplexMoments* accs) const {
    for (int64_t c = 0; c < count; ++c) accs[c] = strided(x + c, step, rows);
  }
  static void merge(ComplexMoments& a, const ComplexMoments& b) {
    if (b.count == 0) return;
    if (a.count == 0) return void(a = b);
    const double total = a.count + b.count;
    const complex128 apart = b.mean - a.mean;
    a.mean += apart * (b.count / total);
    a.squares += b.squares + std::norm(apart) * (a.count * b.count / total);
    a.count = total;
  }
  R spread(const ComplexMoments& m, int64_t n) const {
    const double variance = n == 0 ? std::numeric_limits<double>::quiet_NaN()
                                   : m.squares / std::max(0.0, static_cast<double>(n) - correction);
    return static_cast<R>(root ? std::sqrt(variance) : variance);
  }
  void finish(const ComplexMoments& m, int64_t n, R* out) const { *out = spread(m, n); }
};
template <class R>
struct ComplexVarianceAndMean : ComplexVariance<R> {
  using Result2 = std::complex<R>;
  void finish(const ComplexMoments& m, int64_t n, R* spread, std::complex<R>* mean) const {
    *spread = this->spread(m, n);
    *mean = n ? std::complex<R>(m.mean) : std::complex<R>(std::numeric_limits<R>::quiet_NaN());
  }
};

// ---------------------------------------------------------------- logsumexp

void infer_logsumexp(Call& c) {
  const Tensor t = c.tensor(0);
  const Dtype own = is_differentiable(t.dtype()) ? t.dtype() : default_dtype();
  promise_reduced(c, t, dims_at(c, 1, t), c.boolean(2), dtype_wanted(c, own));
}
void run_logsumexp(Call& c) {
  const Tensor t = c.tensor(0);
  visit_sum(c.out().dtype(), "logsumexp", [&]<class T>() {
    if constexpr (is_complex_type<T>)
      fold_into(c, t, dims_at(c, 1, t), ComplexLogSumExp<real_of<T>>());
    else if constexpr (!std::is_same_v<T, int64_t>)
      fold_into(c, t, dims_at(c, 1, t), LogSumExp<T>());
  });
}

// ---------------------------------------------------------------- variance

// Three argument lists: (input, dims, *, correction, keepdim), (input, dims, unbiased, keepdim), (input, unbiased).
enum class SpreadForm { correction, unbiased_dims, unbiased };
struct SpreadArguments {
  uint64_t reduced;
  double correction;
  bool keepdim;
};
template <SpreadForm kForm>
SpreadArguments spread_arguments(const Call& c, const Tensor& t) {
  if constexpr (kForm == SpreadForm::correction)
    return {dims_at(c, 1, t), c.has(2) ? c.real(2) : 1.0, c.boolean(3)};
  else if constexpr (kForm == SpreadForm::unbiased_dims)
    return {dims_at(c, 1, t), c.boolean(2) ? 1.0 : 0.0, c.boolean(3)};
  else
    return {all_dims(t), c.boolean(1) ? 1.0 : 0.0, false};
}

template <SpreadForm kForm, bool kMean>
void infer_spread(Call& c) {
  const Tensor t = c.tensor(0);
  check(is_differentiable(t.dtype()), kMean ? c.op.name().c_str() : "std and var",
        " only support floating point and complex dtypes");
  const auto a = spread_arguments<kForm>(c, t);
  const Dtype own = to_real(t.dtype()), wide = dtype_wanted(c, own);
  promise_reduced(c, t, a.reduced, a.keepdim, is_complex(wide) ? own : wide);
  if (kMean) promise_reduced(c, t, a.reduced, a.keepdim, t.dtype());
  int64_t results = 1, n = 1;
  for (int64_t d = 0; d < t.dim(); ++d) (a.reduced >> d & 1 ? n : results) *= t.size(d);
  if (static_cast<double>(n) - a.correction <= 0 && results > 0 && warn)
    warn(c.op.name() +
         "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
         "divided by output numel).");
}
template <SpreadForm kForm, bool kMean, bool kRoot>
void run_spread(Call& c) {
  Tensor t = c.tensor(0);
  if (c.out(0).dtype() == Dtype::f64) t = convert(t, is_complex(t.dtype()) ? Dtype::c128 : Dtype::f64);
  if (t.dtype() == Dtype::c32) t = convert(t, Dtype::c64);
  const auto a = spread_arguments<kForm>(c, t);
  visit_sum(t.dtype(), "std_var", [&]<class T>() {
    if constexpr (is_complex_type<T>) {
      if constexpr (kMean)
        fold_into(c, t, a.reduced, ComplexVarianceAndMean<real_of<T>>{{a.correction, kRoot}});
      else
        fold_into(c, t, a.reduced, ComplexVariance<real_of<T>>{a.correction, kRoot});
    } else if constexpr (!std::is_same_v<T, int64_t>) {
      if constexpr (kMean)
        fold_into(c, t, a.reduced, VarianceAndMean<T>{{a.correction, kRoot}});
      else
        fold_into(c, t, a.reduced, Variance<T>{a.correction, kRoot});
    }
  });
}

template <bool kMean, bool kRoot>
void add_spread(Registry& r, const std::string& name, uint32_t flags) {
  const std::string results = kMean ? " -> (Tensor, Tensor)" : " -> Tensor";
  r.add((name + "(Tensor input, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)" + results).c_str(),
        infer_spread<SpreadForm::correction, kMean>, run_spread<SpreadForm::correction, kMean, kRoot>, flags);
  r.add((name + ".dim(Tensor input, int[1]? dim, bool unbiased=True, bool keepdim=False)" + results).c_str(),
        infer_spread<SpreadForm::unbiased_dims, kMean>, run_spread<SpreadForm::unbiased_dims, kMean, kRoot>, flags);
  r.add((name + ".unbiased(Tensor input, bool unbiased=True)" + results).c_str(),
        infer_spread<SpreadForm::unbiased, kMean>, run_spread<SpreadForm::unbiased, kMean, kRoot>, flags);
}

// ---------------------------------------------------------------- norms

void infer_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const char* who = "linalg.vector_norm";
  check(is_differentiable(t.dtype()), who, ": Expected a floating point or complex tensor as input. Got ",
        legacy_name(t.dtype()));
  const Dtype dtype = c.dtype_or(4, t.dtype());
  check(is_differentiable(dtype), who, ": dtype should be floating point or complex. Got ", legacy_name(dtype));
  check(is_complex(dtype) == is_complex(t.dtype()), who, ": dtype should be ",
        is_complex(t.dtype()) ? "complex" : "real", " for ", is_complex(t.dtype()) ? "complex" : "real",
        " inputs, but got ", legacy_name(dtype));
  check(promote(t.dtype(), dtype) == dtype, who, ": the dtype of the input (", legacy_name(t.dtype()),
        ") should be convertible without narrowing to the specified dtype (", legacy_name(dtype), ")");
  check(c.scalar(1).kind != Scalar::Kind::complex, who, ": Expected a non-complex scalar as the order of norm.");
  const uint64_t reduced = dims_at(c, 2, t);
  const double order = c.real(1);
  if (t.numel() == 0 && (order < 0 || std::isinf(order))) {
    check(c.has(2) && !c.integers(2).empty(), who, " cannot compute the ", order,
          " norm on an empty tensor because the operation does not have an identity");
    for (int64_t d = 0; d < t.dim(); ++d)
      check(!(reduced >> d & 1) || t.size(d) != 0, who, " cannot compute the ", order, " norm on the dimension ", d,
            " because this dimension is empty and the operation does not have an identity");
  }
  promise_reduced(c, t, reduced, c.boolean(3), to_real(dtype));
}

template <class T, Order kOrder>
void run_norm_of(Call& c, const Tensor& t, uint64_t reduced) {
  Norm<T, kOrder> norm{};
  if constexpr (kOrder == Order::other) norm.op.p = static_cast<T>(c.real(1));
  fold_into(c, t, reduced, norm);
}

void run_norm(Call& c) {
  Tensor t = c.tensor(0);
  uint64_t reduced = dims_at(c, 2, t);
  const double order = order_of_norm(c.real(1), t, reduced);
  if (order == 0) return fold_into(c, t, reduced, Count());
  Dtype dtype = c.dtype_or(4, t.dtype());
  if (is_complex(dtype)) {
    t = convert(t, dtype);
    dtype = to_real(dtype);
    t = order == 2 ? as_pairs(t) : absolute(t);
    if (order == 2) {
      check_dims_fit(t);
      reduced |= uint64_t{1} << (t.dim() - 1);
    }
  }
  visit_sum(dtype, "linalg_vector_norm", [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      if (order == 1)
        run_norm_of<T, Order::one>(c, t, reduced);
      else if (order == 2)
        run_norm_of<T, Order::two>(c, t, reduced);
      else if (std::isinf(order))
        order > 0 ? run_norm_of<T, Order::infinity>(c, t, reduced)
                  : run_norm_of<T, Order::minus_infinity>(c, t, reduced);
      else
        run_norm_of<T, Order::other>(c, t, reduced);
    }
  });
}

}  // namespace

void variance_and_mean(const Tensor& t, uint64_t reduced, double correction, const Tensor& variance,
                       const Tensor& mean) {
  const Tensor outs[] = {variance, mean};
  if (t.dtype() == Dtype::f64)
    run_fold(t, reduced, make_fold(VarianceAndMean<double>{{correction, false}}), outs);
  else
    run_fold(t, reduced, make_fold(VarianceAndMean<float>{{correction, false}}), outs);
}

REGISTER(reduction_moments) {
  r.add("logsumexp(Tensor input, int[1] dim, bool keepdim=False) -> Tensor", infer_logsumexp, run_logsumexp);
  add_spread<false, false>(r, "var", 0);
  add_spread<false, true>(r, "std", 0);
  add_spread<true, false>(r, "var_mean", kFunctionOnly);
  add_spread<true, true>(r, "std_mean", kFunctionOnly);
  r.add(
      "linalg_vector_norm(Tensor input, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
      "-> Tensor",
      infer_norm, run_norm, kFunctionOnly);
}

}  // namespace cresset
