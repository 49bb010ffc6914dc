// The patches of images that a convolution multiplies, as a factor of a matrix product (gemm.h) that packs itself.
#pragma once
#include <cstdint>

#include "ops/gemm.h"

namespace cresset {

// For each point of a grid (one, two or three dimensions; here always three), the elements of an image at the point's
// taps: coordinate d of an element is point[d] * step[d] + offset[d][tap[d]]. Outside the image there are zeros.
template <class T>
struct Patches {
  const T* data = nullptr;
  int64_t image_stride = 0, channel_stride = 0, strides[3] = {0, 0, 0};
  int64_t image_size[3] = {1, 1, 1};
  int64_t grid_size[3] = {1, 1, 1};
  int64_t step[3] = {1, 1, 1};
  int64_t taps[3] = {1, 1, 1};
  const int64_t* offset[3] = {};

  int64_t points() const { return grid_size[0] * grid_size[1] * grid_size[2]; }  // of one image
  int64_t volume() const { return taps[0] * taps[1] * taps[2]; }
};

template <class T>
struct PatchKernels {
  // Lines are the points of all images, in order; k runs over channels and their taps.
  typename Factor<T>::Pack points;
  // Lines are the channels and their taps; k runs over the points of all images.
  typename Factor<T>::Pack taps;
};
template <class T>
PatchKernels<T> patch_kernels_baseline();
template <class T>
PatchKernels<T> patch_kernels_avx2();
template <class T>
PatchKernels<T> patch_kernels_avx512();

}  // namespace cresset
