// Samples of distributions that have an operator of their own, one for each element of the input, and their gradients.
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/sample_gradients.h"
#include "dispatch/registration.h"
#include "ops/random.h"
#include "ops/random_kernels.h"

namespace cresset {
namespace {

void infer_poisson(Call& c) {
  const Tensor t = c.tensor(0);
  check_implemented(is_floating(t.dtype()), "\"poisson_cpu\" not implemented for '", facts(t.dtype()).legacy, "'");
  c.promise_like(t);
}
void run_poisson(Call& c) {
  const Tensor rate = contiguous(c.tensor(0));
  visit_floating(rate.dtype(), "poisson_cpu", [&]<class T>() {
    for (int64_t i = 0; i < rate.numel(); ++i) {
      const auto value = static_cast<opmath<T>>(rate.data<T>()[i]);
      check(value >= 0, "poisson: invalid Poisson rate, expected rate to be non-negative, got ", value);
    }
    fill_poisson(c.out().data<T>(), rate.data<T>(), rate.numel(), generator(c, 1));
  });
}

// The types in which PyTorch draws gamma and binomial samples.
template <class F>
void visit_single_or_double(Dtype d, const char* who, F&& f) {
  if (d == Dtype::f32) return f.template operator()<float>();
  if (d == Dtype::f64) return f.template operator()<double>();
  fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", facts(d).legacy, "'");
}
void check_single_or_double(Dtype d, const char* who) {
  visit_single_or_double(d, who, []<class T>() {});
}

void infer_binomial(Call& c) {
  const Tensor count = c.tensor(0), probability = c.tensor(1);
  check_value(is_floating(count.dtype()),
              "binomial only supports floating-point dtypes for count, got: ", facts(count.dtype()).legacy);
  check_value(is_floating(probability.dtype()),
              "binomial only supports floating-point dtypes for prob, got: ", facts(probability.dtype()).legacy);
  check(count.dtype() == probability.dtype(), "binomial: Found dtype ", facts(probability.dtype()).legacy,
        " but expected ", facts(count.dtype()).legacy);
  check_single_or_double(count.dtype(), "binomial_cpu");
  c.promise(broadcast("binomial", count.sizes(), probability.sizes()), count.dtype(), count.device());
}
void run_binomial(Call& c) {
  const Tensor count = spread(c.tensor(0), c.out()), probability = spread(c.tensor(1), c.out());
  visit_single_or_double(count.dtype(), "binomial_cpu", [&]<class T>() {
    fill_binomial(c.out().data<T>(), count.data<T>(), probability.data<T>(), count.numel(), generator(c, 2));
  });
}

void infer_standard_gamma(Call& c) {
  check_single_or_double(c.tensor(0).dtype(), "gamma_cpu");
  c.promise_like(c.tensor(0));
}
void run_standard_gamma(Call& c) {
  const Tensor shape = contiguous(c.tensor(0));
  visit_single_or_double(shape.dtype(), "gamma_cpu", [&]<class T>() {
    fill_standard_gamma(c.out().data<T>(), shape.data<T>(), shape.numel(), generator(c, 1));
  });
}

void infer_same_shape(Call& c) {
  const Tensor first = c.tensor(0);
  check_single_or_double(first.dtype(), c.op.name().c_str());
  Dims sizes = first.sizes();
  for (int i = 1; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    check(c.tensor(i).dtype() == first.dtype(), c.op.name(), ": expected ", facts(first.dtype()).legacy, " but found ",
          facts(c.tensor(i).dtype()).legacy);
    sizes = broadcast(c.op.name().c_str(), sizes, c.tensor(i).sizes());
  }
  c.promise(sizes, first.dtype(), first.device());
}
void run_standard_gamma_grad(Call& c) {
  const Tensor &out = c.out(), shape = spread(c.tensor(0), out), sample = spread(c.tensor(1), out);
  visit_single_or_double(out.dtype(), "_standard_gamma_grad", [&]<class T>() {
    for (int64_t i = 0; i < out.numel(); ++i)
      out.data<T>()[i] = static_cast<T>(samples::gamma_sample_gradient(shape.data<T>()[i], sample.data<T>()[i]));
  });
}
void run_dirichlet_grad(Call& c) {
  const Tensor &out = c.out(), x = spread(c.tensor(0), out), alpha = spread(c.tensor(1), out),
               total = spread(c.tensor(2), out);
  visit_single_or_double(out.dtype(), "_dirichlet_grad", [&]<class T>() {
    for (int64_t i = 0; i < out.numel(); ++i)
      out.data<T>()[i] =
          static_cast<T>(samples::dirichlet_sample_gradient(x.data<T>()[i], alpha.data<T>()[i], total.data<T>()[i]));
  });
}

void infer_dirichlet(Call& c) {
  check_single_or_double(c.tensor(0).dtype(), "dirichlet");
  c.promise_like(c.tensor(0));
}
// Gamma samples in double, divided by their sum; kept inside (0, 1). Those of small shapes that underflow are the
// smallest normal number, so that a row of such has shares, not 0/0.
void run_dirichlet(Call& c) {
  const Tensor& out = c.out();
  const Tensor concentration = contiguous(c.tensor(0));
  const int64_t n = out.numel(), last = out.dim() ? out.size(-1) : 1;
  std::vector<double> drawn(static_cast<size_t>(n));
  visit_single_or_double(out.dtype(), "dirichlet", [&]<class T>() {
    const T* shape = concentration.data<T>();
    Twister& g = generator(c, 1);
    {
      std::lock_guard lock(g.mutex());
      for (int64_t i = 0; i < n; ++i)
        drawn[static_cast<size_t>(i)] =
            std::isnan(shape[i])
                ? static_cast<double>(shape[i])
                : std::max(std::numeric_limits<double>::min(), random_detail::gamma(static_cast<double>(shape[i]), g));
    }
    T* to = out.data<T>();
    for (int64_t row = 0; row < n; row += last) {
      double sum = 0;
      for (int64_t i = row; i < row + last; ++i) sum += drawn[static_cast<size_t>(i)];
      for (int64_t i = row; i < row + last; ++i) {
        const double share = drawn[static_cast<size_t>(i)] / sum;
        to[i] = std::isnan(share)
                    ? static_cast<T>(share)
                    : std::clamp(static_cast<T>(share), std::numeric_limits<T>::min(), std::nextafter(T(1), T(0)));
      }
    }
  });
}

// ---- multinomial

void infer_multinomial(Call& c) {
  const Tensor weights = c.tensor(0);
  const int64_t samples = c.integer(1);
  check(!c.target || c.target->dtype() == Dtype::i64,
        "multinomial expects Long tensor out, got: ", facts(c.target->dtype()).legacy);
  check(weights.dim() == 1 || weights.dim() == 2, "multinomial: prob_dist must be 1 or 2 dim, got ", weights.dim(),
        " dimensions");
  check(is_floating(weights.dtype()),
        "multinomial only supports floating-point dtypes for input, got: ", facts(weights.dtype()).legacy);
  check(samples > 0, "multinomial: cannot sample n_sample <= 0 samples, got ", samples);
  const int64_t categories = weights.size(-1);
  check(c.boolean(2) || samples <= categories,
        "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement, got ", samples,
        " samples of ", categories, " categories");
  check(categories > 0 || weights.numel() == weights.size(0) * 0, "multinomial: there are no categories");
  check(categories <= int64_t{1} << 24, "multinomial: number of categories cannot exceed 2^24, got ", categories);
  c.promise(weights.dim() == 1 ? Dims{samples} : Dims{weights.size(0), samples}, Dtype::i64, weights.device());
}

template <class P>
void check_weights(const P* weights, int64_t rows, int64_t categories) {
  for (int64_t row = 0; row < rows; ++row, weights += categories) {
    double sum = 0;
    for (int64_t i = 0; i < categories; ++i) {
      const double w = static_cast<double>(static_cast<opmath<P>>(weights[i]));
      check(w >= 0 && std::isfinite(w),
            "multinomial: probability tensor contains either `inf`, `nan` or element < 0, got ", w, " for category ",
            i);
      sum += w;
    }
    check(sum > 0, "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

void run_multinomial(Call& c) {
  const Tensor& given = c.tensor(0);
  const Tensor weights = contiguous(given);
  const int64_t samples = c.integer(1), categories = weights.size(-1), rows = weights.dim() == 1 ? 1 : weights.size(0);
  int64_t* to = c.out().data<int64_t>();
  if (c.out().numel() == 0) return;
  check(categories > 0,
        "multinomial: invalid multinomial distribution (sum of probabilities <= 0): there are no categories");
  visit_floating(weights.dtype(), "multinomial", [&]<class P>() {
    const P* from = weights.data<P>();
    if (c.boolean(2) && samples > 1)
      return multinomial_with_replacement(to, from, rows, categories, samples, generator(c, 3));
    check_weights(from, rows, categories);
    // The waits are drawn in the order in which the weights lie in memory.
    const Tensor waits = empty_like_layout(given, given.dtype());
    fill_exponential(waits.data<P>(), waits.numel(), 1.0, generator(c, 3));
    multinomial_without_replacement(to, from, contiguous(waits).data<P>(), rows, categories, samples);
  });
}

}  // namespace

REGISTER(random_sampling) {
#define CRESSET_GENERATOR "Generator? generator=None"
  constexpr uint32_t constant = kNotDifferentiable, function = kNotDifferentiable | kFunctionOnly;
  r.add("poisson(Tensor input, " CRESSET_GENERATOR ") -> Tensor", infer_poisson, run_poisson, kFunctionOnly);
  r.add("binomial(Tensor count, Tensor prob, " CRESSET_GENERATOR ") -> Tensor", infer_binomial, run_binomial);
  r.add("multinomial(Tensor input, SymInt num_samples, bool replacement=False, *, " CRESSET_GENERATOR ") -> Tensor",
        infer_multinomial, run_multinomial, constant);
  r.add("_standard_gamma(Tensor input, " CRESSET_GENERATOR ") -> Tensor", infer_standard_gamma, run_standard_gamma,
        kFunctionOnly, "StandardGammaBackward0");
  r.add("_standard_gamma_grad(Tensor input, Tensor output) -> Tensor", infer_same_shape, run_standard_gamma_grad,
        function);
  r.add("_sample_dirichlet(Tensor input, " CRESSET_GENERATOR ") -> Tensor", infer_dirichlet, run_dirichlet,
        kFunctionOnly, "SampleDirichletBackward0");
  r.add("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", infer_same_shape, run_dirichlet_grad,
        function);
#undef CRESSET_GENERATOR
}

}  // namespace cresset
