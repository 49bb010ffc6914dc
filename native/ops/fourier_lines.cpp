// Which lines are transformed side by side and which one by one, and how they come from memory and go back.
#include "ops/fourier_lines.h"

#include "base/parallel.h"
#include "ops/fourier_plans.h"

namespace cresset {
namespace {

// Lines in memory, as many as a vector has lanes at a time.
template <class R>
class Lines {
 public:
  Lines(R* data, LineShape shape, int64_t parts)
      : data_(data), outer_(shape.outer), n_(shape.n), inner_(shape.inner), parts_(parts) {}

  int64_t groups() const {
    return side_by_side() ? outer_ * per_outer() : (outer_ * inner_ + kernels_.lanes - 1) / kernels_.lanes;
  }
  int64_t lines_of(int64_t group) const {
    return side_by_side() ? std::min(kernels_.lanes, inner_ - group % per_outer() * kernels_.lanes)
                          : std::min(kernels_.lanes, outer_ * inner_ - group * kernels_.lanes);
  }

  // Elements [first, first + count) of a group's lines, to a block and back.
  void load(int64_t group, int64_t first, int64_t count, R* x) const {
    const R* from = at(group) + first * inner_ * parts_;
    if (inner_ == 1)
      kernels_.load_rows(x, from, n_ * parts_, lines_of(group), count * parts_);
    else if (!side_by_side())
      gather(group, first, count, x);
    else if (parts_ == 2)
      kernels_.load_columns(x, from, 2 * inner_, lines_of(group), count);
    else
      kernels_.load_real_columns(x, from, inner_, lines_of(group), count);
  }
  void store(int64_t group, int64_t first, int64_t count, const R* x, R scale) const {
    R* to = at(group) + first * inner_ * parts_;
    if (inner_ == 1)
      kernels_.store_rows(x, to, n_ * parts_, lines_of(group), count * parts_, scale);
    else if (!side_by_side())
      scatter(group, first, count, x, scale);
    else if (parts_ == 2)
      kernels_.store_columns(x, to, 2 * inner_, lines_of(group), count, scale);
    else
      kernels_.store_real_columns(x, to, inner_, lines_of(group), count, scale);
  }
  void load(int64_t group, R* x) const { load(group, 0, n_, x); }
  void store(int64_t group, const R* x, R scale) const { store(group, 0, n_, x, scale); }

  // The same to lines that follow one another.
  void load_lines(int64_t group, R* lines) const {
    const FourierScratch<R> x(kChunk * parts_ * kernels_.lanes);
    for (int64_t i = 0; i < n_; i += kChunk) {
      const int64_t count = std::min(kChunk, n_ - i);
      load(group, i, count, x.data());
      kernels_.store_rows(x.data(), lines + i * parts_, n_ * parts_, lines_of(group), count * parts_, 1);
    }
  }
  void store_lines(int64_t group, const R* lines) const {
    const FourierScratch<R> x(kChunk * parts_ * kernels_.lanes);
    for (int64_t i = 0; i < n_; i += kChunk) {
      const int64_t count = std::min(kChunk, n_ - i);
      kernels_.load_rows(x.data(), lines + i * parts_, n_ * parts_, lines_of(group), count * parts_);
      store(group, i, count, x.data(), 1);
    }
  }

  bool follow_one_another() const { return inner_ == 1; }
  int64_t lines() const { return outer_ * inner_; }
  int64_t reals() const { return n_ * parts_; }
  R* line(int64_t l) const { return data_ + l * reals(); }

 private:
  static constexpr int64_t kChunk = 256;

  bool side_by_side() const { return inner_ >= kernels_.lanes; }
  int64_t per_outer() const { return (inner_ + kernels_.lanes - 1) / kernels_.lanes; }
  R* at(int64_t group) const {
    if (side_by_side())
      return data_ + (group / per_outer() * n_ * inner_ + group % per_outer() * kernels_.lanes) * parts_;
    return data_ + group * kernels_.lanes * n_ * parts_;
  }
  R* start(int64_t line) const { return data_ + (line / inner_ * n_ * inner_ + line % inner_) * parts_; }
  void gather(int64_t group, int64_t first, int64_t count, R* x) const {
    const int64_t valid = lines_of(group);
    for (int64_t l = 0; l < kernels_.lanes; ++l) {
      const R* from = start(group * kernels_.lanes + (l < valid ? l : 0)) + first * inner_ * parts_;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t p = 0; p < parts_; ++p) x[(i * parts_ + p) * kernels_.lanes + l] = from[i * inner_ * parts_ + p];
    }
  }
  void scatter(int64_t group, int64_t first, int64_t count, const R* x, R scale) const {
    for (int64_t l = 0; l < lines_of(group); ++l) {
      R* to = start(group * kernels_.lanes + l) + first * inner_ * parts_;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t p = 0; p < parts_; ++p)
          to[i * inner_ * parts_ + p] = x[(i * parts_ + p) * kernels_.lanes + l] * scale;
    }
  }

  const FourierKernels<R>& kernels_ = fourier_kernels<R>();
  R* data_;
  int64_t outer_, n_, inner_, parts_;
};

constexpr int64_t kGrain = 16384;  // numbers a thread should have

// Whether lines are transformed one by one (Note [Long lines]): where a block of them is too much for the cache, or
// most lanes would be idle.
template <class R>
bool one_by_one(int64_t n, int64_t lines) {
  constexpr int64_t kShort = 256, kCache = 1 << 19;
  const int64_t lanes = fourier_kernels<R>().lanes;
  return n >= kShort && (2 * n * 2 * lanes * static_cast<int64_t>(sizeof(R)) > kCache || 2 * lines < lanes);
}

// f(group, x, y) with buffers for `room` numbers of each line.
template <class R, class F>
void for_groups(const Lines<R>& lines, int64_t n, int64_t room, F&& f) {
  const int64_t lanes = fourier_kernels<R>().lanes, reals = room * 2 * lanes;
  parallel_for(lines.groups(), std::max<int64_t>(1, kGrain / (n * lanes)), [&](int64_t begin, int64_t end) {
    const FourierScratch<R> x(reals), y(reals);
    for (int64_t g = begin; g < end; ++g) f(g, x.data(), y.data());
  });
}

// f(line in, line out, scratch) with `reals` of scratch.
template <class R, class F>
void for_lines(const Lines<R>& in, const Lines<R>& out, int64_t reals, F&& f) {
  if (in.follow_one_another()) {
    parallel_for(in.lines(), std::max<int64_t>(1, 2 * kGrain / in.reals()), [&](int64_t begin, int64_t end) {
      const FourierScratch<R> scratch(reals);
      for (int64_t l = begin; l < end; ++l) f(in.line(l), out.line(l), scratch.data());
    });
    return;
  }
  const int64_t lanes = fourier_kernels<R>().lanes;
  const FourierScratch<R> from(lanes * in.reals()), to(lanes * out.reals());
  for (int64_t g = 0; g < in.groups(); ++g) {
    in.load_lines(g, from.data());
    parallel_for(in.lines_of(g), 1, [&](int64_t begin, int64_t end) {
      const FourierScratch<R> scratch(reals);
      for (int64_t l = begin; l < end; ++l)
        f(from.data() + l * in.reals(), to.data() + l * out.reals(), scratch.data());
    });
    out.store_lines(g, to.data());
  }
}

// f(begin, end) over the m / 2 + 1 pairs of elements of a line, in shares that do not split a vector.
template <class F>
void for_pairs(int64_t m, F&& f) {
  constexpr int64_t kShare = 1024;
  const int64_t pairs = m / 2 + 1;
  parallel_for((pairs + kShare - 1) / kShare, kGrain / kShare,
               [&](int64_t begin, int64_t end) { f(begin * kShare, std::min(end * kShare, pairs)); });
}

template <class R>
void separate_line(R* x, const R* roots, int64_t m, R sign) {
  x[2 * m] = x[0], x[2 * m + 1] = x[1];
  for_pairs(m, [&](int64_t begin, int64_t end) { fourier_kernels<R>().separate_line(x, roots, m, sign, begin, end); });
}
template <class R>
void join_line(const R* x, R* to, const R* roots, int64_t m, R sign) {
  for_pairs(m, [&](int64_t begin, int64_t end) { fourier_kernels<R>().join_line(x, to, roots, m, sign, begin, end); });
}

}  // namespace

template <class R>
void transform_complex(const R* in, R* out, LineShape shape, bool forward, R scale) {
  const Lines<R> from(const_cast<R*>(in), shape, 2), to(out, shape, 2);
  if (one_by_one<R>(shape.n, from.lines())) {
    const auto plan = plan_for<LinePlan<R>>(shape.n);
    for_lines(from, to, plan->scratch(),
              [&](const R* a, R* b, R* scratch) { plan->run(a, b, scale, !forward, scratch); });
    return;
  }
  const auto plan = plan_for<BlockPlan<R>>(shape.n);
  for_groups(from, shape.n, plan->room(), [&](int64_t g, R* x, R* y) {
    from.load(g, x);
    to.store(g, plan->run(x, y, !forward), scale);
  });
}

// An even number of reals is half as many complex numbers; an odd one has no such help.
template <class R>
void transform_from_real(const R* in, R* out, LineShape shape, bool forward, R scale) {
  const int64_t n = shape.n, m = n / 2, length = n % 2 ? n : m, lanes = fourier_kernels<R>().lanes;
  const R sign = forward ? R(1) : R(-1);
  const Lines<R> from(const_cast<R*>(in), shape, 1), to(out, {shape.outer, m + 1, shape.inner}, 2);
  const auto roots = plan_for<RealRoots<R>>(n);
  if (one_by_one<R>(length, from.lines())) {
    const auto plan = plan_for<LinePlan<R>>(length);
    for_lines(from, to, 2 * n + plan->scratch(), [&](const R* a, R* b, R* scratch) {
      if (n % 2 == 0) {
        plan->run(a, b, scale, false, scratch);
        separate_line(b, roots->numbers.data(), m, sign);
        return;
      }
      for (int64_t i = 0; i < n; ++i) scratch[2 * i] = a[i], scratch[2 * i + 1] = 0;
      plan->run(scratch, scratch, scale, !forward, scratch + 2 * n);
      std::copy(scratch, scratch + 2 * (m + 1), b);
    });
    return;
  }
  const auto plan = plan_for<BlockPlan<R>>(length);
  for_groups(from, length, plan->room(), [&](int64_t g, R* x, R* y) {
    if (n % 2 == 0) {
      from.load(g, x);
      R* result = plan->run(x, y, false);
      fourier_kernels<R>().separate(result, roots->numbers.data(), m, sign);
      to.store(g, result, scale);
      return;
    }
    from.load(g, y);
    for (int64_t i = 0; i < n; ++i) {
      std::copy(y + i * lanes, y + (i + 1) * lanes, x + 2 * i * lanes);
      std::fill(x + (2 * i + 1) * lanes, x + (2 * i + 2) * lanes, R(0));
    }
    to.store(g, plan->run(x, y, !forward), scale);
  });
}

template <class R>
void transform_to_real(const R* in, R* out, LineShape shape, bool forward, R scale) {
  const int64_t n = shape.n, m = n / 2, length = n % 2 ? n : m, lanes = fourier_kernels<R>().lanes;
  const R sign = forward ? R(-1) : R(1);
  const Lines<R> from(const_cast<R*>(in), {shape.outer, m + 1, shape.inner}, 2), to(out, shape, 1);
  const auto roots = plan_for<RealRoots<R>>(n);
  if (one_by_one<R>(length, from.lines())) {
    const auto plan = plan_for<LinePlan<R>>(length);
    for_lines(from, to, 2 * n + plan->scratch(), [&](const R* a, R* b, R* scratch) {
      if (n % 2 == 0) {
        join_line(a, scratch, roots->numbers.data(), m, sign);
        plan->run(scratch, b, scale, true, scratch + n);
        return;
      }
      // The other half is the conjugate, backwards.
      scratch[0] = a[0], scratch[1] = 0;
      for (int64_t k = 1; k <= m; ++k) {
        scratch[2 * k] = scratch[2 * (n - k)] = a[2 * k];
        scratch[2 * k + 1] = a[2 * k + 1], scratch[2 * (n - k) + 1] = -a[2 * k + 1];
      }
      plan->run(scratch, scratch, scale, !forward, scratch + 2 * n);
      for (int64_t i = 0; i < n; ++i) b[i] = scratch[2 * i];
    });
    return;
  }
  const auto plan = plan_for<BlockPlan<R>>(length);
  for_groups(from, length, plan->room(), [&](int64_t g, R* x, R* y) {
    from.load(g, x);
    if (n % 2 == 0) {
      fourier_kernels<R>().join(x, roots->numbers.data(), m, sign);
      to.store(g, plan->run(x, y, true), scale);
      return;
    }
    std::fill(x + lanes, x + 2 * lanes, R(0));
    for (int64_t k = 1; k <= m; ++k)
      for (int64_t l = 0; l < lanes; ++l) {
        x[2 * (n - k) * lanes + l] = x[2 * k * lanes + l];
        x[(2 * (n - k) + 1) * lanes + l] = -x[(2 * k + 1) * lanes + l];
      }
    R* result = plan->run(x, y, !forward);
    for (int64_t i = 1; i < n; ++i) std::copy(result + 2 * i * lanes, result + (2 * i + 1) * lanes, result + i * lanes);
    to.store(g, result, scale);
  });
}

template void transform_complex<float>(const float*, float*, LineShape, bool, float);
template void transform_complex<double>(const double*, double*, LineShape, bool, double);
template void transform_from_real<float>(const float*, float*, LineShape, bool, float);
template void transform_from_real<double>(const double*, double*, LineShape, bool, double);
template void transform_to_real<float>(const float*, float*, LineShape, bool, float);
template void transform_to_real<double>(const double*, double*, LineShape, bool, double);

}  // namespace cresset
