// Making plans, running them, and keeping them.
#include "ops/fourier_plans.h"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "base/fork_lock.h"
#include "base/levels.h"
#include "base/parallel.h"
#include "tensor/allocator.h"

namespace cresset {

template <class R>
const FourierKernels<R>& fourier_kernels() {
  static const FourierKernels<R> the = BY_LEVEL(fourier_kernels, <R>());
  return the;
}

template <class R>
Roots<R>::Roots(int64_t n) : n_(n) {
  while ((int64_t{1} << (2 * fine_bits_)) < n) ++fine_bits_;
  const auto made = [n](int64_t k) {
    const Wide angle = -2 * std::numbers::pi_v<Wide> * static_cast<Wide>(k) / static_cast<Wide>(n);
    return Pair{std::cos(angle), std::sin(angle)};
  };
  for (int64_t k = 0; k < int64_t{1} << fine_bits_; ++k) fine_.push_back(made(k));
  for (int64_t k = 0; k << fine_bits_ < n; ++k) coarse_.push_back(made(k << fine_bits_));
}

template <class R>
void Roots<R>::get(int64_t k, R* to) const {
  k %= n_;
  if (4 * k % n_ == 0) {
    const int64_t quarter = 4 * k / n_;
    to[0] = static_cast<R>(quarter == 0 ? 1 : quarter == 2 ? -1 : 0);
    to[1] = static_cast<R>(quarter == 1 ? -1 : quarter == 3 ? 1 : 0);
    return;
  }
  const Pair a = coarse_[static_cast<size_t>(k >> fine_bits_)],
             b = fine_[static_cast<size_t>(k & ((int64_t{1} << fine_bits_) - 1))];
  to[0] = static_cast<R>(a.re * b.re - a.im * b.im);
  to[1] = static_cast<R>(a.re * b.im + a.im * b.re);
}

namespace {

constexpr int64_t kGrain = 16384;  // numbers a thread should have

std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  while (n % 8 == 0 && n % 32 != 16) factors.push_back(8), n /= 8;
  for (int64_t p : {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31})
    while (n % p == 0) factors.push_back(p), n /= p;
  return n == 1 ? factors : std::vector<int64_t>();
}

// Of a pass, for each number.
double cost_of(int64_t radix) {
  return radix <= 5   ? 1.0 + 0.05 * static_cast<double>(radix)
         : radix == 8 ? 1.4
                      : 1.0 + 0.2 * static_cast<double>(radix);
}

double cost_of_passes(int64_t n) {
  double cost = 1;
  for (const int64_t p : factors_of(n)) cost += cost_of(p);
  return n > 4096 ? 2 * cost : cost;
}

int64_t blocks_of(int64_t lines, int64_t lanes) { return (lines + lanes - 1) / lanes; }

// The next larger product of few factors.
int64_t friendly(int64_t least) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t n = odd;
    while (n < least) n *= 2;
    if (!best || n < best) best = n;
  }
  return best;
}

}  // namespace

bool has_passes(int64_t n) { return n == 1 || !factors_of(n).empty(); }

template <class R>
Chirp<R>::Chirp(int64_t n)
    : padded(friendly(2 * n - 1)), chirp(static_cast<size_t>(2 * n)), filter(static_cast<size_t>(2 * padded)) {
  const Roots<R> roots(2 * n);
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    R* c = chirp.data() + 2 * k;
    roots.get(square, c);
    for (const int64_t at : {k, (padded - k) % padded}) {
      filter[static_cast<size_t>(2 * at)] = c[0] / static_cast<R>(padded);
      filter[static_cast<size_t>(2 * at + 1)] = -c[1] / static_cast<R>(padded);
    }
  }
}

// ---- blocks

template <class R>
BlockPlan<R>::BlockPlan(int64_t n) : n_(n), room_(n + kLargestRadix) {
  if (!has_passes(n)) {
    Chirp<R> c(n);
    numbers_ = std::move(c.chirp);
    padded_ = std::make_unique<BlockPlan>(c.padded);
    room_ = padded_->room_;
    filter_.resize(c.filter.size());
    // Its transform, as a line of a block.
    const int64_t lanes = fourier_kernels<R>().lanes;
    std::vector<R> x(static_cast<size_t>(2 * room_ * lanes)), y(x.size());
    for (size_t i = 0; i < filter_.size(); ++i) x[i * static_cast<size_t>(lanes)] = c.filter[i];
    const R* done = padded_->run(x.data(), y.data(), false);
    for (size_t i = 0; i < filter_.size(); ++i) filter_[i] = done[i * static_cast<size_t>(lanes)];
    return;
  }
  const std::vector<int64_t> factors = factors_of(n);
  size_t count = 0;
  int64_t done = 1;
  for (const int64_t p : factors) count += static_cast<size_t>(2 * (p - 1) * (n / (done * p)) + 2 * p), done *= p;
  numbers_.resize(count);
  const Roots<R> roots(n);
  R* at = numbers_.data();
  done = 1;
  for (const int64_t p : factors) {
    const int64_t inner = n / (done * p);
    const bool first = passes_.empty(), last = inner == 1;
    passes_.push_back({p, done, inner, at, at + 2 * (p - 1) * inner, first ? 1 : passes_.back().done, !first, !last});
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t j = 1; j < p; ++j, at += 2) roots.get(i * j * done, at);
    for (int64_t j = 0; j < p; ++j, at += 2) {
      roots.get(j * (n / p), at);
      at[1] = -at[1];
    }
    done *= p;
  }
}

template <class R>
R* BlockPlan<R>::run(R* x, R* y, bool swapped) const {
  const FourierKernels<R>& kernels = fourier_kernels<R>();
  if (!padded_) return kernels.transform(passes_.data(), static_cast<int64_t>(passes_.size()), x, y, swapped);
  kernels.multiply(y, x, numbers_.data(), n_, swapped);
  const int64_t padded = padded_->n_, number = 2 * kernels.lanes;
  std::fill(y + n_ * number, y + padded * number, R(0));
  R *result = padded_->run(y, x, swapped), *other = result == x ? y : x;
  kernels.multiply(result, result, filter_.data(), padded, swapped);
  result = padded_->run(result, other, !swapped);
  kernels.multiply(result, result, numbers_.data(), n_, swapped);
  return result;
}

// ---- lines

template <class R>
LinePlan<R>::LinePlan(int64_t n) : n_(n) {
  if (!has_passes(n)) {
    Chirp<R> c(n);
    chirp_ = std::move(c.chirp), filter_ = std::move(c.filter);
    padded_ = plan_for<LinePlan>(c.padded);
    scratch_ = 2 * c.padded + padded_->scratch();
    const FourierScratch<R> scratch(scratch_);
    padded_->run(filter_.data(), filter_.data(), 1, false, scratch.data());
    return;
  }
  const int64_t lanes = fourier_kernels<R>().lanes;
  double least = 0;
  for (int64_t d = 1; d * d <= n; ++d)
    for (const int64_t rows : {d, n / d}) {
      if (n % d) continue;
      const int64_t columns = n / rows;
      const auto numbers = static_cast<double>(lanes) * static_cast<double>(n);
      const double cost =
          numbers *
          (static_cast<double>(blocks_of(columns, lanes)) / static_cast<double>(columns) * (cost_of_passes(rows) + 1) +
           static_cast<double>(blocks_of(rows, lanes)) / static_cast<double>(rows) * cost_of_passes(columns));
      if (least == 0 || cost < least) least = cost, rows_ = rows, columns_ = columns;
    }
  first_ = plan_for<BlockPlan<R>>(rows_), second_ = plan_for<BlockPlan<R>>(columns_);
  const int64_t blocks = blocks_of(columns_, lanes);
  scratch_ = (blocks_of(rows_, lanes) * second_->room() + 2 * std::max(first_->room(), second_->room())) * 2 * lanes;
  turns_.resize(static_cast<size_t>(blocks * rows_ * 2 * lanes));
  const Roots<R> roots(n);
  R* to = turns_.data();
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t row = 0; row < rows_; ++row, to += 2 * lanes)
      for (int64_t l = 0; l < lanes; ++l) {
        R number[2];
        roots.get(row * (b * lanes + l), number);
        to[l] = number[0], to[l + lanes] = number[1];
      }
}

template <class R>
void LinePlan<R>::run(const R* in, R* out, R scale, bool backward, R* scratch) const {
  if (padded_)
    run_chirp(in, out, scale, backward, scratch);
  else
    run_matrix(in, out, scale, backward, scratch);
}

template <class R>
void LinePlan<R>::run_matrix(const R* in, R* out, R scale, bool backward, R* scratch) const {
  const FourierKernels<R>& kernels = fourier_kernels<R>();
  const int64_t lanes = kernels.lanes, number = 2 * lanes, block = second_->room() * number,
                column_blocks = blocks_of(columns_, lanes), row_blocks = blocks_of(rows_, lanes);
  const int64_t room = std::max(first_->room(), second_->room()) * number;
  R* const turned = scratch;
  const auto transform_columns = [&](int64_t begin, int64_t end, R* x, R* y) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t valid = std::min(lanes, columns_ - b * lanes);
      kernels.load_columns(x, in + b * number, 2 * columns_, valid, rows_);
      const R* result = first_->run(x, y, backward);
      kernels.turn(result, turns_.data() + b * rows_ * number, rows_, turned + b * lanes * number, block, valid,
                   backward);
    }
  };
  const auto transform_rows = [&](int64_t begin, int64_t end, R* y) {
    for (int64_t b = begin; b < end; ++b) {
      const R* result = second_->run(turned + b * block, y, backward);
      kernels.store_columns(result, out + b * number, 2 * rows_, std::min(lanes, rows_ - b * lanes), columns_, scale);
    }
  };
  if (n_ < 2 * kGrain) {
    R* const x = scratch + row_blocks * block;
    transform_columns(0, column_blocks, x, x + room);
    transform_rows(0, row_blocks, x);
    return;
  }
  parallel_for(column_blocks, std::max<int64_t>(1, kGrain / (rows_ * lanes)), [&](int64_t begin, int64_t end) {
    const FourierScratch<R> own(2 * room);
    transform_columns(begin, end, own.data(), own.data() + room);
  });
  parallel_for(row_blocks, std::max<int64_t>(1, kGrain / (columns_ * lanes)), [&](int64_t begin, int64_t end) {
    const FourierScratch<R> own(room);
    transform_rows(begin, end, own.data());
  });
}

template <class R>
void LinePlan<R>::run_chirp(const R* in, R* out, R scale, bool backward, R* scratch) const {
  // Backward: the conjugate of the transform of the conjugate.
  const R sign = backward ? R(-1) : R(1);
  const int64_t padded = static_cast<int64_t>(filter_.size()) / 2;
  R *const a = scratch, *const more = scratch + 2 * padded;
  for (int64_t k = 0; k < n_; ++k) {
    const R re = in[2 * k], im = in[2 * k + 1] * sign, *c = chirp_.data() + 2 * k;
    a[2 * k] = re * c[0] - im * c[1], a[2 * k + 1] = re * c[1] + im * c[0];
  }
  std::fill(a + 2 * n_, a + 2 * padded, R(0));
  padded_->run(a, a, 1, false, more);
  for (int64_t k = 0; k < padded; ++k) {
    const R re = a[2 * k], im = a[2 * k + 1], *c = filter_.data() + 2 * k;
    a[2 * k] = re * c[0] - im * c[1], a[2 * k + 1] = re * c[1] + im * c[0];
  }
  padded_->run(a, a, 1, true, more);
  for (int64_t k = 0; k < n_; ++k) {
    const R re = a[2 * k] * scale, im = a[2 * k + 1] * scale, *c = chirp_.data() + 2 * k;
    out[2 * k] = re * c[0] - im * c[1], out[2 * k + 1] = (re * c[1] + im * c[0]) * sign;
  }
}

// ---- real transforms, and the plans that are kept

template <class R>
RealRoots<R>::RealRoots(int64_t n) : numbers(static_cast<size_t>(2 * (n / 4 + 1))) {
  const Roots<R> roots(n);
  for (int64_t k = 0; k <= n / 4; ++k) roots.get(k, numbers.data() + 2 * k);
}

template <class Plan>
std::shared_ptr<const Plan> plan_for(int64_t n) {
  constexpr int64_t kMostBytes = int64_t{1} << 27;
  // Never destroyed: threads may be at work while the process ends.
  static auto& lock = *new ForkLock;
  static auto& plans = *new std::map<int64_t, std::shared_ptr<const Plan>>;
  static int64_t bytes = 0;
  {
    const std::lock_guard guard(lock);
    if (const auto found = plans.find(n); found != plans.end()) return found->second;
  }
  auto plan = std::make_shared<const Plan>(n);  // may ask for other plans of the kind
  const std::lock_guard guard(lock);
  if (bytes += plan->bytes(); bytes > kMostBytes) plans.clear(), bytes = plan->bytes();
  return plans.insert_or_assign(n, std::move(plan)).first->second;
}

template <class R>
FourierScratch<R>::FourierScratch(int64_t count)
    : count_(count), data_(static_cast<R*>(allocate_host(static_cast<size_t>(count) * sizeof(R)))) {}
template <class R>
FourierScratch<R>::~FourierScratch() {
  free_host(data_, static_cast<size_t>(count_) * sizeof(R));
}

#define FOR_REALS(R)                                                            \
  template const FourierKernels<R>& fourier_kernels<R>();                       \
  template class Roots<R>;                                                      \
  template struct Chirp<R>;                                                     \
  template class BlockPlan<R>;                                                  \
  template class LinePlan<R>;                                                   \
  template struct RealRoots<R>;                                                 \
  template class FourierScratch<R>;                                             \
  template std::shared_ptr<const BlockPlan<R>> plan_for<BlockPlan<R>>(int64_t); \
  template std::shared_ptr<const LinePlan<R>> plan_for<LinePlan<R>>(int64_t);   \
  template std::shared_ptr<const RealRoots<R>> plan_for<RealRoots<R>>(int64_t);
FOR_REALS(float)
FOR_REALS(double)
#undef FOR_REALS

}  // namespace cresset
