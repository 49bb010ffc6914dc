// The loss that asks for a margin between a sample's class and the others: see ops/margin.py. The halves are computed
// in float.
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/reduction.h"

namespace cresset {
namespace {

// input, target, p, margin, weight?, from argument `first` on
struct Samples {
  int64_t count, classes;
  bool squares;
  double margin;
  Tensor targets;  // contiguous
  Samples(const Call& c, int first)
      : count(c.tensor(first).size(0)),
        classes(c.tensor(first).size(1)),
        squares(c.integer(first + 2) == 2),
        margin(c.real(first + 3)),
        targets(contiguous(c.tensor(first + 1))) {
    const int64_t* t = targets.data<int64_t>();
    for (int64_t i = 0; i < count; ++i)
      check_index(static_cast<uint64_t>(t[i]) < static_cast<uint64_t>(classes), "multi_margin_loss: Target ", t[i],
                  " is out of bounds. The ", classes, " classes are numbered from 0 to ", classes - 1);
  }
  int64_t target(int64_t sample) const { return targets.data<int64_t>()[sample]; }
};

void check_samples(Call& c, int first) {
  const Tensor x = c.tensor(first), t = c.tensor(first + 1);
  check(x.dim() == 2 && t.dim() == 1 && t.size(0) == x.size(0) && t.dtype() == Dtype::i64,
        "multi_margin_loss: expected a matrix of scores and an int64 class for each row, got shapes ", list(x.sizes()),
        " and ", list(t.sizes()), " of ", name_of(t.dtype()));
  check(!c.has(first + 4) || (c.tensor(first + 4).dim() == 1 && c.tensor(first + 4).size(0) == x.size(1)),
        "multi_margin_loss: inconsistent weight size, expected ", x.size(1));
  check_implemented(is_floating(x.dtype()) && size_of(x.dtype()) > 1, "\"multi_margin_loss\" not implemented for '",
                    legacy_name(x.dtype()), "'");
}

// How much the class of a sample counts, over the number of classes.
template <class T>
class Shares {
 public:
  Shares(const Call& c, int weight, const Samples& s) : s_(s) {
    if (c.has(weight)) weights_ = ready<T>(c.tensor(weight));
  }
  double of(int64_t sample) const {
    const double weight = weights_.defined() ? static_cast<double>(weights_.data<T>()[s_.target(sample)]) : 1;
    return weight / static_cast<double>(s_.classes);
  }

 private:
  const Samples& s_;
  Tensor weights_;
};

template <class T>
struct LossOfRow {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t n, int64_t target, T beyond, bool squares, double* loss) {
    *loss = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM {
      const T gap = beyond + x[i], counted = gap > 0 && i != target ? gap : T(0);
      return squares ? counted * counted : counted;
    });
  }
};
template <class T>
struct GradientOfRow {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t n, int64_t target, T beyond, bool squares, T share, T* dx) {
    const double sum = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM {
      const T gap = beyond + x[i];
      return gap > 0 && i != target ? (squares ? 2 * gap : T(1)) : T(0);
    });
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T gap = beyond + x[i];
      dx[i] = gap > 0 ? (squares ? 2 * gap * share : share) : T(0);
    }
    dx[target] = static_cast<T>(-sum * static_cast<double>(share));
  }
};

int64_t grain(const Samples& s) { return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(s.classes, 1)); }

void infer_loss(Call& c) {
  check_samples(c, 0);
  const int64_t sizes[] = {c.tensor(0).size(0)};
  c.promise(sizes, c.tensor(0).dtype(), c.tensor(0).device());
}
void run_loss(Call& c) {
  const Samples s(c, 0);
  visit_computed(c.tensor(0).dtype(), "multi_margin_loss", [&]<class T>() {
    const Tensor x = ready<T>(c.tensor(0)), losses = empty(c.out().sizes(), dtype_of<T>);
    const Shares<T> shares(c, 4, s);
    parallel_for(s.count, grain(s), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *row = x.data<T>() + i * s.classes, beyond = static_cast<T>(s.margin) - row[s.target(i)];
        double loss;
        run_vectorized<LossOfRow<T>>(row, s.classes, s.target(i), beyond, s.squares, &loss);
        losses.data<T>()[i] = static_cast<T>(loss * shares.of(i));
      }
    });
    copy_into(c.out(), losses);
  });
}

// (grad, input, target, p, margin, weight?)
void infer_gradient(Call& c) {
  check_samples(c, 1);
  check(c.tensor(0).dim() == 1 && c.tensor(0).size(0) == c.tensor(1).size(0),
        "multi_margin_loss: the gradient has shape ", list(c.tensor(0).sizes()));
  c.promise(c.tensor(1).sizes(), c.tensor(1).dtype(), c.tensor(1).device());
}
void run_gradient(Call& c) {
  const Samples s(c, 1);
  visit_computed(c.tensor(1).dtype(), "multi_margin_loss_backward", [&]<class T>() {
    const Tensor grads = ready<T>(c.tensor(0)), x = ready<T>(c.tensor(1)),
                 dx = c.out().dtype() == dtype_of<T> ? c.out() : empty(c.out().sizes(), dtype_of<T>);
    const Shares<T> shares(c, 5, s);
    parallel_for(s.count, grain(s), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *row = x.data<T>() + i * s.classes, beyond = static_cast<T>(s.margin) - row[s.target(i)];
        const T share = static_cast<T>(static_cast<double>(grads.data<T>()[i]) * shares.of(i));
        run_vectorized<GradientOfRow<T>>(row, s.classes, s.target(i), beyond, s.squares, share,
                                         dx.data<T>() + i * s.classes);
      }
    });
    if (dx.get() != c.out().get()) copy_into(c.out(), dx);
  });
}

}  // namespace

REGISTER(margin) {
  r.add("_multi_margin_loss(Tensor input, Tensor target, int p, float margin, Tensor? weight) -> Tensor", infer_loss,
        run_loss, kFunctionOnly, "MultiMarginLossBackward0");
  r.add(
      "_multi_margin_loss_backward(Tensor grad, Tensor input, Tensor target, int p, float margin, Tensor? weight) -> "
      "Tensor",
      infer_gradient, run_gradient, kFunctionOnly | kNotDifferentiable);
}

}  // namespace cresset
