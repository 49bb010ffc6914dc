// Images and volumes read at the places of a grid, and the gradients of both.
#include "ops/grid.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "tensor/convert.h"

namespace cresset {
namespace {

void check_mode(const char* who, const Call& c, int first, int rank) {
  const int64_t mode = c.integer(first), padding = c.integer(first + 1);
  check(mode >= kGridBilinear && mode <= kGridBicubic && padding >= kPadZeros && padding <= kPadReflection &&
            (mode != kGridBicubic || rank == 2),
        who, ": no mode ", mode, " with padding ", padding, " for ", rank, " dimensions");
}

// (input, grid, mode, padding, align_corners)
void infer_sample(Call& c) {
  const Tensor input = c.tensor(0), grid = c.tensor(1);
  const GridShape s("_grid_sample", input.sizes(), grid.sizes());
  check_mode("_grid_sample", c, 2, s.rank);
  Dims sizes = {s.samples, s.channels};
  for (int d = 0; d < s.rank; ++d) sizes.push_back(grid.size(1 + d));
  c.promise({std::move(sizes)}, input.dtype(), input.device());
}
// (grad_output, grid, input_size, mode, padding, align_corners)
void infer_input_gradient(Call& c) {
  const Tensor grad = c.tensor(0), grid = c.tensor(1);
  const GridShape s("_grid_sample_input_gradient", c.integers(2), grid.sizes());
  check_mode("_grid_sample_input_gradient", c, 3, s.rank);
  check(grad.dim() == grid.dim() && grad.numel() == s.samples * s.channels * s.places,
        "_grid_sample_input_gradient: a gradient of shape ", list(grad.sizes()), " does not fit a grid of shape ",
        list(grid.sizes()));
  c.promise({Dims(c.integers(2))}, grad.dtype(), grad.device());
}
// (grad_output, input, grid, mode, padding, align_corners)
void infer_grid_gradient(Call& c) {
  const Tensor grad = c.tensor(0), input = c.tensor(1), grid = c.tensor(2);
  const GridShape s("_grid_sample_grid_gradient", input.sizes(), grid.sizes());
  check_mode("_grid_sample_grid_gradient", c, 3, s.rank);
  check(grad.dim() == grid.dim() && grad.numel() == s.samples * s.channels * s.places,
        "_grid_sample_grid_gradient: a gradient of shape ", list(grad.sizes()), " does not fit a grid of shape ",
        list(grid.sizes()));
  c.promise({grid.sizes()}, grid.dtype(), grid.device());
}

enum Way { kRead, kInputGradient, kGridGradient };

// Which elements some places are read from, how they count, and how that changes with the coordinates.
template <int taps, class T>
struct PlaceBlock {
  static constexpr int64_t kPlaces = 64;
  static constexpr int kMostCorners = taps == 4 ? 16 : taps * taps * taps;
  int corners = 0, places = 0;
  Dtype dtype = Dtype::f32;                       // of the coordinates
  alignas(64) int32_t at[kMostCorners][kPlaces];  // in a channel; -1: outside
  alignas(64) T weight[kMostCorners][kPlaces];
  alignas(64) T slopes[3][kMostCorners][kPlaces];
};

// To the nearest float16 and bfloat16, as floats. Without branches, so that loops of them are made of vectors.
inline float to_nearest_half(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
  const float denormal = std::bit_cast<float>(magnitude) + 0.5F - 0.5F;
  const uint32_t normal = (bits + 0xfffu + (bits >> 13 & 1u)) & 0x7fffe000u;
  const uint32_t finite = magnitude < 0x38800000 ? std::bit_cast<uint32_t>(denormal) : normal;
  const uint32_t special = magnitude > 0x7f800000 ? 0x7fc00000u : 0x7f800000u;
  return std::bit_cast<float>((magnitude >= 0x477ff000 ? special : finite) | (bits & 0x80000000u));
}
inline float to_nearest_bfloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  return std::bit_cast<float>(static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000 ? bits : nearest);
}

inline float as_it_is(float x) { return x; }
inline double as_it_is(double x) { return x; }

// Calls f with what each result of a computation for tensors of `dtype` is rounded with.
template <class T, class F>
CRESSET_INLINE void with_rounding(Dtype dtype, const F& f) {
  if constexpr (sizeof(T) == 4) {
    if (dtype == Dtype::f16) return f.template operator()<to_nearest_half>();
    if (dtype == Dtype::bf16) return f.template operator()<to_nearest_bfloat16>();
  }
  f.template operator()<as_it_is>();
}

// Fills one, a dimension after the other, so that places are computed by vectors: one place after the other took most
// of the time of images with few channels.
template <int taps, class T>
struct PlaceLoop {
  using Block = PlaceBlock<taps, T>;
  struct Axis {
    alignas(64) int32_t at[taps][Block::kPlaces];
    alignas(64) T weight[taps][Block::kPlaces];
    alignas(64) T slope[taps][Block::kPlaces];
  };
  template <int32_t padding>
  CRESSET_INLINE void fill_axis(Axis& a, const T* along, int64_t count, int32_t size, bool align_corners) {
    for (int64_t p = 0; p < count; ++p) {
      const GridTaps<T> t = taps_at<taps>(along[p], size, padding, align_corners);
      for (int k = 0; k < taps; ++k) a.at[k][p] = t.at[k], a.weight[k][p] = t.weight[k], a.slope[k][p] = t.slope[k];
    }
  }
  // As grid_place does, but that each result is `rounded`.
  template <T (*rounded)(T)>
  CRESSET_INLINE void find_places(T* along, const T* coordinates, int rank, int64_t count, int32_t size,
                                  bool align_corners) {
    const T whole = rounded(static_cast<T>(size)), last = rounded(whole - 1);
    if (align_corners)
      for (int64_t p = 0; p < count; ++p) along[p] = rounded(rounded(rounded(coordinates[p * rank] + 1) / 2) * last);
    else
      for (int64_t p = 0; p < count; ++p)
        along[p] = rounded(rounded(rounded(rounded(coordinates[p * rank] + 1) * whole) - 1) / 2);
  }
  template <class Fma>
  CRESSET_INLINE void run(Block* block, const GridShape* s, const T* coordinates, int64_t count, Dtype dtype,
                          int32_t padding, bool align_corners, bool with_slopes) {
    Block& b = *block;
    const int rank = s->rank;
    const int32_t rows = s->sizes[1], columns = s->sizes[2];
    b.dtype = dtype;
    b.places = static_cast<int>(count);
    b.corners = rank == 2 ? taps * taps : taps * taps * taps;
    Axis axes[3];
    alignas(64) T along[Block::kPlaces];
    for (int d = 0; d < rank; ++d) {  // the grid counts from the last dimension
      const int32_t size = s->sizes[2 - d];
      with_rounding<T>(dtype, [&]<T (*rounded)(T)>() __attribute__((always_inline)) {
        find_places<rounded>(along, coordinates + d, rank, count, size, align_corners);
      });
      Axis& axis = axes[2 - d];
      if (padding == kPadZeros)
        fill_axis<kPadZeros>(axis, along, count, size, align_corners);
      else if (padding == kPadBorder)
        fill_axis<kPadBorder>(axis, along, count, size, align_corners);
      else
        fill_axis<kPadReflection>(axis, along, count, size, align_corners);
      with_rounding<T>(dtype, [&]<T (*rounded)(T)>() __attribute__((always_inline)) {
        for (int k = 0; k < taps; ++k)
          for (int64_t p = 0; p < count; ++p) axis.weight[k][p] = rounded(axis.weight[k][p]);
      });
    }
    int k = 0;
    for (int z = 0; z < (rank == 2 ? 1 : taps); ++z)
      for (int y = 0; y < taps; ++y)
        for (int x = 0; x < taps; ++x, ++k) {
          const int32_t *at_y = axes[1].at[y], *at_x = axes[2].at[x];
          const T *height = axes[1].weight[y], *width = axes[2].weight[x];
          int32_t* const at = b.at[k];
          T *const weight = b.weight[k], *const by_y = b.slopes[1][k], *const by_x = b.slopes[2][k];
          for (int64_t p = 0; p < count; ++p)
            at[p] = (at_y[p] * columns + at_x[p]) | ((at_y[p] | at_x[p]) >> 31);  // -1 if one is
          const T* depth = rank == 2 ? nullptr : axes[0].weight[z];
          with_rounding<T>(dtype, [&]<T (*rounded)(T)>() __attribute__((always_inline)) {
            if (!depth)
              for (int64_t p = 0; p < count; ++p) weight[p] = rounded(height[p] * width[p]);
            else
              for (int64_t p = 0; p < count; ++p) weight[p] = rounded(rounded(depth[p] * height[p]) * width[p]);
          });
          if (with_slopes)
            for (int64_t p = 0; p < count; ++p) {
              by_y[p] = axes[1].slope[y][p] * width[p];
              by_x[p] = axes[2].slope[x][p] * height[p];
            }
          if (rank == 2) continue;
          const int32_t *at_z = axes[0].at[z], plane = rows * columns;
          for (int64_t p = 0; p < count; ++p) at[p] = (at_z[p] * plane + at[p]) | ((at_z[p] | at[p]) >> 31);
          if (with_slopes)
            for (int64_t p = 0; p < count; ++p) {
              b.slopes[0][k][p] = axes[0].slope[z][p] * height[p] * width[p];
              by_y[p] = axes[1].slope[y][p] * depth[p] * width[p];
              by_x[p] = axes[2].slope[x][p] * depth[p] * height[p];
            }
        }
  }
};

// One block of places of one sample, in some of its channels. Places lie side by side, so that elements are gathered by
// vectors; what is outside adds nothing, whatever stands in its stead.
template <Way way, int taps, class T>
struct GridLoop {
  using Block = PlaceBlock<taps, T>;
  // Places may meet in an element, so that vectors are of no use: one function for all levels. (Within the loop below,
  // compiled to be small for the baseline, g++ 12 leaves this out for double.)
  [[gnu::noinline]] static void add_to_image(const Block& b, T* image, const T* values) {
    for (int p = 0; p < b.places; ++p)
      for (int k = 0; k < b.corners; ++k)
        if (b.at[k][p] >= 0) image[b.at[k][p]] += b.weight[k][p] * values[p];
  }
  // `image` is the first channel of the input, or of its gradient; `values` that of the samples, or of their gradients.
  template <class Fma>
  CRESSET_INLINE void run(const GridShape* s, const Block* block, T* image, int64_t channels, T* values, T* grid_grad) {
    const Block& b = *block;
    const int corners = std::min(b.corners, Block::kMostCorners);
    alignas(64) T sums[way == kGridGradient ? Block::kMostCorners : 1][Block::kPlaces];
    if (way == kGridGradient)
      for (int k = 0; k < corners; ++k)
        for (int p = 0; p < b.places; ++p) sums[k][p] = 0;
    for (int64_t c = 0; c < channels; ++c, image += s->elements, values += s->places) {
      if (way == kInputGradient) {
        add_to_image(b, image, values);
        continue;
      }
      if (way == kRead)
        for (int p = 0; p < b.places; ++p) sums[0][p] = 0;
      for (int k = 0; k < corners; ++k) {
        T* const to = sums[way == kRead ? 0 : k];
        const T* const factors = way == kRead ? b.weight[k] : values;
        with_rounding<T>(way == kRead ? b.dtype : Dtype::f32, [&]<T (*rounded)(T)>() __attribute__((always_inline)) {
          for (int p = 0; p < b.places; ++p) {
            const int32_t at = b.at[k][p];
            const T term = rounded(factors[p] * image[at > 0 ? at : 0]);
            to[p] = rounded(to[p] + (at >= 0 ? term : T(0)));
          }
        });
      }
      if (way == kRead)
        for (int p = 0; p < b.places; ++p) values[p] = sums[0][p];
    }
    if (way != kGridGradient) return;
    for (int p = 0; p < b.places; ++p)
      for (int d = 0; d < s->rank; ++d) {
        T total = 0;
        for (int k = 0; k < corners; ++k) total += sums[k][p] * b.slopes[2 - d][k][p];
        grid_grad[p * s->rank + d] = total;
      }
  }
};

template <Way way, int taps, class T>
void walk_grid(const GridShape& s, Dtype dtype, int32_t padding, bool align_corners, T* image, const T* grid, T* values,
               T* grid_grad) {
  constexpr int64_t most = PlaceBlock<taps, T>::kPlaces;
  const auto walk = [&](int64_t n, int64_t first, int64_t count, int64_t channel, int64_t channels) {
    const int64_t place = n * s.places + first, plane = n * s.channels + channel;
    PlaceBlock<taps, T> b;
    run_vectorized_256<PlaceLoop<taps, T>>(&b, &s, grid + place * s.rank, count, dtype, padding, align_corners,
                                           way == kGridGradient);
    run_vectorized_256<GridLoop<way, taps, T>>(&s, &b, image + plane * s.elements, channels,
                                               values + plane * s.places + first, grid_grad + place * s.rank);
  };
  const int64_t blocks = (s.places + most - 1) / most;
  if (way != kInputGradient) {
    parallel_for(s.samples * blocks, std::max<int64_t>(1, kParallelGrain / (most * s.channels)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks * most;
                     walk(i / blocks, first, std::min(most, s.places - first), 0, s.channels);
                   }
                 });
    return;
  }
  // Places may meet in an element: those of a channel are added by one thread, in their order.
  parallel_for(s.samples * s.channels, std::max<int64_t>(1, kParallelGrain / s.places),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end;) {
                   const int64_t n = i / s.channels, channel = i % s.channels;
                   const int64_t channels = std::min(s.channels - channel, end - i);
                   for (int64_t first = 0; first < s.places; first += most)
                     walk(n, first, std::min(most, s.places - first), channel, channels);
                   i += channels;
                 }
               });
}

// Computes in float32 or float64: `first` and `grid` are read, `more` too where it is given. Half precision is rounded
// at each step on the way from coordinates to what is read, as in PyTorch: else `nearest` finds other elements.
template <Way way>
void run_walk(Call& c, const GridShape& s, const Tensor& first, const Tensor& grid, const Tensor& more, int modes) {
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (s.channels == 0 || s.places == 0) return fill(out, Scalar(0));  // a gradient to which nothing adds
  check(s.elements <= std::numeric_limits<int32_t>::max(), c.op.name(), ": a channel of ", s.elements,
        " elements is too large");
  const Dtype computed = out.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const auto given = [&](const Tensor& t) { return contiguous(convert(t, computed)); };
  const Tensor a = given(first), g = given(grid), b = more.defined() ? given(more) : Tensor(),
               to = out.dtype() == computed ? out : empty(out.sizes(), computed, out.device());
  if (way == kInputGradient) fill(to, Scalar(0));
  const auto padding = static_cast<int32_t>(c.integer(modes + 1));
  const bool align = c.boolean(modes + 2);
  const auto run = [&](auto kind) {
    using T = decltype(kind);
    T* const result = to.template data<T>();
    T* const image = way == kRead ? a.template data<T>() : way == kInputGradient ? result : b.template data<T>();
    T* const values = way == kRead ? result : a.template data<T>();
    const auto walk = [&](auto taps) {
      walk_grid<way, decltype(taps)::value>(s, grid.dtype(), padding, align, image, g.template data<T>(), values,
                                            result);
    };
    switch (taps_of_mode(c.integer(modes))) {
      case 1: return walk(std::integral_constant<int, 1>());
      case 2: return walk(std::integral_constant<int, 2>());
      default: return walk(std::integral_constant<int, 4>());
    }
  };
  computed == Dtype::f64 ? run(double{}) : run(float{});
  if (to.get() != out.get()) copy_into(out, to);
}

void run_sample(Call& c) {
  run_walk<kRead>(c, GridShape("_grid_sample", c.tensor(0).sizes(), c.tensor(1).sizes()), c.tensor(0), c.tensor(1), {},
                  2);
}
void run_input_gradient(Call& c) {
  run_walk<kInputGradient>(c, GridShape("_grid_sample_input_gradient", c.integers(2), c.tensor(1).sizes()), c.tensor(0),
                           c.tensor(1), {}, 3);
}
void run_grid_gradient(Call& c) {
  run_walk<kGridGradient>(c, GridShape("_grid_sample_grid_gradient", c.tensor(1).sizes(), c.tensor(2).sizes()),
                          c.tensor(0), c.tensor(2), c.tensor(1), 3);
}

}  // namespace

GridShape::GridShape(const char* who, DimsView input, DimsView grid) : rank(static_cast<int>(input.size()) - 2) {
  check((rank == 2 || rank == 3) && grid.size() == input.size() && grid.back() == rank && grid[0] == input[0], who,
        ": an input of shape ", list(input), " does not fit a grid of shape ", list(grid));
  samples = input[0], channels = input[1];
  for (int d = 0; d < rank; ++d) {
    const int64_t size = input[static_cast<size_t>(2 + d)];
    check(size > 0 && size < std::numeric_limits<int32_t>::max(), who, ": expected non-empty dimensions, got ",
          list(input));
    sizes[3 - rank + d] = static_cast<int32_t>(size);
    elements *= size;
    places *= grid[static_cast<size_t>(1 + d)];
  }
}

REGISTER(grid) {
  r.add("_grid_sample(Tensor input, Tensor grid, int mode, int padding, bool align_corners) -> Tensor", infer_sample,
        run_sample, kFunctionOnly, "GridSampler2DBackward0")
      .node_name_of = [](const Call& c) {
    return c.tensor(0).dim() == 5 ? "GridSampler3DBackward0" : "GridSampler2DBackward0";
  };
  r.add(
      "_grid_sample_input_gradient(Tensor grad_output, Tensor grid, int[] input_size, int mode, int padding, bool "
      "align_corners) -> Tensor",
      infer_input_gradient, run_input_gradient, kFunctionOnly, "GridSampler2DBackwardBackward0");
  r.add(
      "_grid_sample_grid_gradient(Tensor grad_output, Tensor input, Tensor grid, int mode, int padding, bool "
      "align_corners) -> Tensor",
      infer_grid_gradient, run_grid_gradient, kFunctionOnly | kNotDifferentiable);
}

}  // namespace cresset
