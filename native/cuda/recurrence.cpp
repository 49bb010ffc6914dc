// Recurrent layers on the device.
//
// Note [How a recurrent layer runs on a device]
// The inputs' share of the gates of all steps is one product. Then each step is a product of the state with its weights
// and one kernel that does all the rest of the step. Backward walks the steps in the other order, again with a kernel
// and a product each; the gradients of the weights are products over all steps, which the derivative asks for. The
// state lies in the results for the final state: a step replaces the rows of the sequences that are running, and the
// others keep what they have.
#include <algorithm>
#include <bit>

#include "cuda/cublas.h"
#include "cuda/cudnn.h"
#include "dispatch/registration.h"
#include "ops/recurrence_layer.h"

namespace cresset::cuda {
namespace {

const std::initializer_list<const char*> kMacros = {"ELEMENT", "CELL", "KERNEL"};
const KernelFamily kForward("recurrence.cuh", "recurrence_step", kMacros);
const KernelFamily kBackward("recurrence.cuh", "recurrence_step_back", kMacros);
const KernelFamily kGradient("recurrence.cuh", "recurrence_gradient", kMacros);

// The structs of recurrence.cuh.
struct ForwardStep {
  const void *from_input, *from_state, *input_bias, *hidden_bias;
  void *gates, *cells;
  void *cell, *hidden, *output;
  int64_t rows, n;
};
struct BackwardStep {
  const void *gates, *cells, *output;
  const void *earlier_output, *earlier_cells;
  const void *first_hidden, *first_cells;
  const void *grad_output, *grad_projected;
  void *grad_hidden, *grad_cell;
  void *grad_gates, *grad_hidden_gates;
  void *previous, *unprojected;
  int64_t rows, had, n, width;
  int64_t grad_row, grad_element;
};
struct GradientStep {
  const void *grad_hidden, *grad_output;
  void* to;
  int64_t rows, n, grad_row, grad_element;
};

constexpr int64_t kMostRowBlocks = 65535;

// A thread for each feature, side by side, and several sequences in a block where the features are few.
template <class Step>
void launch_step(const KernelFamily& family, const Place& place, Dtype dtype, Cell cell, int kernel, const Step& step) {
  const int64_t across =
                    std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(step.n))), 32, 128),
                down = 128 / across;
  family.launch(place, {dtype, static_cast<int>(cell), kernel},
                {divide_up(step.n, across), std::min(divide_up(step.rows, down), kMostRowBlocks)}, {across, down}, 0,
                step);
}

// Elements of a tensor from a row on.
class Rows {
 public:
  Rows() = default;
  Rows(char* data, int64_t row, Dtype dtype) : data_(data), bytes_(row * size_of(dtype)) {}
  char* operator[](int64_t row) const { return data_ ? data_ + row * bytes_ : nullptr; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// The rows of a result are those of `rows` times a matrix: its rows (as linear has them), or its columns.
void multiply_rows(const Place& place, const char* who, Dtype dtype, const void* rows, int64_t count, int64_t k,
                   const Tensor& matrix, bool by_rows, void* result, bool adds = false) {
  MatrixProduct p;
  p.dtype = dtype;
  p.tf32 = cudnn_settings.enabled && cudnn_settings.tf32;  // as convolutions: PyTorch's layers are cuDNN's
  p.m = matrix.size(by_rows ? 0 : 1), p.n = count, p.k = k;
  p.a.data = matrix.bytes(), p.a.ld = matrix.size(1), p.a.transposed = by_rows;
  p.b.data = rows, p.b.ld = k;
  p.d = result, p.ldd = p.m;
  if (adds) p.beta = 1, p.c.data = result, p.c.ld = p.m;
  check_product(multiply(place, p), who, p);
}

// The steps in the order of time of one direction, those without a sequence left out: f(step, the one before or -1).
template <class F>
void walk_back(const RecurrentLayer& l, bool reverse, F&& f) {
  for (int64_t step = l.steps - 1; step >= 0; --step) {
    const int64_t t = reverse ? l.steps - 1 - step : step;
    if (l.counts[static_cast<size_t>(t)] > 0) f(t, step == 0 ? -1 : reverse ? t + 1 : t - 1);
  }
}

// (input, hx, cx?, w_ih, w_hh, b_ih?, b_hh?, w_hr?, batch_sizes, mode, reverse, keep) -> (output, hy, cy, reserve)
void run_recurrence(Call& c) {
  const Tensor input = contiguous(c.tensor(0)), w_ih = contiguous(c.tensor(3)), w_hh = contiguous(c.tensor(4)),
               output = c.out(0), h = c.out(1), cell = c.out(2);
  const RecurrentLayer l(input, c.tensor(1), w_hh, c.integers(8), c.text(9));
  copy_into(h, c.tensor(1));
  if (l.cell == Cell::lstm) copy_into(cell, c.tensor(2));
  if (l.rows == 0 || l.hidden == 0) return;
  const Dtype dtype = input.dtype();
  const Device device = output.device();
  const Place place(device);
  const bool keeps = c.boolean(11) && l.cells(), projects = c.has(7);
  const Tensor input_bias = c.has(5) ? contiguous(c.tensor(5)) : Tensor(),
               hidden_bias = c.has(6) ? contiguous(c.tensor(6)) : Tensor(),
               w_hr = projects ? contiguous(c.tensor(7)) : Tensor();
  const Tensor own_gates = keeps ? Tensor() : empty({{l.rows, l.gates}}, dtype, device),
               from_state = empty({{l.batch, l.gates}}, dtype, device);
  const Tensor unprojected = projects ? empty({{l.batch, l.hidden}}, dtype, device) : Tensor();
  const Rows gates(keeps ? c.out(3).bytes() : own_gates.bytes(), l.gates, dtype),
      outputs(output.bytes(), l.width, dtype);
  const Rows cells = keeps ? Rows(gates[l.rows], l.hidden, dtype) : Rows();
  if (l.inputs) multiply_rows(place, "recurrence", dtype, input.bytes(), l.rows, l.inputs, w_ih, true, gates[0]);

  ForwardStep s{};
  s.from_state = from_state.bytes(), s.n = l.hidden;
  s.input_bias = input_bias.defined() ? input_bias.bytes() : nullptr,
  s.hidden_bias = hidden_bias.defined() ? hidden_bias.bytes() : nullptr;
  s.cell = l.cell == Cell::lstm ? cell.bytes() : nullptr, s.hidden = projects ? nullptr : h.bytes();
  for (int64_t step = 0; step < l.steps; ++step) {
    const size_t t = static_cast<size_t>(c.boolean(10) ? l.steps - 1 - step : step);
    const int64_t first = l.offsets[t];
    s.rows = l.counts[t];
    if (s.rows == 0) continue;
    multiply_rows(place, "recurrence", dtype, h.bytes(), s.rows, l.width, w_hh, true, from_state.bytes());
    s.from_input = l.inputs ? gates[first] : nullptr, s.gates = gates[first], s.cells = cells[first];
    s.output = projects ? unprojected.bytes() : outputs[first];
    launch_step(kForward, place, dtype, l.cell, 0, s);
    if (projects) {
      multiply_rows(place, "recurrence", dtype, unprojected.bytes(), s.rows, l.hidden, w_hr, true, outputs[first]);
      const int64_t sizes[] = {s.rows, l.width}, strides[] = {l.width, 1};
      copy_into(view_of(h, sizes, strides, 0), view_of(output, sizes, strides, first * l.width));
    }
  }
}

// (grad_output, grad_hy, grad_cy, output, hx, cx?, w_hh, w_hr?, reserve, batch_sizes, mode, reverse) -> (grad_gates,
// grad_hidden_gates, previous, grad_projected, unprojected, grad_hx, grad_cx)
void run_recurrence_backward(Call& c) {
  const Tensor grad = c.tensor(0), output = contiguous(c.tensor(3)), h = contiguous(c.tensor(4)),
               cell = c.has(5) ? contiguous(c.tensor(5)) : Tensor(), w_hh = contiguous(c.tensor(6));
  const RecurrentLayer l(output, h, w_hh, c.integers(9), c.text(10));
  const Tensor dh = c.out(5), dc = c.out(6);
  copy_into(dh, c.tensor(1));
  if (l.cell == Cell::lstm) copy_into(dc, c.tensor(2));
  if (l.rows == 0 || l.hidden == 0) return;
  const Dtype dtype = output.dtype();
  const Place place(output.device());
  const bool projects = c.has(7), lstm = l.cell == Cell::lstm, gru = l.cell == Cell::gru;
  const Tensor w_hr = projects ? contiguous(c.tensor(7)) : Tensor(),
               through = projects ? empty({{l.batch, l.hidden}}, dtype, output.device()) : Tensor();
  const Rows gates(l.cells() ? c.tensor(8).bytes() : nullptr, l.gates, dtype), cells(gates[l.rows], l.hidden, dtype),
      outputs(output.bytes(), l.width, dtype);
  const Rows grad_gates(c.out(0).bytes(), l.gates, dtype),
      grad_hidden_gates(gru ? c.out(1).bytes() : nullptr, l.gates, dtype), previous(c.out(2).bytes(), l.width, dtype);
  const Rows grad_projected(projects ? c.out(3).bytes() : nullptr, l.width, dtype),
      unprojected(projects ? c.out(4).bytes() : nullptr, l.hidden, dtype);
  const bool packed = grad.dim() == 2;
  const Rows grad_rows(grad.bytes(), grad.stride(0), dtype);  // of a step, or of a row of a packed one

  BackwardStep s{};
  s.n = l.hidden, s.width = l.width;
  s.first_hidden = h.bytes(), s.first_cells = cell.defined() ? cell.bytes() : nullptr;
  s.grad_row = packed ? grad.stride(0) : grad.stride(1), s.grad_element = grad.stride(-1);
  s.grad_hidden = dh.bytes(), s.grad_cell = lstm ? dc.bytes() : nullptr;
  s.grad_projected = projects ? through.bytes() : nullptr;
  walk_back(l, c.boolean(11), [&](int64_t t, int64_t earlier) {
    const int64_t first = l.offsets[static_cast<size_t>(t)],
                  before = earlier < 0 ? 0 : l.offsets[static_cast<size_t>(earlier)];
    s.rows = l.counts[static_cast<size_t>(t)], s.had = earlier < 0 ? 0 : l.counts[static_cast<size_t>(earlier)];
    s.grad_output = grad_rows[packed ? first : t];
    if (projects) {
      const GradientStep joined{dh.bytes(), s.grad_output, grad_projected[first], s.rows,
                                l.width,    s.grad_row,    s.grad_element};
      launch_step(kGradient, place, dtype, l.cell, 2, joined);
      multiply_rows(place, "recurrence", dtype, grad_projected[first], s.rows, l.width, w_hr, false, through.bytes());
    }
    s.gates = gates[first], s.cells = cells[first], s.output = outputs[first];
    s.earlier_output = outputs[before], s.earlier_cells = cells[before];
    s.grad_gates = grad_gates[first], s.grad_hidden_gates = grad_hidden_gates[first], s.previous = previous[first],
    s.unprojected = unprojected[first];
    launch_step(kBackward, place, dtype, l.cell, 1, s);
    multiply_rows(place, "recurrence", dtype, gru ? s.grad_hidden_gates : s.grad_gates, s.rows, l.gates, w_hh, false,
                  dh.bytes(), gru);
  });
}

}  // namespace

REGISTER_KERNELS(recurrence) {
  r.set_kernel("_recurrence", DeviceType::cuda, run_recurrence);
  r.set_kernel("_recurrence_backward", DeviceType::cuda, run_recurrence_backward);
}

}  // namespace cresset::cuda
