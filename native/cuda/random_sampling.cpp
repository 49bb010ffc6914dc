// Choices by weight, and samples of distributions that take as many random words as chance wants. The kernels are in
// cresset/cuda/kernels/random_sampling.cuh.
//
// What the CPU refuses after looking at values (negative weights or rates, weights that are all zero) is not looked at
// here, since that would wait for the device: such rows choose some category, such rates give nan.
#include <cmath>
#include <limits>

#include "cuda/launch.h"
#include "cuda/random.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWordsOfStream = 1024;  // by which the generator moves on for elements with streams of their own

// `t` broadcast to the shape of `like`, contiguous.
Tensor spread(const Tensor& t, const Tensor& like) {
  if (t.sizes() == like.sizes() && t.is_contiguous()) return t;
  const Tensor out = empty(like.sizes(), t.dtype(), like.device());
  copy_into(out, t);
  return out;
}

// ---- multinomial

void choose_without_replacement(Call& c, const Tensor& weights, int64_t rows, int64_t categories, int64_t samples) {
  static const auto* choose = new KernelFamily("random_sampling.cuh", "choose", {"ELEMENT"}, {"-DCHOOSE"});
  static const auto* keys = new KernelFamily("random_sampling.cuh", "keys", {"ELEMENT"}, {"-DKEYS"});
  const Tensor& out = c.out();
  const int64_t count = rows * categories, words = weights.dtype() == Dtype::f64 ? 2 : 1;
  const Philox::Start start = take_words(c, 3, out.device(), count * words);
  const Place place(out.device());
  if (samples == 1)
    return choose->launch(place, {weights.dtype()}, rows, kThreads, 0, out.bytes(), weights.bytes(), categories, start);
  const Tensor drawn = empty(weights.sizes(), weights.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32, out.device());
  keys->launch(place, {weights.dtype()}, divide_up(count, kThreads * 4 / words), kThreads, 0, drawn.bytes(),
               weights.bytes(), count, start);
  static const Operator* topk = Registry::instance().find("topk");
  Call inner(*topk);
  inner.args[0] = Value(drawn);
  inner.args[1] = Value(Scalar(samples));
  for (size_t k = 2; k < topk->signature.parameters.size(); ++k)
    inner.args[k] = topk->signature.parameters[k].default_value;
  execute(inner);
  copy_into(out, inner.outputs[1]);
}

void choose_with_replacement(Call& c, const Tensor& weights, int64_t rows, int64_t categories, int64_t samples) {
  static const auto* cumulate = new KernelFamily("random_sampling.cuh", "cumulate", {"ELEMENT"}, {"-DCUMULATE"});
  static const auto* pick = new KernelFamily("random_sampling.cuh", "pick", {"ELEMENT"}, {"-DPICK"});
  const Tensor& out = c.out();
  const Dtype real = weights.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const int64_t count = rows * samples;
  const Tensor sums = empty(weights.sizes(), real, out.device());
  const Philox::Start start = take_words(c, 3, out.device(), count * (real == Dtype::f64 ? 2 : 1));
  const Place place(out.device());
  cumulate->launch(place, {weights.dtype()}, rows, kThreads, 0, sums.bytes(), weights.bytes(), categories);
  pick->launch(place, {real}, divide_up(count, kThreads), kThreads, 0, out.bytes(), sums.bytes(), categories, samples,
               count, start);
}

// Waits for the device, as PyTorch does for draws without replacement.
void check_weights(const Tensor& weights) {
  static const Operator *min = Registry::instance().find("min"), *max = Registry::instance().find("max"),
                        *amax = Registry::instance().find("amax");
  const double least = item(call_operator(*min, weights)).real, most = item(call_operator(*max, weights)).real;
  check(least >= 0 && std::isfinite(most),
        "multinomial: probability tensor contains either `inf`, `nan` or element < 0, got ", least >= 0 ? most : least);
  const int64_t last[] = {-1};
  check(item(call_operator(*min, call_operator(*amax, weights, DimsView(last), Scalar(false)))).real > 0,
        "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
}

void run_multinomial(Call& c) {
  const Tensor weights = contiguous(c.tensor(0));
  const int64_t samples = c.integer(1), categories = weights.size(-1), rows = weights.dim() == 1 ? 1 : weights.size(0);
  if (c.out().numel() == 0) return;
  check(categories > 0,
        "multinomial: invalid multinomial distribution (sum of probabilities <= 0): there are no categories");
  if (c.boolean(2) && samples > 1)
    choose_with_replacement(c, weights, rows, categories, samples);
  else
    check_weights(weights), choose_without_replacement(c, weights, rows, categories, samples);
}

// ---- one sample for each element

void run_poisson(Call& c) {
  static const auto* kernels = new KernelFamily("random_sampling.cuh", "poisson", {"ELEMENT"}, {"-DPOISSON"});
  const Tensor rates = contiguous(c.tensor(0)), &out = c.out();
  const int64_t count = out.numel();
  if (count == 0) return;
  const Philox::Start start = take_words(c, 1, out.device(), kWordsOfStream);
  kernels->launch(Place(out.device()), {out.dtype()}, divide_up(count, kThreads), kThreads, 0, out.bytes(),
                  rates.bytes(), count, start);
}

// Gamma samples of contiguous shapes, computed in the dtype of `out`.
void draw_gamma(const Call& c, const Tensor& out, const Tensor& shapes, double smallest) {
  static const auto* kernels =
      new KernelFamily("random_sampling.cuh", "gamma_samples", {"ELEMENT", "RESULT"}, {"-DGAMMA"});
  const int64_t count = out.numel();
  const Philox::Start start = take_words(c, 1, out.device(), kWordsOfStream);
  kernels->launch(Place(out.device()), {shapes.dtype(), out.dtype()}, divide_up(count, kThreads), kThreads, 0,
                  out.bytes(), shapes.bytes(), count, start, smallest);
}
double smallest_normal(Dtype d) {
  return d == Dtype::f64 ? std::numeric_limits<double>::min() : static_cast<double>(std::numeric_limits<float>::min());
}

void run_standard_gamma(Call& c) {
  if (c.out().numel()) draw_gamma(c, c.out(), contiguous(c.tensor(0)), smallest_normal(c.out().dtype()));
}

void run_dirichlet(Call& c) {
  static const auto* kernels = new KernelFamily("random_sampling.cuh", "shares", {"ELEMENT"}, {"-DSHARES"});
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  const Tensor samples = empty(out.sizes(), Dtype::f64, out.device());
  draw_gamma(c, samples, contiguous(c.tensor(0)), smallest_normal(Dtype::f64));
  const int64_t length = out.dim() ? out.size(-1) : 1, rows = out.numel() / length;
  const double largest =
      out.dtype() == Dtype::f64 ? std::nextafter(1.0, 0.0) : static_cast<double>(std::nextafter(1.0f, 0.0f));
  kernels->launch(Place(out.device()), {out.dtype()}, divide_up(rows, kThreads), kThreads, 0, out.bytes(),
                  samples.bytes(), rows, length, smallest_normal(out.dtype()), largest);
}

void run_binomial(Call& c) {
  static const auto* kernels = new KernelFamily("random_sampling.cuh", "binomial", {"ELEMENT"}, {"-DBINOMIAL"});
  const Tensor& out = c.out();
  const int64_t count = out.numel();
  if (count == 0) return;
  const Tensor trials = spread(c.tensor(0), out), probabilities = spread(c.tensor(1), out);
  const Philox::Start start = take_words(c, 2, out.device(), kWordsOfStream);
  kernels->launch(Place(out.device()), {out.dtype()}, divide_up(count, kThreads), kThreads, 0, out.bytes(),
                  trials.bytes(), probabilities.bytes(), count, start);
}

// ---- how samples move with their parameters

void run_gamma_gradient(Call& c) {
  static const auto* kernels =
      new KernelFamily("random_sampling.cuh", "gamma_gradient", {"ELEMENT"}, {"-DGAMMA_GRADIENT"});
  const Tensor& out = c.out();
  const int64_t count = out.numel();
  if (count == 0) return;
  const Tensor shapes = spread(c.tensor(0), out), samples = spread(c.tensor(1), out);
  kernels->launch(Place(out.device()), {out.dtype()}, divide_up(count, kThreads), kThreads, 0, out.bytes(),
                  shapes.bytes(), samples.bytes(), count);
}
void run_dirichlet_gradient(Call& c) {
  static const auto* kernels =
      new KernelFamily("random_sampling.cuh", "dirichlet_gradient", {"ELEMENT"}, {"-DDIRICHLET_GRADIENT"});
  const Tensor& out = c.out();
  const int64_t count = out.numel();
  if (count == 0) return;
  const Tensor samples = spread(c.tensor(0), out), concentrations = spread(c.tensor(1), out),
               totals = spread(c.tensor(2), out);
  kernels->launch(Place(out.device()), {out.dtype()}, divide_up(count, kThreads), kThreads, 0, out.bytes(),
                  samples.bytes(), concentrations.bytes(), totals.bytes(), count);
}

}  // namespace

REGISTER_KERNELS(random_sampling) {
  const std::pair<const char*, Run> kernels[] = {
      {"multinomial", run_multinomial},
      {"poisson", run_poisson},
      {"_standard_gamma", run_standard_gamma},
      {"_sample_dirichlet", run_dirichlet},
      {"binomial", run_binomial},
      {"_standard_gamma_grad", run_gamma_gradient},
      {"_dirichlet_grad", run_dirichlet_gradient},
  };
  for (const auto& [name, run] : kernels) r.set_kernel(name, DeviceType::cuda, run);
}

}  // namespace cresset::cuda
