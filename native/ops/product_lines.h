// The factors of a batch of matrix products as lines of k elements, with strides as they lie; shared by the devices.
#pragma once
#include "tensor/tensor.h"

namespace cresset {

// One factor of a batch of products, as lines of k elements: see Factor in gemm.h.
struct Lines {
  DimsView batch;  // sizes
  Dims batch_steps;
  int64_t lines = 1, k = 0, line_step = 0, k_step = 0;
};
inline Lines rows_of(const Tensor& t) {
  const int64_t d = t.dim();
  Lines f;
  f.k = t.size(-1);
  f.k_step = t.stride(-1);
  if (d >= 2) {
    f.lines = t.size(-2);
    f.line_step = t.stride(-2);
    f.batch = DimsView(t.sizes()).first(static_cast<size_t>(d - 2));
    if (d > 2) f.batch_steps = Dims(DimsView(t.strides()).first(static_cast<size_t>(d - 2)));
  }
  return f;
}
inline Lines columns_of(const Tensor& t) {
  Lines f = rows_of(t);
  if (t.dim() >= 2) {
    std::swap(f.lines, f.k);
    std::swap(f.line_step, f.k_step);
  }
  return f;
}

// out[i] = alpha a[i] b[i] + beta start[i] for every i of the batch; out is contiguous.
struct Batch {
  Dims sizes;
  Lines a, b;
  Dims start_steps;
  int64_t start_row = 0;
  Scalar alpha, beta;
};

// The steps of a factor's batch dimensions for the batch it is broadcast to.
inline Dims broadcast_steps(const Lines& f, DimsView sizes) {
  Dims steps(static_cast<int64_t>(sizes.size()), 0);
  const int64_t missing = static_cast<int64_t>(sizes.size()) - static_cast<int64_t>(f.batch.size());
  for (int64_t d = 0; d < static_cast<int64_t>(f.batch.size()); ++d)
    if (f.batch[static_cast<size_t>(d)] != 1) steps[missing + d] = f.batch_steps[d];
  return steps;
}

inline int64_t offset_of(int64_t index, const Dims& sizes, const Dims& steps) {
  int64_t offset = 0;
  for (int64_t d = sizes.size() - 1; d >= 0; --d) {
    offset += index % sizes[d] * steps[d];
    index /= sizes[d];
  }
  return offset;
}

// Where one b serves the whole batch and the rows of all a's follow each other, the batch is one taller product.
inline void fold(Batch& g, bool has_start) {
  while (!g.sizes.empty()) {
    const int64_t d = g.sizes.size() - 1, size = g.sizes[d];
    if (size != 1 && g.a.lines != 1) {
      if (g.a.batch_steps[d] != g.a.lines * g.a.line_step) return;
      if (has_start && g.start_steps[d] != g.a.lines * g.start_row) return;
    }
    if (size != 1) {
      if (g.b.batch_steps[d] != 0) return;
      if (g.a.lines == 1) {
        g.a.line_step = g.a.batch_steps[d];
        if (has_start) g.start_row = g.start_steps[d];
      }
      g.a.lines *= size;
    }
    g.sizes.pop_back();
  }
}

}  // namespace cresset
