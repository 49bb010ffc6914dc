#include "ops/convolution_pieces.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "ops/convolution_direct.h"
#include "ops/convolution_winograd.h"
#include "tensor/private_layout.h"
#include "tensor/transpose.h"

namespace cresset {

namespace {

constexpr double kLeastWork = 2e6;         // multiplications and additions below which patches are ahead
constexpr double kWorkOfPiece = 1e7;       // enough to hide what a piece costs
constexpr double kWorkOfTiles = 2e7;       // the same where there are fewer multiplications
constexpr int64_t kPieces = 8;             // to have work for several threads, images are cut into rows
constexpr int64_t kPointsOfSum = 128;      // the least that is worth a partial sum of the weight's gradient
constexpr int64_t kLargeFilter = 1 << 18;  // elements that do not stay in the cache from one piece to the next
constexpr int64_t kPointsOfFilter = 64;    // the least that is worth reading such a filter

int64_t product(const int64_t* n) { return n[0] * n[1] * n[2]; }

double work_of(const ConvolutionSizes& c) {
  return 2.0 * static_cast<double>(c.images * c.out_channels * c.out_points()) *
         static_cast<double>(c.in_channels / c.groups * c.volume());
}

bool follows_formula(const ConvolutionSizes& c) {
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = c.dilation[d] * (c.kernel[d] - 1) + 1, room = c.in[d] + c.before[d] + c.after[d] - reach;
    if (room < 0 || room / c.stride[d] + 1 != c.out[d]) return false;
  }
  return true;
}

// Images of a tensor, in either order.
struct Images {
  Tensor tensor;
  const float* data;
  bool inside;  // channels are innermost
  int64_t channels, row, points;

  explicit Images(const Tensor& t) : tensor(t) {
    inside = !t.is_contiguous() && t.strides() == channels_last_strides(t.sizes());
    if (!inside) tensor = contiguous(t);
    data = tensor.data<float>();
    channels = t.size(1);
    row = t.size(-1);
    points = t.numel() / std::max<int64_t>(t.size(0) * channels, 1);
    inside = inside || channels == 1;
  }
  // Some images, or rows of one, with the channels innermost; turned into `buffer` if they are not.
  const float* piece(int64_t first, int64_t count, int64_t row_begin, int64_t rows, std::vector<float>& buffer) const {
    const int64_t start = row_begin * row, length = rows * row;
    if (inside) return data + (first * points + start) * channels;
    buffer.resize(static_cast<size_t>(count * length * channels));
    for (int64_t i = 0; i < count; ++i)
      transpose_matrix(reinterpret_cast<uint32_t*>(buffer.data()) + i * length * channels, channels,
                       reinterpret_cast<const uint32_t*>(data) + (first + i) * points * channels + start, points,
                       channels, length);
    return buffer.data();
  }
};

// What one call of a kernel does.
struct Piece {
  ConvolutionSizes sizes;
  int64_t image, in_row, out_row;
  std::shared_ptr<const ConvolutionKernel> kernel;
};

// Rows [begin, end) of the output (or, for the gradient of the input, of the input) of one image.
Piece rows_of(const ConvolutionSizes& whole, int64_t image, int64_t begin, int64_t end) {
  Piece p{whole, image, 0, 0, nullptr};
  p.sizes.images = 1;
  const int64_t reach = whole.dilation[1] * (whole.kernel[1] - 1), stride = whole.stride[1], before = whole.before[1];
  if (whole.kind == ConvolutionKind::input_gradient) {  // stride 1
    const int64_t first = std::max<int64_t>(begin + before - reach, 0),
                  last = std::min(end - 1 + before, whole.out[1] - 1);
    p.in_row = begin;
    p.out_row = first;
    p.sizes.in[1] = end - begin;
    p.sizes.out[1] = last - first + 1;
    p.sizes.before[1] = before + begin - first;
    p.sizes.after[1] = p.sizes.out[1] - 1 + reach + 1 - p.sizes.in[1] - p.sizes.before[1];
  } else {
    const int64_t from = begin * stride - before, to = (end - 1) * stride - before + reach + 1;
    p.out_row = begin;
    p.in_row = std::clamp<int64_t>(from, 0, whole.in[1]);
    p.sizes.out[1] = end - begin;
    p.sizes.in[1] = std::min(to, whole.in[1]) - p.in_row;
    p.sizes.before[1] = p.in_row - from;
    p.sizes.after[1] = std::max<int64_t>(to - whole.in[1], 0);
  }
  return p;
}

double work_of_piece(const ConvolutionSizes& c) { return winograd_does(c) ? kWorkOfTiles : kWorkOfPiece; }

int64_t images_together(const ConvolutionSizes& c) {
  const double work = work_of(c) / static_cast<double>(c.images), least = work_of_piece(c);
  int64_t n = 1;
  while (n < c.images && (c.images % n != 0 || work * static_cast<double>(n) < least)) ++n;
  const int64_t filter = c.out_channels * (c.in_channels / c.groups) * c.volume();
  if (c.kind != ConvolutionKind::weight_gradient && filter >= kLargeFilter)
    while (n < c.images && (c.images % n != 0 || n * c.out_points() < kPointsOfFilter)) ++n;
  if (c.kind == ConvolutionKind::weight_gradient)
    while (n < c.images && (c.images % n != 0 || n * c.out_points() < kPointsOfSum || c.images / n > 2 * kPieces)) ++n;
  return n;
}

std::vector<Piece> pieces_of(const ConvolutionSizes& c) {
  const int64_t together = images_together(c), count = c.images / together;
  const int64_t rows = c.kind == ConvolutionKind::input_gradient ? c.in[1] : c.out[1];
  int64_t blocks = 1;
  if (together == 1 && count < kPieces && c.kernel[0] == 1 && c.in[0] == 1 && c.out[0] == 1 &&
      (c.kind != ConvolutionKind::input_gradient || c.stride[1] == 1)) {
    blocks = std::min<int64_t>({(kPieces + count - 1) / count, rows / 4,
                                static_cast<int64_t>(work_of(c) / static_cast<double>(c.images) / work_of_piece(c))});
    if (c.kind == ConvolutionKind::weight_gradient) blocks = std::min(blocks, c.out_points() / kPointsOfSum);
    blocks = std::max<int64_t>(blocks, 1);
  }
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    if (blocks == 1) {
      Piece p{c, i * together, 0, 0, nullptr};
      p.sizes.images = together;
      pieces.push_back(p);
    } else {
      for (int64_t b = 0; b < blocks; ++b) pieces.push_back(rows_of(c, i, rows * b / blocks, rows * (b + 1) / blocks));
    }
  }
  return pieces;
}

// Finds the kernels. They must agree on how the weight is packed, so that it is packed once.
bool find_kernels(std::vector<Piece>& pieces, const ConvolutionSizes& whole) {
  const auto find = winograd_does(whole) ? winograd_convolution : direct_convolution;
  for (Piece& p : pieces) {
    const Piece* before = &p == pieces.data() ? nullptr : &p - 1;
    p.kernel =
        before && std::equal(reinterpret_cast<const int64_t*>(&p.sizes), reinterpret_cast<const int64_t*>(&p.sizes + 1),
                             reinterpret_cast<const int64_t*>(&before->sizes))
            ? before->kernel
            : find(p.sizes);
    if (!p.kernel || !p.kernel->packs_like(*pieces[0].kernel)) return false;
  }
  return true;
}

Tensor bytes(int64_t n) { return empty(Dims{n}, Dtype::u8); }

void add_bias(float* to, const float* bias, int64_t points, int64_t channels) {
  for (int64_t p = 0; p < points; ++p)
    for (int64_t c = 0; c < channels; ++c) to[p * channels + c] += bias[c];
}

void run_images(const ConvolutionSizes& c, const std::vector<Piece>& pieces, const Images& from, const char* packed,
                const float* bias, float* to, bool inside) {
  const bool forward = c.kind == ConvolutionKind::forward;
  const int64_t channels = forward ? c.out_channels : c.in_channels;
  const int64_t *whole = forward ? c.out : c.in, points = product(whole);
  parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> source, result;
    Tensor scratch;
    for (int64_t i = begin; i < end; ++i) {
      const Piece& p = pieces[static_cast<size_t>(i)];
      if (!scratch.defined() || scratch.numel() < p.kernel->scratch_bytes) scratch = bytes(p.kernel->scratch_bytes);
      const int64_t* in = forward ? p.sizes.in : p.sizes.out;
      const int64_t* out = forward ? p.sizes.out : p.sizes.in;
      const float* a = from.piece(p.image, p.sizes.images, (forward ? p.in_row : p.out_row), in[0] * in[1], source);
      const int64_t start = (forward ? p.out_row : p.in_row) * whole[2], length = product(out);
      float* y = to + (p.image * points + start) * channels;
      if (!inside) {
        result.resize(static_cast<size_t>(p.sizes.images * length * channels));
        y = result.data();
      }
      p.kernel->run(a, packed, forward ? bias : nullptr, y, scratch.bytes());
      if (!forward && bias) add_bias(y, bias, p.sizes.images * length, channels);
      if (!inside)
        for (int64_t k = 0; k < p.sizes.images; ++k)
          transpose_matrix(reinterpret_cast<uint32_t*>(to) + (p.image + k) * points * channels + start, points,
                           reinterpret_cast<const uint32_t*>(y) + k * length * channels, channels, length, channels);
    }
  });
}

void run_weight(const std::vector<Piece>& pieces, const Images& grad, const Images& input, float* to) {
  const ConvolutionKernel& kernel = *pieces[0].kernel;
  const int64_t count = static_cast<int64_t>(pieces.size()),
                size = kernel.weight_bytes / static_cast<int64_t>(sizeof(float));
  const Tensor sums = bytes(count * kernel.weight_bytes);
  float* const partial = reinterpret_cast<float*>(sums.bytes());
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> first, second;
    Tensor scratch;
    for (int64_t i = begin; i < end; ++i) {
      const Piece& p = pieces[static_cast<size_t>(i)];
      if (!scratch.defined() || scratch.numel() < p.kernel->scratch_bytes) scratch = bytes(p.kernel->scratch_bytes);
      const float* dy = grad.piece(p.image, p.sizes.images, p.out_row, p.sizes.out[0] * p.sizes.out[1], first);
      const float* x = input.piece(p.image, p.sizes.images, p.in_row, p.sizes.in[0] * p.sizes.in[1], second);
      p.kernel->run_weight(dy, x, reinterpret_cast<char*>(partial + i * size), scratch.bytes());
    }
  });
  if (count > 1) {
    parallel_for(size, kParallelGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 1; i < count; ++i) {
        const float* more = partial + i * size;
        for (int64_t j = begin; j < end; ++j) partial[j] += more[j];
      }
    });
  }
  kernel.unpack(sums.bytes(), to);
}

}  // namespace

// The choice depends on sizes only, not on how the images lie: private and plain ones give the same bits.
bool goes_in_pieces(const ConvolutionSizes& c) {
  return (winograd_does(c) || direct_does(c)) && work_of(c) >= kLeastWork && !in_parallel_region() &&
         follows_formula(c);
}

bool convolve_in_pieces(const ConvolutionSizes& c, const Tensor& a, const Tensor& b, const Tensor& bias,
                        const Tensor& out, bool may_hide) {
  if (!goes_in_pieces(c)) return false;
  std::vector<Piece> pieces = pieces_of(c);
  if (!find_kernels(pieces, c)) return false;
  if (c.kind == ConvolutionKind::weight_gradient) {
    run_weight(pieces, Images(a), Images(b), out.data<float>());
    return true;
  }
  const ConvolutionKernel& kernel = *pieces[0].kernel;
  const Tensor packed = bytes(kernel.weight_bytes);
  kernel.pack(b.data<float>(), packed.bytes());
  const bool lies_inside = !out.is_contiguous(), inside = lies_inside || may_hide;
  run_images(c, pieces, Images(a), packed.bytes(), bias.defined() ? bias.data<float>() : nullptr, out.data<float>(),
             inside);
  if (inside && !lies_inside) keep_private(out);
  return true;
}

}  // namespace cresset
