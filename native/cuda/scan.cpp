// Scans on the device: cumulative sums, products, extremes and log-sum-exps along one dimension.
#include "cuda/reduction.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kItems = 8, kTile = kBlock * kItems, kResident = 4;  // as in scan.cuh
enum Scan : int { kSum, kProduct, kLogSumExp, kLargest, kSmallest };

const std::initializer_list<const char*> kMacros = {"OPERATION", "ELEMENT", "COMPUTED", "RESULT", "KERNEL", "ALIGNED"};
const KernelFamily kRows("scan.cuh", "scan_rows", kMacros, {"--fmad=true"});
const KernelFamily kColumns("scan.cuh", "scan_columns", kMacros, {"--fmad=true"});

// Along the last dimension; `indices` may be undefined.
void scan_rows(Scan scan, Dtype computed, const Tensor& x, const Tensor& y, const Tensor& indices, int64_t rows,
               int64_t n) {
  const Place place(x.device());
  const int64_t wanted = kResident * properties(place.device).multiprocessors;
  int64_t chunks = 1, chunk = n;
  if (rows < wanted / 2 && n >= 8 * kTile) {
    chunk = divide_up(n, std::min(divide_up(wanted, rows), n / (4 * kTile)));
    chunk = divide_up(chunk, kTile) * kTile;
    chunks = divide_up(n, chunk);
  }
  void* const places = indices.defined() ? indices.bytes() : nullptr;
  bool aligned = n % kItems == 0;
  for (const void* p : {static_cast<void*>(x.bytes()), static_cast<void*>(y.bytes()), places})
    aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  void* totals = nullptr;
  Tensor scratch;
  if (chunks > 1) {
    const int64_t sizes[] = {rows * chunks, 16};  // no value is larger
    scratch = empty(sizes, Dtype::u8, x.device());
    totals = scratch.bytes();
  }
  for (const int only_totals : {1, 0}) {
    if (only_totals && chunks == 1) continue;
    kRows.launch(place, {static_cast<int>(scan), x.dtype(), computed, y.dtype(), 0, aligned}, rows * chunks, kBlock, 0,
                 x.bytes(), y.bytes(), places, totals, rows, n, chunk, static_cast<int32_t>(chunks),
                 static_cast<int32_t>(only_totals));
  }
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
