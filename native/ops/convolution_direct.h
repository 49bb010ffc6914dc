// Convolutions by the definition, of float images that lie [image][point][channel].
//
// Note [Sums over stretches]
// A result is a sum over taps and channels. For all results of a row of points, a tap lies at the same distance from
// the point, once the image has its padding; so blocks of rows are copied into a window with zeros around (where there
// is any padding), which stays in the second-level cache. The channels of one tap, and of neighboring taps, follow each
// other in the window: a stretch of the sum that is read without asking. Tiles of a few points by a few vectors of
// channels stay in registers while the sum runs; the filter lies in panels as wide as a tile. Long sums go in blocks of
// stretches, whose results are added in order. The gradient of the input is the same for each set of points that see
// the same taps (a phase: there are as many as the strides have rests), and the gradient of the filter has tiles of
// neighboring elements of a stretch by channels, summed over points. Where each channel has a filter of its own,
// vectors of channels are multiplied as they lie.
#pragma once
#include <cstdint>
#include <memory>

namespace cresset {

struct Stretch {
  int64_t offset, length;  // from the point's place in the window
};

// Points of one row for one panel of channels: to = sums + bias, or to += sums.
struct DirectRow {
  int64_t points;
  const float* from;  // the first point's place in the window
  int64_t from_step;
  const Stretch *first, *last;
  const float* filter;  // [element of the sum][vectors]
  int64_t vectors;
  float* to;
  int64_t to_step, channels;  // channels: at most as many as the vectors hold
  const float* bias;          // whole vectors, or null
  bool adds;
};

// to[line][vectors] += the sum over points of element `line` of a stretch times the gradient.
struct DirectSums {
  int64_t rows, points, lines;
  const float* from;  // the first point's element of the first line
  int64_t from_row, from_step;
  const float* grad;  // [row][point][vectors]
  int64_t vectors;
  float* to;
};

// The same where each channel has a filter of its own; a stretch is one tap. Windows, filters and gradients have whole
// vectors of channels.
struct DirectChannels {
  int64_t rows, points, channels, whole;  // whole: rounded up to vectors
  const float* from;
  int64_t from_row, from_step;
  const Stretch *first, *last;
  const float* filter;  // [tap][whole]
  const float* bias;    // whole, or null
  float* to;
  int64_t to_row, to_step;
  const float* grad;  // of sums: [row][point][whole], and to is [tap][whole]
};

struct DirectKernels {
  int64_t lanes, most_vectors;
  void (*row)(const DirectRow&);
  void (*sums)(const DirectSums&);
  void (*channels)(const DirectChannels&);
  void (*channel_sums)(const DirectChannels&);
};
DirectKernels direct_kernels_baseline();
DirectKernels direct_kernels_avx2();
DirectKernels direct_kernels_avx512();

// The choice depends on sizes only.
struct ConvolutionSizes;
class ConvolutionKernel;
bool direct_does(const ConvolutionSizes&);
std::shared_ptr<const ConvolutionKernel> direct_convolution(const ConvolutionSizes&);

}  // namespace cresset
