// Random tensors and in-place random fills: which numbers to draw, in which order, for which dtype. The drawing is in
// random_kernels.h.
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/creation.h"
#include "ops/random.h"
#include "ops/random_kernels.h"

namespace cresset {

Twister& generator(const Call& c, int at) {
  if (!c.has(at)) return default_generator();
  Generator& given = *c.args[at].generator_;
  check(given.device.is_cpu(), c.op.name(), ": Expected a 'cpu' device type for generator but found '",
        name_of(given.device.type), "'");
  return static_cast<Twister&>(given);
}

// `t` broadcast to the shape of `like` and converted to its dtype, contiguous.
Tensor spread(const Tensor& t, const Tensor& like) {
  if (t.dtype() == like.dtype() && t.sizes() == like.sizes() && t.is_contiguous()) return t;
  const Tensor out = empty(like.sizes(), like.dtype(), like.device());
  copy_into(out, t);
  return out;
}

Tensor parts(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return view_as_dtype(t, to_real(t.dtype()), sizes, strides, 2 * t.offset());
}

namespace {

// Calls f(memory) for t.numel() elements that lie in the order of t's memory; see Note [Random numbers and strides].
template <class T, class F>
void in_memory_order(const Tensor& t, F&& f) {
  if (t.numel() == 0) return;
  if (is_dense(t.sizes(), t.strides())) return f(t.data<T>());
  const Tensor buffer = empty_like_layout(t, t.dtype());
  f(buffer.data<T>());
  copy_into(t, buffer);
}

// ---------------------------------------------------------------- fills of a tensor of any strides

void draw_uniform(const Tensor& t, double from, double to, Twister& g) {
  if (is_complex(t.dtype())) return draw_uniform(parts(t), from, to, g);
  visit_floating(t.dtype(), "uniform",
                 [&]<class T>() { in_memory_order<T>(t, [&](T* p) { fill_uniform(p, t.numel(), from, to, g); }); });
}

void draw_normal(const Tensor& t, double mean, double std, Twister& g, bool one_by_one = false) {
  // The variance of a complex number is shared by its parts.
  if (is_complex(t.dtype())) return draw_normal(parts(t), mean, std / std::sqrt(2.0), g, one_by_one);
  one_by_one |= !t.is_contiguous();
  visit_floating(t.dtype(), "normal", [&]<class T>() {
    in_memory_order<T>(t, [&](T* p) {
      one_by_one ? fill_normal_serial(p, t.numel(), mean, std, g) : fill_normal(p, t.numel(), mean, std, g);
    });
  });
}

void draw_bernoulli(const Tensor& t, double p, Twister& g) {
  visit_real(t.dtype(), "bernoulli_scalar_cpu_",
             [&]<class T>() { in_memory_order<T>(t, [&](T* to) { fill_bernoulli(to, t.numel(), p, g); }); });
}

// ---- integers

template <class T>
void draw_integers(const Tensor& t, int64_t from, int64_t to, Twister& g) {
  if constexpr (!std::is_integral_v<T>) {
    from = inward_from<T>(from);
    to = inward_to<T>(to);
  }
  in_memory_order<T>(
      t, [&](T* p) { fill_integers(p, t.numel(), static_cast<uint64_t>(to) - static_cast<uint64_t>(from), from, g); });
}
void draw_integers(const Tensor& t, int64_t from, int64_t to, Twister& g) {
  visit_real(t.dtype(), "random_", [&]<class T>() { draw_integers<T>(t, from, to, g); });
}

// The integers a dtype can hold: exactly, and at all.
struct IntegerBounds {
  double lowest, highest;  // that fit
  int64_t exact;           // whole numbers up to this magnitude are all there; of float types only
};
template <class T>
IntegerBounds integer_bounds() {
  if constexpr (std::is_same_v<T, Half>)
    return {-65504, 65504, 2048};
  else if constexpr (std::is_same_v<T, BFloat16>)
    return {-3.39e38, 3.39e38, 256};
  else
    return {static_cast<double>(std::numeric_limits<T>::lowest()), static_cast<double>(std::numeric_limits<T>::max()),
            std::is_integral_v<T> ? 0 : int64_t{1} << (std::numeric_limits<T>::digits % 63)};
}
IntegerBounds integer_bounds(Dtype d) {
  return visit_real(d, "random_", []<class T>() { return integer_bounds<T>(); });
}

void check_integer_bound(const char* name, int64_t value, Dtype d) {
  const IntegerBounds b = integer_bounds(d);
  check(static_cast<double>(value) >= b.lowest && static_cast<double>(value) <= b.highest, "random_: ", name,
        " is out of bounds for ", name_of(d), ": ", value);
  if (is_floating(d) && (value < -b.exact || value > b.exact) && warn)
    warn(join("random_: ", name, " is out of bounds [-", b.exact, ", ", b.exact, "]. Due to precision limitations ",
              name_of(d), " can support discrete uniform distribution only within this range"));
}
void check_random_dtype(Dtype d) {
  check(!is_complex(d), "check_random_bounds handles only integral, floating-point and boolean types, got ",
        name_of(d));
}
void check_integer_range(int64_t from, int64_t to, Dtype d) {
  check_random_dtype(d);
  check(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  check_integer_bound("from", from, d);
  check_integer_bound("to - 1", to - 1, d);
}

// ---------------------------------------------------------------- new tensors

// As c.promise; a result that goes to a strided out= is drawn in the order of that memory.
void promise_random(Call& c, DimsView sizes, const NewOptions& o) {
  const bool strided = c.target && !c.target->is_contiguous() && c.target->sizes() == Dims(sizes);
  c.promise(
      {Dims(sizes), strided ? dense_strides_like(c.target->sizes(), c.target->strides()) : Dims(), o.dtype, o.device});
}
bool goes_to_strided(const Call& c) { return c.target && !c.target->is_contiguous(); }

void check_uniform_dtype(const Call& c, Dtype d) {
  check_implemented((is_floating(d) && size_of(d) > 1) || is_complex(d), c.op.name(),
                    ": \"check_uniform_bounds\" not implemented for '", facts(d).legacy, "'");
}
void check_normal_dtype(const Call& c, Dtype d, bool is_empty = false) {
  check_implemented(is_empty || (is_floating(d) && size_of(d) > 1) || is_complex(d), c.op.name(),
                    ": \"normal_kernel_cpu\" not implemented for '", facts(d).legacy, "'");
}

void infer_rand(Call& c) {
  const NewOptions o = new_options(c, 2, default_dtype());
  check_uniform_dtype(c, o.dtype);
  promise_random(c, c.integers(0), o);
}
void run_rand(Call& c) { draw_uniform(c.out(), 0, 1, generator(c, 1)); }
void infer_randn(Call& c) {
  const NewOptions o = new_options(c, 2, default_dtype());
  check_normal_dtype(c, o.dtype, checked_numel(c.integers(0)) == 0);
  promise_random(c, c.integers(0), o);
}
void run_randn(Call& c) {
  if (c.out().numel()) draw_normal(c.out(), 0, 1, generator(c, 1), goes_to_strided(c));
}

void infer_rand_like(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 2, t.dtype(), t.device());
  check_uniform_dtype(c, o.dtype);
  c.promise(info_like(c, t, o, 7));
}
void infer_randn_like(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 2, t.dtype(), t.device());
  check_normal_dtype(c, o.dtype);
  c.promise(info_like(c, t, o, 7));
}

void infer_randint_to(Call& c) {
  const NewOptions o = new_options(c, 3, Dtype::i64);
  check_integer_range(0, c.integer(0), o.dtype);
  promise_random(c, c.integers(1), o);
}
void run_randint_to(Call& c) { draw_integers(c.out(), 0, c.integer(0), generator(c, 2)); }
void infer_randint(Call& c) {
  const NewOptions o = new_options(c, 4, Dtype::i64);
  check_integer_range(c.integer(0), c.integer(1), o.dtype);
  promise_random(c, c.integers(2), o);
}
void run_randint(Call& c) { draw_integers(c.out(), c.integer(0), c.integer(1), generator(c, 3)); }
void infer_randint_like_to(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 3, t.dtype(), t.device());
  check_integer_range(0, c.integer(1), o.dtype);
  c.promise(info_like(c, t, o, 8));
}
void run_randint_like_to(Call& c) { draw_integers(c.out(), 0, c.integer(1), generator(c, 2)); }
void infer_randint_like(Call& c) {
  const Tensor t = c.tensor(0);
  const NewOptions o = new_options(c, 4, t.dtype(), t.device());
  check_integer_range(c.integer(1), c.integer(2), o.dtype);
  c.promise(info_like(c, t, o, 9));
}
void run_randint_like(Call& c) { draw_integers(c.out(), c.integer(1), c.integer(2), generator(c, 3)); }

void infer_randperm(Call& c) {
  const int64_t n = c.integer(0);
  const NewOptions o = new_options(c, 2, Dtype::i64);
  check(n >= 0, "randperm: n must be non-negative, got ", n);
  check_implemented(o.dtype != Dtype::b8 && !is_complex(o.dtype), "\"randperm\" not implemented for '",
                    facts(o.dtype).legacy, "'");
  if (is_floating(o.dtype)) {
    const int64_t most = integer_bounds(o.dtype).exact + 1;
    check(n <= most, "randperm: n cannot be greater than ", most, " for ", facts(o.dtype).legacy, " type, got ", n);
  } else {
    check_fits(Scalar(std::max<int64_t>(n - 1, 0)), o.dtype);  // the largest of them
  }
  c.promise(Dims{n}, o.dtype, o.device);
}
void run_randperm(Call& c) {
  const Tensor& out = c.out();
  visit_real(out.dtype(), "randperm", [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) random_permutation(out.data<T>(), out.numel(), generator(c, 1));
  });
}

// ---------------------------------------------------------------- normal

void check_std(double std) { check(std >= 0, "normal expects std >= 0.0, but found std ", std); }

void infer_normal_numbers(Call& c) {
  check_std(c.real(1));
  const NewOptions o = new_options(c, 4, default_dtype());
  check_normal_dtype(c, o.dtype);
  promise_random(c, c.integers(2), o);
}
void run_normal_numbers(Call& c) { draw_normal(c.out(), c.real(0), c.real(1), generator(c, 3), goes_to_strided(c)); }

void check_std(const Tensor& std) {
  check(!is_complex(std.dtype()), "normal expects standard deviation to be non-complex, got ", name_of(std.dtype()));
}
void infer_normal_mean(Call& c) {
  const Tensor mean = c.tensor(0);
  check_normal_dtype(c, mean.dtype());
  check_std(c.real(1));
  c.promise_like(mean);
}
void infer_normal_std(Call& c) {
  const Tensor std = c.tensor(1);
  check_std(std);
  check_normal_dtype(c, std.dtype());
  c.promise_like(std);
}
void infer_normal_tensors(Call& c) {
  const Tensor mean = c.tensor(0), std = c.tensor(1);
  check_std(std);
  check_normal_dtype(c, mean.dtype());
  c.promise(broadcast("normal", mean.sizes(), std.sizes()), mean.dtype(), mean.device());
}

// z becomes z std + mean, rounded after each step; a mean or std that is undefined is left out.
void scale_and_shift(const Tensor& z, const Tensor& std, const Tensor& mean) {
  visit_floating_or_complex(z.dtype(), "normal", [&]<class T>() {
    T* to = z.data<T>();
    if (std.defined()) {
      const Tensor s = spread(std, z);
      for (int64_t i = 0; i < z.numel(); ++i)
        to[i] = static_cast<T>(static_cast<opmath<T>>(to[i]) * static_cast<opmath<T>>(s.data<T>()[i]));
    }
    if (mean.defined()) {
      const Tensor m = spread(mean, z);
      for (int64_t i = 0; i < z.numel(); ++i)
        to[i] = static_cast<T>(static_cast<opmath<T>>(to[i]) + static_cast<opmath<T>>(m.data<T>()[i]));
    }
  });
}
void check_std_values(const Tensor& std) {
  const Tensor t = contiguous(convert(std, Dtype::f64));
  for (int64_t i = 0; i < t.numel(); ++i)
    check(!(t.data<double>()[i] < 0), "normal expects all elements of std >= 0.0, got ", t.data<double>()[i]);
}
void run_normal_mean(Call& c) {
  draw_normal(c.out(), 0, c.real(1), generator(c, 2));
  scale_and_shift(c.out(), {}, c.tensor(0));
}
void run_normal_std(Call& c) {
  check_std_values(c.tensor(1));
  draw_normal(c.out(), 0, 1, generator(c, 2));
  scale_and_shift(c.out(), c.tensor(1), scalar_tensor(c.scalar(0), Dtype::f64));
}
void run_normal_tensors(Call& c) {
  check_std_values(c.tensor(1));
  draw_normal(c.out(), 0, 1, generator(c, 2));
  scale_and_shift(c.out(), c.tensor(1), c.tensor(0));
}

// ---------------------------------------------------------------- one sample for each element of the input

void check_probability(const Call& c, double p) {
  check(p >= 0 && p <= 1, c.op.name(), " expects p to be in [0, 1], but got p=", p);
}

// Coins of probabilities `p`, which lie like `out` in memory.
void toss(const Tensor& out, const Tensor& p, Twister& g) {
  const auto coins_into = [&]<class T>(T* to) {
    visit_floating(p.dtype(), "bernoulli_tensor_cpu_p_", [&]<class P>() {
      if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, P>) fill_bernoulli(to, p.data<P>(), p.numel(), g);
    });
  };
  if (out.dtype() == p.dtype())
    return visit_floating(out.dtype(), "bernoulli_tensor_cpu_self_", [&]<class T>() { coins_into(out.data<T>()); });
  if (out.dtype() == Dtype::b8) return coins_into(out.data<bool>());
  const Tensor coins = empty(TensorInfo{out.sizes(), out.strides(), Dtype::b8, {}});
  coins_into(coins.data<bool>());
  copy_into(out, coins);
}

void infer_bernoulli(Call& c) {
  const Tensor t = c.tensor(0);
  check_implemented(is_floating(t.dtype()), "bernoulli: \"bernoulli_tensor_cpu_p_\" not implemented for '",
                    facts(t.dtype()).legacy, "'");
  const Dtype dtype = c.target ? c.target->dtype() : t.dtype();  // zeros and ones are those of any dtype
  check_implemented(!is_complex(dtype), "\"bernoulli_tensor_cpu_self_\" not implemented for '", facts(dtype).legacy,
                    "'");
  c.promise(t.sizes(), dtype, t.device());
}
void run_bernoulli(Call& c) {
  if (c.out().numel() > 0) toss(c.out(), contiguous(c.tensor(0)), generator(c, 1));
}
void infer_bernoulli_number(Call& c) {
  check_probability(c, c.real(1));
  c.promise_like(c.tensor(0));
}
void run_bernoulli_number(Call& c) { draw_bernoulli(c.out(), c.real(1), generator(c, 2)); }

// ---------------------------------------------------------------- in place

void check_target(const Call& c) { check_no_internal_overlap(c.op.name().c_str(), c.tensor(0)); }

void check_uniform(Call& c) {
  check_target(c);
  const Dtype d = c.tensor(0).dtype();
  check_uniform_dtype(c, d);
  const double from = c.real(1), to = c.real(2);
  const Dtype real = is_complex(d) ? to_real(d) : d;
  const double most = real == Dtype::f16    ? 65504
                      : real == Dtype::bf16 ? 3.38953138925153547590470800371487866880e+38
                      : real == Dtype::f32  ? std::numeric_limits<float>::max()
                                            : std::numeric_limits<double>::max();
  check(std::fabs(from) <= most, "uniform_: from is out of bounds for ", name_of(real), ": ", from);
  check(std::fabs(to) <= most, "uniform_: to is out of bounds for ", name_of(real), ": ", to);
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  check(to - from <= most, "uniform_ expects to-from <= std::numeric_limits<", facts(real).legacy,
        ">::max(), but found to=", to, " and from=", from, " which result in to-from to exceed the limit");
}
void run_uniform(Call& c) { draw_uniform(c.tensor(0), c.real(1), c.real(2), generator(c, 3)); }

void check_normal(Call& c) {
  check_target(c);
  check_normal_dtype(c, c.tensor(0).dtype());
  check_std(c.real(2));
}
void run_normal(Call& c) { draw_normal(c.tensor(0), c.real(1), c.real(2), generator(c, 3)); }

void check_log_normal(Call& c) {
  check_target(c);
  check_implemented(is_floating(c.tensor(0).dtype()), "\"log_normal_cpu\" not implemented for '",
                    facts(c.tensor(0).dtype()).legacy, "'");
  check(c.real(2) > 0, "log_normal_ expects std > 0.0, but found std=", c.real(2));
}
void run_log_normal(Call& c) {
  const Tensor t = c.tensor(0);
  visit_floating(t.dtype(), "log_normal_cpu", [&]<class T>() {
    in_memory_order<T>(t, [&](T* p) { fill_log_normal(p, t.numel(), c.real(1), c.real(2), generator(c, 3)); });
  });
}

void check_cauchy(Call& c) {
  check_target(c);
  check(
      is_floating(c.tensor(0).dtype()),
      "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified ",
      facts(c.tensor(0).dtype()).legacy);
  check(c.real(2) > 0, "cauchy_ expects sigma > 0.0, but found sigma=", c.real(2));
}
void run_cauchy(Call& c) {
  const Tensor t = c.tensor(0);
  visit_floating(t.dtype(), "cauchy_cpu", [&]<class T>() {
    in_memory_order<T>(t, [&](T* p) { fill_cauchy(p, t.numel(), c.real(1), c.real(2), generator(c, 3)); });
  });
}

void check_exponential(Call& c) {
  check_target(c);
  check(is_floating(c.tensor(0).dtype()),
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
        "specified ",
        facts(c.tensor(0).dtype()).legacy);
  check(c.real(1) > 0, "exponential_ expects lambda > 0.0, but found lambda=", c.real(1));
}
void run_exponential(Call& c) {
  const Tensor t = c.tensor(0);
  visit_floating(t.dtype(), "exponential_cpu", [&]<class T>() {
    in_memory_order<T>(t, [&](T* p) { fill_exponential(p, t.numel(), c.real(1), generator(c, 2)); });
  });
}

void check_geometric(Call& c) {
  check_target(c);
  check_implemented(c.tensor(0).dtype() != Dtype::b8, "\"geometric_cpu\" not implemented for 'Bool'");
  check(c.real(1) > 0 && c.real(1) < 1, "geometric_ expects p to be in (0, 1), but got p=", c.real(1));
}
void run_geometric(Call& c) {
  const Tensor t = c.tensor(0);
  visit_real(t.dtype(), "geometric_cpu", [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      in_memory_order<T>(t, [&](T* p) { fill_geometric(p, t.numel(), c.real(1), generator(c, 2)); });
  });
}

void check_bernoulli(Call& c) {
  check_target(c);
  check_probability(c, c.real(1));
}
void run_bernoulli_inplace(Call& c) { draw_bernoulli(c.tensor(0), c.real(1), generator(c, 2)); }
void check_bernoulli_tensor(Call& c) {
  check_target(c);
  const Tensor p = c.tensor(1);
  check_implemented(is_floating(p.dtype()), "bernoulli_: \"bernoulli_tensor_cpu_p_\" not implemented for '",
                    facts(p.dtype()).legacy, "'");
  expanded_strides("bernoulli_", p, c.tensor(0).sizes());
}
void run_bernoulli_tensor(Call& c) {
  const Tensor t = c.tensor(0), p = c.tensor(1);
  if (t.numel() == 0) return;
  const Tensor like = empty_like_layout(t, p.dtype());  // the probabilities, in the order of t's memory
  copy_into(like, p);
  if (is_dense(t.sizes(), t.strides())) return toss(t, like, generator(c, 2));
  const Tensor buffer = empty_like_layout(t, t.dtype());
  toss(buffer, like, generator(c, 2));
  copy_into(t, buffer);
}

// ---- random_

void check_random_range(Call& c) {
  check_target(c);
  const Dtype d = c.tensor(0).dtype();
  if (c.has(2)) return check_integer_range(c.integer(1), c.integer(2), d);
  check_random_dtype(d);
  if (c.integer(1) != std::numeric_limits<int64_t>::min()) check_integer_bound("from", c.integer(1), d);
}
void run_random_range(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t from = c.integer(1);
  Twister& g = generator(c, 3);
  if (c.has(2)) return draw_integers(t, from, c.integer(2), g);
  visit_real(t.dtype(), "random_", [&]<class T>() {
    if (from == std::numeric_limits<int64_t>::min())
      return in_memory_order<T>(t, [&](T* p) { fill_all_integers(p, t.numel(), g); });
    // Up to the largest integer that the type holds, or holds exactly.
    int64_t first = from, last = std::numeric_limits<int64_t>::max();
    if constexpr (!std::is_integral_v<T>) {
      first = inward_from<T>(from);
      last = integer_bounds<T>().exact;
    } else if constexpr (sizeof(T) < 8) {
      last = static_cast<int64_t>(std::numeric_limits<T>::max());
    }
    check(first <= last,
          "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from=",
          first, " > to_inc=", last);
    in_memory_order<T>(t, [&](T* p) {
      fill_integers(p, t.numel(), static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1, first, g);
    });
  });
}
void check_random_to(Call& c) {
  check_target(c);
  check_integer_range(0, c.integer(1), c.tensor(0).dtype());
}
void run_random_to(Call& c) { draw_integers(c.tensor(0), 0, c.integer(1), generator(c, 2)); }
void check_random_any(Call& c) {
  check_target(c);
  const Dtype d = c.tensor(0).dtype();
  check_implemented(!is_complex(d) && d != Dtype::u16 && d != Dtype::u32 && d != Dtype::u64,
                    "\"random_kernel_cpu\" not implemented for '", facts(d).legacy, "'");
}
void run_random_any(Call& c) {
  const Tensor t = c.tensor(0);
  visit_real(t.dtype(), "random_kernel_cpu", [&]<class T>() {
    if constexpr (!std::is_unsigned_v<T> || sizeof(T) == 1)  // bool and uint8 too
      in_memory_order<T>(t, [&](T* p) { fill_nonnegative_integers(p, t.numel(), generator(c, 1)); });
  });
}

// ---------------------------------------------------------------- dropout

// out[i] = x[i] * (mask[i] ? scale : 0): what is dropped is multiplied, so that nan and infinity show.
template <class T>
void scale_kept(T* out, const T* x, const bool* mask, int64_t n, opmath<T> scale) {
  using Real = opmath<T>;
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = static_cast<T>(static_cast<Real>(x[i]) * (mask[i] ? scale : Real(0)));
  });
}

// The promised result and mask lie in memory as a product of the input and a dense copy of it would.
void promise_dropout(Call& c) {
  const Tensor x = c.tensor(0);
  check(is_differentiable(x.dtype()), c.op.name(), ": result type Float can't be cast to the desired output type ",
        facts(x.dtype()).legacy);
  const Dims strides = x.is_contiguous() ? contiguous_strides(x.sizes()) : dense_strides_like(x.sizes(), x.strides());
  c.promise({x.sizes(), strides, x.dtype(), x.device()});
  c.promise({x.sizes(), strides, Dtype::b8, x.device()});
}
// out = x * (mask ? scale : 0); the mask lies as `out` does. `scale` of a type: how what is kept grows.
template <class Scale>
void scale_kept_into(const Tensor& out, const Tensor& x, const Tensor& mask, Scale scale) {
  if (x.dtype() == Dtype::c32) {  // as numbers of single precision
    const Tensor wide = empty(TensorInfo{out.sizes(), out.strides(), Dtype::c64, {}});
    copy_into(wide, x);
    scale_kept_into(wide, wide, mask, scale);
    return copy_into(out, wide);
  }
  visit_floating_or_complex(x.dtype(), "dropout", [&]<class T>() {
    const bool alike = x.strides() == out.strides();
    if (!alike) copy_into(out, x);
    scale_kept(out.data<T>(), alike ? x.data<T>() : out.data<T>(), mask.data<bool>(), out.numel(),
               static_cast<opmath<T>>(scale.template operator()<T>()));
  });
}
template <class Scale>
void drop(Call& c, double keep, Twister& g, Scale scale) {
  const Tensor &x = c.tensor(0), &out = c.out(0), &mask = c.out(1);
  if (out.numel() == 0) return;
  fill_bernoulli(mask.data<bool>(), mask.numel(), keep, g);
  scale_kept_into(out, x, mask, scale);
}

void infer_fused_dropout(Call& c) {
  check(c.real(1) > 0 && c.real(1) <= 1, "_fused_dropout: the probability to keep must be in (0, 1], got ", c.real(1));
  promise_dropout(c);
}
// dropout multiplies with 1 / keep, rounded to the input's type.
void run_fused_dropout(Call& c) {
  const double keep = c.real(1);
  drop(c, keep, generator(c, 2),
       [&]<class T>() { return static_cast<T>(opmath<T>(1) / static_cast<opmath<T>>(keep)); });
}

void infer_native_dropout(Call& c) {
  const bool train = (!c.has(2) || c.boolean(2)) && c.tensor(0).numel();
  check(!train || (c.real(1) >= 0 && c.real(1) <= 1),
        "native_dropout: dropout probability has to be between 0 and 1, but got ", c.real(1));
  const Tensor x = c.tensor(0);
  if (train) return promise_dropout(c);
  // Nothing is scaled, so that any dtype will do. Of no elements the mask is another tensor like the input.
  const Dims strides = dense_strides_like(x.sizes(), x.strides());
  c.promise({x.sizes(), strides, x.dtype(), x.device()});
  c.promise({x.sizes(), strides, x.numel() ? Dtype::b8 : x.dtype(), x.device()});
}
void run_native_dropout(Call& c) {
  if (c.tensor(0).numel() == 0) return;
  if (c.has(2) && !c.boolean(2)) {
    copy_into(c.out(0), c.tensor(0));
    return fill(c.out(1), Scalar(true));
  }
  const double keep = 1 - c.real(1), scale = keep == 0 ? 0 : 1 / keep;
  drop(c, keep, default_generator(), [&]<class T>() { return static_cast<T>(static_cast<opmath<T>>(scale)); });
}

void infer_dropout_backward(Call& c) {
  const Tensor grad = c.tensor(0), mask = c.tensor(1);
  check(mask.dtype() == Dtype::b8, "native_dropout_backward: Mask should be Bool Scalar Type, got ",
        facts(mask.dtype()).legacy);
  check(mask.sizes() == grad.sizes(), "native_dropout_backward: the gradient has shape ", tuple(grad.sizes()),
        " and the mask ", tuple(mask.sizes()));
  c.promise({mask.sizes(), dense_strides_like(mask.sizes(), mask.strides()), grad.dtype(), grad.device()});
}
void run_dropout_backward(Call& c) {
  const Tensor &grad = c.tensor(0), &out = c.out();
  Tensor mask = c.tensor(1);
  if (mask.strides() != out.strides()) {
    mask = empty(TensorInfo{out.sizes(), out.strides(), Dtype::b8, {}});
    copy_into(mask, c.tensor(1));
  }
  scale_kept_into(out, grad, mask, [&]<class T>() { return static_cast<T>(static_cast<opmath<T>>(c.real(2))); });
}

}  // namespace

REGISTER(random) {
#define CRESSET_GENERATOR "Generator? generator=None"
  constexpr uint32_t constant = kNotDifferentiable, function = kNotDifferentiable | kFunctionOnly,
                     inplace = kMutates | kMethodOnly;
  r.add("rand(int[...] size, *, " CRESSET_GENERATOR ", " CRESSET_NEW ") -> Tensor", infer_rand, run_rand, constant);
  r.add("randn(int[...] size, *, " CRESSET_GENERATOR ", " CRESSET_NEW ") -> Tensor", infer_randn, run_randn, constant);
  r.add("rand_like(Tensor input, *, " CRESSET_GENERATOR ", " CRESSET_NEW
        ", MemoryFormat? memory_format=None) -> Tensor",
        infer_rand_like, run_rand, function);
  r.add("randn_like(Tensor input, *, " CRESSET_GENERATOR ", " CRESSET_NEW
        ", MemoryFormat? memory_format=None) -> Tensor",
        infer_randn_like, run_randn, function);
  r.add("randint(SymInt high, int[] size, *, " CRESSET_GENERATOR ", " CRESSET_NEW ") -> Tensor", infer_randint_to,
        run_randint_to, constant);
  r.add("randint.low(SymInt low, SymInt high, int[] size, *, " CRESSET_GENERATOR ", " CRESSET_NEW ") -> Tensor",
        infer_randint, run_randint, constant);
  r.add("randint_like(Tensor input, int high, *, " CRESSET_GENERATOR ", " CRESSET_NEW
        ", MemoryFormat? memory_format=None) -> Tensor",
        infer_randint_like_to, run_randint_like_to, function);
  r.add("randint_like.low(Tensor input, int low, int high, *, " CRESSET_GENERATOR ", " CRESSET_NEW
        ", MemoryFormat? memory_format=None) -> Tensor",
        infer_randint_like, run_randint_like, function);
  r.add("randperm(SymInt n, *, " CRESSET_GENERATOR ", " CRESSET_NEW ") -> Tensor", infer_randperm, run_randperm,
        constant);

  // Tensors before numbers: a 0-d tensor would do as a number.
  r.add("normal.tensors(Tensor mean, Tensor std, *, " CRESSET_GENERATOR ") -> Tensor", infer_normal_tensors,
        run_normal_tensors, 0, "NormalBackward3");
  r.add("normal.mean(Tensor mean, float std=1, *, " CRESSET_GENERATOR ") -> Tensor", infer_normal_mean, run_normal_mean,
        0, "NormalBackward1");
  r.add("normal.std(float mean, Tensor std, *, " CRESSET_GENERATOR ") -> Tensor", infer_normal_std, run_normal_std, 0,
        "NormalBackward2");
  r.add("normal.numbers(float mean, float std, int[] size, *, " CRESSET_GENERATOR ", " CRESSET_NEW ") -> Tensor",
        infer_normal_numbers, run_normal_numbers, constant);

  r.add("bernoulli(Tensor input, *, " CRESSET_GENERATOR ") -> Tensor", infer_bernoulli, run_bernoulli);
  r.add("bernoulli.p(Tensor input, float p, *, " CRESSET_GENERATOR ") -> Tensor", infer_bernoulli_number,
        run_bernoulli_number);

  r.add("uniform_(Tensor input, float from=0, float to=1, *, " CRESSET_GENERATOR ") -> Tensor", check_uniform,
        run_uniform, inplace, "UniformBackward0");
  r.add("normal_(Tensor input, float mean=0, float std=1, *, " CRESSET_GENERATOR ") -> Tensor", check_normal,
        run_normal, inplace, "NormalBackward0");
  r.add("log_normal_(Tensor input, float mean=1, float std=2, *, " CRESSET_GENERATOR ") -> Tensor", check_log_normal,
        run_log_normal, inplace, "LogNormalBackward0");
  r.add("cauchy_(Tensor input, float median=0, float sigma=1, *, " CRESSET_GENERATOR ") -> Tensor", check_cauchy,
        run_cauchy, inplace, "CauchyBackward0");
  r.add("exponential_(Tensor input, float lambd=1, *, " CRESSET_GENERATOR ") -> Tensor", check_exponential,
        run_exponential, inplace, "ExponentialBackward0");
  r.add("geometric_(Tensor input, float p, *, " CRESSET_GENERATOR ") -> Tensor", check_geometric, run_geometric,
        inplace, "GeometricBackward0");
  r.add("bernoulli_.tensor(Tensor input, Tensor p, *, " CRESSET_GENERATOR ") -> Tensor", check_bernoulli_tensor,
        run_bernoulli_tensor, inplace, "BernoulliBackward1");
  r.add("bernoulli_.number(Tensor input, float p=0.5, *, " CRESSET_GENERATOR ") -> Tensor", check_bernoulli,
        run_bernoulli_inplace, inplace, "BernoulliBackward2");
  r.add("random_(Tensor input, *, " CRESSET_GENERATOR ") -> Tensor", check_random_any, run_random_any, inplace,
        "RandomBackward2");
  r.add("random_.to(Tensor input, int to, *, " CRESSET_GENERATOR ") -> Tensor", check_random_to, run_random_to, inplace,
        "RandomBackward1");
  r.add("random_.range(Tensor input, int from, int? to, *, " CRESSET_GENERATOR ") -> Tensor", check_random_range,
        run_random_range, inplace, "RandomBackward0");

  // What dropout is made of: p is the probability to keep. The mask is all that backward needs.
  r.add("_fused_dropout(Tensor input, float p, " CRESSET_GENERATOR ") -> (Tensor output, Tensor mask)",
        infer_fused_dropout, run_fused_dropout, kFunctionOnly, "MulBackward0");
  r.add("native_dropout(Tensor input, float p, bool? train) -> (Tensor output, Tensor mask)", infer_native_dropout,
        run_native_dropout, kFunctionOnly | kRandom);
  r.add("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", infer_dropout_backward,
        run_dropout_backward);
#undef CRESSET_GENERATOR
}

}  // namespace cresset
