// Scans on the device: cumulative sums, products, extremes and log-sum-exps along one dimension.
#include <algorithm>
#include <limits>

#include "cuda/reduction.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kItems = 8;  // as in scan.cuh
enum Scan : int { kSum, kProduct, kLogSumExp, kLargest, kSmallest };

const std::initializer_list<const char*> kMacros = {"OPERATION", "ELEMENT", "COMPUTED", "RESULT", "KERNEL", "ALIGNED"};
const KernelFamily kRows("scan.cuh", "scan_rows", kMacros, {"--fmad=true"});
const KernelFamily kLongRows("scan.cuh", "scan_long_rows", kMacros, {"--fmad=true"});
const KernelFamily kColumns("scan.cuh", "scan_columns", kMacros, {"--fmad=true"});

// Along the last dimension; `indices` may be undefined.
void scan_rows(Scan scan, Dtype computed, const Tensor& x, const Tensor& y, const Tensor& indices, int64_t rows,
               int64_t n) {
  const Place place(x.device());
  const bool are_long = rows < 2 * properties(place.device).multiprocessors && n >= 16 * kBlock * kItems;
  const int64_t widest = std::max(size_of(x.dtype()), size_of(y.dtype())),
                items = !are_long ? kItems : (size_of(x.dtype()) == size_of(y.dtype()) ? 128 : 64) / widest;
  void* const places = indices.defined() ? indices.bytes() : nullptr;
  bool aligned = rows == 1 || n % std::max<int64_t>(items, 16) == 0;
  for (const void* p : {static_cast<void*>(x.bytes()), static_cast<void*>(y.bytes()), places})
    aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  const auto launch = [&](const KernelFamily& family, int kernel, int64_t blocks, auto... more) {
    family.launch(place, {static_cast<int>(scan), x.dtype(), computed, y.dtype(), kernel, aligned}, blocks, kBlock, 0,
                  x.bytes(), y.bytes(), places, more...);
  };
  if (!are_long) return launch(kRows, 0, rows, n);
  const int64_t tiles = divide_up(n, kBlock * items), count = rows * (tiles + divide_up(tiles, kBlock));
  check(rows * tiles < std::numeric_limits<int32_t>::max(), "a scan of ", rows * n, " elements on 'cuda'");
  const int64_t sizes[] = {count + 1, 4};  // no value has more than four words; the last place is the ticket
  const Tensor left = empty(sizes, Dtype::i64, x.device());
  fill(left, 0);
  launch(kLongRows, 2, rows * tiles, left.bytes(), left.bytes() + count * 32, n, static_cast<int32_t>(tiles));
}

void scan_along(Scan scan, Dtype computed, const Tensor& input, int64_t dim, const Tensor& out,
                const Tensor& indices = {}) {
  if (out.numel() == 0) return;
  const AlongDim l = along(input, dim);
  const int64_t columns = l.outer * l.inner;
  const bool many_short = l.n <= 64 && columns >= 16384;  // then a thread each is best, also for rows
  if (l.inner == 1 && !many_short) return scan_rows(scan, computed, contiguous(input), out, indices, l.outer, l.n);
  if (columns < 16384 && l.n >= 64) {  // too few columns for a thread each: turned, they are rows
    const Tensor whole = contiguous(input);
    const int64_t sizes[] = {l.outer, l.inner, l.n}, strides[] = {l.n * l.inner, 1, l.inner};
    const auto turned = [&](const Tensor& t) { return view_of(t, sizes, strides, t.offset()); };
    const Tensor x = contiguous(turned(whole)), y = empty(sizes, out.dtype(), out.device()),
                 places = indices.defined() ? empty(sizes, Dtype::i64, out.device()) : Tensor();
    scan_rows(scan, computed, x, y, places, columns, l.n);
    copy_into(turned(out), y);
    if (indices.defined()) copy_into(turned(indices), places);
    return;
  }
  const Tensor x = contiguous(input);
  const Place place(x.device());
  void* const places = indices.defined() ? indices.bytes() : nullptr;
  kColumns.launch(place, {static_cast<int>(scan), x.dtype(), computed, out.dtype(), 1, false},
                  divide_up(columns, kBlock), kBlock, 0, x.bytes(), out.bytes(), places, columns, l.n, l.inner);
}

template <Scan kScan>
void run_cumulative(Call& c) {
  const Tensor t = c.tensor(0);
  const Dtype computed = computed_in(c.out().dtype());
  if (computed == Dtype::count || !has_elements(t.dtype()) || (kScan == kLogSumExp && is_complex(computed)))
    return execute_on_host(c, t.device());
  scan_along(kScan, computed, t, c.integer(1), c.out());
}
template <Scan kScan>
void run_extreme(Call& c) {
  const Tensor t = c.tensor(0);
  if (!has_elements(t.dtype())) return execute_on_host(c, t.device());
  scan_along(kScan, computed_in(t.dtype()), t, c.integer(1), c.out(0), c.out(1));
}

}  // namespace

REGISTER_KERNELS(scan) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("cumsum", run_cumulative<kSum>);
  set("cumprod", run_cumulative<kProduct>);
  set("logcumsumexp", run_cumulative<kLogSumExp>);
  set("cummax", run_extreme<kLargest>);
  set("cummin", run_extreme<kSmallest>);
}

}  // namespace cresset::cuda
