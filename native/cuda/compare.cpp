// Places in sorted sequences, and counts of elements: searchsorted, bucketize, bincount, histc, and positions that are repeated.
#include <bit>
#include <cmath>
#include <limits>

#include "cuda/backend.h"
#include "cuda/fault.h"
#include "cuda/indexed_walk.h"
#include "cuda/register.h"
#include "dispatch/on_host.h"

namespace cresset::cuda {
namespace {

const KernelFamily kSearch("compare.cuh", "search_sorted", {"T", "R"}, {"-DSEARCH"});
const KernelFamily kExtremes("compare.cuh", "key_extremes", {"T"}, {"-DEXTREMES"});
const KernelFamily kCount("compare.cuh", "count_numbers", {}, {"-DCOUNT", "-DT=int64_t"});
const KernelFamily kIntervals("compare.cuh", "count_intervals", {"T"}, {"-DINTERVALS"});
const KernelFamily kRepeat("indexing.cuh", "repeat_positions", {"T"}, {"-DREPEAT"});

// The lowest and the highest key of the elements (ordered_keys.cuh). Waits for the device.
struct Extremes {
  uint64_t low, high;
};
int64_t integer_of(uint64_t key) { return static_cast<int64_t>(key ^ (uint64_t{1} << 63)); }  // of int64
Extremes extremes_of(const Tensor& dense) {
  const Place place(dense.device());
  const Tensor both = full({{2}}, Scalar(0), Dtype::i64, dense.device());
  fill(view_of(both, {}, {}, 0), Scalar(-1));
  const int64_t n = dense.numel();
  kExtremes.launch(place, {dense.dtype()}, std::min<int64_t>(divide_up(n, 256 * 8), 1024), 256, 0, dense.bytes(), n, both.bytes());
  const Tensor here = empty({{2}}, Dtype::i64);
  copy_into(here, both);
  return {here.data<uint64_t>()[0], here.data<uint64_t>()[1]};
}

// ---------------------------------------------------------------- searchsorted

// The common dtype of the sequence and the elements. Bool and complex have no place in a sequence.
Dtype search_dtype(const Tensor& sequence, const Tensor& input) {
  ResultType common;
  for (const Tensor* t : {&sequence, &input}) {
    check_implemented(!is_complex(t->dtype()), "\"searchsorted_out_cuda\" not implemented for '", name_of(t->dtype()), "'");
    common.add(**t);
  }
  check_implemented(common.result() != Dtype::b8, "\"searchsorted_out_cuda\" not implemented for 'bool'");
  return common.result();
}

void search(const Tensor& sequence_given, const Tensor& input_given, bool right, const Tensor& sorter_given, const Tensor& out) {
  Dtype dtype = search_dtype(sequence_given, input_given);
  if (is_floating(dtype) && size_of(dtype) < 4) dtype = Dtype::f32;
  const int64_t n = out.numel();
  if (n == 0) return;
  const Tensor sequence = contiguous_on_device(convert(sequence_given, dtype));
  Tensor input = convert(input_given, dtype);
  if (input.device() != sequence.device()) {
    const Tensor there = empty(input.sizes(), dtype, sequence.device());
    copy_into(there, input);
    input = there;
  }
  input = contiguous_on_device(input);
  const Tensor sorter = sorter_given.defined() ? contiguous_on_device(sorter_given) : Tensor();
  if (sorter.defined() && sorter.numel()) {
    const Extremes e = extremes_of(sorter);
    const int64_t low = integer_of(e.low), high = integer_of(e.high);
    check(low >= 0 && high < sorter.size(-1), "searchsorted(): sorter index out of range: ", low < 0 ? low : high);
  }
  const int64_t length = sequence.size(-1), per_row = sequence.dim() > 1 ? input.size(-1) : 0;
  const auto to_right = static_cast<int32_t>(right);
  kSearch.launch(Place(sequence.device()), {dtype, out.dtype()}, divide_up(n, 256), 256, 0, sequence.bytes(), sorter.defined() ? sorter.bytes() : nullptr, input.bytes(), out.bytes(), n, length, per_row,
                 to_right);
}

// Arguments: sorted_sequence, input, out_int32, right, side, sorter.
bool searches_right(const Call& c) { return c.boolean(3) || (c.has(4) && c.text(4) == "right"); }
Tensor sorter_of(const Call& c) { return c.has(5) ? c.tensor(5) : Tensor(); }
void run_searchsorted(Call& c) { search(c.tensor(0), c.tensor(1), searches_right(c), sorter_of(c), c.out()); }
void run_searchsorted_scalar(Call& c) { search(c.tensor(0), wrapped_number(c.scalar(1)), searches_right(c), sorter_of(c), c.out()); }
void run_bucketize(Call& c) { search(c.tensor(1), c.tensor(0), c.boolean(3), {}, c.out()); }
void run_bucketize_scalar(Call& c) { search(c.tensor(1), wrapped_number(c.scalar(0)), c.boolean(3), {}, c.out()); }

// ---------------------------------------------------------------- counting

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
    kCount.launch(place, {}, divide_up(n, 256), 256, 0, places.bytes(), n, counts.bytes());
    return c.give(counts);
  }
  Tensor weights = c.tensor(1);
  check(weights.dim() == 1 && weights.numel() == n, "bincount: weights should be 1-d and have the same length as input, got shapes ", list(weights.sizes()), " and ", list(input.sizes()));
  if (weights.dtype() != Dtype::f32) weights = convert(weights, Dtype::f64);
  const Tensor sums = full({{bins}}, Scalar(0), weights.dtype(), input.device());
  combine_indexed(walk_slices("bincount", sums, 0, places, weights), weights.dtype(), Combine::add, {place, input.device(), Dtype::i64, operation});
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
  // The range is a pair of numbers of the elements' precision (float for the halves).
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
  if (n) kIntervals.launch(Place(input.device()), {d}, divide_up(n, 256), 256, 0, input.bytes(), n, counts.bytes(), bins, low, high);
  copy_into(out, counts);
}

// ---------------------------------------------------------------- repeat_interleave

// How often each position is to be repeated, as the list of positions: repeats [2, 0, 1] gives [0, 0, 2].
void run_repeat_positions(Call& c) {
  static const Operator* cumsum = Registry::instance().find("cumsum");
  const Tensor repeats = c.tensor(0);
  check(repeats.dim() == 1, "repeat_interleave: only accept 1D vector as repeat, got ", repeats.dim(), " dims");
  check(repeats.dtype() == Dtype::i64 || repeats.dtype() == Dtype::i32, "repeat_interleave: repeats has to be Long or Int tensor, got ", name_of(repeats.dtype()));
  const int64_t n = repeats.numel();
  if (n == 0 || !cumsum || !cumsum->run_on(repeats.device())) return execute_on_host(c, repeats.device());
  const Tensor counts = contiguous_on_device(convert(repeats, Dtype::i64));
  const int64_t lowest = integer_of(extremes_of(counts).low);
  check(lowest >= 0, "repeat_interleave: repeats can not be negative, got ", lowest);
  const GradModeGuard unrecorded(false);
  const Tensor ends = contiguous_on_device(call_operator(*cumsum, counts, int64_t{0}));
  const int64_t total = item(view_of(ends, {}, {}, ends.offset() + n - 1)).integer;
  check(!c.has(1) || c.integer(1) == total, "repeat_interleave: allocated size does not match required size: output_size=", c.has(1) ? c.integer(1) : 0, ", need ", total);
  const Tensor out = empty({{total}}, repeats.dtype(), repeats.device());
  if (total) kRepeat.launch(Place(repeats.device()), {repeats.dtype()}, divide_up(total, 256), 256, 0, ends.bytes(), n, out.bytes(), total);
  c.give(out);
}

}  // namespace

void register_cuda_compare(Registry& r) {
  r.set_kernel("searchsorted", DeviceType::cuda, run_searchsorted);
  r.set_kernel("searchsorted.Scalar", DeviceType::cuda, run_searchsorted_scalar);
  r.set_kernel("bucketize", DeviceType::cuda, run_bucketize);
  r.set_kernel("bucketize.Scalar", DeviceType::cuda, run_bucketize_scalar);
  r.set_kernel("bincount", DeviceType::cuda, run_bincount);
  r.set_kernel("histc", DeviceType::cuda, run_histc);
  r.set_kernel("repeat_positions", DeviceType::cuda, run_repeat_positions);
}

}  // namespace cresset::cuda
