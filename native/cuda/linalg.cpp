#include "cuda/linalg.h"

#include "cuda/launch.h"
#include "tensor/convert.h"

namespace cresset::cuda {
namespace {

// Small square matrices are worked on together, by cuBLAS; larger ones fill the device by themselves.
bool goes_together(const Matrices& a) { return a.count > 1 && a.rows == a.columns && a.rows < 512; }

constexpr int64_t kPlainShared = 48 * 1024;

void exchange_rows(const Tensor& pivots, const Matrices& b, bool backward) {
  static const KernelFamily kernel("linalg.cuh", "exchange_rows", {"WORD"}, {"-DEXCHANGE"});
  const int64_t width = size_of(b.dtype);
  const auto rows = static_cast<int32_t>(b.rows), from_the_last = static_cast<int32_t>(backward);
  kernel.launch(Place(pivots.device()), {static_cast<int>(width)}, b.columns, 256, rows * (width + 4), b.data,
                pivots.bytes(), rows, from_the_last);
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
  const Matrices matrices(lu);
  if (goes_together(matrices)) return getrs_batched(matrices, pivots.data<int>(), Matrices(b), form);
  const Matrices right(b);
  if (matrices.count == 1 && matrices.rows * (size_of(lu.dtype()) + 4) <= kPlainShared) {
    // The library's own exchanges take as long as a triangle.
    const bool plain = form == Form::plain;
    if (plain) exchange_rows(pivots, right, false);
    trsm(matrices, right, !plain, true, plain, form);
    trsm(matrices, right, plain, true, !plain, form);
    if (!plain) exchange_rows(pivots, right, true);
    return;
  }
  const Tensor wide = convert(pivots, Dtype::i64);
  getrs(matrices, wide.data<int64_t>(), right, form);
}

void row_order(const Tensor& pivots, const Tensor& order) {
  static const KernelFamily kernel("linalg.cuh", "row_order", {}, {"-DROW_ORDER"});
  const int64_t rows = order.size(-1), exchanges = pivots.size(-1), count = rows ? order.numel() / rows : 0;
  if (count)
    kernel.launch(Place(order.device()), {}, divide_up(count, 128), 128, 0, order.bytes(), pivots.bytes(), rows,
                  exchanges, count);
}

}  // namespace cresset::cuda
