// Sums over all images and points, one for each channel: what batch normalization and the gradient of a bias are made
// of.
//
// Note [Channel sums]
// Elements of a channel are counted over images and points, cut into blocks of 512, and in a block added up in eight
// lanes that meet in a tree; blocks are added in double, in order. The order in memory decides only which loop does it:
// a result has the same bits whether channels are innermost or not, and for any number of threads.
#pragma once
#include <cstdint>

#include "tensor/tensor.h"

namespace cresset {

struct ChannelImages {
  int64_t images, channels, points;
  bool inside;  // memory is [image][point][channel], otherwise [image][channel][point]
  int64_t each() const { return images * points; }
};

// The elements of images in their order in memory: as T, or, where channels are not innermost, converted to T block by
// block.
template <class T>
struct ImageElements {
  const char* data;
  Dtype dtype;
  ImageElements(const T* x) : data(reinterpret_cast<const char*>(x)), dtype(dtype_of<T>) {}
  ImageElements(const Tensor& t)
      : data(t.defined() ? t.bytes() : nullptr), dtype(t.defined() ? t.dtype() : dtype_of<T>) {}
  explicit operator bool() const { return data; }
  const T* at(int64_t i) const { return reinterpret_cast<const T*>(data) + i; }
};

// The mean, and the sum of squared distances from it.
template <class T>
void channel_moments(const ChannelImages& s, const ImageElements<T>& x, double* mean, double* squares);
// The sum of g, and with x of g times the distance of x from `mean`.
template <class T>
void channel_sums(const ChannelImages& s, const ImageElements<T>& g, const ImageElements<T>& x, const T* mean,
                  double* level, double* slope);
// The same of images in private layout that are still to be computed (dispatch/late.h), which are then there; false:
// they are not, and nothing was done.
bool channel_sums_late(const ChannelImages& s, const Tensor& g, const float* x, const float* mean, double* level,
                       double* slope);

}  // namespace cresset
