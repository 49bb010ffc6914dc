// Recurrent layers over whole sequences: LSTM, GRU and the plain ones, a layer and a direction at a time.
//
// Note [How a recurrent layer is computed]
// The sequences of the batch are shared out among the threads, and each thread walks all steps of its sequences: the
// products of the inputs and of the state with their weights, which were packed once, then the gates. Large weights,
// which do not stay in the cache, are multiplied with the inputs of all steps at once, before. No step waits for
// another thread, and the result does not depend on who computes which sequence. Backward walks the steps in the other
// order and leaves the gradients of the gates of all steps, from which each weight's gradient is one product.
//
// The rows of all steps follow one another; step t has counts[t] of them, which never grow with t (packed sequences,
// the longest first). The state of a sequence that has ended stays as it is: forward it is the final state, and in
// reverse the starting one.
#pragma once
#include "ops/gemm.h"

namespace cresset {

enum class Cell : uint8_t { lstm, gru, tanh, relu };
inline int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

template <class C>
struct RecurrenceProblem {
  Cell cell = Cell::lstm;
  int64_t steps = 0, batch = 0, hidden = 0;
  int64_t width = 0;                                    // of the output: hidden, or less when it is projected
  const int64_t *counts = nullptr, *offsets = nullptr;  // rows of each step, and the first of them
  bool reverse = false;
  // Panels: of the lines of w_hh (forward) or its columns (backward), and of those of w_hr if there is one.
  // input_panels are of w_ih, and except in a GRU they continue with w_hh.
  const C *hidden_panels = nullptr, *projection_panels = nullptr;
  const C* hidden_bias = nullptr;  // of a GRU; for the others it is in the inputs' share
  // The inputs, if their share is computed step by step.
  const C *input = nullptr, *input_panels = nullptr, *input_bias = nullptr;
  int64_t inputs = 0;
  // Rows of all steps. gates: the inputs' share, if it is computed before; when cells is there, they become the gates
  // after their functions: i f g o of an LSTM, r z n of a GRU. cells: the cell of an LSTM; the state's share in n of a
  // GRU; null when nobody wants them.
  C *gates = nullptr, *cells = nullptr, *output = nullptr;
  // The state: forward it starts as the first and ends as the last.
  C *h = nullptr, *c = nullptr;

  // Backward. Here h and c are the starting states, and dh and dc start as the gradients of the final ones and end as
  // those of the starting ones.
  const C* grad_output = nullptr;
  int64_t grad_step = 0, grad_row = 0;  // steps of its time, when all counts are the same, and of its rows
  C *dh = nullptr, *dc = nullptr;
  C *grad_gates = nullptr, *grad_hidden_gates = nullptr;  // the second of a GRU only: its n differs
  C* previous = nullptr;                                  // the state before each step
  C *grad_projected = nullptr, *unprojected = nullptr;    // with w_hr
};

template <class C>
struct RecurrenceKernels {
  void (*forward)(const RecurrenceProblem<C>&, int64_t begin, int64_t end);  // sequences [begin, end) of the batch
  void (*backward)(const RecurrenceProblem<C>&, int64_t begin, int64_t end);
  int64_t (*panels_size)(int64_t lines, int64_t k);
  // As panels of whole_k; these k from first_k on.
  void (*pack)(const Factor<C>& f, int64_t lines, int64_t k, C* panels, int64_t whole_k, int64_t first_k);
};
template <class C>
RecurrenceKernels<C> recurrence_kernels_baseline();
template <class C>
RecurrenceKernels<C> recurrence_kernels_avx2();
template <class C>
RecurrenceKernels<C> recurrence_kernels_avx512();

}  // namespace cresset
