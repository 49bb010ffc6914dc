// The loss that asks for a margin between a sample's class and the others, and its gradient, one pass over the scores
// each.
#include "cuda/fault.h"
#include "cuda/rows.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "tensor/blocks.h"

namespace cresset::cuda {
namespace {

// A row's threads walk it; of the gradient they do so twice, the second time over what is still cached.
const KernelText kText{
    R"cuda(// with T=dtype_f32 SQUARES=0 BACK=0 THREADS=256 VECTOR=4 PER=1, T=dtype_bf16 SQUARES=1 BACK=1 THREADS=32 VECTOR=8 PER=1, T=dtype_f64 SQUARES=0 BACK=1 THREADS=512 VECTOR=2 PER=1
#include "fault.cuh"
#include "rows.cuh"

using C = opmath<T>;

// As below.
struct Samples {
  const T* x;
  const int64_t* targets;
  const C* weights;  // null: all are 1
  Fault* fault;
  int64_t count, n;
  double margin;
  int32_t operation;
};

extern "C" __global__ void __launch_bounds__(kRowBlock) multi_margin(const Samples s, const C* grads, T* out) {
  after_earlier_work();
  const int64_t sample = row_of_thread();
  const bool exists = sample < s.count;
  int64_t target = exists ? s.targets[sample] : 0;
  if (target < 0 || target >= s.n) {
    if (place_in_row() == 0) report(s.fault, s.operation, target, sample, s.n);
    target = 0;
  }
  const T* x = s.x + (exists ? sample * s.n : 0);
  const C beyond = static_cast<C>(s.margin) - convert<C>(x[target]);
  const double share = (s.weights ? convert<double>(s.weights[target]) : 1.0) / static_cast<double>(s.n);
  const auto counted = [&](T v, int64_t i) {
    const C gap = beyond + convert<C>(v);
    return gap > 0 && i != target ? gap : C(0);
  };
  C sum = 0;
  const auto add = [&](T v, int64_t i) {
    const C gap = counted(v, i);
#if BACK
    sum += SQUARES ? 2 * gap : gap > 0 ? C(1) : C(0);
#else
    sum += SQUARES ? gap * gap : gap;
#endif
  };
  const RowWalk walk(x, BACK ? out + (exists ? sample * s.n : 0) : x, exists ? s.n : 0);
  const auto load = [&](int64_t i) { return load_vector<VECTOR>(x + i); };
  walk.visit(load,
             [&](int64_t i, const Vector<T, VECTOR>& v) {
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) add(v[k], i + k);
             },
             [&](int64_t i) { add(x[i], i); });
  sum = sum_of_row<0>(sum);
#if BACK
  if (!exists) return;
  out += sample * s.n;
  const C each = static_cast<C>(convert<double>(grads[sample]) * share);
  const auto gradient = [&](T v, int64_t i) {
    const C gap = counted(v, i);
    return convert<T>(i == target ? -sum * each : SQUARES ? 2 * gap * each : gap > 0 ? each : C(0));
  };
  walk.visit(load,
             [&](int64_t i, const Vector<T, VECTOR>& v) {
               Vector<T, VECTOR> d;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) d[k] = gradient(v[k], i + k);
               store_vector(out + i, d);
             },
             [&](int64_t i) { out[i] = gradient(x[i], i); });
#else
  if (exists && place_in_row() == 0) out[sample] = convert<T>(static_cast<C>(static_cast<double>(sum) * share));
#endif
}
)cuda"};
const KernelFamily kRows(kText, "multi_margin", {"T", "SQUARES", "BACK", "THREADS", "VECTOR", "PER"});

struct Samples {
  const void *x, *targets, *weights;
  Address fault;
  int64_t count, n;
  double margin;
  int32_t operation;
};

// input, target, p, margin, weight? from argument `first` on; `grads` null: the losses are wanted.
void run_rows(const Call& c, int first, const char* grads, const Tensor& out) {
  static const int kNumber = operation_number("multi_margin_loss");
  const Place place(out.device());
  const Tensor x = contiguous(c.tensor(first)), targets = contiguous(c.tensor(first + 1)),
               weights =
                   c.has(first + 4) ? contiguous(convert(c.tensor(first + 4), computed_dtype(x.dtype()))) : Tensor();
  const Samples s{x.bytes(),
                  targets.bytes(),
                  weights.defined() ? weights.bytes() : nullptr,
                  fault_place(place.device),
                  x.size(0),
                  x.size(1),
                  c.real(first + 3),
                  kNumber};
  if (s.count == 0) return;
  const RowPlan plan = rows_walked(s.count, s.n, size_of(x.dtype()));
  const int squares = c.integer(first + 2) == 2;
  kRows.launch(place, {x.dtype(), squares, grads != nullptr, plan.threads, plan.vector, 1}, plan.blocks, plan.block, 0,
               s, grads, out.bytes());
}
void run_loss(Call& c) { run_rows(c, 0, nullptr, c.out()); }
void run_gradient(Call& c) {
  const Tensor grads = contiguous(convert(c.tensor(0), computed_dtype(c.tensor(1).dtype())));
  run_rows(c, 1, grads.bytes(), c.out());
}

}  // namespace

REGISTER_KERNELS(margin) {
  r.set_kernel("_multi_margin_loss", DeviceType::cuda, run_loss);
  r.set_kernel("_multi_margin_loss_backward", DeviceType::cuda, run_gradient);
}

}  // namespace cresset::cuda
