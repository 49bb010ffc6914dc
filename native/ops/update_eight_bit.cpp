#include "ops/update_eight_bit.h"

#include <cmath>

#include "base/half.h"
#include "base/parallel.h"

namespace cresset {
namespace {

// The value nearest to x, the lower one of two.
int nearest(const float* values, float x) {
  int at = 0;
  for (int step = 128; step > 0; step /= 2)
    if (values[at + step] <= x) at += step;
  return at < 255 && x - values[at] > values[at + 1] - x ? at + 1 : at;
}

template <class P, class G>
void run(const EightBitAdam& s) {
  const EightBitNumbers n = numbers_of(s);
  const int64_t count = s.param.numel(), blocks = (count + kEightBitBlock - 1) / kEightBitBlock;
  P* const param = s.param.data<P>();
  const G* const grad = s.grad.data<G>();
  uint8_t *const first = s.first.data<uint8_t>(), *const second = s.second.data<uint8_t>();
  float *const first_largest = s.first_largest.data<float>(), *const second_largest = s.second_largest.data<float>();
  const float *const first_values = s.first_values.data<float>(), *const second_values = s.second_values.data<float>();
  parallel_for(blocks, 16, [&](int64_t begin, int64_t end) {
    float m[kEightBitBlock], v[kEightBitBlock];
    for (int64_t block = begin; block < end; ++block) {
      const int64_t at = block * kEightBitBlock, length = std::min(kEightBitBlock, count - at);
      float most = 0, most_square = 0;
      for (int64_t i = 0; i < length; ++i) {
        const float p = static_cast<float>(param[at + i]), g = static_cast<float>(grad[at + i]) + n.added * p;
        m[i] = first_values[first[at + i]] * first_largest[block];
        v[i] = second_values[second[at + i]] * second_largest[block];
        m[i] = n.beta1 * m[i] + (1 - n.beta1) * g;
        v[i] = n.beta2 * v[i] + (1 - n.beta2) * g * g;
        param[at + i] = static_cast<P>(p * n.shrink - n.step_size * m[i] / (std::sqrt(v[i]) / n.root + n.eps));
        most = std::max(most, std::fabs(m[i])), most_square = std::max(most_square, v[i]);
      }
      first_largest[block] = most, second_largest[block] = most_square;
      for (int64_t i = 0; i < length; ++i) {
        first[at + i] = static_cast<uint8_t>(nearest(first_values, most > 0 ? m[i] / most : 0.0f));
        const int code = nearest(second_values, most_square > 0 ? v[i] / most_square : 0.0f);
        second[at + i] = static_cast<uint8_t>(code == 0 && v[i] > 0 ? 1 : code);
      }
    }
  });
}

template <class P>
void run_on_gradient(const EightBitAdam& s) {
  if (s.grad.dtype() == Dtype::f32)
    run<P, float>(s);
  else if (s.grad.dtype() == Dtype::bf16)
    run<P, BFloat16>(s);
  else
    run<P, Half>(s);
}

}  // namespace

EightBitNumbers numbers_of(const EightBitAdam& s) {
  const auto steps = static_cast<double>(s.step);
  return {static_cast<float>(s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(s.eps),
          static_cast<float>(s.lr / (1 - std::pow(s.beta1, steps))),
          static_cast<float>(std::sqrt(1 - std::pow(s.beta2, steps))),
          static_cast<float>(s.decoupled ? 1 - s.lr * s.weight_decay : 1),
          static_cast<float>(s.decoupled ? 0 : s.weight_decay)};
}

void adam_in_8_bits(const EightBitAdam& s) {
  if (s.param.dtype() == Dtype::f32)
    run_on_gradient<float>(s);
  else if (s.param.dtype() == Dtype::bf16)
    run_on_gradient<BFloat16>(s);
  else
    run_on_gradient<Half>(s);
}

}  // namespace cresset
