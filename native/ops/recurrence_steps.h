// The steps of recurrent layers, for the instruction set that the including file is compiled for: see Note [How a
// recurrent layer is computed] in recurrence.h. Everything is in an anonymous namespace: each instruction set has its
// own copy.
#pragma once
#include "ops/gemm_tiles.h"
#include "ops/recurrence.h"
#include "ops/vector_functions.h"

namespace cresset {
namespace {

template <class C>
struct RecurrenceSteps : Kernels<C> {
  using Problem = RecurrenceProblem<C>;
  using Math = VectorFunctions<C>;
  using typename Kernels<C>::Vector;
  using Kernels<C>::kRows, Kernels<C>::kColumns, Kernels<C>::kLanes;

  static int64_t panels_size(int64_t lines, int64_t k) { return (lines + kColumns - 1) / kColumns * kColumns * k; }
  static void pack(const Factor<C>& f, int64_t lines, int64_t k, C* panels, int64_t whole_k, int64_t first_k) {
    for (int64_t j = 0; j < lines; j += kColumns)
      Kernels<C>::template pack<kColumns>(f, panels + j * whole_k + first_k * kColumns, j,
                                          std::min<int64_t>(kColumns, lines - j), 0, k);
  }

  // c (rows, n) = a b + start, where b is packed. start may be c, one row for all (start_row 0), or null.
  static void multiply(int64_t rows, int64_t n, int64_t k, const C* a, int64_t a_row, const C* panels, C* c,
                       int64_t c_row, const C* start, int64_t start_row) {
    Tile<C> t{};
    t.k = k, t.a_line = a_row, t.a_k = 1, t.b_k = kColumns, t.c_row = c_row, t.start_row = start_row,
    t.alpha = t.beta = 1;
    for (int64_t j = 0; j < n; j += kColumns) {
      t.b = panels + j * k;
      for (int64_t i = 0; i < rows; i += kRows) {
        t.a = a + i * a_row;
        t.c = c + i * c_row + j;
        t.start = start ? start + i * start_row + j : nullptr;
        Kernels<C>::template any_tile<false>(t, std::min<int64_t>(kRows, rows - i), std::min<int64_t>(kColumns, n - j));
      }
    }
  }

  // ---- one sequence, one step forward: `kept` is where the gates after their functions go, or null

  static void lstm(int64_t n, const C* gates, C* kept, C* cell, C* out) {
    for (int64_t j = 0; j < n; j += kLanes) {
      const int64_t m = n - j;
      const C* g = gates + j;
      const Vector in = Math::sigmoid(Math::load(g, m)), forget = Math::sigmoid(Math::load(g + n, m)),
                   fresh = Math::tanh(Math::load(g + 2 * n, m)), open = Math::sigmoid(Math::load(g + 3 * n, m)),
                   c = forget * Math::load(cell + j, m) + in * fresh;
      if (kept)
        Math::store(kept + j, m, in), Math::store(kept + n + j, m, forget), Math::store(kept + 2 * n + j, m, fresh),
            Math::store(kept + 3 * n + j, m, open);
      Math::store(cell + j, m, c);
      Math::store(out + j, m, open * Math::tanh(c));
    }
  }
  static void gru(int64_t n, const C* gates, const C* from_state, C* kept, const C* h, C* out) {
    for (int64_t j = 0; j < n; j += kLanes) {
      const int64_t m = n - j;
      const C *g = gates + j, *s = from_state + j;
      const Vector reset = Math::sigmoid(Math::load(g, m) + Math::load(s, m)),
                   update = Math::sigmoid(Math::load(g + n, m) + Math::load(s + n, m));
      const Vector fresh = Math::tanh(Math::load(g + 2 * n, m) + reset * Math::load(s + 2 * n, m));
      if (kept)
        Math::store(kept + j, m, reset), Math::store(kept + n + j, m, update), Math::store(kept + 2 * n + j, m, fresh);
      Math::store(out + j, m, fresh + update * (Math::load(h + j, m) - fresh));
    }
  }
  static void activate(Cell cell, int64_t n, C* out) {
    for (int64_t j = 0; j < n; j += kLanes) {
      const Vector x = Math::load(out + j, n - j);
      Math::store(out + j, n - j, cell == Cell::tanh ? Math::tanh(x) : x < C(0) ? Vector{} : x);
    }
  }

  static int64_t running(const Problem& p, int64_t t, int64_t begin, int64_t end) {
    return std::max<int64_t>(0, std::min(p.counts[t], end) - begin);
  }
  static void copy_rows(C* to, int64_t to_row, const C* from, int64_t from_row, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(to + i * to_row, from + i * from_row, static_cast<size_t>(n) * sizeof(C));
  }

  static void forward(const Problem& p, int64_t begin, int64_t end) {
    const int64_t n = p.hidden, width = p.width, gates_width = n * gates_of(p.cell), size = end - begin;
    const bool projects = p.projection_panels != nullptr, joins = p.input && p.cell != Cell::gru;
    const int64_t joined_width = p.inputs + width;
    C* const gates_buffer = panel_scratch().take<C>(size * (2 * gates_width + joined_width + n));  // of one step
    C *const state_buffer = gates_buffer + size * gates_width, *const joined = state_buffer + size * gates_width,
             *const unprojected = joined + size * joined_width;
    C* const h = p.h + begin * width;
    for (int64_t step = 0; step < p.steps; ++step) {
      const int64_t t = p.reverse ? p.steps - 1 - step : step, rows = running(p, t, begin, end),
                    first = p.offsets[t] + begin;
      if (rows == 0) continue;
      C *given = p.gates + first * gates_width, *kept = p.cells ? given : nullptr, *output = p.output + first * width;
      if (p.cell == Cell::gru) {
        if (p.input)
          multiply(rows, gates_width, p.inputs, p.input + first * p.inputs, p.inputs, p.input_panels, gates_buffer,
                   gates_width, p.input_bias, 0);
        multiply(rows, gates_width, width, h, width, p.hidden_panels, state_buffer, gates_width, p.hidden_bias, 0);
        for (int64_t i = 0; i < rows; ++i) {
          const C *gates = (p.input ? gates_buffer : given) + i * gates_width,
                  *from_state = state_buffer + i * gates_width;
          gru(n, gates, from_state, kept ? kept + i * gates_width : nullptr, h + i * n, output + i * n);
          if (p.cells) std::memcpy(p.cells + (first + i) * n, from_state + 2 * n, static_cast<size_t>(n) * sizeof(C));
        }
      } else {
        C* const gates = p.cell == Cell::lstm ? gates_buffer : output;
        if (joins) {
          copy_rows(joined, joined_width, p.input + first * p.inputs, p.inputs, rows, p.inputs);
          copy_rows(joined + p.inputs, joined_width, h, width, rows, width);
          multiply(rows, gates_width, joined_width, joined, joined_width, p.input_panels, gates, gates_width,
                   p.input_bias, 0);
        } else {
          multiply(rows, gates_width, width, h, width, p.hidden_panels, gates, gates_width, given, gates_width);
        }
        for (int64_t i = 0; i < rows; ++i) {
          if (p.cell == Cell::lstm) {
            C* cell = p.c + (begin + i) * n;
            lstm(n, gates + i * gates_width, kept ? kept + i * gates_width : nullptr, cell,
                 projects ? unprojected + i * n : output + i * n);
            if (p.cells) std::memcpy(p.cells + (first + i) * n, cell, static_cast<size_t>(n) * sizeof(C));
          } else {
            activate(p.cell, n, output + i * n);
          }
        }
        if (projects) multiply(rows, width, n, unprojected, n, p.projection_panels, output, width, nullptr, 0);
      }
      copy_rows(h, width, output, width, rows, width);
    }
  }

  // ---- one sequence, one step back: dh and dc are of the state after the step; dc becomes that of the one before

  static void lstm_back(int64_t n, const C* gates, const C* cell, const C* before, const C* dh, C* dc, C* to) {
    for (int64_t j = 0; j < n; j += kLanes) {
      const int64_t m = n - j;
      const Vector in = Math::load(gates + j, m), forget = Math::load(gates + n + j, m),
                   fresh = Math::load(gates + 2 * n + j, m), open = Math::load(gates + 3 * n + j, m);
      const Vector tanh = Math::tanh(Math::load(cell + j, m)), grad = Math::load(dh + j, m);
      const Vector d = Math::load(dc + j, m) + grad * open * (C(1) - tanh * tanh);
      Math::store(to + j, m, d * fresh * in * (C(1) - in));
      Math::store(to + n + j, m, d * Math::load(before + j, m) * forget * (C(1) - forget));
      Math::store(to + 2 * n + j, m, d * in * (C(1) - fresh * fresh));
      Math::store(to + 3 * n + j, m, grad * tanh * open * (C(1) - open));
      Math::store(dc + j, m, d * forget);
    }
  }
  // dh becomes the part of the gradient of the state before the step that does not go through the gates.
  static void gru_back(int64_t n, const C* __restrict gates, const C* __restrict from_state, const C* __restrict before,
                       C* __restrict dh, C* __restrict to, C* __restrict to_hidden) {
    for (int64_t j = 0; j < n; ++j) {
      const C r = gates[j], z = gates[n + j], f = gates[2 * n + j], d = dh[j];
      const C fresh = d * (C(1) - z) * (C(1) - f * f), reset = fresh * from_state[j] * r * (C(1) - r),
              update = d * (before[j] - f) * z * (C(1) - z);
      to[j] = to_hidden[j] = reset;
      to[n + j] = to_hidden[n + j] = update;
      to[2 * n + j] = fresh;
      to_hidden[2 * n + j] = fresh * r;
      dh[j] = d * z;
    }
  }
  static void activate_back(Cell cell, int64_t n, const C* __restrict out, const C* __restrict dh, C* __restrict to) {
    if (cell == Cell::tanh)
      for (int64_t j = 0; j < n; ++j) to[j] = dh[j] * (C(1) - out[j] * out[j]);
    else
      for (int64_t j = 0; j < n; ++j) to[j] = out[j] > C(0) ? dh[j] : C(0);
  }

  static void backward(const Problem& p, int64_t begin, int64_t end) {
    const int64_t n = p.hidden, width = p.width, gates_width = n * gates_of(p.cell);
    const bool projects = p.projection_panels != nullptr;
    C* through = panel_scratch().take<C>((end - begin) * n);  // with w_hr: the gradient of what is projected
    for (int64_t step = p.steps - 1; step >= 0; --step) {
      const int64_t t = p.reverse ? p.steps - 1 - step : step, rows = running(p, t, begin, end),
                    first = p.offsets[t] + begin;
      if (rows == 0) continue;
      C* const dh = p.dh + begin * width;
      const C* grad = p.grad_output + (p.grad_step ? t * p.grad_step + begin * p.grad_row : first * p.grad_row);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j) dh[i * width + j] += grad[i * p.grad_row + j];
      if (projects) {
        copy_rows(p.grad_projected + first * width, width, dh, width, rows, width);
        multiply(rows, n, width, dh, width, p.projection_panels, through, n, nullptr, 0);
      }
      // The step before this one, as far as the sequence was running then.
      const int64_t earlier = step == 0   ? -1
                              : p.reverse ? t + 1
                                          : t - 1,
                    had = earlier < 0 ? 0 : running(p, earlier, begin, end);
      C* const to = p.grad_gates + first * gates_width;
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = first + i, past = i < had ? p.offsets[earlier] + begin + i : -1;
        const C* h = past < 0 ? p.h + (begin + i) * width : p.output + past * width;
        std::memcpy(p.previous + row * width, h, static_cast<size_t>(width) * sizeof(C));
        if (p.cell == Cell::lstm) {
          const C *gates = p.gates + row * gates_width, *cell = p.cells + row * n,
                  *before = past < 0 ? p.c + (begin + i) * n : p.cells + past * n;
          lstm_back(n, gates, cell, before, projects ? through + i * n : dh + i * n, p.dc + (begin + i) * n,
                    to + i * gates_width);
          if (projects)
            for (int64_t j = 0; j < n; ++j) p.unprojected[row * n + j] = gates[3 * n + j] * math::tanh(cell[j]);
        } else if (p.cell == Cell::gru) {
          gru_back(n, p.gates + row * gates_width, p.cells + row * n, h, dh + i * n, to + i * gates_width,
                   p.grad_hidden_gates + row * gates_width);
        } else {
          activate_back(p.cell, n, p.output + row * n, dh + i * n, to + i * gates_width);
        }
      }
      const bool gru = p.cell == Cell::gru;
      multiply(rows, width, gates_width, gru ? p.grad_hidden_gates + first * gates_width : to, gates_width,
               p.hidden_panels, dh, width, gru ? dh : nullptr, width);
    }
  }

  static RecurrenceKernels<C> kernels() { return {forward, backward, panels_size, pack}; }
};

}  // namespace
}  // namespace cresset
