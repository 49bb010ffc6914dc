// Losses of scores against classes: the negative log-likelihood, and cross entropy with its softmax in one pass.
//
// The scores are seen as [outer][classes][inner], the targets as [outer][inner]: each position is a sample. Cross
// entropy keeps the largest score of each sample and the logarithm of the sum of exp(score - largest), from which
// backward makes the softmax again: nothing of the size of the scores is kept. The halves are computed in float.
#include "base/exponentials.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/reduction.h"
#include "tensor/blocks.h"

namespace cresset {
namespace {

constexpr int64_t kSideBySide = 256;

enum Reduction : int64_t { kNone, kMean, kSum };

// The arguments that all operators of this file share: input, target, weight?, reduction, ignore_index[, smoothing].
struct Samples {
  AlongDim shape;
  int64_t count;     // samples
  int64_t ignored;   // the target that counts nothing
  double smoothing;  // how much of each target is spread over all classes
  Tensor targets;    // int64, contiguous; a class in bounds or `ignored`
  Samples(const Call& c, const char* who, int first, bool smooths)
      : shape(along(c.tensor(first), c.tensor(first).dim() > 1 ? 1 : 0)),
        count(shape.outer * shape.inner),
        ignored(c.integer(first + 4)),
        smoothing(smooths ? c.real(first + 5) : 0),
        targets(contiguous(convert(c.tensor(first + 1), Dtype::i64))) {
    const int64_t* t = targets.data<int64_t>();
    for (int64_t i = 0; i < count; ++i)
      check_index(t[i] == ignored || static_cast<uint64_t>(t[i]) < static_cast<uint64_t>(shape.n), who, ": Target ",
                  t[i], " is out of bounds. The ", shape.n, " classes are numbered from 0 to ", shape.n - 1);
  }
  int64_t target(int64_t sample) const {
    const int64_t t = targets.data<int64_t>()[sample];
    return t == ignored ? -1 : t;
  }
  // Where a sample's score for a class stands. (Two divisions take longer than all else that nll_loss does.)
  int64_t place(int64_t sample, int64_t target) const {
    if (shape.inner == 1) return sample * shape.n + target;
    return (sample / shape.inner * shape.n + target) * shape.inner + sample % shape.inner;
  }
};

// Weights of the classes in T; null where all are 1.
template <class T>
struct ClassWeights {
  Tensor values;
  double total;  // of all classes
  ClassWeights(const Call& c, int i, int64_t classes) : total(static_cast<double>(classes)) {
    if (!c.has(i)) return;
    values = ready<T>(c.tensor(i));
    total = 0;
    for (int64_t k = 0; k < classes; ++k) total += static_cast<double>(values.data<T>()[k]);
  }
  const T* data() const { return values.defined() ? values.data<T>() : nullptr; }
  double of(int64_t target) const {
    return target < 0 ? 0 : values.defined() ? static_cast<double>(values.data<T>()[target]) : 1;
  }
};

int64_t grain(int64_t work) { return std::max<int64_t>(1, kParallelGrain / 4 / std::max<int64_t>(work, 1)); }

// f(first sample, how many, offset of its first score): one sample with inner 1, a stretch of samples side by side
// otherwise.
template <class F>
void for_each_stretch(const AlongDim& l, F&& f) {
  const int64_t stretches = (l.inner + kSideBySide - 1) / kSideBySide;
  parallel_for(l.outer * stretches, grain(l.n * std::min(l.inner, kSideBySide)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / stretches, column = i % stretches * kSideBySide;
      f(outer * l.inner + column, std::min(kSideBySide, l.inner - column), outer * l.n * l.inner + column);
    }
    end_stream();
  });
}

// ---------------------------------------------------------------- reduction of the losses

int64_t samples_of(const Tensor& scores) {
  const AlongDim shape = along(scores, scores.dim() > 1 ? 1 : 0);
  return shape.outer * shape.inner;
}

void check_losses(Call& c, const char* who, int first) {
  const Tensor t = c.tensor(first);
  check(t.dim() >= 1, who, ": Expected 1 or more dimensions (got 0)");
  const int64_t classes = t.size(t.dim() > 1 ? 1 : 0), samples = samples_of(t);
  check(c.tensor(first + 1).numel() == samples, who, ": the scores have shape ", list(t.sizes()), ", the targets ",
        list(c.tensor(first + 1).sizes()));
  check(!c.has(first + 2) || (c.tensor(first + 2).dim() == 1 && c.tensor(first + 2).numel() == classes), who,
        ": weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ",
        list(c.has(first + 2) ? DimsView(c.tensor(first + 2).sizes()) : DimsView()));
  check_implemented(is_floating(t.dtype()) && size_of(t.dtype()) > 1, '"', who, "\" not implemented for '",
                    legacy_name(t.dtype()), "'");
}
// The loss, and the sum of the targets' weights in double.
// `dtype` is that of the loss.
void promise_losses(Call& c, Dtype dtype) {
  const Tensor t = c.tensor(0);
  c.promise(c.integer(3) == kNone && t.dim() > 1 ? DimsView(c.tensor(1).sizes()) : DimsView(), dtype, t.device());
  c.promise(DimsView(), Dtype::f64, t.device());
}

// Stores the losses of all samples, or their sum, or that divided by the sum of the weights.
template <class T>
void give_losses(Call& c, const Samples& s, const ClassWeights<T>& weights, const Tensor& losses) {
  double total = 0;
  if (weights.data()) {
    for (int64_t i = 0; i < s.count; ++i) total += weights.of(s.target(i));
  } else {
    int64_t counted = 0;
    for (int64_t i = 0; i < s.count; ++i) counted += s.target(i) >= 0;
    total = static_cast<double>(counted);
  }
  *c.out(1).data<double>() = total;
  if (c.integer(3) == kNone)
    return copy_into(c.out(0), view_of(losses, c.out(0).sizes(), contiguous_strides(c.out(0).sizes()), 0));
  const T* each = losses.data<T>();
  const double sum = sum_of_terms<T>(s.count, [=](int64_t i) CRESSET_TERM { return each[i]; });
  fill(c.out(0), Scalar(c.integer(3) == kMean ? sum / total : sum));
}
// The gradient of the loss by that of each sample: (grad, input, target, weight?, reduction, ignore_index, ...).
template <class T>
struct LossGradients {
  Tensor grads;
  int64_t step;
  double factor;
  LossGradients(const Call& c, int total) : grads(ready<T>(c.tensor(0))), step(c.integer(4) == kNone), factor(1) {
    if (c.integer(4) == kMean) factor = 1 / c.tensor(total).data<double>()[0];
  }
  double of(int64_t sample) const { return static_cast<double>(grads.data<T>()[sample * step]) * factor; }
};

// ---------------------------------------------------------------- negative log-likelihood

void infer_nll(Call& c) {
  check_losses(c, "nll_loss", 0);
  promise_losses(c, c.tensor(0).dtype());
}
void run_nll(Call& c) {
  const Samples s(c, "nll_loss", 0, false);
  visit_computed(c.tensor(0).dtype(), "nll_loss", [&]<class T>() {
    const ClassWeights<T> weights(c, 2, s.shape.n);
    const Tensor x = ready<T>(c.tensor(0));
    const int64_t sizes[] = {s.count};
    const Tensor losses = empty(sizes, dtype_of<T>);
    const T* scores = x.data<T>();
    T* each = losses.data<T>();
    for (int64_t i = 0; i < s.count; ++i) {
      const int64_t t = s.target(i);
      each[i] = t < 0 ? T(0) : -scores[s.place(i, t)] * static_cast<T>(weights.of(t));
    }
    give_losses(c, s, weights, losses);
  });
}
// (grad, input, target, weight?, reduction, ignore_index, total_weight)
void check_gradient(Call& c, const char* who, int total) {
  check_losses(c, who, 1);
  const int64_t expected = c.integer(4) == kNone ? samples_of(c.tensor(1)) : 1;
  check(c.tensor(0).numel() == expected, who, ": the gradient has shape ", list(c.tensor(0).sizes()), ", expected ",
        expected, " elements");
  check(c.tensor(total).numel() == 1 && c.tensor(total).dtype() == Dtype::f64, who,
        ": the sum of the weights is one float64, got shape ", list(c.tensor(total).sizes()));
  c.promise(c.tensor(1).sizes(), c.tensor(1).dtype(), c.tensor(1).device());
}
void infer_nll_gradient(Call& c) { check_gradient(c, "nll_loss", 6); }
void run_nll_backward(Call& c) {
  const Samples s(c, "nll_loss", 1, false);
  fill(c.out(0), Scalar(0));
  visit_computed(c.tensor(1).dtype(), "nll_loss_backward", [&]<class T>() {
    const ClassWeights<T> weights(c, 3, s.shape.n);
    const LossGradients<T> grads(c, 6);
    const Tensor dx = c.out(0).dtype() == dtype_of<T> ? c.out(0) : convert(c.out(0), dtype_of<T>);
    for (int64_t i = 0; i < s.count; ++i) {
      const int64_t t = s.target(i);
      if (t < 0) continue;
      dx.data<T>()[s.place(i, t)] = static_cast<T>(-grads.of(i) * weights.of(t));
    }
    if (dx.get() != c.out(0).get()) copy_into(c.out(0), dx);
  });
}

// ---------------------------------------------------------------- cross entropy

// Of one sample or more: the largest score, the logarithm of the sum of exp(score - largest), and the sum of the scores
// below the largest times their classes' weights, if that is asked for.
template <class T>
struct SampleSums {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, const T* weights, int64_t n, int64_t step, int64_t count, T* largest, T* log_sums,
                          T* spread) {
    if (step == 1) {
      const T high = fold_run(Extreme<T, true>(), x, n);
      *largest = high;
      const double sum = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return math::exp<Fma>(x[i] - high); });
      *log_sums = static_cast<T>(math::log(sum));
      if (spread)
        *spread = static_cast<T>(
            weights ? sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return (x[i] - high) * weights[i]; })
                    : sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return x[i] - high; }));
      return;
    }
    alignas(64) T high[kSideBySide], sums[kSideBySide];
    fold_columns(Extreme<T, true>(), x, step, n, count, high);
    for (int64_t c = 0; c < count; ++c) sums[c] = 0;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < count; ++c) sums[c] += math::exp<Fma>(x[r * step + c] - high[c]);
    for (int64_t c = 0; c < count; ++c) largest[c] = high[c], log_sums[c] = math::log(sums[c]);
    if (!spread) return;
    for (int64_t c = 0; c < count; ++c) sums[c] = 0;
    for (int64_t r = 0; r < n; ++r) {
      const T weight = weights ? weights[r] : T(1);
      for (int64_t c = 0; c < count; ++c) sums[c] += (x[r * step + c] - high[c]) * weight;
    }
    for (int64_t c = 0; c < count; ++c) spread[c] = sums[c];
  }
};

// (input, target, weight?, reduction, ignore_index, label_smoothing) -> (loss, total_weight, statistics)
void infer_cross_entropy(Call& c) {
  check_losses(c, "cross_entropy", 0);
  const Tensor t = c.tensor(0);
  // Under the autocast of an accelerator the loss of scores in a low precision is computed and given in float32,
  // without the scores being cast.
  const bool is_autocast = is_accelerator(t.device()) && (modes.autocast >> static_cast<int>(t.device().type) & 1) &&
                           size_of(t.dtype()) == 2 && c.integer(3) != kNone;
  promise_losses(c, is_autocast ? Dtype::f32 : t.dtype());
  const int64_t sizes[] = {2, c.tensor(1).numel()};
  c.promise(sizes, t.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32, t.device());
}
void run_cross_entropy(Call& c) {
  const Samples s(c, "cross_entropy", 0, true);
  visit_computed(c.tensor(0).dtype(), "cross_entropy", [&]<class T>() {
    const ClassWeights<T> weights(c, 2, s.shape.n);
    const Tensor x = ready<T>(c.tensor(0));
    T *largest = c.out(2).data<T>(), *log_sums = largest + s.count;
    const int64_t sizes[] = {s.count};
    const Tensor losses = empty(sizes, dtype_of<T>);
    const T even = static_cast<T>(s.smoothing / static_cast<double>(s.shape.n)), rest = static_cast<T>(1 - s.smoothing);
    for_each_stretch(s.shape, [&](int64_t first, int64_t count, int64_t at) {
      T spread[kSideBySide];
      run_vectorized<SampleSums<T>>(static_cast<const T*>(x.data<T>() + at), weights.data(), s.shape.n, s.shape.inner,
                                    count, largest + first, log_sums + first, s.smoothing ? spread : nullptr);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t sample = first + k, t = s.target(sample);
        T& loss = losses.data<T>()[sample];
        loss = 0;
        if (t < 0) continue;
        const T score = x.data<T>()[at + k + t * s.shape.inner];
        loss = -((score - largest[sample]) - log_sums[sample]) * static_cast<T>(weights.of(t));
        if (s.smoothing) loss = rest * loss + even * (static_cast<T>(weights.total) * log_sums[sample] - spread[k]);
      }
    });
    give_losses(c, s, weights, losses);
  });
}

// dx = level softmax(x) - even weight, of one sample or more; what the target subtracts beside comes after.
template <class T>
struct SampleGradients {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* dx, const T* weights, int64_t n, int64_t step, int64_t count, const T* largest,
                          const T* log_sums, const T* level, const T* even) {
    if (step == 1) {
      const T high = *largest, log_sum = *log_sums, a = *level, b = *even;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) dx[i] = a * math::exp<Fma>((x[i] - high) - log_sum);
      if (b != 0) {
        for (int64_t i = 0; i < n; ++i) dx[i] -= weights ? b * weights[i] : b;
      }
      return;
    }
    for (int64_t r = 0; r < n; ++r) {
      const T weight = weights ? weights[r] : T(1);
#pragma GCC ivdep
      for (int64_t c = 0; c < count; ++c)
        dx[r * step + c] = level[c] * math::exp<Fma>((x[r * step + c] - largest[c]) - log_sums[c]) - even[c] * weight;
    }
  }
};

// (grad, input, target, weight?, reduction, ignore_index, label_smoothing, total_weight, statistics)
void infer_cross_entropy_gradient(Call& c) {
  check_gradient(c, "cross_entropy", 7);
  check(c.tensor(8).numel() == 2 * samples_of(c.tensor(1)), "cross_entropy: the statistics have shape ",
        list(c.tensor(8).sizes()), ", expected two for each of ", samples_of(c.tensor(1)), " samples");
}
void run_cross_entropy_backward(Call& c) {
  const Samples s(c, "cross_entropy", 1, true);
  visit_computed(c.tensor(1).dtype(), "cross_entropy_backward", [&]<class T>() {
    const ClassWeights<T> weights(c, 3, s.shape.n);
    const LossGradients<T> grads(c, 7);
    const Tensor x = ready<T>(c.tensor(1)), statistics = ready<T>(c.tensor(8)),
                 dx = c.out(0).dtype() == dtype_of<T> ? c.out(0) : empty(c.out(0).sizes(), dtype_of<T>);
    const T *largest = statistics.data<T>(), *log_sums = largest + s.count;
    const double share = s.smoothing / static_cast<double>(s.shape.n);
    const bool streams = s.shape.inner == 1 && streams_rows(dx.data<T>(), s.count, s.shape.n, sizeof(T), 1);
    for_each_stretch(s.shape, [&](int64_t first, int64_t count, int64_t at) {
      T level[kSideBySide], even[kSideBySide], own[kSideBySide];
      for (int64_t k = 0; k < count; ++k) {
        const int64_t t = s.target(first + k);
        const double grad = t < 0 ? 0 : grads.of(first + k), part = (1 - s.smoothing) * weights.of(t);
        level[k] = static_cast<T>(grad * (part + share * weights.total));
        even[k] = static_cast<T>(grad * share);
        own[k] = static_cast<T>(grad * part);
      }
      if (s.shape.inner == 1 && s.target(first) < 0) {  // whatever the scores are, also nan
        std::fill(dx.data<T>() + at, dx.data<T>() + at + s.shape.n, T(0));
        return;
      }
      alignas(64) T row[kStreamedRow];
      T* to = streams ? row : dx.data<T>() + at;
      run_vectorized<SampleGradients<T>>(static_cast<const T*>(x.data<T>() + at), to, weights.data(), s.shape.n,
                                         s.shape.inner, count, largest + first, log_sums + first,
                                         static_cast<const T*>(level), static_cast<const T*>(even));
      for (int64_t k = 0; k < count; ++k) {
        const int64_t t = s.target(first + k);
        if (t >= 0)
          to[k + t * s.shape.inner] -= own[k];
        else
          for (int64_t r = 0; r < s.shape.n; ++r) to[k + r * s.shape.inner] = 0;
      }
      if (streams)
        stream(reinterpret_cast<char*>(dx.data<T>() + at), reinterpret_cast<const char*>(row),
               s.shape.n * static_cast<int64_t>(sizeof(T)));
    });
    if (dx.get() != c.out(0).get()) copy_into(c.out(0), dx);
  });
}

}  // namespace

// Of images, PyTorch has another operator, and records the views around it where there are other dimensions than two.
static const char* name_of_nll(const Call& c) {
  const int64_t dim = c.tensor(0).dim();
  if (dim <= 2) return "NllLossBackward0";
  return dim != 4 && c.integer(3) == kNone ? "ViewBackward0" : "NllLoss2DBackward0";
}
static const char* name_of_cross_entropy(const Call& c) { return c.real(5) != 0 ? "AddBackward0" : name_of_nll(c); }

REGISTER(loss) {
  const uint32_t kInternal = kFunctionOnly | kNotDifferentiable;
  r.add(
       "_nll_loss(Tensor input, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor, Tensor "
       "total_weight)",
       infer_nll, run_nll, kFunctionOnly | kFirstResultOnly)
      .node_name_of = name_of_nll;
  r.add(
      "_nll_loss_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, int reduction, int ignore_index, "
      "Tensor total_weight) -> Tensor",
      infer_nll_gradient, run_nll_backward, kInternal);
  r.add(
       "_cross_entropy(Tensor input, Tensor target, Tensor? weight, int reduction, int ignore_index, float "
       "label_smoothing) -> "
       "(Tensor, Tensor total_weight, Tensor statistics)",
       infer_cross_entropy, run_cross_entropy, kFunctionOnly | kFirstResultOnly)
      .node_name_of = name_of_cross_entropy;
  r.add(
      "_cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, int reduction, int "
      "ignore_index, float label_smoothing, "
      "Tensor total_weight, Tensor statistics) -> Tensor",
      infer_cross_entropy_gradient, run_cross_entropy_backward, kInternal);
}

}  // namespace cresset
