// The discrete Fourier transform of complex lines: mixed-radix passes for lengths with small factors, Bluestein's chirp for the others.
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>

#include "base/parallel.h"
#include "ops/register.h"

namespace cresset {
namespace {

template <class R>
using C = std::complex<R>;

// a * b without the checks for infinities that std::complex makes.
template <class R>
inline C<R> times(C<R> a, C<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2 pi i k / n), with the angle reduced before it is rounded.
template <class R>
C<R> root(int64_t k, int64_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle))};
}

constexpr int64_t kLargestFactor = 31;

template <class R>
class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (int64_t p : {4, 2, 3, 5})
      while (rest % p == 0) factors_.push_back(p), rest /= p;
    for (int64_t p = 7; p <= kLargestFactor; p += 2)
      while (rest % p == 0) factors_.push_back(p), rest /= p;
    if (rest > 1) {
      make_chirp();
      return;
    }
    for (int64_t k = 0; k < n; ++k) roots_.push_back(root<R>(k, n));
  }

  // Elements of scratch that run needs.
  int64_t scratch() const { return chirp_plan_ ? 2 * padded_ + chirp_plan_->scratch() : n_; }

  // In place; forward is exp(-i...). Scaling is the caller's.
  void run(C<R>* x, C<R>* scratch, bool forward) const {
    if (n_ <= 1) return;
    if (!forward) conjugate(x, n_);
    if (chirp_plan_) run_chirp(x, scratch);
    else run_passes(x, scratch);
    if (!forward) conjugate(x, n_);
  }

 private:
  static void conjugate(C<R>* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[i] = std::conj(x[i]);
  }

  // Each pass takes in(i, q, k) to out(i, k, j) = sum over q of in(i, q, k) w^(jq), times the twiddle of (j, i). Out of place, and in the end in order.
  void run_passes(C<R>* x, C<R>* scratch) const {
    C<R>*in = x, *out = scratch;
    int64_t done = 1;
    for (int64_t p : factors_) {
      const int64_t inner = n_ / (done * p);
      if (p == 2) pass<2>(in, out, done, inner);
      else if (p == 3) pass<3>(in, out, done, inner);
      else if (p == 4) pass4(in, out, done, inner);
      else if (p == 5) pass<5>(in, out, done, inner);
      else pass_any(in, out, done, inner, p);
      done *= p;
      std::swap(in, out);
    }
    if (in != x) std::copy(in, in + n_, x);
  }

  template <int P>
  void pass(const C<R>* in, C<R>* out, int64_t done, int64_t inner) const {
    pass_sized(in, out, done, inner, std::integral_constant<int64_t, P>());
  }
  void pass_any(const C<R>* in, C<R>* out, int64_t done, int64_t inner, int64_t p) const { pass_sized(in, out, done, inner, p); }

  template <class P>
  void pass_sized(const C<R>* in, C<R>* out, int64_t done, int64_t inner, P p) const {
    C<R> w[kLargestFactor], v[kLargestFactor];
    for (int64_t j = 0; j < p; ++j) w[j] = roots_[static_cast<size_t>(j * (n_ / p))];
    for (int64_t k = 0; k < done; ++k)
      for (int64_t i = 0; i < inner; ++i) {
        for (int64_t q = 0; q < p; ++q) v[q] = in[i + inner * (q + p * k)];
        for (int64_t j = 0; j < p; ++j) {
          C<R> sum = v[0];
          for (int64_t q = 1, at = j; q < p; ++q, at = at + j >= p ? at + j - p : at + j) sum += times(v[q], w[at]);
          out[i + inner * (k + done * j)] = j != 0 && i != 0 ? times(sum, roots_[static_cast<size_t>(j * done * i)]) : sum;
        }
      }
  }

  void pass4(const C<R>* in, C<R>* out, int64_t done, int64_t inner) const {
    for (int64_t k = 0; k < done; ++k)
      for (int64_t i = 0; i < inner; ++i) {
        const C<R>* a = in + i + inner * 4 * k;
        const C<R> even = a[0] + a[2 * inner], odd = a[0] - a[2 * inner], sum = a[inner] + a[3 * inner], difference = a[inner] - a[3 * inner];
        const C<R> turned(difference.imag(), -difference.real());  // -i times
        const C<R> y[4] = {even + sum, odd + turned, even - sum, odd - turned};
        for (int64_t j = 0; j < 4; ++j) out[i + inner * (k + done * j)] = times(y[j], roots_[static_cast<size_t>(j * done * i)]);
      }
  }

  // x_k w^(k^2/2) convolved with the conjugate chirp, by transforms of a friendly length.
  void make_chirp() {
    padded_ = 1;
    while (padded_ < 2 * n_ - 1) padded_ *= 2;
    chirp_plan_ = std::make_unique<Plan>(padded_);
    filter_.assign(static_cast<size_t>(padded_), C<R>(0));
    for (int64_t k = 0; k < n_; ++k) {
      const C<R> c = root<R>((k * k) % (2 * n_), 2 * n_);
      chirp_.push_back(c);
      filter_[static_cast<size_t>(k)] = std::conj(c);
      if (k) filter_[static_cast<size_t>(padded_ - k)] = std::conj(c);
    }
    std::vector<C<R>> scratch(static_cast<size_t>(chirp_plan_->scratch()));
    chirp_plan_->run(filter_.data(), scratch.data(), true);
    for (auto& f : filter_) f /= static_cast<R>(padded_);
  }
  void run_chirp(C<R>* x, C<R>* scratch) const {
    C<R>* a = scratch;
    for (int64_t k = 0; k < n_; ++k) a[k] = times(x[k], chirp_[static_cast<size_t>(k)]);
    std::fill(a + n_, a + padded_, C<R>(0));
    chirp_plan_->run(a, scratch + padded_, true);
    for (int64_t k = 0; k < padded_; ++k) a[k] = times(a[k], filter_[static_cast<size_t>(k)]);
    chirp_plan_->run(a, scratch + padded_, false);
    for (int64_t k = 0; k < n_; ++k) x[k] = times(a[k], chirp_[static_cast<size_t>(k)]);
  }

  int64_t n_, padded_ = 0;
  std::vector<int64_t> factors_;
  std::vector<C<R>> roots_, chirp_, filter_;
  std::unique_ptr<Plan> chirp_plan_;
};

template <class R>
std::shared_ptr<const Plan<R>> plan_for(int64_t n) {
  static std::mutex lock;
  static std::map<int64_t, std::shared_ptr<const Plan<R>>> plans;
  std::lock_guard guard(lock);
  auto& plan = plans[n];
  if (!plan) {
    if (plans.size() > 64) plans.erase(plans.begin()->first == n ? std::next(plans.begin()) : plans.begin());
    return plans[n] = std::make_shared<const Plan<R>>(n);
  }
  return plan;
}

template <class R>
void transform_dim(const Tensor& t, int64_t d, bool forward, R scale) {
  const int64_t n = t.size(d), lines = t.numel() / std::max<int64_t>(n, 1), step = t.stride(d);
  const auto plan = plan_for<R>(n);
  parallel_for(lines, std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    std::vector<C<R>> line(static_cast<size_t>(n)), scratch(static_cast<size_t>(plan->scratch()));
    for (int64_t l = begin; l < end; ++l) {
      // t is contiguous: the line's start follows from what lies outside and inside of d.
      C<R>* x = t.data<C<R>>() + l / step * step * n + l % step;
      for (int64_t i = 0; i < n; ++i) line[static_cast<size_t>(i)] = x[i * step];
      plan->run(line.data(), scratch.data(), forward);
      for (int64_t i = 0; i < n; ++i) x[i * step] = line[static_cast<size_t>(i)] * scale;
    }
  });
}

template <class R>
void transform_dims(const Tensor& t, DimsView dims, bool forward, double scale) {
  for (const int64_t d : dims) {
    transform_dim<R>(t, d, forward, static_cast<R>(scale));
    scale = 1;
  }
}
void transform_dims(const Tensor& t, DimsView dims, bool forward, double scale) {
  if (t.dtype() == Dtype::c64) transform_dims<float>(t, dims, forward, scale);
  else transform_dims<double>(t, dims, forward, scale);
}

// Halves are for devices that have such transforms.
void check_complex(const Tensor& t) {
  check(t.dtype() == Dtype::c64 || t.dtype() == Dtype::c128 || (t.dtype() == Dtype::c32 && !t.device().is_cpu()), "fft: expected a complex64 or complex128 tensor, got ", name_of(t.dtype()), " on ",
        t.device());
}

void infer_complex(Call& c) {
  const Tensor t = c.tensor(0);
  check_complex(t);
  wrap_dims(c.integers(1), t.dim());
  c.promise(t.sizes(), t.dtype(), t.device());
}

void run_complex(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  copy_into(out, t);
  if (out.numel()) transform_dims(out, wrap_dims(c.integers(1), t.dim()), c.boolean(2), c.real(3));
}

// The half of a real signal's spectrum that determines the rest: the last of the dimensions is halved.
void infer_from_real(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dtype() == Dtype::f32 || t.dtype() == Dtype::f64 || (t.dtype() == Dtype::f16 && !t.device().is_cpu()), "fft: expected a float32 or float64 tensor, got ", name_of(t.dtype()), " on ", t.device());
  const Dims dims = wrap_dims(c.integers(1), t.dim());
  check(!dims.empty(), "fft: a real transform is along at least one dimension");
  Dims sizes = t.sizes();
  sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
  c.promise(sizes, t.dtype() == Dtype::f32 ? Dtype::c64 : t.dtype() == Dtype::f64 ? Dtype::c128 : Dtype::c32, t.device());
}

void run_from_real(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  if (out.numel() == 0) return;
  Dims dims = wrap_dims(c.integers(1), t.dim());
  const int64_t last = dims.back();
  dims.pop_back();
  const Tensor whole = empty(t.sizes(), out.dtype());
  copy_into(whole, t);
  transform_dims(whole, {&last, 1}, c.boolean(2), c.real(3));
  copy_into(out, view_of(whole, out.sizes(), whole.strides(), whole.offset()));
  transform_dims(out, dims, c.boolean(2), 1);
}

// A real signal of `size` elements along the last of the dimensions from the half of its spectrum.
void infer_to_real(Call& c) {
  const Tensor t = c.tensor(0);
  check_complex(t);
  const Dims dims = wrap_dims(c.integers(1), t.dim());
  check(!dims.empty(), "fft: a real transform is along at least one dimension");
  Dims sizes = t.sizes();
  check(c.integer(2) >= 1 && sizes[dims.back()] == c.integer(2) / 2 + 1, "fft: a real signal of ", c.integer(2), " elements has a spectrum of ", c.integer(2) / 2 + 1, ", got ", sizes[dims.back()]);
  sizes[dims.back()] = c.integer(2);
  c.promise(sizes, t.dtype() == Dtype::c64 ? Dtype::f32 : t.dtype() == Dtype::c128 ? Dtype::f64 : Dtype::f16, t.device());
}

// The other half is the conjugate, backwards: elements half... of dimension d from those before them.
template <class R>
void mirror(const Tensor& whole, int64_t d, int64_t half) {
  const int64_t n = whole.size(d), lines = whole.numel() / n, step = whole.stride(d);
  parallel_for(lines, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      C<R>* x = whole.data<C<R>>() + l / step * step * n + l % step;
      for (int64_t k = half; k < n; ++k) x[k * step] = std::conj(x[(n - k) * step]);
    }
  });
}

void run_to_real(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  if (out.numel() == 0) return;
  Dims dims = wrap_dims(c.integers(1), t.dim());
  const int64_t last = dims.back();
  dims.pop_back();
  Tensor half = t;
  if (!dims.empty()) {
    half = empty(t.sizes(), t.dtype());
    copy_into(half, t);
    transform_dims(half, dims, c.boolean(3), 1);
  }
  const Tensor whole = empty(out.sizes(), t.dtype());
  copy_into(view_of(whole, t.sizes(), whole.strides(), whole.offset()), half);
  if (t.dtype() == Dtype::c64) mirror<float>(whole, last, t.size(last));
  else mirror<double>(whole, last, t.size(last));
  transform_dims(whole, {&last, 1}, c.boolean(3), c.real(4));
  copy_into(out, whole);
}

}  // namespace

void register_fourier(Registry& r) {
  r.add("fft_complex(Tensor input, int[] dim, bool forward, float scale) -> Tensor", infer_complex, run_complex, kFunctionOnly, "FftC2CBackward0");
  r.add("fft_from_real(Tensor input, int[] dim, bool forward, float scale) -> Tensor", infer_from_real, run_from_real, kFunctionOnly, "FftR2CBackward0");
  r.add("fft_to_real(Tensor input, int[] dim, int size, bool forward, float scale) -> Tensor", infer_to_real, run_to_real, kFunctionOnly, "FftC2RBackward0");
}

}  // namespace cresset
