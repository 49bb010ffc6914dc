// Places in sorted sequences: searchsorted and bucketize. Distinct elements, which take a sort, are in sorting.cpp.
#include "ops/compare.h"
#include "cuda/backend.h"
#include "cuda/extremes.h"
#include "cuda/launch.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

const KernelFamily kSearch("compare.cuh", "search_sorted", {"T", "R"});

void search(const Tensor& sequence_given, const Tensor& input_given, bool right, const Tensor& sorter_given,
            const Tensor& out) {
  Dtype dtype = search_dtype("searchsorted_out_cuda", sequence_given, input_given);
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
  kSearch.launch(Place(sequence.device()), {dtype, out.dtype()}, divide_up(n, 256), 256, 0, sequence.bytes(),
                 sorter.defined() ? sorter.bytes() : nullptr, input.bytes(), out.bytes(), n, length, per_row, to_right);
}

// Arguments: sorted_sequence, input, out_int32, right, side, sorter.
Tensor sorter_of(const Call& c) { return c.has(5) ? c.tensor(5) : Tensor(); }
void run_searchsorted(Call& c) { search(c.tensor(0), c.tensor(1), searches_right(c), sorter_of(c), c.out()); }
void run_searchsorted_scalar(Call& c) {
  search(c.tensor(0), wrapped_number(c.scalar(1)), searches_right(c), sorter_of(c), c.out());
}
void run_bucketize(Call& c) { search(c.tensor(1), c.tensor(0), c.boolean(3), {}, c.out()); }
void run_bucketize_scalar(Call& c) { search(c.tensor(1), wrapped_number(c.scalar(0)), c.boolean(3), {}, c.out()); }

}  // namespace

REGISTER_KERNELS(compare) {
  r.set_kernel("searchsorted", DeviceType::cuda, run_searchsorted);
  r.set_kernel("searchsorted.Scalar", DeviceType::cuda, run_searchsorted_scalar);
  r.set_kernel("bucketize", DeviceType::cuda, run_bucketize);
  r.set_kernel("bucketize.Scalar", DeviceType::cuda, run_bucketize_scalar);
}

}  // namespace cresset::cuda
