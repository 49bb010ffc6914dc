// Images in another size. Of bytes: each new row is a sum of old rows times whole weights, as image libraries compute
// it. Of floats: a few old elements along each dimension, and the way back, which is the gradient.
#include "ops/resampling.h"

#include <limits>
#include <vector>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"

namespace cresset {
namespace {

constexpr int64_t kColumns = 256;  // columns of a row that are summed at a time
constexpr int64_t kTurned = 16;    // lines that are turned into columns at a time

// The sum of `taps` rows, `step` bytes apart, times their weights, in units of 2^-bits and rounded.
struct BlendRows {
  template <class Fma>
  CRESSET_INLINE void run(const uint8_t* x, int64_t step, const int16_t* weights, int64_t taps, int64_t bits,
                          int64_t columns, uint8_t* out) {
    alignas(64) int32_t sums[kColumns];
    for (int64_t c = 0; c < columns; ++c) sums[c] = int32_t{1} << (bits - 1);
    for (int64_t k = 0; k < taps; ++k) {
      const int32_t weight = weights[k];
      const uint8_t* __restrict row = x + k * step;
      for (int64_t c = 0; c < columns; ++c) sums[c] += weight * row[c];
    }
    for (int64_t c = 0; c < columns; ++c) {
      const int32_t value = sums[c] >> bits, above = value < 0 ? 0 : value;
      out[c] = static_cast<uint8_t>(above > 255 ? 255 : above);
    }
  }
};

// How new elements are made of old ones: those from first[j] on, `taps` of them; weights of 0 at the end do not count.
struct Weights {
  const int64_t* first;
  const int16_t* values;
  int64_t size, taps, bits;
  SmallVector<int64_t, 64> used;

  Weights(const Tensor& first, const Tensor& values, int64_t bits)
      : first(first.data<int64_t>()),
        values(values.data<int16_t>()),
        size(values.size(0)),
        taps(values.size(1)),
        bits(bits) {
    for (int64_t j = 0; j < size; ++j) {
      int64_t n = taps;
      while (n > 0 && this->values[j * taps + n - 1] == 0) --n;
      used.push_back(n);
    }
  }
  void blend(const uint8_t* x, int64_t step, int64_t j, int64_t columns, uint8_t* out) const {
    for (int64_t c = 0; c < columns; c += kColumns)
      run_vectorized<BlendRows>(x + first[j] * step + c, step, values + j * taps, used[j], bits,
                                std::min(kColumns, columns - c), out + c);
  }
};

void infer_resized_bytes(Call& c) {
  const Tensor input = c.tensor(0), first = c.tensor(2), weights = c.tensor(3);
  const int64_t dim = c.integer(1), bits = c.integer(4);
  check(input.dtype() == Dtype::u8 && first.dtype() == Dtype::i64 && weights.dtype() == Dtype::i16,
        "resized_bytes: expected uint8, int64 and int16, got ", name_of(input.dtype()), ", ", name_of(first.dtype()),
        " and ", name_of(weights.dtype()));
  check(dim >= 0 && dim < input.dim() && first.dim() == 1 && weights.dim() == 2 && first.size(0) == weights.size(0) &&
            bits > 0 && bits < 31,
        "resized_bytes: dimension ", dim, " of ", list(input.sizes()), " does not fit ", list(first.sizes()), " and ",
        list(weights.sizes()), " with ", bits, " bits");
  Dims sizes = input.sizes();
  sizes[dim] = first.size(0);
  c.promise({std::move(sizes)}, Dtype::u8, input.device());
}

void run_resized_bytes(Call& c) {
  const Tensor input = contiguous(c.tensor(0)), first = contiguous(c.tensor(2)), values = contiguous(c.tensor(3)),
               out = c.out();
  const int64_t dim = c.integer(1), old = input.size(dim), size = first.size(0);
  const Weights weights(first, values, c.integer(4));
  for (int64_t j = 0; j < size; ++j)
    check(weights.first[j] >= 0 && weights.first[j] + weights.used[j] <= old, "resized_bytes: element ", j,
          " is made of ", weights.used[j], " from ", weights.first[j], " on, of ", old);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < input.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : input.size(d);
  if (outer == 0 || inner == 0 || size == 0) return;
  const auto* x = input.data<uint8_t>();
  auto* y = out.data<uint8_t>();
  if (inner > 1) {
    parallel_for(outer * size, std::max<int64_t>(1, kParallelGrain / (inner * weights.taps)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     weights.blend(x + i / size * old * inner, inner, i % size, inner, y + i * inner);
                 });
    return;
  }
  // Along lines: some of them are turned, so that what was one element of each is a row.
  const int64_t groups = (outer + kTurned - 1) / kTurned;
  parallel_for(groups, std::max<int64_t>(1, kParallelGrain / (kTurned * (old + size * weights.taps))),
               [&](int64_t begin, int64_t end) {
                 const auto turned = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(old * kTurned));
                 alignas(64) uint8_t row[kTurned];
                 for (int64_t g = begin; g < end; ++g) {
                   const int64_t lines = std::min(kTurned, outer - g * kTurned);
                   const uint8_t* from = x + g * kTurned * old;
                   uint8_t* to = y + g * kTurned * size;
                   for (int64_t l = 0; l < kTurned; ++l)
                     for (int64_t i = 0; i < old; ++i) turned[i * kTurned + l] = l < lines ? from[l * old + i] : 0;
                   for (int64_t j = 0; j < size; ++j) {
                     weights.blend(turned.get(), kTurned, j, kTurned, row);
                     for (int64_t l = 0; l < lines; ++l) to[l * size + j] = row[l];
                   }
                 }
               });
}

// Trailing dimensions, up to three, as axes; those that are missing have one element.
void infer_resample(Call& c) {
  const Tensor input = c.tensor(0);
  const ResampledAxes axes(c);
  const auto rank = static_cast<int64_t>(c.integers(1).size());
  Dims sizes = input.sizes();
  for (int64_t d = 0; d < rank; ++d) {
    const ResampledAxis& a = axes.all[3 - rank + d];
    int64_t& size = sizes[input.dim() - rank + d];
    check(size == (axes.back ? a.new_size : a.old_size), "_resample: expected ", axes.back ? a.new_size : a.old_size,
          " elements along dimension ", input.dim() - rank + d, " of a tensor of shape ", list(input.sizes()));
    size = axes.back ? a.old_size : a.new_size;
  }
  check(axes.is_nearest() || is_floating(input.dtype()), "_resample: expected floating point numbers, got ",
        name_of(input.dtype()));
  TensorInfo info{sizes, {}, input.dtype(), input.device()};
  if (input.dim() == rank + 2 && is_channels_last(input)) info.strides = channels_last_strides(sizes);
  c.promise(std::move(info));
}

// The taps of all new elements of an axis.
template <class T>
class AxisTaps {
 public:
  struct Taps {
    int64_t count;
    const int32_t* at;
    const T* weight;
  };

  explicit AxisTaps(const ResampledAxis& axis) {
    for (int32_t i = 0; i < axis.new_size; ++i) {
      first_.push_back(at_.size());
      if (axis.mode >= kWideLinear) {
        const ResampledFilter<T> filter = filter_of<T>(axis, i);
        const T total = filter.total();
        for (int32_t at = filter.begin; at < filter.end; ++at) add(at, filter.weight(at) / total);
      } else {
        const ResampledTaps<T> taps = taps_of<T>(axis, i);
        for (int k = 0; k < taps.count; ++k) add(taps.at[k], taps.weight[k]);
      }
    }
    first_.push_back(at_.size());
  }
  Taps operator[](int64_t i) const {
    const size_t begin = first_[static_cast<size_t>(i)], end = first_[static_cast<size_t>(i) + 1];
    return {static_cast<int64_t>(end - begin), at_.data() + begin, weight_.data() + begin};
  }

 private:
  std::vector<size_t> first_;
  std::vector<int32_t> at_;
  std::vector<T> weight_;
  void add(int32_t at, T weight) {
    at_.push_back(at);
    weight_.push_back(weight);
  }
};

// A row of new elements: old rows, each `width` numbers, times their weights.
template <class T>
struct BlendTaps {
  template <class Fma>
  CRESSET_INLINE void run(const typename AxisTaps<T>::Taps& taps, const T* x, int64_t width, int64_t columns,
                          T* __restrict out) {
    const T* __restrict first = x + taps.at[0] * width;
    for (int64_t c = 0; c < columns; ++c) out[c] = taps.weight[0] * first[c];
    for (int64_t k = 1; k < taps.count; ++k) {
      const T weight = taps.weight[k];
      const T* __restrict row = x + taps.at[k] * width;
      for (int64_t c = 0; c < columns; ++c) out[c] += weight * row[c];
    }
  }
};
// The way back: to each old row what the new one has of it.
template <class T>
struct SpreadTaps {
  template <class Fma>
  CRESSET_INLINE void run(const typename AxisTaps<T>::Taps& taps, const T* __restrict x, int64_t width, int64_t columns,
                          T* out) {
    for (int64_t k = 0; k < taps.count; ++k) {
      const T weight = taps.weight[k];
      T* __restrict row = out + taps.at[k] * width;
      for (int64_t c = 0; c < columns; ++c) row[c] += weight * x[c];
    }
  }
};
// The same of one line of which `each` new elements that follow each other are copies of an old one. (Adding one by one
// waits for what was just written: three times as long.)
template <class T>
struct AddCopies {
  template <class Fma>
  CRESSET_INLINE void run(const T* __restrict x, int64_t each, int64_t count, T* __restrict out) {
    const auto add = [&](auto n) __attribute__((always_inline)) {
      for (int64_t i = 0; i < count; ++i) {
        T total = 0;
        for (int64_t k = 0; k < n; ++k) total += x[i * n + k];
        out[i] = total;
      }
    };
    if (each == 2) return add(std::integral_constant<int64_t, 2>());
    add(each);
  }
};
// `Count` taps each; 0: as many as there are.
template <class T, int Count>
void blend_line(const AxisTaps<T>& all, int64_t size, const T* x, T* out) {
  for (int64_t j = 0; j < size; ++j) {
    const typename AxisTaps<T>::Taps taps = all[j];
    const int64_t count = Count ? Count : taps.count;
    T total = taps.weight[0] * x[taps.at[0]];
    for (int64_t k = 1; k < count; ++k) total += taps.weight[k] * x[taps.at[k]];
    out[j] = total;
  }
}

// One dimension of (outer, old, inner) numbers.
template <class T>
void resample_axis(const ResampledAxis& axis, bool back, const T* x, T* y, int64_t outer, int64_t inner) {
  const int64_t old = axis.old_size, size = axis.new_size;
  const AxisTaps<T> taps(axis);
  const bool is_wide = axis.mode >= kWideLinear;
  bool copies = size % old == 0;
  for (int64_t j = 0; copies && j < size; ++j)
    copies = taps[j].count == 1 && taps[j].weight[0] == T(1) && taps[j].at[0] == j / (size / old);
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  const auto one = [&](int64_t o, int64_t first, int64_t columns) {
    const T* from = x + o * (back ? size : old) * inner + first;
    T* to = y + o * (back ? old : size) * inner + first;
    if (back && inner == 1 && copies) {
      run_vectorized<AddCopies<T>>(from, size / old, old, to);
    } else if (back) {
      for (int64_t j = 0; j < old; ++j) std::fill_n(to + j * inner, columns, T(0));
      for (int64_t j = 0; j < size; ++j) {
        const typename AxisTaps<T>::Taps of = taps[j];
        if (inner == 1)
          for (int64_t k = 0; k < of.count; ++k) to[of.at[k]] += of.weight[k] * from[j];
        else
          run_vectorized<SpreadTaps<T>>(of, from + j * inner, inner, columns, to);
      }
    } else if (inner == 1) {
      (is_wide              ? blend_line<T, 0>
       : taps[0].count == 1 ? blend_line<T, 1>
       : taps[0].count == 2 ? blend_line<T, 2>
                            : blend_line<T, kMostTaps>)(taps, size, from, to);
    } else {
      for (int64_t j = 0; j < size; ++j) run_vectorized<BlendTaps<T>>(taps[j], from, inner, columns, to + j * inner);
    }
  };
  const int64_t work = std::max(old, size) * std::min(inner, kColumns) * taps[0].count;
  parallel_for(outer * blocks, std::max<int64_t>(1, kParallelGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kColumns;
      one(i / blocks, first, std::min(kColumns, inner - first));
    }
  });
}

// The dimensions one after the other, the last one first; `inner` is what lies beyond the last one.
template <class T>
void resample(const ResampledAxes& axes, const Tensor& from, const Tensor& to, int64_t inner) {
  Dims now = {axes.all[0].old_size, axes.all[1].old_size, axes.all[2].old_size};
  if (axes.back) now = {axes.all[0].new_size, axes.all[1].new_size, axes.all[2].new_size};
  const int64_t leading = from.numel() / (now[0] * now[1] * now[2] * inner);
  int left = 0;
  for (const ResampledAxis& a : axes.all) left += a.mode != kSame;
  if (left == 0) return copy_into(to, from);
  Tensor source = from;
  for (int d = 2; d >= 0; --d) {
    const ResampledAxis& axis = axes.all[d];
    if (axis.mode == kSame) continue;
    int64_t outer = leading, beyond = inner;
    for (int e = 0; e < 3; ++e) (e < d ? outer : beyond) *= e == d ? 1 : now[e];
    now[d] = axes.back ? axis.old_size : axis.new_size;
    const Tensor target = --left == 0 ? to : empty(Dims{outer * now[d] * beyond}, dtype_of<T>, to.device());
    resample_axis(axis, axes.back, source.data<T>(), target.data<T>(), outer, beyond);
    source = target;
  }
}

void run_resample(Call& c) {
  const Tensor& out = c.out();
  const ResampledAxes axes(c);
  if (out.numel() == 0) return;
  const Dtype computed = out.dtype() == Dtype::f32 ? Dtype::f32 : Dtype::f64;
  const Tensor from = in_order_of(out, convert(c.tensor(0), computed)),
               to = computed == out.dtype() ? out : empty({out.sizes(), out.strides(), computed, out.device()});
  const int64_t inner = is_channels_last(out) ? out.size(1) : 1;
  if (computed == Dtype::f32)
    resample<float>(axes, from, to, inner);
  else
    resample<double>(axes, from, to, inner);
  if (to.get() != out.get()) copy_into(out, to);
}

}  // namespace

ResampledAxes::ResampledAxes(const Call& c) : back(c.boolean(5)) {
  const DimsView olds = c.integers(1), news = c.integers(2), modes = c.integers(3);
  const size_t rank = olds.size();
  check(rank >= 1 && rank <= 3 && news.size() == rank && modes.size() == rank && c.tensor(0).dim() >= int64_t(rank),
        "_resample: expected old sizes, new sizes and modes of the last one to three dimensions, got ", list(olds),
        ", ", list(news), " and ", list(modes));
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const size_t k = 3 - rank + d;
    check(olds[d] > 0 && news[d] > 0 && olds[d] < kMost && news[d] < kMost && modes[d] >= kSame &&
              modes[d] <= kLanczos && (modes[d] != kSame || olds[d] == news[d]) && (modes[d] < kCubic || k > 0),
          "_resample: cannot make ", news[d], " elements of ", olds[d], " in mode ", modes[d]);
    all[k] = {static_cast<int32_t>(olds[d]), static_cast<int32_t>(news[d]), static_cast<int32_t>(modes[d]),
              static_cast<int32_t>(c.boolean(4)), c.real(6 + static_cast<int>(k))};
  }
}

REGISTER(resampling) {
  constexpr uint32_t kInternal = kFunctionOnly | kMethodOnly;  // for cresset.nn.functional, under no public name
  r.add("resized_bytes(Tensor input, int dim, Tensor first, Tensor weights, int bits) -> Tensor", infer_resized_bytes,
        run_resized_bytes, kNotDifferentiable | kInternal);
  r.add(
      "_resample(Tensor input, int[] old_size, int[] new_size, int[] modes, bool align_corners, bool back, float "
      "depth_step, float height_step, float width_step) -> Tensor",
      infer_resample, run_resample, kFunctionOnly, "UpsampleBackward0");
}

}  // namespace cresset
