// Counting elements: bincount and histc.
#include <bit>
#include <cmath>

#include "cuda/backend.h"
#include "cuda/extremes.h"
#include "cuda/fault.h"
#include "cuda/indexed_walk.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kMostBins = 8192;  // that a block counts by itself, as in histogram.cuh

const KernelFamily kCount("histogram.cuh", "count_numbers", {"SHARED"}, {"-DCOUNT"});
const KernelFamily kIntervals("histogram.cuh", "count_intervals", {"T", "SHARED"}, {"-DINTERVALS"});

// Few blocks, each of which has many elements for its own counts.
int64_t counting_blocks(const Place& place, int64_t n) {
  return std::min<int64_t>(divide_up(n, 256), int64_t{8} * properties(place.device).multiprocessors);
}

void run_bincount(Call& c) {
  static const int operation = operation_number("bincount");
  const Tensor input = c.tensor(0);
  const int64_t least = c.integer(2), n = input.numel();
  check_implemented(is_integral(input.dtype()), "\"bincount_cuda\" not implemented for '", name_of(input.dtype()), "'");
  check(least >= 0, "bincount: minlength should be >= 0, got ", least);
  check(input.dim() == 1, "bincount only supports 1-d non-negative integral inputs. Got shape ", list(input.sizes()));
  if (n == 0) return c.give(full({{least}}, Scalar(0), Dtype::i64, input.device()));
  const Tensor places = contiguous_on_device(convert(input, Dtype::i64));
  const Extremes e = extremes_of(places);
  const int64_t low = integer_of(e.low), high = integer_of(e.high);
  check(low >= 0, "bincount only supports 1-d non-negative integral inputs. Got the element ", low);
  const int64_t bins = std::max(least, high + 1);
  const Place place(input.device());
  if (!c.has(1)) {
    const Tensor counts = full({{bins}}, Scalar(0), Dtype::i64, input.device());
    kCount.launch(place, {bins <= kMostBins}, counting_blocks(place, n), 256, 0, places.bytes(), n, counts.bytes(),
                  bins);
    return c.give(counts);
  }
  Tensor weights = c.tensor(1);
  check(weights.dim() == 1 && weights.numel() == n,
        "bincount: weights should be 1-d and have the same length as input, got shapes ", list(weights.sizes()),
        " and ", list(input.sizes()));
  if (weights.dtype() != Dtype::f32) weights = convert(weights, Dtype::f64);
  const Tensor sums = full({{bins}}, Scalar(0), weights.dtype(), input.device());
  combine_indexed(walk_slices("bincount", sums, 0, places, weights), weights.dtype(), Combine::add,
                  {place, input.device(), Dtype::i64, operation});
  c.give(sums);
}

// The element of a key.
double element_of(uint64_t key, Dtype d) {
  const uint64_t sign = uint64_t{1} << (8 * size_of(d) - 1), all = size_of(d) == 8 ? ~uint64_t{0} : (sign << 1) - 1;
  if (key == all) return NAN;
  const uint64_t bits = key & sign ? key ^ sign : ~key & all;
  if (d == Dtype::f64) return std::bit_cast<double>(bits);
  if (d == Dtype::f32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  Tensor one = empty({}, d);
  *one.data<uint16_t>() = static_cast<uint16_t>(bits);
  return item(one).real;
}

void run_histc(Call& c) {
  const Tensor input = contiguous_on_device(c.tensor(0)), out = c.out();
  const Dtype d = input.dtype();
  if (size_of(d) == 1) return execute_on_host(c, input.device());
  const int64_t n = input.numel(), bins = out.numel();
  // The range is a pair of numbers of the elements' precision (float for half precision).
  const auto precise = [&](double v) { return d == Dtype::f64 ? v : static_cast<double>(static_cast<float>(v)); };
  double low = precise(c.real(2)), high = precise(c.real(3));
  if (low == high && n > 0) {
    const Extremes e = extremes_of(input);
    low = element_of(e.low, d), high = element_of(e.high, d);
    if (std::isnan(high)) low = high;
  }
  if (low == high) low -= 1, high += 1;
  check(std::isfinite(low) && std::isfinite(high), "histc: range of [", low, ", ", high, "] is not finite");
  check(low < high, "histc: max must be larger than min, got ", high, " and ", low);
  const Tensor counts = full({{bins}}, Scalar(0), Dtype::i64, input.device());
  const Place place(input.device());
  if (n)
    kIntervals.launch(place, {d, bins <= kMostBins}, counting_blocks(place, n), 256, 0, input.bytes(), n,
                      counts.bytes(), bins, low, high);
  copy_into(out, counts);
}

}  // namespace

REGISTER_KERNELS(histogram) {
  r.set_kernel("bincount", DeviceType::cuda, run_bincount);
  r.set_kernel("histc", DeviceType::cuda, run_histc);
}

}  // namespace cresset::cuda
