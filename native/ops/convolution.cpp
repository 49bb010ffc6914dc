// Convolution, forward and backward: of most floats with the channels innermost (convolution_pieces.h), and of
// everything else as products of matrices with patches of the images (patches.h).
//
// Note [Three convolutions]
// y = forward(x, w), dx = input_gradient(dy, w) and dw = weight_gradient(dy, x) are linear in each argument, and each
// one's derivatives are the other two. A transposed convolution is an input_gradient. Images are plain (N, C, D, H, W)
// here; with fewer spatial dimensions, the first ones have size 1.
#include <algorithm>
#include <string_view>
#include <vector>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/channel_sums.h"
#include "ops/convolution_pieces.h"
#include "ops/patches.h"
#include "tensor/private_layout.h"

namespace cresset {
namespace {

template <class T>
const PatchKernels<T>& patch_kernels() {
  static const PatchKernels<T> the = [] {
    const std::string_view level = instruction_set();
    if constexpr (!std::is_same_v<T, uint32_t>)  // as in gemm.cpp, which packs weights in tiles of the same height
      if (level == "avx512") return patch_kernels_avx512<T>();
    return level == "baseline" ? patch_kernels_baseline<T>() : patch_kernels_avx2<T>();
  }();
  return the;
}

// ---------------------------------------------------------------- geometry

struct Geometry {
  int64_t images, in_channels, out_channels, groups;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  int64_t volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_group() const { return in_channels / groups; }
  int64_t out_group() const { return out_channels / groups; }
};

// Of a convolution from x to y (a transposed one goes from y to x).
Geometry geometry(DimsView x, DimsView weight, DimsView y, DimsView stride, DimsView padding, DimsView dilation,
                  int64_t groups) {
  Geometry g;
  g.images = x[0];
  g.in_channels = x[1];
  g.out_channels = y[1];
  g.groups = groups;
  const size_t rank = x.size() - 2, skip = 3 - rank;
  for (size_t d = 0; d < rank; ++d) {
    g.in[skip + d] = x[2 + d];
    g.out[skip + d] = y[2 + d];
    g.kernel[skip + d] = weight[2 + d];
    g.stride[skip + d] = std::min(stride[d], x[2 + d] + 2 * padding[d] + 1);  // a longer step leads nowhere
    g.padding[skip + d] = padding[d];
    g.dilation[skip + d] = dilation[d];
  }
  return g;
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

// ---------------------------------------------------------------- kernels

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
void forward(const Geometry& g, const Tensor& x, const Tensor& weight, const T* bias, const Tensor& y) {
  std::vector<int64_t> offsets[3];
  Sheet<T> s;
  s.patches = images_of<T>(x);
  for (int d = 0; d < 3; ++d) {
    for (int64_t t = 0; t < g.kernel[d]; ++t) offsets[d].push_back(t * g.dilation[d] - g.padding[d]);
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
std::vector<Phase> phases(const Geometry& g, int d) {
  std::vector<Phase> all;
  for (int64_t first = 0; first < std::min(g.stride[d], g.in[d]); ++first) {
    Phase p{first, (g.in[d] - first + g.stride[d] - 1) / g.stride[d], {}, {}};
    for (int64_t t = 0; t < g.kernel[d]; ++t) {
      const int64_t place = first + g.padding[d] - t * g.dilation[d];
      if (place % g.stride[d] != 0) continue;
      p.taps.push_back(t);
      p.offsets.push_back(place / g.stride[d]);
    }
    all.push_back(std::move(p));
  }
  return all;
}

template <class T>
void input_gradient(const Geometry& g, const Tensor& dy, const Tensor& weight, const T* bias, const Tensor& dx) {
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
void weight_gradient(const Geometry& g, const Tensor& dy, const Tensor& x, const Tensor& dw) {
  static constexpr int64_t kNone[1] = {0};
  std::vector<int64_t> offsets[3];
  Patches<T> rows = images_of<T>(dy), columns = images_of<T>(x);
  for (int d = 0; d < 3; ++d) {
    for (int64_t t = 0; t < g.kernel[d]; ++t) offsets[d].push_back(t * g.dilation[d] - g.padding[d]);
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

// ---------------------------------------------------------------- dtypes

using Which = ConvolutionKind;

template <class T>
void run_real(Which which, const Geometry& g, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  const T* numbers = bias.defined() ? bias.data<T>() : nullptr;
  switch (which) {
    case Which::forward: return forward<T>(g, a, b, numbers, out);
    case Which::input_gradient: return input_gradient<T>(g, a, b, numbers, out);
    case Which::weight_gradient: return weight_gradient<T>(g, a, b, out);
  }
}

void run_any(Which which, const Geometry& g, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out);

// A complex convolution as four real ones.
template <class C>
void run_complex(Which which, const Geometry& g, const Tensor& a, const Tensor& b, const Tensor& bias,
                 const Tensor& out) {
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
      run_any(which, g, *x, *y, {}, results[i++]);
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

void run_any(Which which, const Geometry& g, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  if (out.numel() == 0) return;
  switch (out.dtype()) {
    case Dtype::f32: return run_real<float>(which, g, a, b, bias, out);
    case Dtype::f64: return run_real<double>(which, g, a, b, bias, out);
    case Dtype::i32: return run_real<uint32_t>(which, g, a, b, bias, out);
    case Dtype::i64: return run_real<uint64_t>(which, g, a, b, bias, out);
    case Dtype::c64: return run_complex<complex64>(which, g, a, b, bias, out);
    case Dtype::c128: return run_complex<complex128>(which, g, a, b, bias, out);
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i16: {
      const Dtype wide = is_floating(out.dtype()) ? Dtype::f32 : Dtype::i32;
      const Tensor result = empty(out.sizes(), wide);
      run_any(which, g, convert(a, wide), convert(b, wide), bias.defined() ? convert(bias, wide) : bias, result);
      return copy_into(out, result);
    }
    default: fail(ErrorKind::not_implemented, "\"convolution\" not implemented for '", facts(out.dtype()).legacy, "'");
  }
}

// Weights and biases are read as contiguous; images lie as they like.
Tensor plain(const Tensor& t) { return t.defined() ? contiguous(t) : t; }

bool is_channels_last(const Tensor& t) {
  return !t.is_contiguous() && (t.dim() == 4 || t.dim() == 5) &&
         is_contiguous(t, t.dim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d);
}

bool run_in_pieces(Which which, const Geometry& g, const Tensor& a, const Tensor& b, const Tensor& bias,
                   const Tensor& out, bool may_hide) {
  ConvolutionSizes sizes{which,
                         g.images,
                         g.in_channels,
                         g.out_channels,
                         g.groups,
                         bias.defined() && which == Which::forward,
                         {},
                         {},
                         {},
                         {},
                         {},
                         {},
                         {}};
  for (int d = 0; d < 3; ++d) {
    sizes.in[d] = g.in[d], sizes.out[d] = g.out[d], sizes.kernel[d] = g.kernel[d], sizes.stride[d] = g.stride[d],
    sizes.dilation[d] = g.dilation[d];
    sizes.before[d] = sizes.after[d] = g.padding[d];
  }
  if (out.dtype() == Dtype::f32) return convolve_in_pieces(sizes, a, b, bias, out, may_hide);
  if ((out.dtype() != Dtype::f16 && out.dtype() != Dtype::bf16) || !goes_in_pieces(sizes)) return false;
  // Halves: computed in float and rounded once.
  const bool hides = may_hide && which != Which::weight_gradient;
  TensorInfo info{out.sizes(), {}, Dtype::f32, out.device()};
  if (hides || !out.is_contiguous()) info.strides = channels_last_strides(out.sizes());
  const Tensor wide = empty(info);
  if (!convolve_in_pieces(sizes, convert(a, Dtype::f32), convert(b, Dtype::f32),
                          bias.defined() ? convert(bias, Dtype::f32) : bias, wide, false))
    return false;
  if (hides) {
    out->strides = info.strides;
    out->update_numel_and_contiguity();
  }
  copy_into(out, wide);
  if (hides) keep_private(out);
  return true;
}

void run(const Call& c, Which which, const Geometry& g, const Tensor& a, const Tensor& b, const Tensor& bias) {
  const Tensor& out = c.out();
  if (out.numel() > 0 && run_in_pieces(which, g, a, b, bias, out, !c.given_out && out.dim() >= 4)) return;
  if (out.is_contiguous()) return run_any(which, g, a, b, bias, out);
  const Tensor result = empty(out.sizes(), out.dtype());
  run_any(which, g, a, b, bias, result);
  copy_into(out, result);
}

// ---------------------------------------------------------------- shape rules and errors

Dims for_each_dimension(DimsView values, int64_t rank, const char* name) {
  check(static_cast<int64_t>(values.size()) == rank || values.size() == 1, "convolution: expected ", name,
        " to be a single integer value or a list of ", rank, " values to match the convolution dimensions, but got ",
        name, "=", list(values));
  return values.size() == 1 ? Dims(rank, values[0]) : Dims(values);
}

void promise_images(Call& c, DimsView sizes, const Tensor& like, bool channels_last) {
  TensorInfo info{Dims(sizes), {}, like.dtype(), like.device()};
  if (channels_last) info.strides = channels_last_strides(sizes);
  c.promise(std::move(info));
}

struct Arguments {
  Dims stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};
// Positions of the arguments in the signature of convolution.
Arguments read(const Call& c) {
  const int64_t rank = c.tensor(1).dim() - 2;
  return {for_each_dimension(c.integers(3), rank, "stride"),
          for_each_dimension(c.integers(4), rank, "padding"),
          for_each_dimension(c.integers(5), rank, "dilation"),
          for_each_dimension(c.integers(7), rank, "output_padding"),
          c.boolean(6),
          c.integer(8)};
}

std::string times(DimsView sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? " x " : "") + std::to_string(sizes[i]);
  return text + ")";
}

void check_dtypes(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check(input.device() == weight.device(),
        "convolution: Expected all tensors to be on the same device, but found at least two devices, ", input.device(),
        " and ", weight.device(), "!");
  check(input.dtype() == weight.dtype(), "convolution: expected scalar type ", facts(input.dtype()).legacy,
        " but found ", facts(weight.dtype()).legacy);
  check(!bias.defined() || bias.dtype() == input.dtype(), "convolution: Input type (", name_of(input.dtype()),
        ") and bias type (", name_of(bias.dtype()), ") should be the same");
}

void infer_convolution(Call& c) {
  const Tensor input = c.tensor(0), weight = c.tensor(1), bias = c.has(2) ? c.tensor(2) : Tensor();
  check(weight.dim() >= 3 && weight.dim() <= 5, "convolution: weight should have 3 to 5 dimensions, got ",
        weight.dim());
  const Arguments a = read(c);
  const int64_t rank = weight.dim() - 2, groups = a.groups;
  for (int64_t p : a.padding) check(p >= 0, "convolution: negative padding is not supported");
  for (int64_t s : a.stride) check(s > 0, "convolution: non-positive stride is not supported");
  const bool nothing =
      input.dim() >= 2 &&
      (input.size(0) == 0 || input.size(1) == 0);  // then any dilation and output padding will do that is not negative
  for (int64_t d : a.dilation)
    check(d > 0 || (nothing && d == 0), "convolution: dilation should be greater than zero, but got ",
          list(a.dilation));
  check(groups > 0, "convolution: non-positive groups is not supported");
  check(input.dim() == weight.dim(), "convolution: Expected ", weight.dim(), "-dimensional input for ", weight.dim(),
        "-dimensional weight ", list(weight.sizes()), ", but got ", input.dim(), "-dimensional input of size ",
        list(input.sizes()), " instead");
  check(groups <= weight.size(0), "convolution: Given groups=", groups, ", expected weight to be at least ", groups,
        " at dimension 0, but got weight of size ", list(weight.sizes()), " instead");
  check(weight.size(0) % groups == 0, "convolution: Given groups=", groups, ", expected weight to be divisible by ",
        groups, " at dimension 0, but got weight of size [", list(weight.sizes()), "] instead");
  const int64_t in_channels = a.transposed ? weight.size(0) : weight.size(1) * groups,
                out_channels = a.transposed ? weight.size(1) * groups : weight.size(0);
  const auto given = a.transposed ? join("Given transposed=1, weight of size ", list(weight.sizes()))
                                  : join("Given groups=", groups, ", weight of size ", list(weight.sizes()));
  check(input.size(1) == in_channels, "convolution: ", given, ", expected input", list(input.sizes()), " to have ",
        in_channels, " channels, but got ", input.size(1), " channels instead");
  check(!bias.defined() || (bias.dim() == 1 && bias.size(0) == out_channels),
        "convolution: ", a.transposed ? given : join("Given weight of size ", list(weight.sizes())),
        ", expected bias to be 1-dimensional with ", out_channels, " elements, but got bias of size ",
        list(bias.defined() ? DimsView(bias.sizes()) : DimsView{}), " instead");
  check_dtypes(input, weight, bias);
  Dims sizes = {input.size(0), out_channels}, padded;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = input.size(2 + d);
    const __int128 wide_reach = static_cast<__int128>(a.dilation[d]) * (weight.size(2 + d) - 1) + 1;
    const __int128 longest = a.transposed ? static_cast<__int128>(a.stride[d]) * std::max<int64_t>(size - 1, 1) +
                                                wide_reach + a.output_padding[d]
                                          : wide_reach;
    check(longest < (int64_t{1} << 62) && a.padding[d] < (int64_t{1} << 61), "convolution: stride ", list(a.stride),
          ", padding ", list(a.padding), ", dilation ", list(a.dilation), " and output_padding ",
          list(a.output_padding), " give a size that does not fit in 64 bits");
    const auto reach = static_cast<int64_t>(wide_reach);
    padded.push_back(size + 2 * a.padding[d]);
    if (a.transposed) {
      check(a.output_padding[d] >= 0, "convolution: negative output_padding is not supported");
      check(nothing || a.output_padding[d] < a.stride[d] || a.output_padding[d] < a.dilation[d],
            "convolution: output padding must be smaller than either stride or dilation, but got output_padding: ",
            list(a.output_padding), " stride: ", list(a.stride), " dilation: ", list(a.dilation));
      sizes.push_back((size - 1) * a.stride[d] - 2 * a.padding[d] + reach + a.output_padding[d]);
    } else {
      sizes.push_back(padded[d] < reach ? 0 : (padded[d] - reach) / a.stride[d] + 1);
    }
  }
  const DimsView spatial = DimsView(sizes).subspan(2);
  if (const int64_t low = input.size(0) ? 1 : 0; a.transposed) {
    for (int64_t s : spatial)
      check(s >= low, "convolution: Given input size per channel: ", times(DimsView(input.sizes()).subspan(2)),
            ". Calculated output size per channel: ", times(spatial), ". Output size is too small");
  } else {
    Dims reach;
    for (int64_t d = 0; d < rank; ++d) reach.push_back(a.dilation[d] * (weight.size(2 + d) - 1) + 1);
    for (int64_t d = 0; d < rank; ++d)
      check(padded[d] >= reach[d] && weight.size(2 + d) > 0,
            "convolution: Calculated padded input size per channel: ", times(padded), ". Kernel size: ", times(reach),
            ". Kernel size can't be greater than actual input size");
  }
  promise_images(c, sizes, input, is_channels_last(input) || is_channels_last(weight));
}

void run_convolution(Call& c) {
  const Tensor input = c.tensor(0), weight = plain(c.tensor(1)), bias = plain(c.has(2) ? c.tensor(2) : Tensor());
  const Arguments a = read(c);
  if (a.transposed) {
    const Geometry g =
        geometry(c.out().sizes(), weight.sizes(), input.sizes(), a.stride, a.padding, a.dilation, a.groups);
    return run(c, Which::input_gradient, g, input, weight, bias);
  }
  const Geometry g =
      geometry(input.sizes(), weight.sizes(), c.out().sizes(), a.stride, a.padding, a.dilation, a.groups);
  run(c, Which::forward, g, input, weight, bias);
}

// The sizes of the result are given; they are not checked beyond what keeps memory safe.
void check_sizes(const char* who, DimsView x, DimsView weight, DimsView y, const Call& c) {
  const int64_t groups = c.integer(6);
  const size_t rank = x.size();
  check(rank >= 3 && rank <= 5 && weight.size() == rank && y.size() == rank, who, ": sizes ", list(x), ", ",
        list(weight), " and ", list(y), " do not belong to one convolution");
  check(groups > 0 && x[0] == y[0] && x[1] == weight[1] * groups && y[1] == weight[0] && y[1] % groups == 0, who,
        ": sizes ", list(x), ", ", list(weight), " and ", list(y), " with ", groups,
        " groups do not belong to one convolution");
  for (int i = 3; i <= 5; ++i)
    check(c.integers(i).size() == rank - 2, who, ": expected ", rank - 2, " numbers for stride, padding and dilation");
  for (int64_t s : c.integers(3)) check(s > 0, who, ": non-positive stride is not supported");
}

void infer_input_gradient(Call& c) {
  const Tensor grad = c.tensor(0), weight = c.tensor(1);
  check_sizes("_convolution_input_gradient", c.integers(2), weight.sizes(), grad.sizes(), c);
  check_dtypes(grad, weight, {});
  promise_images(c, c.integers(2), grad, is_channels_last(grad));
}
void run_input_gradient(Call& c) {
  const Tensor grad = c.tensor(0), weight = plain(c.tensor(1));
  const Geometry g =
      geometry(c.integers(2), weight.sizes(), grad.sizes(), c.integers(3), c.integers(4), c.integers(5), c.integer(6));
  run(c, Which::input_gradient, g, grad, weight, {});
}

void infer_weight_gradient(Call& c) {
  const Tensor grad = c.tensor(0), input = c.tensor(1);
  check_sizes("_convolution_weight_gradient", input.sizes(), c.integers(2), grad.sizes(), c);
  check_dtypes(grad, input, {});
  c.promise(c.integers(2), grad.dtype(), grad.device());
}
void run_weight_gradient(Call& c) {
  const Tensor grad = c.tensor(0), input = c.tensor(1);
  const Geometry g =
      geometry(input.sizes(), c.integers(2), grad.sizes(), c.integers(3), c.integers(4), c.integers(5), c.integer(6));
  run(c, Which::weight_gradient, g, grad, input, {});
}

// The gradient of a bias: the sum of each channel.
void infer_bias_gradient(Call& c) {
  const Tensor grad = c.tensor(0);
  check(grad.dim() >= 2, "_convolution_bias_gradient: expected a gradient with channels, got ", grad.dim(),
        " dimensions");
  check_implemented(is_floating(grad.dtype()), "_convolution_bias_gradient: not implemented for '",
                    facts(grad.dtype()).legacy, "'");
  c.promise(Dims{grad.size(1)}, grad.dtype(), grad.device());
}
template <class T>
void sum_channels(const Tensor& given, const Tensor& out) {
  const Tensor wide = convert(given, dtype_of<T>), grad = is_channels_last(wide) ? wide : contiguous(wide);
  const int64_t images = grad.size(0), channels = grad.size(1);
  const ChannelImages sizes{images, channels, grad.numel() / std::max<int64_t>(images * channels, 1),
                            is_channels_last(wide)};
  std::vector<double> sums(static_cast<size_t>(channels), 0.0);
  if (grad.numel() > 0) channel_sums<T>(sizes, grad.data<T>(), nullptr, nullptr, sums.data(), nullptr);
  const Tensor result = empty(out.sizes(), dtype_of<T>);
  for (int64_t i = 0; i < channels; ++i) result.data<T>()[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  copy_into(out, result);
}
void run_bias_gradient(Call& c) {
  c.out().dtype() == Dtype::f64 ? sum_channels<double>(c.tensor(0), c.out())
                                : sum_channels<float>(c.tensor(0), c.out());
}

}  // namespace

REGISTER(convolution) {
  r.add(
      "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
      "transposed, int[] output_padding, int groups) -> Tensor",
      infer_convolution, run_convolution, kFunctionOnly | kKnowsLayout);
  r.add(
      "_convolution_input_gradient(Tensor grad_output, Tensor weight, int[] input_size, int[] stride, int[] padding, "
      "int[] dilation, int groups) -> Tensor",
      infer_input_gradient, run_input_gradient, kKnowsLayout, "ConvolutionBackwardBackward0");
  r.add(
      "_convolution_weight_gradient(Tensor grad_output, Tensor input, int[] weight_size, int[] stride, int[] padding, "
      "int[] dilation, int groups) -> Tensor",
      infer_weight_gradient, run_weight_gradient, kKnowsLayout, "ConvolutionBackwardBackward0");
  r.add("_convolution_bias_gradient(Tensor grad_output) -> Tensor", infer_bias_gradient, run_bias_gradient,
        kKnowsLayout, "ConvolutionBackwardBackward0");
}

}  // namespace cresset
