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

// Images whose channels are innermost, without gaps, and that do not lie in the plain order as well.
inline bool is_channels_last(const Tensor& t) {
  return !t.is_contiguous() && (t.dim() == 4 || t.dim() == 5) &&
         is_contiguous(t, t.dim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d);
}
// In the order of `input`: channels innermost or plain; copied when it lies otherwise.
inline Tensor in_order_of(const Tensor& input, const Tensor& t) {
  if (!is_channels_last(input)) return contiguous(t);
  const MemoryFormat format = t.dim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
  return is_contiguous(t, format) ? t : clone(t, format);
}

}  // namespace cresset
