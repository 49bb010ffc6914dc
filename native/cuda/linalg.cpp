#include "cuda/linalg.h"

#include "cuda/fault.h"
#include "cuda/launch.h"
#include "cuda/linalg_small.h"

namespace cresset::cuda {
namespace {

// Small square matrices are worked on together, by cuBLAS; larger ones fill the device by themselves.
bool goes_together(const Matrices& a) { return a.count > 1 && a.rows == a.columns && a.rows < 512; }

constexpr int64_t kPlainShared = 48 * 1024;

void exchange_rows(const Tensor& pivots, const Matrices& b, bool backward) {
  static const KernelFamily kernel("linalg.cuh", "exchange_rows", {"WORD"}, {"-DEXCHANGE"});
  const int64_t width = size_of(b.dtype);
  const auto rows = static_cast<int32_t>(b.rows), from_the_last = static_cast<int32_t>(backward);
  kernel.launch(Place(pivots.device()), {static_cast<int>(width)}, b.count * b.columns, 256, rows * (width + 4), b.data,
                pivots.bytes(), rows, static_cast<int32_t>(b.columns), from_the_last);
}

}  // namespace

void lu_factor(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  const Matrices matrices(a);
  if (goes_together(matrices))
    return getrf_batched(matrices, pivots.defined() ? pivots.data<int>() : nullptr, info.data<int>());
  if (!pivots.defined()) return getrf(matrices, nullptr, info.data<int>());
  const Tensor wide = empty(pivots.sizes(), Dtype::i64, pivots.device());
  getrf(matrices, wide.data<int64_t>(), info.data<int>());
  copy_into(pivots, wide);
}

void lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, Form form) {
  const Matrices matrices(lu), right(b);
  const bool plain = form == Form::plain;
  const Triangle lower{false, true, form}, upper{true, false, form},
      both[] = {plain ? lower : upper, plain ? upper : lower};
  if (solve_small(matrices, right, both, pivots.data<int>(), !plain)) return;
  if (matrices.rows * (size_of(lu.dtype()) + 4) <= kPlainShared) {
    // The library's own exchanges take as long as a triangle.
    if (plain) exchange_rows(pivots, right, false);
    for (const Triangle& t : both) trsm(matrices, right, t.upper, true, t.unit, form);
    if (!plain) exchange_rows(pivots, right, true);
    return;
  }
  static const KernelFamily widen("linalg.cuh", "widen_pivots", {}, {"-DWIDEN"});
  const int64_t count = pivots.numel();
  const Tensor wide = empty(pivots.sizes(), Dtype::i64, pivots.device());
  widen.launch(Place(pivots.device()), {}, divide_up(count, 128), 128, 0, wide.bytes(), pivots.bytes(), count,
               static_cast<int32_t>(matrices.rows));
  getrs(matrices, wide.data<int64_t>(), right, form);
}

void check_pivots(const char* who, const Tensor& pivots, int64_t rows) {
  static const KernelFamily kernel("linalg.cuh", "check_pivots", {}, {"-DCHECK"});
  const int64_t count = pivots.numel();
  const int device = pivots.device().index;
  kernel.launch(Place(pivots.device()), {}, divide_up(count, 128), 128, 0, pivots.bytes(), count, rows,
                fault_place(device), operation_number(who));
}

void solve_triangle(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit, Form form) {
  const Matrices matrices(a), right(b);
  const Triangle triangle{upper, unit, form};
  if (!left || !solve_small(matrices, right, {&triangle, 1})) trsm(matrices, right, upper, left, unit, form);
}

void cholesky_solve(const Tensor& factor, const Tensor& b, bool upper, bool by_rows) {
  const Matrices matrices(factor), right(b);
  // By rows, what lies column after column is the transpose of a real matrix, and the triangle the other one.
  const Form as_it_is = by_rows ? Form::transposed : Form::plain, adjoint = by_rows ? Form::plain : Form::adjoint;
  const Triangle own{upper != by_rows, false, as_it_is}, other{upper != by_rows, false, adjoint},
      both[] = {upper ? other : own, upper ? own : other};
  if (solve_small(matrices, right, both)) return;
  for (const Triangle& t : both) trsm(matrices, right, t.upper, true, false, t.form);
}

void householder(const Tensor& a, const Tensor& tau) {
  const Matrices matrices(a);
  if (!geqrf_small(matrices, tau.bytes())) geqrf(matrices, tau.bytes());
}
void householder_product(const Tensor& a, const Tensor& tau) {
  const Matrices matrices(a);
  if (!orgqr_small(matrices, tau.bytes(), tau.size(-1))) orgqr(matrices, tau.bytes(), tau.size(-1));
}
bool least_squares(const Tensor& a, const Tensor& b, const Tensor& info) {
  return least_squares_small(Matrices(a), Matrices(b), info.data<int>());
}

void row_order(const Tensor& pivots, const Tensor& order) {
  static const KernelFamily kernel("linalg.cuh", "row_order", {}, {"-DROW_ORDER"});
  const int64_t rows = order.size(-1), exchanges = pivots.size(-1), count = rows ? order.numel() / rows : 0;
  if (count)
    kernel.launch(Place(order.device()), {}, divide_up(count, 128), 128, 0, order.bytes(), pivots.bytes(), rows,
                  exchanges, count);
}

}  // namespace cresset::cuda
