// Sums, products, extremes and where they are, logic. What a chunk of elements becomes is written here as short
// structs; how chunks are found, shared among threads and merged is in fold.h. Variance, norms and logsumexp are in
// reduction_moments.cpp.
#include "ops/reduction.h"

#include "dispatch/late.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

// ---------------------------------------------------------------- lane operations

template <class T>
struct AddNumbers : Add<T> {
  CRESSET_INLINE T map(T x) { return x == x ? x : T(0); }
};

struct Or {
  using Value = uint8_t;
  CRESSET_INLINE uint8_t identity() { return 0; }
  CRESSET_INLINE uint8_t map(bool x) { return x; }
  CRESSET_INLINE uint8_t combine(uint8_t a, uint8_t b) { return a | b; }
  template <class A>
  CRESSET_INLINE A merge(A a, A b) {
    return a | b;
  }
};
struct And {
  using Value = uint8_t;
  CRESSET_INLINE uint8_t identity() { return 1; }
  CRESSET_INLINE uint8_t map(bool x) { return x; }
  CRESSET_INLINE uint8_t combine(uint8_t a, uint8_t b) { return a & b; }
  template <class A>
  CRESSET_INLINE A merge(A a, A b) {
    return a & b;
  }
};
// ---------------------------------------------------------------- folds by lanes

template <class T, class Op = Add<T>>
struct Sum : LaneKernel<Op, T, wide<T>> {
  using Result = T;
  void finish(wide<T> acc, int64_t, T* out) const { *out = static_cast<T>(acc); }
};
template <class T>
struct Mean : LaneKernel<Add<T>, T, wide<T>> {
  using Result = T;
  void finish(wide<T> acc, int64_t n, T* out) const { *out = static_cast<T>(acc / static_cast<real_of<wide<T>>>(n)); }
};
template <class Op, class E, class R = E>
struct Plain : LaneKernel<Op, E, typename Op::Value> {
  using Result = R;
  void finish(typename Op::Value acc, int64_t, R* out) const { *out = static_cast<R>(acc); }
};
// ---------------------------------------------------------------- the extreme and its place

template <class T>
struct Place {
  T value;
  int64_t index;
};

template <class T, bool kLargest>
struct ExtremePlace {
  using Kernel = ExtremePlace;
  using Element = T;
  using Accumulator = Place<T>;
  using Op = Extreme<T, kLargest>;
  static constexpr bool ordered = true;

  // First the value, then the first place where it stands.
  CRESSET_INLINE_MEMBER Place<T> run(const T* x, int64_t n, int64_t first) const {
    const T value = fold_run(Op(), x, n);
    const int64_t at = value == value ? first_where(n, [=](int64_t i) CRESSET_TERM { return x[i] == value; })
                                      : first_where(n, [=](int64_t i) CRESSET_TERM { return x[i] != x[i]; });
    return {value, first + at};
  }
  // The first index for which the question, which has an index, is true.
  template <class Question>
  CRESSET_INLINE int64_t first_where(int64_t n, const Question& question) {
    int64_t at = 0;
    for (; at + kFoldLanes <= n; at += kFoldLanes) {
      int32_t hits = 0;
      for (int64_t c = 0; c < kFoldLanes; ++c) hits += question(at + c);
      if (hits) break;
    }
    while (at + 1 < n && !question(at)) ++at;
    return at;
  }
  CRESSET_INLINE_MEMBER void columns(const T* x, int64_t step, int64_t rows, int64_t count, int64_t first,
                                     Place<T>* accs) const {
    using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    alignas(64) T values[kFoldColumns];
    alignas(64) Index rows_of[kFoldColumns];
    for (int64_t c = 0; c < count; ++c) values[c] = x[c], rows_of[c] = 0;
    for (int64_t r = 1; r < rows; ++r) {
      const T* row = x + r * step;
      for (int64_t c = 0; c < count; ++c) {
        const bool better = Op::beats(row[c], values[c]) | ((row[c] != row[c]) & (values[c] == values[c]));
        values[c] = better ? row[c] : values[c];
        rows_of[c] = better ? static_cast<Index>(r) : rows_of[c];
      }
    }
    for (int64_t c = 0; c < count; ++c) accs[c] = {values[c], first + rows_of[c]};
  }
  static void merge(Place<T>& into, const Place<T>& from) {
    if (Op::beats(from.value, into.value) || (from.value != from.value && into.value == into.value)) into = from;
  }
};
template <class T, bool kLargest>
struct ExtremeAndIndex : ExtremePlace<T, kLargest> {
  using Result = T;
  using Result2 = int64_t;
  void finish(const Place<T>& acc, int64_t, T* value, int64_t* index) const { *value = acc.value, *index = acc.index; }
};
template <class T, bool kLargest>
struct ExtremeIndex : ExtremePlace<T, kLargest> {
  using Result = int64_t;
  void finish(const Place<T>& acc, int64_t, int64_t* index) const { *index = acc.index; }
};

// ---------------------------------------------------------------- arguments

void check_has_elements(const char* who, const Tensor& t, uint64_t reduced) {
  if (t.numel() > 0) return;
  for (int64_t d = 0; d < t.dim(); ++d)
    check_index(!(reduced >> d & 1) || t.size(d) != 0, who, "(): Expected reduction dim ", d,
                " to have non-zero size.");
}
void check_has_any(const char* who, const Tensor& t) {
  check(t.numel() > 0, who,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
}

template <class F>
void visit_ordered(Dtype d, const char* who, F&& f) {
  check_implemented(!is_complex(d) && d != Dtype::u64, '"', who, "\" not implemented for '", legacy_name(d), "'");
  visit_sum(d, who, [&]<class T>() {
    if constexpr (!is_complex_type<T>) f.template operator()<T>();
  });
}

// ---------------------------------------------------------------- sum, mean, prod

Dtype sum_dtype(Dtype d) { return is_integral(d) || d == Dtype::b8 ? Dtype::i64 : d; }

// Three forms of argument lists: (input, dtype), (input, dims, keepdim, dtype), (input, dim, keepdim, dtype).
struct ReduceArguments {
  uint64_t reduced;
  bool keepdim;
  int dtype_at;
};
enum class Form { all, dims, dim };
template <Form kForm>
ReduceArguments arguments_of(const Call& c, const Tensor& t) {
  if constexpr (kForm == Form::all)
    return {all_dims(t), false, 1};
  else if constexpr (kForm == Form::dims)
    return {dims_at(c, 1, t), c.boolean(2), 3};
  else
    return {dim_at(c, 1, t), c.boolean(2), 3};
}

template <Form kForm>
void infer_sum(Call& c) {
  const Tensor t = c.tensor(0);
  const auto a = arguments_of<kForm>(c, t);
  promise_reduced(c, t, a.reduced, a.keepdim, dtype_wanted(c, a.dtype_at, sum_dtype(t.dtype())));
}
template <Form kForm>
void run_sum(Call& c) {
  Tensor t = c.tensor(0);
  if (c.out().dtype() == Dtype::b8) t = convert(t, Dtype::b8);  // bools are added up as integers, and a half is true
  visit_sum(c.out().dtype(), "sum_cpu",
            [&]<class T>() { fold_into(c, t, arguments_of<kForm>(c, t).reduced, Sum<T>()); });
}

void infer_nansum(Call& c) {
  const Dtype dtype = c.tensor(0).dtype();
  check(!is_complex(dtype), "nansum on CPU does not support complex inputs");
  if (c.target && is_floating(dtype))  // out= says in which dtype is summed
    check_implemented(is_floating(c.target->dtype()), "\"nansum_cpu\" not implemented for '",
                      facts(c.target->dtype()).legacy, "'");
  infer_sum<Form::dims>(c);
}
// To an integer dtype each element is converted, as `sum` does it; before that nan is dropped, which no integer is.
void run_nansum(Call& c) {
  Tensor t = c.tensor(0);
  if (is_floating(t.dtype()) && !is_differentiable(c.out().dtype())) {
    t = clone(t, MemoryFormat::contiguous);
    visit_floating(t.dtype(), "nansum_cpu", [&]<class T>() {
      for (T& x : std::span(t.data<T>(), static_cast<size_t>(t.numel())))
        if (const auto value = static_cast<opmath<T>>(x); value != value) x = T(0);
    });
  }
  if (c.out().dtype() == Dtype::b8) t = convert(t, Dtype::b8);
  visit_sum(c.out().dtype(), "nansum_cpu",
            [&]<class T>() { fold_into(c, t, dims_at(c, 1, t), Sum<T, AddNumbers<T>>()); });
}

template <Form kForm>
void infer_mean(Call& c) {
  const Tensor t = c.tensor(0);
  const auto a = arguments_of<kForm>(c, t);
  const Dtype dtype = c.dtype_or(a.dtype_at, t.dtype());
  check_asked(c, a.dtype_at);
  check(is_differentiable(dtype), "mean(): could not infer output dtype. ", c.has(a.dtype_at) ? "Optional" : "Input",
        " dtype must be either a floating point or complex dtype. Got: ", legacy_name(dtype));
  promise_reduced(c, t, a.reduced, a.keepdim, c.has(a.dtype_at) ? dtype : dtype_wanted(c, dtype));
}
template <Form kForm>
void run_mean(Call& c) {
  const Tensor t = c.tensor(0);
  visit_sum(c.out().dtype(), "mean_cpu", [&]<class T>() {
    if constexpr (!std::is_same_v<T, int64_t>) fold_into(c, t, arguments_of<kForm>(c, t).reduced, Mean<T>());
  });
}

// Sums and means of what is still to be computed, in one walk with what it is made of.
template <Form kForm, template <class> class F>
bool reduce_as_made(Call& c) {
  const Tensor t = c.tensor(0);
  if (t.dtype() != Dtype::f32 && t.dtype() != Dtype::f64) return false;
  c.op.infer(c);
  const TensorInfo info = c.promised[0];
  c.promised.clear();
  if (info.dtype != t.dtype()) return false;
  const Tensor out = empty(info);
  const uint64_t reduced = arguments_of<kForm>(c, t).reduced;
  const bool done = t.dtype() == Dtype::f32 ? run_fold_late(t, reduced, make_fold(F<float>()), {&out, 1})
                                            : run_fold_late(t, reduced, make_fold(F<double>()), {&out, 1});
  if (done) c.give(out);
  return done;
}
template <class T>
using PlainSum = Sum<T>;
[[maybe_unused]] const bool late = add_late_reduction(run_sum<Form::all>, reduce_as_made<Form::all, PlainSum>) &&
                                   add_late_reduction(run_sum<Form::dims>, reduce_as_made<Form::dims, PlainSum>) &&
                                   add_late_reduction(run_mean<Form::all>, reduce_as_made<Form::all, Mean>) &&
                                   add_late_reduction(run_mean<Form::dims>, reduce_as_made<Form::dims, Mean>);

template <Form kForm>
void run_prod(Call& c) {
  const bool truth = c.out().dtype() == Dtype::b8;  // of what is not zero, also where it is below one
  const Tensor t = truth ? convert(c.tensor(0), Dtype::b8) : c.tensor(0);
  visit_sum(c.out().dtype(), "prod_cpu",
            [&]<class T>() { fold_into(c, t, arguments_of<kForm>(c, t).reduced, Plain<Multiply<T>, T>()); });
}

// ---------------------------------------------------------------- extremes

template <bool kLargest>
inline constexpr const char* extreme_name = kLargest ? "max" : "min";

template <bool kLargest>
void infer_amax(Call& c) {
  const Tensor t = c.tensor(0);
  const char* who = kLargest ? "amax" : "amin";
  const uint64_t reduced = dims_at(c, 1, t);
  if (!c.has(1) || c.integers(1).empty()) check_has_any(who, t);
  check_has_elements(who, t, reduced);
  check(!c.target || c.target->dtype() == t.dtype(), "Expected the dtype for input and out to match, but got ",
        legacy_name(t.dtype()), " for input's dtype and ", legacy_name(c.target ? c.target->dtype() : t.dtype()),
        " for out's dtype.");
  promise_reduced(c, t, reduced, c.boolean(2), t.dtype());
}
template <bool kLargest>
void fold_extreme(const Tensor& t, uint64_t reduced, const Tensor& out, const char* who) {
  const auto fold = [&]<class T>() { run_fold(t, reduced, make_fold(Plain<Extreme<T, kLargest>, T>()), {&out, 1}); };
  // Pictures and quantized numbers as they are: as 64 bits they would take 40 times as long.
  if (t.dtype() == Dtype::u8) return fold.template operator()<uint8_t>();
  if (t.dtype() == Dtype::i32) return fold.template operator()<int32_t>();
  visit_ordered(t.dtype(), who, fold);
}
template <bool kLargest>
void run_amax(Call& c) {
  const Tensor t = c.tensor(0);
  fold_extreme<kLargest>(t, dims_at(c, 1, t), c.out(), kLargest ? "max_values_cpu" : "min_values_cpu");
}

template <bool kLargest>
void infer_max(Call& c) {
  const Tensor t = c.tensor(0);
  check_has_any(extreme_name<kLargest>, t);
  c.promise(DimsView(), t.dtype(), t.device());
}
template <bool kLargest>
void run_max(Call& c) {
  const Tensor t = c.tensor(0);
  fold_extreme<kLargest>(t, all_dims(t), c.out(), kLargest ? "max_all" : "min_all");
}

void infer_aminmax(Call& c) {
  const Tensor t = c.tensor(0);
  const uint64_t reduced = dim_at(c, 1, t);
  if (c.has(1) && t.numel() == 0)
    for (int64_t d = 0; d < t.dim(); ++d)
      check_index(!(reduced >> d & 1) || t.size(d) != 0, "aminmax: Expected reduction dim ", d,
                  " to have non-zero size.");
  check(c.has(1) || t.numel() > 0,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  promise_reduced(c, t, reduced, c.boolean(2), t.dtype());
  promise_reduced(c, t, reduced, c.boolean(2), t.dtype());
}
void run_aminmax(Call& c) {
  const Tensor t = c.tensor(0);
  fold_extreme<false>(t, dim_at(c, 1, t), c.out(0), "aminmax_kernel");
  fold_extreme<true>(t, dim_at(c, 1, t), c.out(1), "aminmax_kernel");
}

template <bool kLargest>
void infer_max_dim(Call& c) {
  const Tensor t = c.tensor(0);
  check(!is_complex(t.dtype()), extreme_name<kLargest>, "(): does not support complex input");
  const uint64_t reduced = dim_at(c, 1, t);
  check_has_elements(extreme_name<kLargest>, t, reduced);
  promise_reduced(c, t, reduced, c.boolean(2), t.dtype());
  promise_reduced(c, t, reduced, c.boolean(2), Dtype::i64);
}
template <bool kLargest>
void run_max_dim(Call& c) {
  const Tensor t = c.tensor(0);
  visit_ordered(t.dtype(), extreme_name<kLargest>,
                [&]<class T>() { fold_into(c, t, dim_at(c, 1, t), ExtremeAndIndex<T, kLargest>()); });
}

// max(a, b) is the pointwise maximum by another name.
template <bool kLargest>
void run_max_other(Call& c) {
  static const Operator& maximum = *Registry::instance().find(kLargest ? "maximum" : "minimum");
  Call inner(maximum);
  inner.args[0] = c.args[0];
  inner.args[1] = c.args[1];
  inner.given_out = c.given_out;
  inner.outputs = c.outputs;
  call(inner);
  c.outputs = inner.outputs;
}

template <bool kLargest>
void infer_argmax(Call& c) {
  const Tensor t = c.tensor(0);
  const char* who = kLargest ? "argmax" : "argmin";
  check(!is_complex(t.dtype()), who, "(): does not support complex input");
  check(t.dtype() != Dtype::b8, who, "(): does not support bool input");
  check_index(c.has(1) || t.numel() > 0, who, "(): Expected reduction dim to be specified for input.numel() == 0.");
  const uint64_t reduced = dim_at(c, 1, t);
  check_has_elements(who, t, reduced);
  promise_reduced(c, t, reduced, c.boolean(2), Dtype::i64);
}
template <bool kLargest>
void run_argmax(Call& c) {
  const Tensor t = c.tensor(0);
  visit_ordered(t.dtype(), kLargest ? "argmax" : "argmin",
                [&]<class T>() { fold_into(c, t, dim_at(c, 1, t), ExtremeIndex<T, kLargest>()); });
}

// ---------------------------------------------------------------- any, all, count_nonzero

// bytes are answered in bytes, and so is who gives an out= of them
Dtype logic_dtype(const Call& c, const Tensor& t) {
  return t.dtype() == Dtype::u8 || (c.given_out && c.target && c.target->dtype() == Dtype::u8) ? Dtype::u8 : Dtype::b8;
}

// Here an empty list of dims means none, unlike everywhere else.
uint64_t logic_dims(const Call& c, const Tensor& t) { return c.has(1) && c.integers(1).empty() ? 0 : dims_at(c, 1, t); }

void infer_any(Call& c) { c.promise(DimsView(), logic_dtype(c, c.tensor(0)), c.tensor(0).device()); }
void infer_any_dims(Call& c) {
  const Tensor t = c.tensor(0);
  promise_reduced(c, t, logic_dims(c, t), c.boolean(2), logic_dtype(c, t));
}
template <class Op>
void run_any(Call& c) {
  const Tensor t = c.tensor(0);
  fold_into(c, t, all_dims(t), Plain<Op, bool>());
}
template <class Op>
void run_any_dims(Call& c) {
  const Tensor t = c.tensor(0);
  fold_into(c, t, logic_dims(c, t), Plain<Op, bool>());
}

void infer_count_nonzero(Call& c) {
  const Tensor t = c.tensor(0);
  promise_reduced(c, t, dims_at(c, 1, t), false, Dtype::i64);
}
void run_count_nonzero(Call& c) {
  const Tensor t = c.tensor(0);
  fold_into(c, t, dims_at(c, 1, t), Count());
}

}  // namespace

REGISTER(reduction) {
  r.add("sum.all(Tensor input, *, ScalarType? dtype=None) -> Tensor", infer_sum<Form::all>, run_sum<Form::all>);
  r.add("sum(Tensor input, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        infer_sum<Form::dims>, run_sum<Form::dims>, 0, "SumBackward1");
  r.add("nansum(Tensor input, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", infer_nansum,
        run_nansum);
  r.add("mean.all(Tensor input, *, ScalarType? dtype=None) -> Tensor", infer_mean<Form::all>, run_mean<Form::all>);
  r.add("mean(Tensor input, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        infer_mean<Form::dims>, run_mean<Form::dims>, 0, "MeanBackward1");
  r.add("prod(Tensor input, *, ScalarType? dtype=None) -> Tensor", infer_sum<Form::all>, run_prod<Form::all>);
  r.add("prod.dim(Tensor input, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        infer_sum<Form::dim>, run_prod<Form::dim>, 0, "ProdBackward1");

  r.add("amax(Tensor input, int[1]? dim=[], bool keepdim=False) -> Tensor", infer_amax<true>, run_amax<true>);
  r.add("amin(Tensor input, int[1]? dim=[], bool keepdim=False) -> Tensor", infer_amax<false>, run_amax<false>);
  r.add("aminmax(Tensor input, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", infer_aminmax,
        run_aminmax, kWritesApart);
  r.add("max(Tensor input) -> Tensor", infer_max<true>, run_max<true>, 0, "MaxBackward1");
  r.add("max.other(Tensor input, Tensor other) -> Tensor", nullptr, run_max_other<true>, kComposite);
  r.add("max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", infer_max_dim<true>,
        run_max_dim<true>, kWritesApart);
  r.add("min(Tensor input) -> Tensor", infer_max<false>, run_max<false>, 0, "MinBackward1");
  r.add("min.other(Tensor input, Tensor other) -> Tensor", nullptr, run_max_other<false>, kComposite);
  r.add("min.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", infer_max_dim<false>,
        run_max_dim<false>, kWritesApart);
  r.add("argmax(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", infer_argmax<true>, run_argmax<true>,
        kNotDifferentiable);
  r.add("argmin(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", infer_argmax<false>, run_argmax<false>,
        kNotDifferentiable);

  r.add("any(Tensor input) -> Tensor", infer_any, run_any<Or>, kNotDifferentiable);
  r.add("any.dim(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor", infer_any_dims, run_any_dims<Or>,
        kNotDifferentiable);
  r.add("all(Tensor input) -> Tensor", infer_any, run_any<And>, kNotDifferentiable);
  r.add("all.dim(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor", infer_any_dims, run_any_dims<And>,
        kNotDifferentiable);
  r.add("count_nonzero(Tensor input, int[...]? dim=None) -> Tensor", infer_count_nonzero, run_count_nonzero,
        kNotDifferentiable);
}

}  // namespace cresset
