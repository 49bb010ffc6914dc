// Which memory format a tensor is taken to have, for results that keep it.
#pragma once
#include "base/checked.h"
#include "tensor/tensor.h"

namespace cresset {

// channels_last where the strides are in that order, with gaps or without, and cannot be meant as the plain order.
inline MemoryFormat suggested_format(const Tensor& t) {
  const int64_t rank = t.dim();
  if ((rank != 4 && rank != 5) || t.strides()[1] == 0) return MemoryFormat::contiguous;
  int64_t least = 0;
  for (int64_t k = 0; k < rank; ++k) {  // channels, then from the last dimension to the first
    const int64_t d = k == 0 ? 1 : k == rank - 1 ? 0 : rank - k;
    const int64_t size = t.size(d), stride = t.strides()[d];
    if (size == 0 || stride < least || (d == 0 && least == t.strides()[1])) return MemoryFormat::contiguous;
    least = size > 1 ? wrapped_product(stride, size) : stride;
  }
  return rank == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
}

inline bool is_channels_last(const Tensor& t) { return suggested_format(t) != MemoryFormat::contiguous; }
// As batch normalization takes it: in the plain order where that fits, then in channels_last where that fits.
inline bool is_channels_last_batch(const Tensor& t) {
  if (t.is_contiguous()) return false;
  return is_contiguous(t, MemoryFormat::channels_last) || is_contiguous(t, MemoryFormat::channels_last_3d) ||
         is_channels_last(t);
}
// Channels innermost or in the plain order, and dense; copied when it lies otherwise.
inline Tensor in_order(const Tensor& t, bool channels_last) {
  if (!channels_last) return contiguous(t);
  const MemoryFormat format = t.dim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
  return is_contiguous(t, format) ? t : clone(t, format);
}
inline Tensor in_order_of(const Tensor& input, const Tensor& t) { return in_order(t, is_channels_last(input)); }

}  // namespace cresset
