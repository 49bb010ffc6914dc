// Losses of scores against classes on the device: the negative log-likelihood, and cross entropy with its softmax in
// one pass.
#include "cuda/fault.h"
#include "cuda/reduction.h"
#include "cuda/rows.h"
#include "dispatch/expendable.h"
#include "dispatch/late.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kColumnBlock = 256;  // as in loss.cuh
enum Reduced : int64_t { kNone, kMean, kSum };

const std::initializer_list<const char*> kMacros = {"ELEMENT", "PARAMETER", "KERNEL", "THREADS", "VECTOR", "PER"};
const std::initializer_list<const char*> kOptions = {"--fmad=true"};
const KernelFamily kRows("loss.cuh", "cross_entropy_rows", kMacros, kOptions);
const KernelFamily kColumns("loss.cuh", "cross_entropy_columns", kMacros, kOptions);
const KernelFamily kNll("loss.cuh", "nll_loss", kMacros, kOptions);
const KernelFamily kSums("loss.cuh", "loss_sums", kMacros, kOptions);
const KernelFamily kGradientRows("loss.cuh", "cross_entropy_gradient_rows", kMacros, kOptions);
const KernelFamily kGradientColumns("loss.cuh", "cross_entropy_gradient_columns", kMacros, kOptions);
const KernelFamily kNllGradient("loss.cuh", "nll_loss_gradient", kMacros, kOptions);

// As in loss.cuh.
struct Samples {
  const void *x, *targets, *weights, *weights_total;
  Address fault;
  int64_t outer, n, inner, count, ignored;
  double smoothing;
  int32_t operation, across;
};
struct Grads {
  const void *grads, *total;
  int64_t step;
};

// The arguments that all operators of this file share: input, target, weight?, reduction, ignore_index[, smoothing].
struct Arguments {
  Tensor x, targets, weights, weights_total;
  Dtype type, parameter;
  bool fits;
  Samples samples{};

  Arguments(const Call& c, const Place& place, int first, bool smooths, int operation)
      : type(c.tensor(first).dtype()), parameter(Dtype::f32) {
    const Tensor t = c.tensor(first);
    const AlongDim l = along(t, t.dim() > 1 ? 1 : 0);
    if (c.has(first + 2)) parameter = c.tensor(first + 2).dtype();
    fits = has_kernel(type) && has_kernel(parameter) && l.outer * l.inner > 0 && l.n > 0;
    if (!fits) return;
    x = contiguous(t);
    targets = contiguous(convert(c.tensor(first + 1), Dtype::i64));
    samples = {x.bytes(),
               targets.bytes(),
               nullptr,
               nullptr,
               operation < 0 ? Address{0} : fault_place(place.device),
               l.outer,
               l.n,
               l.inner,
               l.outer * l.inner,
               c.integer(first + 4),
               smooths ? c.real(first + 5) : 0,
               std::max(operation, 0),
               1};
    if (c.has(first + 2)) {
      weights = contiguous(c.tensor(first + 2));
      samples.weights = weights.bytes();
      if (samples.smoothing != 0) {
        weights_total = empty(DimsView(), Dtype::f64, t.device());
        reduce(weights, 1, {Operation::sum, Dtype::f64, Dtype::f64, weights_total.bytes()});
        samples.weights_total = weights_total.bytes();
      }
    }
    const int64_t down = std::min<int64_t>(8, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(l.n))));
    samples.across = static_cast<int32_t>(kColumnBlock / down);
    while (samples.across > 1 && samples.across / 2 >= l.inner) samples.across /= 2;
  }
  int64_t column_blocks() const { return samples.outer * divide_up(samples.inner, samples.across); }
  int64_t sample_blocks() const { return divide_up(samples.count, kColumnBlock); }
  RowPlan rows() const { return rows_walked(samples.count, samples.n, size_of(type)); }
};

// Pairs of the losses and the weights of all samples.
Tensor loss_pairs(const Arguments& a, Device device) {
  const int64_t sizes[] = {a.samples.count, 2};
  return empty(sizes, computed_dtype(a.type), device);
}
// The loss and the total weight from those pairs.
void give_losses(Call& c, const Place& place, const Arguments& a, const Tensor& pairs) {
  const int64_t reduction = c.integer(3), count = a.samples.count;
  void* const loss = reduction == kNone ? nullptr : c.out(0).bytes();
  void* partial = nullptr;
  const auto mean = static_cast<int32_t>(reduction == kMean);
  if (count <= 16384) {
    kSums.launch(place, {c.out(0).dtype(), a.parameter, 3, 1, 1, 1}, 1, kColumnBlock, 0, pairs.bytes(), partial, loss,
                 c.out(1).bytes(), count, mean);
    return;
  }
  const int64_t blocks = std::min<int64_t>(divide_up(count, kColumnBlock * 8), 1024), sizes[] = {blocks, 2};
  const Tensor sums = empty(sizes, Dtype::f64, pairs.device());
  partial = sums.bytes();
  kSums.launch(place, {c.out(0).dtype(), a.parameter, 3, 1, 1, 1}, blocks, kColumnBlock, 0, pairs.bytes(), partial,
               loss, c.out(1).bytes(), count, mean);
  void* const none = nullptr;
  kSums.launch(place, {c.out(0).dtype(), a.parameter, 4, 1, 1, 1}, 1, kColumnBlock, 0, partial, none, loss,
               c.out(1).bytes(), blocks, mean);
}
void* each_of(const Call& c) { return c.integer(3) == kNone ? c.out(0).bytes() : nullptr; }

void run_cross_entropy(Call& c) {
  static const int kNumber = operation_number("cross_entropy");
  const Device device = c.tensor(0).device();
  const Place place(device);
  const Arguments a(c, place, 0, true, kNumber);
  if (!a.fits) return execute_on_host(c, device);
  const Tensor pairs = loss_pairs(a, device);
  const RowPlan rows = a.rows();
  if (a.samples.inner == 1)
    kRows.launch(place, {a.type, a.parameter, 0, rows.threads, rows.vector, 1}, rows.blocks, rows.block, 0, a.samples,
                 pairs.bytes(), each_of(c), c.out(2).bytes());
  else
    kColumns.launch(place, {a.type, a.parameter, 1, 1, 1, 1}, a.column_blocks(), kColumnBlock, 0, a.samples,
                    pairs.bytes(), each_of(c), c.out(2).bytes());
  give_losses(c, place, a, pairs);
}

void run_nll(Call& c) {
  static const int kNumber = operation_number("nll_loss");
  const Device device = c.tensor(0).device();
  const Place place(device);
  const Arguments a(c, place, 0, false, kNumber);
  if (!a.fits) return execute_on_host(c, device);
  const Tensor pairs = loss_pairs(a, device);
  kNll.launch(place, {a.type, a.parameter, 2, 1, 1, 1}, a.sample_blocks(), kColumnBlock, 0, a.samples, pairs.bytes(),
              each_of(c));
  give_losses(c, place, a, pairs);
}

// (grad, input, target, weight?, reduction, ignore_index, ..., total_weight at `total`)
struct LossGrads {
  Tensor grads, total;
  Grads values;
  LossGrads(const Call& c, Dtype type, int total_at)
      : grads(contiguous(convert(c.tensor(0), computed_dtype(type)))), total(c.tensor(total_at)) {
    values = {grads.bytes(), c.integer(4) == kMean ? total.bytes() : nullptr, c.integer(4) == kNone};
  }
};

// False: there is no kernel for it. `dx` may be the input's own memory: each element is read before it is written.
bool cross_entropy_gradient(const Call& c, char* dx) {
  const Place place(c.tensor(1).device());
  const Arguments a(c, place, 1, true, -1);
  if (!a.fits) return false;
  const LossGrads g(c, a.type, 7);
  const Tensor statistics = contiguous(c.tensor(8));
  const RowPlan rows = a.rows();
  if (a.samples.inner == 1)
    kGradientRows.launch(place, {a.type, a.parameter, 5, rows.threads, rows.vector, 1}, rows.blocks, rows.block, 0,
                         a.samples, g.values, statistics.bytes(), dx);
  else
    kGradientColumns.launch(place, {a.type, a.parameter, 6, 1, 1, 1}, a.column_blocks(), kColumnBlock, 0, a.samples,
                            g.values, statistics.bytes(), dx);
  return true;
}
void run_cross_entropy_backward(Call& c) {
  if (!cross_entropy_gradient(c, c.out(0).bytes())) execute_on_host(c, c.tensor(1).device());
}
// Note [Expendable memory]: the gradient takes the place of the scores.
bool cross_entropy_backward_late(Call& c) {
  const Tensor scores = c.tensor(1);
  if (c.given_out || !scores.is_contiguous() || !Expendable::take(*scores.storage())) return false;
  settle_arguments(c);
  const Tensor gradient = view_of(scores, scores.sizes(), scores.strides(), scores.offset());
  if (!cross_entropy_gradient(c, gradient.bytes())) return false;
  c.give(gradient);
  return true;
}

void run_nll_backward(Call& c) {
  const Device device = c.tensor(1).device();
  const Place place(device);
  const Arguments a(c, place, 1, false, -1);
  if (!a.fits) return execute_on_host(c, device);
  const LossGrads g(c, a.type, 6);
  fill(c.out(0), Scalar(0));
  kNllGradient.launch(place, {a.type, a.parameter, 7, 1, 1, 1}, a.sample_blocks(), kColumnBlock, 0, a.samples, g.values,
                      c.out(0).bytes());
}

}  // namespace

REGISTER_KERNELS(loss) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("_nll_loss", run_nll);
  set("_nll_loss_backward", run_nll_backward);
  set("_cross_entropy", run_cross_entropy);
  set("_cross_entropy_backward", run_cross_entropy_backward);
  let_compute_late("_cross_entropy_backward", DeviceType::cuda, cross_entropy_backward_late);
}

}  // namespace cresset::cuda
