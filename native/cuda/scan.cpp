// Scans on the device: cumulative sums, products, extremes and log-sum-exps along one dimension.
#include "cuda/look_back.h"
#include "cuda/reduction.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kResident = 4;  // as in scan.cuh
enum Scan : int { kSum, kProduct, kLogSumExp, kLargest, kSmallest };

const std::initializer_list<const char*> kMacros = {"OPERATION", "ELEMENT",    "COMPUTED", "RESULT",
                                                    "KERNEL",    "LOOKS_BACK", "TIMES",    "VECTOR"};
const KernelFamily kRows("scan.cuh", "scan_rows", kMacros, {"--fmad=true", "-DALIGNED=0"});
const KernelFamily kAlignedRows("scan.cuh", "scan_rows", kMacros, {"--fmad=true", "-DALIGNED=1"});
const KernelFamily kColumns("scan.cuh", "scan_columns", kMacros, {"--fmad=true"});

// Along the last dimension; `indices` may be undefined.
void scan_rows(Scan scan, Dtype computed, const Tensor& x, const Tensor& y, const Tensor& indices, int64_t rows,
               int64_t n) {
  const Place place(x.device());
  const int64_t wanted = kResident * properties(place.device).multiprocessors,
                vector = std::min<int64_t>(16 / size_of(x.dtype()), 8);
  const int most = static_cast<int>(std::min<int64_t>(4, (scan == kLogSumExp ? 8 : 16) / vector));
  // The longest tile that a row, or that all rows for all multiprocessors, are enough for.
  const bool few = rows < wanted / 2 && n >= 2 * kBlock * vector;
  int times = 1;
  const auto tiles_of = [&](int t) { return divide_up(n, kBlock * vector * t); };
  while (times < most && (few ? rows * tiles_of(2 * times) >= wanted : n > kBlock * vector * times)) times *= 2;
  const LookBack back(rows, few ? tiles_of(times) : 0, x.device());
  void* const places = indices.defined() ? indices.bytes() : nullptr;
  bool aligned = n % vector == 0;
  for (const void* p : {static_cast<void*>(x.bytes()), static_cast<void*>(y.bytes()), places})
    aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  (aligned ? kAlignedRows : kRows)
      .launch(place, {static_cast<int>(scan), x.dtype(), computed, y.dtype(), 0, few, times, static_cast<int>(vector)},
              few ? std::min(wanted, rows * back.slots.tiles) : rows, kBlock, 0, x.bytes(), y.bytes(), places,
              back.tickets(), back.slots, rows, n, tiles_of(times));
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
  kColumns.launch(place, {static_cast<int>(scan), x.dtype(), computed, out.dtype(), 1, false, 1, 1},
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
