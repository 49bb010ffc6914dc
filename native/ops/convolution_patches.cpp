#include "ops/convolution_patches.h"

#include <algorithm>
#include <vector>

#include "base/levels.h"
#include "base/parallel.h"
#include "ops/patches.h"

namespace cresset {
namespace {

template <class T>
const PatchKernels<T>& patch_kernels() {
  static const PatchKernels<T> the = [] {
    if constexpr (std::is_same_v<T, uint32_t>)  // as in gemm.cpp, which packs weights in tiles of the same height
      return BY_LEVEL_256(patch_kernels, <T>());
    else
      return BY_LEVEL(patch_kernels, <T>());
  }();
  return the;
}

// The images of a tensor as the source of patches; grid, steps and taps are still to be set.
template <class T>
Patches<T> images_of(const Tensor& t) {
  Patches<T> p;
  p.data = t.data<T>();
  p.channels = t.size(1);
  p.image_stride = t.stride(0);
  p.channel_stride = t.stride(1);
  const int64_t rank = t.dim() - 2, skip = 3 - rank;
  for (int64_t d = 0; d < rank; ++d) {
    p.image_size[skip + d] = t.size(2 + d);
    p.strides[skip + d] = t.stride(2 + d);
  }
  return p;
}

// For every image and group: to[channel][point] = a[channel] patches[point] + bias[channel].
template <class T>
struct Sheet {
  Patches<T> patches;  // of all groups
  int64_t images, groups, m;
  const T* a;     // (groups, m, channels of a group * volume)
  const T* bias;  // (groups * m), or null
  T* to;          // (images, groups * m, points...) with these strides
  int64_t to_image, to_channel, to_strides[3];

  Patches<T> of_group(int64_t group) const {
    Patches<T> p = patches;
    p.channels /= groups;
    p.data += group * p.channels * p.channel_stride;
    return p;
  }
  bool is_plain() const {  // points of a channel follow each other
    const int64_t* n = patches.grid_size;
    return to_strides[2] == 1 && (n[1] == 1 || to_strides[1] == n[2]) && (n[0] == 1 || to_strides[0] == n[1] * n[2]);
  }
  // A kernel of one tap that sees each point as it is: the image is the matrix.
  bool is_matrix() const {
    const Patches<T>& p = patches;
    if (p.volume() != 1 || p.strides[2] != 1 || (p.image_size[1] != 1 && p.strides[1] != p.image_size[2])) return false;
    if (p.image_size[0] != 1 && p.strides[0] != p.image_size[1] * p.image_size[2]) return false;
    for (int d = 0; d < 3; ++d)
      if (p.step[d] != 1 || p.offset[d][0] != 0 || p.image_size[d] != p.grid_size[d]) return false;
    return true;
  }
};

constexpr int64_t kPointsOfTask = 768;
constexpr int64_t kWorkPerThread = 1 << 19;  // multiplications

// The weights of every group, packed once.
template <class T>
struct PackedWeights {
  Tensor memory;
  std::vector<Factor<T>> groups;
  int64_t k;

  explicit PackedWeights(const Sheet<T>& s)
      : groups(static_cast<size_t>(s.groups)), k(s.patches.channels / s.groups * s.patches.volume()) {
    const int64_t size = packed_rows_size<T>(s.m, k);
    memory = empty(Dims{s.groups * size * static_cast<int64_t>(sizeof(T))}, Dtype::u8);
    for (int64_t g = 0; g < s.groups; ++g) {
      Factor<T> rows;
      rows.data = s.a + g * s.m * k;
      rows.line_step = k;
      rows.k_step = 1;
      groups[static_cast<size_t>(g)] = pack_rows(rows, s.m, k, reinterpret_cast<T*>(memory.bytes()) + g * size);
    }
  }
};

// Results of one image and group: from (m lines of `from_line` elements, rows of the grid one after the other) to their
// places.
template <class T>
void put_rows(const Sheet<T>& s, const T* from, int64_t from_line, T* to, int64_t rows, int64_t row_step) {
  const int64_t width = s.patches.grid_size[2];
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t row = 0; row < rows; ++row) {
      const T* source = from + i * from_line + row * width;
      T* target = to + i * s.to_channel + row * row_step;
      if (s.to_strides[2] == 1)
        std::copy(source, source + width, target);
      else
        for (int64_t w = 0; w < width; ++w) target[w * s.to_strides[2]] = source[w];
    }
}

// Vectors of points read where they lie; a task is a block of rows of one image.
template <class T>
void run_direct(const Sheet<T>& s, const PackedWeights<T>& weights) {
  const int64_t* n = s.patches.grid_size;
  const int64_t blocks = (n[1] * n[2] + kPointsOfTask - 1) / kPointsOfTask,
                rows = std::max<int64_t>((n[1] + blocks - 1) / blocks, 1);
  const int64_t row_blocks = (n[1] + rows - 1) / rows, tasks = s.images * s.groups * n[0] * row_blocks;
  const int64_t work = std::max<int64_t>(s.m * weights.k * rows * n[2], 1);
  parallel_for(tasks, std::max<int64_t>(kWorkPerThread / work, 1), [&](int64_t begin, int64_t end) {
    std::vector<T> result;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t block = task % row_blocks, d = task / row_blocks % n[0],
                    group = task / row_blocks / n[0] % s.groups;
      PatchRows<T> r;
      r.patches = s.of_group(group);
      r.image = task / row_blocks / n[0] / s.groups;
      r.d = d;
      r.first = block * rows;
      r.count = std::min(rows, n[1] - r.first);
      r.a = weights.groups[static_cast<size_t>(group)];
      r.m = s.m;
      r.row_start = s.bias ? s.bias + group * s.m : nullptr;
      T* to =
          s.to + r.image * s.to_image + group * s.m * s.to_channel + d * s.to_strides[0] + r.first * s.to_strides[1];
      if (s.to_strides[2] == 1) {
        r.to = to;
        r.to_line = s.to_channel;
        r.to_row = s.to_strides[1];
        patch_kernels<T>().rows(r);
      } else {
        r.to_line = r.count * n[2];
        r.to_row = n[2];
        result.resize(static_cast<size_t>(s.m * r.to_line));
        r.to = result.data();
        patch_kernels<T>().rows(r);
        put_rows(s, r.to, r.to_line, to, r.count, s.to_strides[1]);
      }
    }
  });
}

// The image is the matrix; a task is a block of its columns.
template <class T>
void run_matrix(const Sheet<T>& s, const PackedWeights<T>& weights) {
  const int64_t points = s.patches.points(), blocks = (points + kPointsOfTask - 1) / kPointsOfTask;
  constexpr int64_t kUnit = 48;
  const int64_t block = ((points + blocks - 1) / blocks + kUnit - 1) / kUnit * kUnit;
  const int64_t work = std::max<int64_t>(s.m * weights.k * block, 1);
  parallel_for(s.images * s.groups * blocks, std::max<int64_t>(kWorkPerThread / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t image = task / blocks / s.groups, group = task / blocks % s.groups,
                                 first = task % blocks * block;
                   if (first >= points) continue;
                   const Patches<T> patches = s.of_group(group);
                   Product<T> p;
                   p.m = s.m;
                   p.n = std::min(block, points - first);
                   p.k = weights.k;
                   p.a = weights.groups[static_cast<size_t>(group)];
                   p.b.data = patches.data + image * patches.image_stride + first;
                   p.b.line_step = 1;
                   p.b.k_step = patches.channel_stride;
                   p.row_start = s.bias ? s.bias + group * s.m : nullptr;
                   p.c = s.to + image * s.to_image + group * s.m * s.to_channel + first;
                   p.c_row = s.to_channel;
                   multiply_here(p);
                 }
               });
}

// Narrow images would leave vectors half empty: the points of several are packed together.
template <class T>
void run_packed(const Sheet<T>& s, const PackedWeights<T>& weights) {
  const int64_t points = s.patches.points(), together = std::max<int64_t>(kPointsOfTask / points, 1),
                blocks = (s.images + together - 1) / together;
  const int64_t* n = s.patches.grid_size;
  const int64_t work = std::max<int64_t>(s.m * weights.k * points * together, 1);
  parallel_for(s.groups * blocks, std::max<int64_t>(kWorkPerThread / work, 1), [&](int64_t begin, int64_t end) {
    std::vector<T> result;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t group = task / blocks, first = task % blocks * together,
                    images = std::min(together, s.images - first);
      const Patches<T> patches = s.of_group(group);
      Product<T> p;
      p.m = s.m;
      p.n = images * points;
      p.k = weights.k;
      p.a = weights.groups[static_cast<size_t>(group)];
      p.b.pack = patch_kernels<T>().points;
      p.b.context = &patches;
      p.b.first = first * points;
      p.row_start = s.bias ? s.bias + group * s.m : nullptr;
      result.resize(static_cast<size_t>(s.m * p.n));
      p.c = result.data();
      p.c_row = p.n;
      multiply_here(p);
      for (int64_t i = 0; i < images; ++i)
        for (int64_t d = 0; d < n[0]; ++d)
          put_rows(s, p.c + i * points + d * n[1] * n[2], p.n,
                   s.to + (first + i) * s.to_image + group * s.m * s.to_channel + d * s.to_strides[0], n[1],
                   s.to_strides[1]);
    }
  });
}

template <class T>
void run_sheet(const Sheet<T>& s) {
  if (s.patches.points() == 0 || s.images == 0 || s.m == 0) return;
  const PackedWeights<T> weights(s);
  const int64_t lanes = patch_kernels<T>().lanes, width = s.patches.grid_size[2];
  const int64_t in_vectors = (width + lanes - 1) / lanes * lanes;
  if (s.is_matrix() && s.is_plain() && 2 * s.patches.points() > kPointsOfTask)
    run_matrix(s, weights);
  else if (weights.k > 0 && 5 * width >= 3 * in_vectors)
    run_direct(s, weights);
  else
    run_packed(s, weights);
}

template <class T>
void forward(const ConvolutionSizes& g, const Tensor& x, const Tensor& weight, const T* bias, const Tensor& y) {
  std::vector<int64_t> offsets[3];
  Sheet<T> s;
  s.patches = images_of<T>(x);
  for (int d = 0; d < 3; ++d) {
    for (int64_t t = 0; t < g.kernel[d]; ++t) offsets[d].push_back(t * g.dilation[d] - g.before[d]);
    s.patches.grid_size[d] = g.out[d];
    s.patches.step[d] = g.stride[d];
    s.patches.taps[d] = g.kernel[d];
    s.patches.offset[d] = offsets[d].data();
  }
  s.images = g.images;
  s.groups = g.groups;
  s.m = g.out_group();
  s.a = weight.data<T>();
  s.bias = bias;
  s.to = y.data<T>();
  s.to_image = g.out_channels * g.out_points();
  s.to_channel = g.out_points();
  s.to_strides[0] = g.out[1] * g.out[2], s.to_strides[1] = g.out[2], s.to_strides[2] = 1;
  run_sheet(s);
}

// The points of x whose coordinate leaves the same rest when divided by the stride see the same taps of the kernel: for
// them, the gradient is a convolution of dy with stride 1.
struct Phase {
  int64_t first, count;                // coordinates first, first + stride, ... of x
  std::vector<int64_t> taps, offsets;  // which taps of the kernel, and where in dy they find their element
};
std::vector<Phase> phases(const ConvolutionSizes& g, int d) {
  std::vector<Phase> all;
  for (int64_t first = 0; first < std::min(g.stride[d], g.in[d]); ++first) {
    Phase p{first, (g.in[d] - first + g.stride[d] - 1) / g.stride[d], {}, {}};
    for (int64_t t = 0; t < g.kernel[d]; ++t) {
      const int64_t place = first + g.before[d] - t * g.dilation[d];
      if (place % g.stride[d] != 0) continue;
      p.taps.push_back(t);
      p.offsets.push_back(place / g.stride[d]);
    }
    all.push_back(std::move(p));
  }
  return all;
}

template <class T>
void input_gradient(const ConvolutionSizes& g, const Tensor& dy, const Tensor& weight, const T* bias,
                    const Tensor& dx) {
  const std::vector<Phase> all[3] = {phases(g, 0), phases(g, 1), phases(g, 2)};
  const int64_t channel_points = g.in_points(), in_group = g.in_group(), out_group = g.out_group(), volume = g.volume();
  T* to = dx.data<T>();
  bool sees_nothing = false;
  for (const auto& of_dim : all)
    for (const Phase& p : of_dim) sees_nothing |= p.taps.empty();
  if (sees_nothing)
    for (int64_t i = 0; i < g.images * g.in_channels; ++i)
      std::fill_n(to + i * channel_points, channel_points, bias ? bias[i % g.in_channels] : T(0));
  std::vector<T> a;
  for (const Phase& pd : all[0])
    for (const Phase& ph : all[1])
      for (const Phase& pw : all[2]) {
        const Phase* phase[3] = {&pd, &ph, &pw};
        const auto nd = static_cast<int64_t>(pd.taps.size()), nh = static_cast<int64_t>(ph.taps.size()),
                   nw = static_cast<int64_t>(pw.taps.size());
        if (nd * nh * nw == 0) continue;
        // The weight, channels of x first, only this phase's taps.
        a.resize(static_cast<size_t>(g.groups * in_group * out_group * nd * nh * nw));
        T* put = a.data();
        for (int64_t group = 0; group < g.groups; ++group)
          for (int64_t i = 0; i < in_group; ++i)
            for (int64_t o = 0; o < out_group; ++o) {
              const T* w = weight.data<T>() + ((group * out_group + o) * in_group + i) * volume;
              for (int64_t td : pd.taps)
                for (int64_t th : ph.taps)
                  for (int64_t tw : pw.taps) *put++ = w[(td * g.kernel[1] + th) * g.kernel[2] + tw];
            }
        Sheet<T> s;
        s.patches = images_of<T>(dy);
        const int64_t dx_strides[3] = {g.in[1] * g.in[2], g.in[2], 1};
        s.to = to;
        for (int d = 0; d < 3; ++d) {
          s.patches.grid_size[d] = phase[d]->count;
          s.patches.taps[d] = static_cast<int64_t>(phase[d]->taps.size());
          s.patches.offset[d] = phase[d]->offsets.data();
          s.to += phase[d]->first * dx_strides[d];
          s.to_strides[d] = g.stride[d] * dx_strides[d];
        }
        s.images = g.images;
        s.groups = g.groups;
        s.m = in_group;
        s.a = a.data();
        s.bias = bias;
        s.to_image = g.in_channels * channel_points;
        s.to_channel = channel_points;
        run_sheet(s);
      }
}

template <class T>
void weight_gradient(const ConvolutionSizes& g, const Tensor& dy, const Tensor& x, const Tensor& dw) {
  static constexpr int64_t kNone[1] = {0};
  std::vector<int64_t> offsets[3];
  Patches<T> rows = images_of<T>(dy), columns = images_of<T>(x);
  for (int d = 0; d < 3; ++d) {
    for (int64_t t = 0; t < g.kernel[d]; ++t) offsets[d].push_back(t * g.dilation[d] - g.before[d]);
    rows.grid_size[d] = columns.grid_size[d] = g.out[d];
    rows.offset[d] = kNone;
    columns.step[d] = g.stride[d];
    columns.taps[d] = g.kernel[d];
    columns.offset[d] = offsets[d].data();
  }
  rows.channels = g.out_group();
  columns.channels = g.in_group();
  const int64_t m = g.out_group(), channels = g.in_group(), volume = g.volume(), n = channels * volume,
                size = g.groups * m * n;
  // Images are cut into pieces whose sums are added in order: how many depends on sizes only. Channels are shared out
  // as there are threads.
  const int64_t pieces =
      std::clamp<int64_t>((int64_t{1} << 22) / std::max<int64_t>(size, 1), 1, std::clamp<int64_t>(g.images, 1, 16));
  const int64_t blocks =
      std::clamp<int64_t>(2 * thread_count() / (g.groups * pieces), 1, std::max<int64_t>(channels, 1));
  const Tensor parts = pieces == 1 ? Tensor() : empty(Dims{pieces * size * static_cast<int64_t>(sizeof(T))}, Dtype::u8);
  T* const to = pieces == 1 ? dw.data<T>() : reinterpret_cast<T*>(parts.bytes());
  const int64_t work = std::max<int64_t>(m * n / blocks * (g.images / pieces) * g.out_points(), 1);
  parallel_for(g.groups * pieces * blocks, std::max<int64_t>(kWorkPerThread / work, 1),
               [&](int64_t begin, int64_t end) {
                 std::vector<T> sums;
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t block = task % blocks, piece = task / blocks % pieces, group = task / blocks / pieces;
                   const int64_t first = channels * block / blocks, count = channels * (block + 1) / blocks - first;
                   PatchSums<T> s;
                   s.patches = columns;
                   s.patches.data += (group * channels + first) * columns.channel_stride;
                   s.patches.channels = count;
                   s.grad = rows;
                   s.grad.data += group * m * rows.channel_stride;
                   s.image = g.images * piece / pieces;
                   s.count = g.images * (piece + 1) / pieces - s.image;
                   s.m = m;
                   s.to_line = (m + kPatchSumsUnit - 1) / kPatchSumsUnit * kPatchSumsUnit;
                   sums.assign(static_cast<size_t>(count * volume * s.to_line), T(0));
                   s.to = sums.data();
                   if (g.out_points() > 0) patch_kernels<T>().sums(s);
                   T* place = to + piece * size + group * m * n + first * volume;
                   for (int64_t i = 0; i < m; ++i)
                     for (int64_t j = 0; j < count * volume; ++j) place[i * n + j] = s.to[j * s.to_line + i];
                 }
               });
  if (pieces == 1) return;
  T* const result = dw.data<T>();
  parallel_for(size, kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = to[i];
      for (int64_t piece = 1; piece < pieces; ++piece) sum += to[piece * size + i];
      result[i] = sum;
    }
  });
}

template <class T>
void run_real(const ConvolutionSizes& g, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  const T* numbers = bias.defined() ? bias.data<T>() : nullptr;
  switch (g.kind) {
    case ConvolutionKind::forward: return forward<T>(g, a, b, numbers, out);
    case ConvolutionKind::input_gradient: return input_gradient<T>(g, a, b, numbers, out);
    case ConvolutionKind::weight_gradient: return weight_gradient<T>(g, a, b, out);
  }
}

// A complex convolution as four real ones.
template <class C>
void run_complex(const ConvolutionSizes& g, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  using R = typename C::value_type;
  const auto part = [](const Tensor& t, int64_t which_part) {
    Dims strides = t.strides();
    for (int64_t& s : strides) s *= 2;
    return contiguous(view_as_dtype(t, dtype_of<R>, t.sizes(), strides, 2 * t.offset() + which_part));
  };
  const Tensor ar = part(a, 0), ai = part(a, 1), br = part(b, 0), bi = part(b, 1);
  Tensor results[4];
  int i = 0;
  for (const Tensor* x : {&ar, &ai})
    for (const Tensor* y : {&br, &bi}) {
      results[i] = empty(out.sizes(), dtype_of<R>);
      convolve_patches(g, *x, *y, {}, results[i++]);
    }
  const R *rr = results[0].data<R>(), *ri = results[1].data<R>(), *ir = results[2].data<R>(),
          *ii = results[3].data<R>();
  C* to = out.data<C>();
  const int64_t channels = out.size(1),
                points = channels ? out.numel() / std::max<int64_t>(out.size(0) * channels, 1) : 0;
  const C* add = bias.defined() ? bias.data<C>() : nullptr;
  parallel_for(out.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      to[j] = C(rr[j] - ii[j], ri[j] + ir[j]) + (add ? add[j / points % channels] : C(0));
  });
}

}  // namespace

void convolve_patches(const ConvolutionSizes& g, const Tensor& a, const Tensor& b, const Tensor& bias,
                      const Tensor& out) {
  if (out.numel() == 0) return;
  switch (out.dtype()) {
    case Dtype::f32: return run_real<float>(g, a, b, bias, out);
    case Dtype::f64: return run_real<double>(g, a, b, bias, out);
    case Dtype::i32: return run_real<uint32_t>(g, a, b, bias, out);
    case Dtype::i64: return run_real<uint64_t>(g, a, b, bias, out);
    case Dtype::c64: return run_complex<complex64>(g, a, b, bias, out);
    case Dtype::c128: return run_complex<complex128>(g, a, b, bias, out);
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i16: {
      const Dtype wide = is_floating(out.dtype()) ? Dtype::f32 : Dtype::i32;
      const Tensor result = empty(out.sizes(), wide);
      convolve_patches(g, convert(a, wide), convert(b, wide), bias.defined() ? convert(bias, wide) : bias, result);
      return copy_into(out, result);
    }
    default: fail(ErrorKind::not_implemented, "\"convolution\" not implemented for '", facts(out.dtype()).legacy, "'");
  }
}

}  // namespace cresset
