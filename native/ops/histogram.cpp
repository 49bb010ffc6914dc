// Counting elements: bincount and histc.
#include <cmath>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

// How often each of 0, 1, 2, ... occurs, or the sum of the weights of its occurrences.
template <class W>
Tensor count_into(const int64_t* places, int64_t n, int64_t bins, const W* weights, Dtype dtype) {
  const Tensor out = full({{bins}}, Scalar(0), dtype);
  W* to = out.data<W>();
  if (weights)
    for (int64_t i = 0; i < n; ++i) to[places[i]] += weights[i];
  else
    for (int64_t i = 0; i < n; ++i) to[places[i]] += 1;
  return out;
}

void run_bincount(Call& c) {
  const Tensor input = c.tensor(0);
  const int64_t least = c.integer(2);
  check_implemented(is_integral(input.dtype()), "\"bincount_cpu\" not implemented for '", name_of(input.dtype()), "'");
  check_implemented(!input.is_meta(),
                    "bincount: the shape of the result depends on the elements, which a meta tensor does not have");
  check(least >= 0, "bincount: minlength should be >= 0, got ", least);
  check(input.dim() == 1, "bincount only supports 1-d non-negative integral inputs. Got shape ", list(input.sizes()));
  const int64_t n = input.numel();
  if (n == 0) return c.give(full({{least}}, Scalar(0), Dtype::i64));
  const Tensor places = contiguous(convert(input, Dtype::i64));
  const int64_t* place = places.data<int64_t>();
  int64_t low = place[0], high = place[0];
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, place[i]);
    high = std::max(high, place[i]);
  }
  check(low >= 0, "bincount only supports 1-d non-negative integral inputs. Got the element ", low);
  const int64_t bins = std::max(least, checked_sum("bincount", high, 1));
  LongWork work(n);
  if (!c.has(1)) return c.give(count_into<int64_t>(place, n, bins, nullptr, Dtype::i64));
  const Tensor weights = c.tensor(1);
  check(weights.dim() == 1 && weights.numel() == n,
        "bincount: weights should be 1-d and have the same length as input, got shapes ", list(weights.sizes()),
        " and ", list(input.sizes()));
  if (weights.dtype() == Dtype::f32)
    return c.give(count_into(place, n, bins, contiguous(weights).data<float>(), Dtype::f32));
  const Tensor wide = contiguous(convert(weights, Dtype::f64));
  c.give(count_into(place, n, bins, wide.data<double>(), Dtype::f64));
}

void infer_histc(Call& c) {
  const Tensor input = c.tensor(0);
  const int64_t bins = c.integer(1);
  check_implemented(is_floating(input.dtype()), "\"histogram_cpu\" not implemented for '", name_of(input.dtype()), "'");
  check(bins > 0, "histc: bins must be > 0, but got ", bins, " for dimension 0");
  c.promise({{bins}}, input.dtype(), input.device());
}

template <class T>
opmath<T> rounded(opmath<T> v) {
  return static_cast<opmath<T>>(static_cast<T>(v));
}

// Equal intervals; the last has both its edges.
template <class T>
void count_intervals(const Tensor& input, double low_given, double high_given, const Tensor& out) {
  using A = opmath<T>;
  const int64_t n = input.numel(), bins = out.numel();
  const T* from = input.data<T>();
  A low = rounded<T>(static_cast<A>(low_given)), high = rounded<T>(static_cast<A>(high_given));
  if (low == high && n > 0) {
    low = high = static_cast<A>(from[0]);
    for (int64_t i = 0; i < n; ++i) {
      const A v = static_cast<A>(from[i]);
      low = v < low || v != v ? v : low;
      high = v > high || v != v ? v : high;
    }
  }
  const bool one_value = low == high;
  if (one_value) {
    low = rounded<T>(low - 1);
    high = rounded<T>(high + 1);
  }
  check(std::isfinite(low) && std::isfinite(high), "histc: range of [", low, ", ", high, "] is not finite");
  SmallVector<int64_t, 128> counts(bins, 0);
  const bool too_large = one_value && low == high;  // for a number beside it: all lie at that end of the range
  if (too_large) counts[low > 0 ? bins - 1 : 0] = n;
  check(low < high || too_large, "histc: max must be larger than min, got ", high, " and ", low);
  for (int64_t i = 0; i < n && !too_large; ++i) {
    const A v = static_cast<A>(from[i]);
    if (!(v >= low && v <= high)) continue;
    // Each step in the elements' own precision, as the edges of the bins are.
    const A place = rounded<T>(rounded<T>(rounded<T>(v - low) * static_cast<A>(bins)) / rounded<T>(high - low));
    ++counts[std::min(static_cast<int64_t>(place), bins - 1)];
  }
  for (int64_t b = 0; b < bins; ++b) out.data<T>()[b] = static_cast<T>(static_cast<A>(counts[b]));
}
void run_histc(Call& c) {
  const Tensor input = contiguous(c.tensor(0));
  visit_floating(input.dtype(), "histogram_cpu",
                 [&]<class T>() { count_intervals<T>(input, c.real(2), c.real(3), c.out()); });
}

}  // namespace

REGISTER(histogram) {
  r.add("bincount(Tensor input, Tensor? weights=None, SymInt minlength=0) -> Tensor", nullptr, run_bincount);
  r.add("histc(Tensor input, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", infer_histc, run_histc,
        kNotDifferentiable);
}

}  // namespace cresset
