// One step of a recurrent layer for all sequences that are running: the gates after the products, forward and backward.
// A thread has one hidden feature of a sequence; see Note [How a recurrent layer runs on a device] in
// native/cuda/recurrence.cpp.
//
// -D options: ELEMENT, CELL (0 LSTM, 1 GRU, 2 tanh, 3 relu), KERNEL (0 forward, 1 backward, 2 the gradient of a
// projected output).
#pragma once
#include "math.cuh"

using T = ELEMENT;
using C = opmath<T>;

CRESSET_INLINE C get(const T* p, int64_t i) { return convert<C>(p[i]); }
CRESSET_INLINE C get_or_zero(const T* p, int64_t i) { return p ? convert<C>(p[i]) : C(0); }
CRESSET_INLINE void put(T* p, int64_t i, C x) { p[i] = convert<T>(x); }
// As it will be read back.
CRESSET_INLINE C stored(C x) { return convert<C>(convert<T>(x)); }
CRESSET_INLINE C sigmoid(C x) { return C(1) / (C(1) + math::exp(-x)); }

constexpr int kGates = CELL == 0 ? 4 : CELL == 1 ? 3 : 1;

// The structs are those of native/cuda/recurrence.cpp. Of `n` hidden features `width` come out, which is fewer where
// they are projected.
#if KERNEL == 0
struct Step {
  const T *from_input, *from_state, *input_bias,
      *hidden_bias;           // the shares of the gates; all but the state's may be missing
  T *gates, *cells;           // what backward needs; missing when nobody does
  T *cell, *hidden, *output;  // the state, which the step replaces; hidden is missing with a projection
  int64_t rows, n;
};
extern "C" __global__ void __launch_bounds__(256) recurrence_step(const Step s) {
  after_earlier_work();
  const int64_t n = s.n, j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
  C bias[kGates], state_bias = get_or_zero(s.hidden_bias, (kGates - 1) * n + j);
#pragma unroll
  for (int g = 0; g < kGates; ++g)
    bias[g] =
        get_or_zero(s.input_bias, g * n + j) + (CELL == 1 && g == 2 ? C(0) : get_or_zero(s.hidden_bias, g * n + j));
#pragma unroll 1
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < s.rows;
       row += static_cast<int64_t>(gridDim.y) * blockDim.y) {
    const int64_t at = row * n + j, first = row * kGates * n + j;
    C x[kGates], h[kGates];
#pragma unroll
    for (int g = 0; g < kGates; ++g)
      x[g] = get_or_zero(s.from_input, first + g * n) + bias[g], h[g] = get(s.from_state, first + g * n);
    C out;
#if CELL == 0
    const C in = sigmoid(x[0] + h[0]), forget = sigmoid(x[1] + h[1]), fresh = math::tanh(x[2] + h[2]),
            open = sigmoid(x[3] + h[3]);
    const C cell = stored(forget * get(s.cell, at) + in * fresh);
    put(s.cell, at, cell);
    out = open * math::tanh(cell);
    const C kept[kGates] = {in, forget, fresh, open}, beside = cell;
#elif CELL == 1
    const C from_state = h[2] + state_bias, reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]),
            fresh = math::tanh(x[2] + reset * from_state);
    out = fresh + update * (get(s.hidden, at) - fresh);
    const C kept[kGates] = {reset, update, fresh}, beside = from_state;
#else
    out = CELL == 2 ? math::tanh(x[0] + h[0]) : x[0] + h[0] < C(0) ? C(0) : x[0] + h[0];
#endif
#if CELL < 2
    if (s.cells) {
#pragma unroll
      for (int g = 0; g < kGates; ++g) put(s.gates, first + g * n, kept[g]);
      put(s.cells, at, beside);
    }
#endif
    put(s.output, at, out);
    if (s.hidden) put(s.hidden, at, out);
  }
}
#endif

#if KERNEL == 1
struct Step {
  const T *gates, *cells, *output;          // of the step; the output after it
  const T *earlier_output, *earlier_cells;  // of the step before, for the first `had` sequences
  const T *first_hidden, *first_cells;      // of the others: where they started
  const T *grad_output,
      *grad_projected;         // one of them: the gradient of the output, or of what was projected, which is complete
  T *grad_hidden, *grad_cell;  // of the state after the step; grad_cell becomes that of the state before it
  T *grad_gates, *grad_hidden_gates;  // the second of a GRU
  T *previous, *unprojected;          // the state before the step; what was projected
  int64_t rows, had, n, width;
  int64_t grad_row, grad_element;  // steps of grad_output
};
extern "C" __global__ void __launch_bounds__(256) recurrence_step_back(const Step s) {
  after_earlier_work();
  const int64_t n = s.n, j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
#pragma unroll 1
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < s.rows;
       row += static_cast<int64_t>(gridDim.y) * blockDim.y) {
    const int64_t at = row * n + j, first = row * kGates * n + j;
    const bool ran = row < s.had;
    C before = C(0);
    if (j < s.width) {
      before = get(ran ? s.earlier_output : s.first_hidden, row * s.width + j);
      put(s.previous, row * s.width + j, before);
    }
    const C grad = s.grad_projected
                       ? get(s.grad_projected, at)
                       : get(s.grad_hidden, at) + get(s.grad_output, row * s.grad_row + j * s.grad_element);
#if CELL == 0
    const C in = get(s.gates, first), forget = get(s.gates, first + n), fresh = get(s.gates, first + 2 * n),
            open = get(s.gates, first + 3 * n);
    const C tanh = math::tanh(get(s.cells, at)), d = get(s.grad_cell, at) + grad * open * (C(1) - tanh * tanh);
    put(s.grad_gates, first, d * fresh * in * (C(1) - in));
    put(s.grad_gates, first + n, d * get(ran ? s.earlier_cells : s.first_cells, at) * forget * (C(1) - forget));
    put(s.grad_gates, first + 2 * n, d * in * (C(1) - fresh * fresh));
    put(s.grad_gates, first + 3 * n, grad * tanh * open * (C(1) - open));
    put(s.grad_cell, at, d * forget);
    if (s.unprojected) put(s.unprojected, at, open * tanh);
#elif CELL == 1
    const C reset = get(s.gates, first), update = get(s.gates, first + n), fresh = get(s.gates, first + 2 * n),
            from_state = get(s.cells, at);
    const C to_fresh = grad * (C(1) - update) * (C(1) - fresh * fresh),
            to_reset = to_fresh * from_state * reset * (C(1) - reset);
    const C to_update = grad * (before - fresh) * update * (C(1) - update);
    put(s.grad_gates, first, to_reset), put(s.grad_hidden_gates, first, to_reset);
    put(s.grad_gates, first + n, to_update), put(s.grad_hidden_gates, first + n, to_update);
    put(s.grad_gates, first + 2 * n, to_fresh), put(s.grad_hidden_gates, first + 2 * n, to_fresh * reset);
    put(s.grad_hidden, at, grad * update);  // what does not go through the gates
#else
    const C out = get(s.output, at);
    put(s.grad_gates, first, CELL == 2 ? grad * (C(1) - out * out) : out > C(0) ? grad : C(0));
#endif
  }
}
#endif

#if KERNEL == 2
// to = the gradient of the state, which goes on, plus that of the output.
struct Step {
  const T *grad_hidden, *grad_output;
  T* to;
  int64_t rows, n, grad_row, grad_element;
};
extern "C" __global__ void __launch_bounds__(256) recurrence_gradient(const Step s) {
  after_earlier_work();
  const int64_t j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= s.n) return;
#pragma unroll 1
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < s.rows;
       row += static_cast<int64_t>(gridDim.y) * blockDim.y)
    put(s.to, row * s.n + j,
        get(s.grad_hidden, row * s.n + j) + get(s.grad_output, row * s.grad_row + j * s.grad_element));
}
#endif
