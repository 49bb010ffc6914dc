// Connectionist temporal classification: the probability of a target, summed over all its alignments with the inputs.
//
// With states blank, label, blank, ..., label, blank, a step in time stays, moves by one, or by two over a blank that
// separates different labels. alpha[t][s] is the logarithm of the probability of all ways to be in state s at time t,
// that of the time itself included; the gradient needs the same from the back. A sample's states lie one after the
// other, so that a time is a few vectors. The halves are computed in float.
#include <limits>
#include <vector>

#include "base/exponentials.h"
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"

namespace cresset {
namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c))
template <class Fma, class T>
CRESSET_INLINE T log_of_sum(T a, T b, T c) {
  T top = b > a ? b : a;
  top = c > top ? c : top;
  const T low = top == kNever<T> ? T(0) : top;
  return math::log(math::exp<Fma>(a - low) + math::exp<Fma>(b - low) + math::exp<Fma>(c - low)) + low;
}

// now[s] = log(exp(before[s]) + exp(before[s - 1]) + exp(before[s - 2]), the last if it may be skipped from) +
// scores[s]. `before` has two states that are never reached in front of it.
template <class T>
struct NextTime {
  template <class Fma>
  CRESSET_INLINE void run(const T* before, const T* may_skip, const T* scores, T* now, int64_t states) {
#pragma GCC ivdep
    for (int64_t s = 0; s < states; ++s)
      now[s] = log_of_sum<Fma>(before[s], before[s - 1], may_skip[s] != 0 ? before[s - 2] : kNever<T>) + scores[s];
  }
};

// How probable it is that a time belongs to each state: alpha and beta both hold the time's own score.
template <class T>
struct Posteriors {
  template <class Fma>
  CRESSET_INLINE void run(const T* alpha, const T* beta, const T* scores, T loss, T* posteriors, int64_t states) {
#pragma GCC ivdep
    for (int64_t s = 0; s < states; ++s) {
      const T way = alpha[s] + beta[s];
      posteriors[s] = way == kNever<T> ? T(0) : math::exp<Fma>(way + loss - scores[s]);
    }
  }
};

// What log-probabilities from a log_softmax get: dx = (exp(x) - belongs) grad.
template <class T>
struct ClassGradients {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, const T* belongs, T grad, T* dx, int64_t classes) {
#pragma GCC ivdep
    for (int64_t c = 0; c < classes; ++c) dx[c] = (math::exp<Fma>(x[c]) - belongs[c]) * grad;
  }
};

// (log_probs, targets, lengths, blank) from the argument `first` on
struct Alignments {
  int64_t times, samples, classes, longest, blank;
  Tensor targets, lengths;
  Alignments(const Call& c, int first)
      : times(c.tensor(first).size(0)),
        samples(c.tensor(first).size(1)),
        classes(c.tensor(first).size(2)),
        longest(c.tensor(first + 1).size(1)),
        blank(c.integer(first + 3)),
        targets(contiguous(c.tensor(first + 1))),
        lengths(contiguous(c.tensor(first + 2))) {
    for (int64_t n = 0; n < samples; ++n) {
      check(inputs_of(n) >= 0 && inputs_of(n) <= times && labels_of(n) >= 0 && labels_of(n) <= longest,
            "ctc_loss: sample ", n, " has ", inputs_of(n), " inputs of ", times, " and ", labels_of(n), " labels of ",
            longest);
      for (int64_t i = 0; i < labels_of(n); ++i)
        check_index(static_cast<uint64_t>(label(n, i)) < static_cast<uint64_t>(classes), "ctc_loss: target ",
                    label(n, i), " is out of bounds. The ", classes, " classes are numbered from 0 to ", classes - 1);
    }
  }
  int64_t inputs_of(int64_t n) const { return lengths.data<int64_t>()[n]; }
  int64_t labels_of(int64_t n) const { return lengths.data<int64_t>()[samples + n]; }
  int64_t label(int64_t n, int64_t i) const { return targets.data<int64_t>()[n * longest + i]; }
  int64_t all_states() const { return 2 * longest + 1; }
  int64_t grain() const { return std::max<int64_t>(1, 2048 / std::max<int64_t>(times * all_states(), 1)); }
};

// The states of a sample, and what a time is made of.
template <class T>
struct States {
  int64_t count;
  std::vector<int64_t> classes;
  std::vector<T> may_skip, scores;
  States(const Alignments& a, int64_t n)
      : count(2 * a.labels_of(n) + 1), classes(count, a.blank), may_skip(count), scores(count) {
    for (int64_t i = 0; i < a.labels_of(n); ++i) {
      classes[2 * i + 1] = a.label(n, i);
      may_skip[2 * i + 1] = i > 0 && a.label(n, i) != a.label(n, i - 1);
    }
  }
  void read(const T* x) {
    for (int64_t s = 0; s < count; ++s) scores[s] = x[classes[s]];
  }
};

void check_alignments(const Call& c, int first) {
  const Tensor x = c.tensor(first), targets = c.tensor(first + 1), lengths = c.tensor(first + 2);
  check_implemented(is_floating(x.dtype()) && size_of(x.dtype()) > 1, "\"ctc_loss\" not implemented for '",
                    legacy_name(x.dtype()), "'");
  check(x.dim() == 3, "ctc_loss: expected log_probs of shape (times, samples, classes), got ", list(x.sizes()));
  check(targets.dim() == 2 && targets.size(0) == x.size(1) && targets.dtype() == Dtype::i64,
        "ctc_loss: expected targets of shape (", x.size(1), ", labels) in int64, got ", list(targets.sizes()));
  check(lengths.dim() == 2 && lengths.size(0) == 2 && lengths.size(1) == x.size(1) && lengths.dtype() == Dtype::i64,
        "ctc_loss: expected lengths of shape (2, ", x.size(1), ") in int64, got ", list(lengths.sizes()));
  check(c.integer(first + 3) >= 0 && c.integer(first + 3) < x.size(2), "ctc_loss: blank must be in label range, got ",
        c.integer(first + 3), " of ", x.size(2), " classes");
}
void infer_alignments(Call& c) {
  check_alignments(c, 0);
  const Tensor x = c.tensor(0);
  const int64_t losses[] = {x.size(1)}, alpha[] = {x.size(1), x.size(0), 2 * c.tensor(1).size(1) + 1};
  c.promise(losses, x.dtype(), x.device());
  c.promise(alpha, computed_dtype(x.dtype()), x.device());
}
void run_alignments(Call& c) {
  const Alignments a(c, 0);
  visit_computed(c.tensor(0).dtype(), "ctc_loss", [&]<class T>() {
    const Tensor x = ready<T>(c.tensor(0));
    const int64_t sizes[] = {a.samples};
    const Tensor losses = empty(sizes, dtype_of<T>);
    T* const all = c.out(1).data<T>();
    parallel_for(a.samples, a.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        States<T> states(a, n);
        const int64_t inputs = a.inputs_of(n), width = a.all_states();
        std::vector<T> before(states.count + 2, kNever<T>);
        for (int64_t t = 0; t < a.times; ++t) {
          T* const now = all + (n * a.times + t) * width;
          std::fill(now + (t < inputs ? states.count : 0), now + width, kNever<T>);
          if (t >= inputs) continue;
          states.read(x.data<T>() + (t * a.samples + n) * a.classes);
          if (t == 0)
            for (int64_t s = 0; s < states.count; ++s) now[s] = s < 2 ? states.scores[s] : kNever<T>;
          else
            run_vectorized<NextTime<T>>(static_cast<const T*>(before.data() + 2),
                                        static_cast<const T*>(states.may_skip.data()),
                                        static_cast<const T*>(states.scores.data()), now, states.count);
          std::copy(now, now + states.count, before.begin() + 2);
        }
        // The last two states end a target. Without inputs only the empty one is possible.
        const T last = before[states.count + 1], label = states.count > 1 ? before[states.count] : kNever<T>;
        losses.data<T>()[n] =
            inputs == 0 ? (states.count == 1 ? T(0) : -kNever<T>) : -log_of_sum<SoftwareFma>(last, label, kNever<T>);
      }
    });
    copy_into(c.out(0), losses);
  });
}

// (grad, log_probs, targets, lengths, blank, zero_infinity, loss, alpha)
void infer_alignments_gradient(Call& c) {
  check_alignments(c, 1);
  const Tensor x = c.tensor(1), alpha = c.tensor(7);
  check(c.tensor(0).numel() == x.size(1) && c.tensor(6).numel() == x.size(1) &&
            alpha.numel() == x.size(1) * x.size(0) * (2 * c.tensor(2).size(1) + 1) &&
            alpha.dtype() == computed_dtype(x.dtype()),
        "ctc_loss: the gradient, the loss or alpha do not fit: ", list(c.tensor(0).sizes()), ", ",
        list(c.tensor(6).sizes()), ", ", list(alpha.sizes()));
  c.promise(x.sizes(), x.dtype(), x.device());
}
void run_alignments_backward(Call& c) {
  const Alignments a(c, 1);
  const bool zero_infinity = c.boolean(5);
  visit_computed(c.tensor(1).dtype(), "ctc_loss_backward", [&]<class T>() {
    const Tensor x = ready<T>(c.tensor(1)), grads = ready<T>(c.tensor(0)), losses = ready<T>(c.tensor(6)),
                 alphas = ready<T>(c.tensor(7)),
                 dx = c.out(0).dtype() == dtype_of<T> ? c.out(0) : empty(c.out(0).sizes(), dtype_of<T>);
    parallel_for(a.samples, a.grain(), [&](int64_t begin, int64_t end) {
      std::vector<T> belongs(a.classes);
      for (int64_t n = begin; n < end; ++n) {
        States<T> states(a, n);
        const int64_t inputs = a.inputs_of(n), width = a.all_states(), count = states.count;
        const T loss = losses.data<T>()[n], grad = grads.data<T>()[n];
        const bool is_impossible = loss == -kNever<T>;
        // From the back the states are walked backwards: a skip leads to state s + 2 from s.
        std::vector<T> after(count + 2, kNever<T>), now(count), posteriors(count), may_skip(count), scores(count);
        for (int64_t s = 0; s < count - 2; ++s) may_skip[count - 1 - s] = states.may_skip[s + 2];
        std::vector<T> beta(count);
        for (int64_t t = a.times - 1; t >= 0; --t) {
          const int64_t row = (t * a.samples + n) * a.classes;
          T* const to = dx.data<T>() + row;
          if (t >= inputs || (is_impossible && zero_infinity)) {
            std::fill(to, to + a.classes, T(0));
            continue;
          }
          states.read(x.data<T>() + row);
          for (int64_t s = 0; s < count; ++s) scores[s] = states.scores[count - 1 - s];
          if (t == inputs - 1)
            for (int64_t s = 0; s < count; ++s) now[s] = s < 2 ? scores[s] : kNever<T>;
          else
            run_vectorized<NextTime<T>>(static_cast<const T*>(after.data() + 2), static_cast<const T*>(may_skip.data()),
                                        static_cast<const T*>(scores.data()), now.data(), count);
          std::copy(now.begin(), now.end(), after.begin() + 2);
          for (int64_t s = 0; s < count; ++s) beta[s] = now[count - 1 - s];
          run_vectorized<Posteriors<T>>(static_cast<const T*>(alphas.data<T>() + (n * a.times + t) * width),
                                        static_cast<const T*>(beta.data()), static_cast<const T*>(states.scores.data()),
                                        loss, posteriors.data(), count);
          for (int64_t s = 0; s < count; ++s) belongs[states.classes[s]] += posteriors[s];
          // No alignment is possible: neither is a share of one.
          if (is_impossible) std::fill(belongs.begin(), belongs.end(), std::numeric_limits<T>::quiet_NaN());
          run_vectorized<ClassGradients<T>>(static_cast<const T*>(x.data<T>() + row),
                                            static_cast<const T*>(belongs.data()), grad, to, a.classes);
          if (is_impossible)
            std::fill(belongs.begin(), belongs.end(), T(0));
          else
            for (const int64_t k : states.classes) belongs[k] = 0;
        }
      }
    });
    if (dx.get() != c.out(0).get()) copy_into(c.out(0), dx);
  });
}

}  // namespace

REGISTER(alignments) {
  r.add(
      "_ctc_alignments(Tensor log_probs, Tensor targets, Tensor lengths, int blank, bool zero_infinity) -> (Tensor "
      "loss, Tensor alpha)",
      infer_alignments, run_alignments, kFunctionOnly | kFirstResultOnly, "CtcLossBackward0");
  r.add(
      "_ctc_alignments_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor lengths, int blank, bool "
      "zero_infinity, Tensor loss, Tensor alpha) -> Tensor",
      infer_alignments_gradient, run_alignments_backward, kFunctionOnly | kNotDifferentiable);
}

}  // namespace cresset
