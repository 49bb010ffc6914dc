// The patches of images that a convolution multiplies, and the kernels that multiply them.
//
// Note [Patches]
// There are two ways to multiply a matrix with the patches of an image. Packing (gemm.h) copies each patch into panels:
// the image is copied as often as the kernel has taps. The direct way copies the image once, so that nothing needs a
// check of bounds afterwards: with its padding, and with the columns that one tap sees for neighboring points side by
// side. A tap is then a fixed distance in that copy, and vectors of neighboring points are read where they lie. Both
// ways add the same products in the same order.
#pragma once
#include <cstdint>

#include "ops/gemm.h"

namespace cresset {

// For each point of a grid (one, two or three dimensions; here always three), the elements of an image at the point's
// taps: coordinate d of an element is point[d] * step[d] + offset[d][tap[d]]. Outside the image there are zeros.
template <class T>
struct Patches {
  const T* data = nullptr;
  int64_t channels = 0;
  int64_t image_stride = 0, channel_stride = 0, strides[3] = {0, 0, 0};
  int64_t image_size[3] = {1, 1, 1};
  int64_t grid_size[3] = {1, 1, 1};
  int64_t step[3] = {1, 1, 1};
  int64_t taps[3] = {1, 1, 1};
  const int64_t* offset[3] = {};

  int64_t points() const { return grid_size[0] * grid_size[1] * grid_size[2]; }  // of one image
  int64_t volume() const { return taps[0] * taps[1] * taps[2]; }
};

// to[i][row][w] = the product of line i of a with the patch at that point of one image, plus row_start[i].
template <class T>
struct PatchRows {
  Patches<T> patches;
  int64_t image, d, first, count;  // rows [first, first + count) of the grid's plane d
  Factor<T> a;                     // packed, m lines of channels * volume
  int64_t m;
  const T* row_start;
  T* to;  // of the first row
  int64_t to_line, to_row;
};

// to[j][i] += the sum over the points of some images of grad[i] times element j = (channel, tap) of the patch; m lines
// i.
template <class T>
struct PatchSums {
  Patches<T> patches;  // of the channels that j runs over
  Patches<T> grad;     // the points themselves
  int64_t image, count, m;
  T* to;
  int64_t to_line;  // m rounded up to whole vectors of any instruction set, as kPatchSumsUnit says
};
inline constexpr int64_t kPatchSumsUnit = 16;

template <class T>
struct PatchKernels {
  // Packs patches as lines of a factor: the points of all images, in order; k runs over channels and their taps.
  typename Factor<T>::Pack points;
  void (*rows)(const PatchRows<T>&);
  void (*sums)(const PatchSums<T>&);
  int64_t lanes;  // of a vector
};
template <class T>
PatchKernels<T> patch_kernels_baseline();
template <class T>
PatchKernels<T> patch_kernels_avx2();
template <class T>
PatchKernels<T> patch_kernels_avx512();

}  // namespace cresset
