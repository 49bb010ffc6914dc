// softmax and log_softmax along one dimension, and their gradients, on the device.
#include "cuda/reduction.h"
#include "cuda/rows.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

constexpr int kColumnBlock = 256;  // as in softmax.cuh

const std::initializer_list<const char*> kMacros = {"ELEMENT", "RESULT", "LOG", "KERNEL", "THREADS", "VECTOR", "PER"};
const std::initializer_list<const char*> kOptions = {"--fmad=true"};
const KernelFamily kRows("softmax.cuh", "softmax_rows", kMacros, kOptions);
const KernelFamily kLong("softmax.cuh", "softmax_long", kMacros, kOptions);
const KernelFamily kColumns("softmax.cuh", "softmax_columns", kMacros, kOptions);
const KernelFamily kGradientRows("softmax.cuh", "softmax_gradient_rows", kMacros, kOptions);
const KernelFamily kGradientLong("softmax.cuh", "softmax_gradient_long", kMacros, kOptions);
const KernelFamily kGradientColumns("softmax.cuh", "softmax_gradient_columns", kMacros, kOptions);

// Along another dimension than the last: as many threads a column as it can use, up to eight.
struct ColumnPlan {
  int32_t across;
  int64_t blocks;
  explicit ColumnPlan(const AlongDim& l) {
    const int64_t down = std::min<int64_t>(8, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(l.n))));
    across = static_cast<int32_t>(kColumnBlock / down);
    while (across > 1 && across / 2 >= l.inner) across /= 2;
    blocks = l.outer * divide_up(l.inner, across);
  }
};

int most_elements(Dtype a, Dtype b) { return a == Dtype::f64 || b == Dtype::f64 ? 16 : 32; }

template <bool kLog>
void run_softmax(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  Tensor t = c.tensor(0);
  if (!is_floating(t.dtype()) || !has_elements(t.dtype())) t = convert(t, out.dtype());
  const Tensor x = contiguous(t);
  const AlongDim l = along(x, c.integer(1));
  const Place place(out.device());
  const Dtype from = x.dtype(), to = out.dtype();
  if (l.inner > 1) {
    const ColumnPlan plan(l);
    kColumns.launch(place, {from, to, kLog, 2, 1, 1, 1}, plan.blocks, kColumnBlock, 0, x.bytes(), out.bytes(), l.outer,
                    l.n, l.inner, plan.across);
    return;
  }
  const RowPlan plan(l.outer, l.n, std::max(size_of(from), size_of(to)), most_elements(from, to),
                     {x.bytes(), out.bytes()});
  if (plan.in_registers)
    kRows.launch(place, {from, to, kLog, 0, plan.threads, plan.vector, plan.per}, plan.blocks, plan.block, 0, x.bytes(),
                 out.bytes(), l.outer, static_cast<int32_t>(l.n));
  else
    kLong.launch(place, {from, to, kLog, 1, plan.threads, plan.vector, 1}, plan.blocks, plan.block, 0, x.bytes(),
                 out.bytes(), l.outer, l.n);
}

template <bool kLog>
void run_gradient(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const Tensor y = contiguous(c.tensor(1)), g = contiguous(convert(c.tensor(0), y.dtype()));
  const AlongDim l = along(y, c.integer(2));
  const Place place(out.device());
  const Dtype from = y.dtype(), to = out.dtype();
  if (l.inner > 1) {
    const ColumnPlan plan(l);
    kGradientColumns.launch(place, {from, to, kLog, 5, 1, 1, 1}, plan.blocks, kColumnBlock, 0, g.bytes(), y.bytes(),
                            out.bytes(), l.outer, l.n, l.inner, plan.across);
    return;
  }
  const int64_t width = std::max(size_of(from), size_of(to));
  const RowPlan plan(l.outer, l.n, width, static_cast<int>(64 / width), {g.bytes(), y.bytes(), out.bytes()});
  if (plan.in_registers)
    kGradientRows.launch(place, {from, to, kLog, 3, plan.threads, plan.vector, plan.per}, plan.blocks, plan.block, 0,
                         g.bytes(), y.bytes(), out.bytes(), l.outer, static_cast<int32_t>(l.n));
  else
    kGradientLong.launch(place, {from, to, kLog, 4, plan.threads, plan.vector, 1}, plan.blocks, plan.block, 0,
                         g.bytes(), y.bytes(), out.bytes(), l.outer, l.n);
}

}  // namespace

REGISTER_KERNELS(softmax) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("softmax", run_softmax<false>);
  set("log_softmax", run_softmax<true>);
  set("_softmax_backward_data", run_gradient<false>);
  set("_log_softmax_backward_data", run_gradient<true>);
}

}  // namespace cresset::cuda
