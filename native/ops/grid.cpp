// Images and volumes read at the places of a grid, and the gradients of both.
#include "ops/grid.h"

#include <limits>

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

template <class T>
struct Corner {
  int64_t at;  // in a channel
  T weight, slopes[3];
};
// f(corner) for those that are inside, in a fixed order.
template <int taps, class T, class F>
void each_corner(const GridShape& s, const T* coordinates, int32_t padding, bool align_corners, F&& f) {
  GridTaps<T> t[3];
  t[0].at[0] = 0, t[0].weight[0] = 1, t[0].slope[0] = 0;
  for (int d = 0; d < s.rank; ++d)  // the grid counts from the last dimension
    t[2 - d] = grid_taps<taps>(coordinates[d], s.sizes[2 - d], padding, align_corners);
  for (int z = 0; z < (s.rank == 2 ? 1 : taps); ++z)
    for (int y = 0; y < taps; ++y)
      for (int x = 0; x < taps; ++x) {
        if (t[0].at[z] < 0 || t[1].at[y] < 0 || t[2].at[x] < 0) continue;
        const T depth = t[0].weight[z], height = t[1].weight[y], width = t[2].weight[x];
        f(Corner<T>{(int64_t{t[0].at[z]} * s.sizes[1] + t[1].at[y]) * s.sizes[2] + t[2].at[x],
                    depth * height * width,
                    {t[0].slope[z] * height * width, t[1].slope[y] * depth * width, t[2].slope[x] * depth * height}});
      }
}

enum Way { kRead, kInputGradient, kGridGradient };

// `channels_of` is the input, or its gradient; `values` the samples, or their gradients.
template <Way way, int taps, class T>
void walk_grid(const GridShape& s, int32_t padding, bool align_corners, T* channels_of, const T* grid, T* values,
               T* grid_grad) {
  parallel_for(s.samples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      for (int64_t p = 0; p < s.places; ++p) {
        T* const image = channels_of + n * s.channels * s.elements;
        T* const value = values + n * s.channels * s.places + p;
        T sums[3] = {};
        each_corner<taps>(s, grid + (n * s.places + p) * s.rank, padding, align_corners, [&](const Corner<T>& corner) {
          T dot = 0;
          for (int64_t k = 0; k < s.channels; ++k) {
            T& element = image[k * s.elements + corner.at];
            T& given = value[k * s.places];
            if (way == kRead) given += corner.weight * element;
            if (way == kInputGradient) element += corner.weight * given;
            if (way == kGridGradient) dot += given * element;
          }
          for (int d = 0; d < 3; ++d) sums[d] += dot * corner.slopes[d];
        });
        if (way == kGridGradient)
          for (int d = 0; d < s.rank; ++d) grid_grad[(n * s.places + p) * s.rank + d] = sums[2 - d];
      }
  });
}

// Computes in float32 or float64: `first` and `grid` are read, `more` too where it is given.
template <Way way>
void run_walk(Call& c, const GridShape& s, const Tensor& first, const Tensor& grid, const Tensor& more, int modes) {
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  const Dtype computed = out.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const auto given = [&](const Tensor& t) { return contiguous(convert(t, computed)); };
  const Tensor a = given(first), g = given(grid), b = more.defined() ? given(more) : Tensor(),
               to = out.dtype() == computed ? out : empty(out.sizes(), computed, out.device());
  fill(to, Scalar(0));
  const auto padding = static_cast<int32_t>(c.integer(modes + 1));
  const bool align = c.boolean(modes + 2);
  const auto run = [&](auto kind) {
    using T = decltype(kind);
    T* const result = to.template data<T>();
    T* const image = way == kRead ? a.template data<T>() : way == kInputGradient ? result : b.template data<T>();
    T* const values = way == kRead ? result : a.template data<T>();
    const auto walk = [&](auto taps) {
      walk_grid<way, decltype(taps)::value>(s, padding, align, image, g.template data<T>(), values, result);
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
        run_sample, kFunctionOnly, "GridSampler2DBackward0");
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
