// Recurrent layers: shape rules, and how tensors reach the steps of recurrence.h.
#include "ops/recurrence.h"

#include <string_view>

#include "base/levels.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/recurrence_layer.h"

namespace cresset {
namespace {

constexpr const char* kName = "recurrence";

Cell cell_of(std::string_view mode) {
  if (mode == "LSTM") return Cell::lstm;
  if (mode == "GRU") return Cell::gru;
  check_value(mode == "RNN_TANH" || mode == "RNN_RELU", kName, ": Unrecognized RNN mode: ", mode);
  return mode == "RNN_TANH" ? Cell::tanh : Cell::relu;
}

}  // namespace

RecurrentLayer::RecurrentLayer(const Tensor& input, const Tensor& h, const Tensor& w_hh, DimsView batch_sizes,
                               std::string_view mode)
    : cell(cell_of(mode)) {
  const bool packed = input.dim() == 2;
  check(packed || input.dim() == 3, kName, ": input must have 2 or 3 dimensions, got ", input.dim());
  // Of an LSTM the state may be projected: then it is narrower than the gates.
  check(h.dim() == 2 && w_hh.dim() == 2 && w_hh.size(0) % gates_of(cell) == 0 &&
            (cell == Cell::lstm || w_hh.size(0) == gates_of(cell) * w_hh.size(1)),
        kName, ": a state of shape ", list(h.sizes()), " and weight_hh of shape ", list(w_hh.sizes()), " do not fit ",
        mode);
  inputs = input.size(-1), batch = h.size(0), width = h.size(1), gates = w_hh.size(0), hidden = gates / gates_of(cell);
  check(w_hh.size(1) == width, kName, ": hidden has inconsistent hidden_size: got ", width, ", expected ",
        w_hh.size(1));
  if (packed) {
    steps = static_cast<int64_t>(batch_sizes.size());
    counts.assign(batch_sizes.begin(), batch_sizes.end());
  } else {
    steps = input.size(0);
    counts.assign(static_cast<size_t>(steps), input.size(1));
  }
  check(counts.empty() || counts[0] == batch, kName, ": Input batch size ", counts.empty() ? 0 : counts[0],
        " doesn't match hidden batch size ", batch);
  rows = 0;
  int64_t before = batch;
  for (int64_t count : counts) {
    check(count >= 0 && count <= before, kName, ": batch sizes must not grow from step to step; got ", count, " after ",
          before);
    before = count;
    offsets.push_back(rows);
    rows += count;
  }
  check(!packed || rows == input.size(0), kName, ": Expected `len(data)` to be ", rows,
        ", the sum of the batch sizes, got ", input.size(0));
}

namespace {

template <class C>
const RecurrenceKernels<C>& the_kernels() {
  static const RecurrenceKernels<C> the = BY_LEVEL(recurrence_kernels, <C>());
  return the;
}

void check_tensor(const char* name, const Call& c, int i, DimsView sizes) {
  if (!c.has(i)) return;
  const Tensor t = c.tensor(i), like = c.tensor(0);
  check(DimsView(t.sizes()).size() == sizes.size() && std::equal(sizes.begin(), sizes.end(), t.sizes().begin()), kName,
        ": expected ", name, " of shape ", list(sizes), ", got ", list(t.sizes()));
  check(t.dtype() == like.dtype(), kName, ": expected ", name, " to have the dtype of the input, ", like.dtype(),
        ", got ", t.dtype());
  check(t.device() == like.device(), kName,
        ": Expected all tensors to be on the same device, but found at least two devices, ", like.device(), " and ",
        t.device(), "!");
}

// The arguments are (input, hx, cx?, w_ih, w_hh, b_ih?, b_hh?, w_hr?, batch_sizes, mode, reverse, keep).
void infer_recurrence(Call& c) {
  const Tensor input = c.tensor(0);
  const bool half = (input.dtype() == Dtype::f16 || input.dtype() == Dtype::bf16) && is_accelerator(input.device());
  check_implemented(half || input.dtype() == Dtype::f32 || input.dtype() == Dtype::f64, '"', kName,
                    "\" not implemented for '", facts(input.dtype()).legacy, "'");
  const RecurrentLayer l(input, c.tensor(1), c.tensor(4), c.integers(8), c.text(9));
  check(c.has(2) == (l.cell == Cell::lstm), kName, ": an LSTM has a cell, others have none");
  check_tensor("hx", c, 1, {{l.batch, l.width}});
  check_tensor("cx", c, 2, {{l.batch, l.hidden}});
  check_tensor("weight_ih", c, 3, {{l.gates, l.inputs}});
  check_tensor("weight_hh", c, 4, {{l.gates, l.width}});
  check_tensor("b_ih", c, 5, {{l.gates}});
  check_tensor("b_hh", c, 6, {{l.gates}});
  check(c.has(7) || l.width == l.hidden, kName, ": a state of ", l.width, " features from ", l.hidden,
        " hidden ones needs w_hr");
  check_tensor("w_hr", c, 7, {{l.width, l.hidden}});
  Dims sizes = input.sizes();
  sizes.back() = l.width;
  c.promise(sizes, input.dtype(), input.device());
  c.promise({{l.batch, l.width}}, input.dtype(), input.device());
  c.promise({{l.cell == Cell::lstm ? l.batch : 0, l.hidden}}, input.dtype(), input.device());
  // What backward needs, as bytes: they have no gradient.
  c.promise({{c.boolean(11) ? l.reserved() * size_of(input.dtype()) : 0}}, Dtype::u8, input.device());
}

// The lines of a matrix, or its columns, as panels; perhaps continued by those of another one.
template <class C>
Tensor packed(const Tensor& weight, bool columns, const Tensor& further = {}) {
  const int64_t lines = weight.size(columns ? 1 : 0), k = weight.size(columns ? 0 : 1),
                more = further.defined() ? further.size(columns ? 0 : 1) : 0;
  const Tensor panels = empty({{the_kernels<C>().panels_size(lines, k + more)}}, dtype_of<C>);
  const auto pack = [&](const Tensor& w, int64_t length, int64_t first) {
    Factor<C> f;
    f.data = w.data<C>(), f.line_step = w.stride(columns ? 1 : 0), f.k_step = w.stride(columns ? 0 : 1);
    the_kernels<C>().pack(f, lines, length, panels.data<C>(), k + more, first);
  };
  pack(weight, k, 0);
  if (further.defined()) pack(further, more, k);
  return panels;
}

// Sequences by groups of as many as a tile has rows, or half as many where there are few; each with the work of all
// steps.
template <class C>
void share(const RecurrentLayer& l, void (*run)(const RecurrenceProblem<C>&, int64_t, int64_t),
           const RecurrenceProblem<C>& p) {
  constexpr int64_t kGrainWork = 1 << 20;
  const int64_t group = l.batch >= 8 * thread_count() ? 8 : 4, groups = (l.batch + group - 1) / group,
                work = l.steps * l.gates * l.width * group;
  parallel_for(groups, std::max<int64_t>(1, kGrainWork / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) { run(p, begin * group, std::min(end * group, l.batch)); });
}

template <class C>
void run_forward(Call& c) {
  const Tensor input = c.tensor(0), w_ih = c.tensor(3), w_hh = c.tensor(4), output = c.out(0);
  const RecurrentLayer l(input, c.tensor(1), w_hh, c.integers(8), c.text(9));
  auto p = l.problem<C>(c.boolean(10));
  copy_into(c.out(1), c.tensor(1));
  if (l.cell == Cell::lstm) copy_into(c.out(2), c.tensor(2));
  if (l.rows == 0) return;
  p.output = output.data<C>(), p.h = c.out(1).data<C>(), p.c = c.out(2).data<C>();
  const bool keep = c.boolean(11) && l.cells();
  constexpr int64_t kCachedBytes = 1 << 20;
  const bool by_steps = l.gates * (l.inputs + l.width) * size_of(input.dtype()) <= kCachedBytes;
  const Tensor own = l.cells() && !keep && !by_steps ? empty({{l.rows * l.gates}}, dtype_of<C>) : Tensor();
  C* const reserve = keep ? reinterpret_cast<C*>(c.out(3).bytes()) : nullptr;
  p.gates = keep ? reserve : own.defined() ? own.data<C>() : p.output;
  p.cells = keep ? reserve + l.rows * l.gates : nullptr;

  // The biases: of the state too, except in a GRU, where r multiplies it.
  std::vector<C> bias(static_cast<size_t>(l.gates), C(0));
  Tensor hidden_bias;
  for (int i : {5, 6}) {
    if (!c.has(i)) continue;
    const Tensor b = contiguous(c.tensor(i));
    if (i == 6 && l.cell == Cell::gru) {
      hidden_bias = b;
      p.hidden_bias = b.data<C>();
    } else {
      for (int64_t j = 0; j < l.gates; ++j) bias[static_cast<size_t>(j)] += b.data<C>()[j];
    }
  }
  const Tensor x = contiguous(input);
  Tensor input_panels;
  if (by_steps) {
    input_panels = packed<C>(w_ih, false, l.cell == Cell::gru ? Tensor() : w_hh);
    p.input = x.data<C>(), p.inputs = l.inputs, p.input_panels = input_panels.data<C>(), p.input_bias = bias.data();
  } else {
    Product<C> share_of_input;
    share_of_input.m = l.rows, share_of_input.n = l.gates, share_of_input.k = l.inputs;
    share_of_input.a.data = x.data<C>(), share_of_input.a.line_step = l.inputs, share_of_input.a.k_step = 1;
    share_of_input.b.data = w_ih.data<C>(), share_of_input.b.line_step = w_ih.stride(0),
    share_of_input.b.k_step = w_ih.stride(1);
    share_of_input.c = p.gates, share_of_input.c_row = l.gates;
    share_of_input.start = bias.data();
    multiply(share_of_input);
  }
  const Tensor hidden_panels = by_steps && l.cell != Cell::gru ? Tensor() : packed<C>(w_hh, false),
               projection_panels = c.has(7) ? packed<C>(c.tensor(7), false) : Tensor();
  if (hidden_panels.defined()) p.hidden_panels = hidden_panels.data<C>();
  if (c.has(7)) p.projection_panels = projection_panels.data<C>();
  share<C>(l, the_kernels<C>().forward, p);
}
void run_recurrence(Call& c) { c.tensor(0).dtype() == Dtype::f64 ? run_forward<double>(c) : run_forward<float>(c); }

// (grad_output, grad_hy, grad_cy, output, hx, cx?, w_hh, w_hr?, reserve, batch_sizes, mode, reverse) -> (grad_gates,
// grad_hidden_gates, previous, grad_projected, unprojected, grad_hx, grad_cx). For rows of all steps one after the
// other; what there is not has no rows.
void infer_recurrence_backward(Call& c) {
  const Tensor output = c.tensor(3);
  const RecurrentLayer l(output, c.tensor(4), c.tensor(6), c.integers(9), c.text(10));
  const auto promise = [&](bool exists, int64_t rows, int64_t n) {
    c.promise({{exists ? rows : 0, n}}, output.dtype(), output.device());
  };
  promise(true, l.rows, l.gates);
  promise(l.cell == Cell::gru, l.rows, l.gates);
  promise(true, l.rows, l.width);
  promise(c.has(7), l.rows, l.width);
  promise(c.has(7), l.rows, l.hidden);
  promise(true, l.batch, l.width);
  promise(l.cell == Cell::lstm, l.batch, l.hidden);
}
template <class C>
void run_backward(Call& c) {
  const Tensor output = contiguous(c.tensor(3)), w_hh = c.tensor(6), h = contiguous(c.tensor(4)),
               cell = c.has(5) ? contiguous(c.tensor(5)) : Tensor();
  const RecurrentLayer l(output, h, w_hh, c.integers(9), c.text(10));
  auto p = l.problem<C>(c.boolean(11));
  copy_into(c.out(5), c.tensor(1));
  if (l.cell == Cell::lstm) copy_into(c.out(6), c.tensor(2));
  if (l.rows == 0) return;
  Tensor grad = c.tensor(0);
  if (grad.stride(-1) != 1) grad = contiguous(grad);
  p.grad_output = grad.data<C>();
  if (grad.dim() == 3)
    p.grad_step = grad.stride(0), p.grad_row = grad.stride(1);
  else
    p.grad_row = grad.stride(0);
  if (grad.dim() == 3 && p.grad_step == 0)
    grad = contiguous(grad), p.grad_output = grad.data<C>(), p.grad_step = grad.stride(0), p.grad_row = grad.stride(1);
  p.output = output.data<C>(), p.h = h.data<C>(), p.c = cell.defined() ? cell.data<C>() : nullptr;
  p.dh = c.out(5).data<C>(), p.dc = c.out(6).data<C>();
  if (l.cells()) {
    p.gates = reinterpret_cast<C*>(c.tensor(8).bytes());
    p.cells = p.gates + l.rows * l.gates;
  }
  p.grad_gates = c.out(0).data<C>(), p.grad_hidden_gates = c.out(1).data<C>(), p.previous = c.out(2).data<C>();
  p.grad_projected = c.out(3).data<C>(), p.unprojected = c.out(4).data<C>();
  const Tensor hidden_panels = packed<C>(w_hh, true),
               projection_panels = c.has(7) ? packed<C>(c.tensor(7), true) : Tensor();
  p.hidden_panels = hidden_panels.data<C>();
  if (c.has(7)) p.projection_panels = projection_panels.data<C>();
  share<C>(l, the_kernels<C>().backward, p);
}
void run_recurrence_backward(Call& c) {
  c.tensor(3).dtype() == Dtype::f64 ? run_backward<double>(c) : run_backward<float>(c);
}

}  // namespace

REGISTER(recurrence) {
  r.add(
      "_recurrence(Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? "
      "w_hr, int[] batch_sizes, str mode, bool reverse, bool "
      "keep) -> (Tensor output, Tensor hy, Tensor cy, Tensor reserve)",
      infer_recurrence, run_recurrence, kFunctionOnly);
  r.add(
      "_recurrence_backward(Tensor grad_output, Tensor grad_hy, Tensor grad_cy, Tensor output, Tensor hx, Tensor? cx, "
      "Tensor w_hh, Tensor? w_hr, Tensor reserve, int[] "
      "batch_sizes, str mode, bool reverse) -> (Tensor grad_gates, Tensor grad_hidden_gates, Tensor previous, Tensor "
      "grad_projected, Tensor unprojected, Tensor grad_hx, "
      "Tensor grad_cx)",
      infer_recurrence_backward, run_recurrence_backward, kFunctionOnly | kNotDifferentiable);
}

}  // namespace cresset
