// Elements added at the ends of dimensions: constants, a mirror image, the border repeated, or around in a circle; and
// the way back, which is the gradient.
#include "ops/padding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"
#include "ops/scatter.h"

namespace cresset {
namespace {

PaddedAxis<int64_t> axis_of(PadMode mode, int64_t size, int64_t before, int64_t after) {
  PaddedAxis<int64_t> a;
  a.size = size;
  a.padded = size + before + after;
  a.before = before;
  const int64_t added_before = std::max<int64_t>(before, 0), added_after = std::max<int64_t>(after, 0);
  a.first = std::max<int64_t>(-before, 0);
  a.kept = size - a.first - std::max<int64_t>(-after, 0);
  a.alone_begin = a.first;
  a.alone_end = a.first + a.kept;
  if (mode == kPadCircular) {
    a.alone_begin += added_after;
    a.alone_end -= added_before;
  } else if (mode != kPadConstant) {
    const bool mirror = mode == kPadReflect;
    if (before > 0) a.alone_begin = mirror ? before + 1 : 1;
    if (after > 0) a.alone_end = mirror ? size - 1 - after : size - 1;
  }
  return a;
}

struct Amounts {
  Dims sizes, before, after;  // of the tensor without what was added, in the order of its memory
};

// Where the result's channels lie last.
bool is_last(const Tensor& input, PadMode mode) { return mode != kPadCircular && is_channels_last(input); }

Amounts amounts_of(const Call& c) {
  const Tensor input = c.tensor(0);
  const DimsView pad = c.integers(1);
  const int64_t mode = c.integer(2), rank = input.dim();
  const bool back = c.boolean(4);
  check(mode >= kPadConstant && mode <= kPadCircular, "_pad: unknown mode ", mode);
  check(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size() / 2) <= rank,
        "_pad: expected two amounts for each of at most ", rank, " dimensions, got ", list(pad));
  check(!back || (mode != kPadConstant && (is_floating(input.dtype()) || is_complex(input.dtype()))),
        "_pad: no way back for mode ", mode, " and ", name_of(input.dtype()));
  Amounts a{input.sizes(), Dims(rank, 0), Dims(rank, 0)};
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    const int64_t d = rank - 1 - static_cast<int64_t>(k), before = pad[2 * k], after = pad[2 * k + 1];
    a.before[d] = before;
    a.after[d] = after;
    constexpr int64_t kFar = int64_t{1} << 61;
    check(std::abs(before) < kFar && std::abs(after) < kFar && a.sizes[d] < kFar, "_pad: integer overflow: the size ",
          a.sizes[d], " + ", before, " + ", after, " of dimension ", d, " does not fit in 64 bits");
    if (back) a.sizes[d] -= before + after;
    const int64_t size = a.sizes[d], kept = size - std::max<int64_t>(-before, 0) - std::max<int64_t>(-after, 0);
    check(size >= 0 && size + before + after >= 0 &&
              (mode == kPadConstant || (before == 0 && after == 0) ||
               (size > 0 && (mode != kPadReflect || (before < size && after < size)) &&
                (mode != kPadCircular || kept > 0))),
          "_pad: cannot add ", before, " and ", after, " elements to ", size, " in mode ", mode);
  }
  return a;
}

void infer_pad(Call& c) {
  const Tensor input = c.tensor(0);
  Amounts a = amounts_of(c);
  if (!c.boolean(4))
    for (int64_t d = 0; d < a.sizes.size(); ++d) a.sizes[d] += a.before[d] + a.after[d];
  checked_numel(a.sizes);
  Dims strides = is_last(input, static_cast<PadMode>(c.integer(2))) ? channels_last_strides(a.sizes) : Dims();
  c.promise({std::move(a.sizes), std::move(strides), input.dtype(), input.device()});
}

// Part of a row: the new elements [begin, end), at which `inner` elements each move together.
template <class F>
void each_end(const PaddedAxis<int64_t>& a, int mode, int64_t begin, int64_t end, F f) {
  for (int64_t at = begin; at < end; ++at) f(at, old_place(a, mode, at));
}
struct Middle {
  int64_t begin, end;  // the new elements that are the old ones in their order
  explicit Middle(const PaddedAxis<int64_t>& a)
      : begin(std::clamp<int64_t>(a.before, 0, a.padded)),
        end(std::clamp<int64_t>(a.before + a.size, begin, a.padded)) {}
};

template <class T>
void pad_rows(const PadStep& s, int mode, const T* x, T* y, T value) {
  const auto& [z, v, u] = s.axes;
  const int64_t inner = s.inner, row = u.padded * inner, rows = s.outer * z.padded * v.padded;
  const Middle middle(u);
  // Found out once for all rows: short ones would take twice as long.
  std::vector<std::pair<int64_t, int64_t>> ends;
  const auto note = [&](int64_t at, int64_t place) { ends.emplace_back(at, place); };
  each_end(u, mode, 0, middle.begin, note);
  each_end(u, mode, middle.end, u.padded, note);
  parallel_for(rows, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(row, 1)), [&](int64_t begin, int64_t end) {
    int64_t in_plane = begin % v.padded, plane = begin / v.padded % z.padded, volume = begin / v.padded / z.padded;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t j = old_place(v, mode, in_plane), k = old_place(z, mode, plane);
      const int64_t old_row = (volume * z.size + k) * v.size + j;
      T* to = y + r * row;
      if (++in_plane == v.padded) {
        in_plane = 0;
        if (++plane == z.padded) plane = 0, ++volume;
      }
      if (j < 0 || k < 0) {
        std::fill_n(to, row, value);
        continue;
      }
      const T* from = x + old_row * u.size * inner;
      for (const auto& [at, place] : ends) {
        if (place < 0)
          std::fill_n(to + at * inner, inner, value);
        else if (inner == 1)
          to[at] = from[place];
        else
          std::memcpy(to + at * inner, from + place * inner, static_cast<size_t>(inner) * sizeof(T));
      }
      if (u.size > 0)  // of nothing there is no memory
        std::memcpy(to + middle.begin * inner, from + (middle.begin - u.before) * inner,
                    static_cast<size_t>((middle.end - middle.begin) * inner) * sizeof(T));
    }
  });
}

// A row of old elements gets what its new ones have, in their order.
template <class T>
void sum_rows(const PadStep& s, int mode, const T* x, T* y) {
  const auto& [z, v, u] = s.axes;
  const int64_t inner = s.inner, row = u.size * inner, rows = s.outer * z.size * v.size;
  const Middle middle(u);
  parallel_for(rows, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(row, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t j = r % v.size, k = r / v.size % z.size, outer = r / v.size / z.size;
      T* to = y + r * row;
      std::fill_n(to, row, T(0));
      for (int64_t n = new_place(z, mode, k, int64_t{0}); n < z.padded; n = new_place(z, mode, k, n + 1))
        for (int64_t m = new_place(v, mode, j, int64_t{0}); m < v.padded; m = new_place(v, mode, j, m + 1)) {
          const T* from = x + ((outer * z.padded + n) * v.padded + m) * u.padded * inner;
          const auto add = [&](int64_t at, int64_t place) {
            for (int64_t i = 0; i < inner; ++i) to[place * inner + i] += from[at * inner + i];
          };
          each_end(u, mode, 0, middle.begin, add);
          T* __restrict sums = to + (middle.begin - u.before) * inner;
          const T* __restrict more = from + middle.begin * inner;
          for (int64_t i = 0; i < (middle.end - middle.begin) * inner; ++i) sums[i] += more[i];
          each_end(u, mode, middle.end, u.padded, add);
        }
    }
  });
}

void run_pad(Call& c) {
  const Tensor input = c.tensor(0), out = c.out();
  if (out.numel() == 0) return;
  const Padding padding(c);
  const bool last = is_last(input, padding.mode);
  if (padding.back) {
    const Dtype computed = combined_in(out.dtype());
    const Tensor from = in_order(convert(input, computed), last),
                 to = computed == out.dtype() ? out
                                              : empty(TensorInfo{out.sizes(), out.strides(), computed, out.device()});
    visit_floating_or_complex(computed, "_pad", [&]<class T>() {
      if constexpr (sizeof(T) >= sizeof(float))  // halves are floats by now
        sum_rows(padding.steps[0], padding.mode, from.data<T>(), to.data<T>());
    });
    if (to.get() != out.get()) copy_into(out, to);
    return;
  }
  const Tensor value = scalar_tensor(c.scalar(3), out.dtype());
  Tensor from = in_order(input, last);
  for (int64_t k = 0; k < padding.steps.size(); ++k) {
    const PadStep& s = padding.steps[k];
    const Tensor to = k + 1 == padding.steps.size() ? out : empty({{s.new_count()}}, out.dtype(), out.device());
    visit_width(size_of(out.dtype()),
                [&]<class T>() { pad_rows(s, padding.mode, from.data<T>(), to.data<T>(), *value.data<T>()); });
    from = to;
  }
}

}  // namespace

Padding::Padding(const Call& c) : mode(static_cast<PadMode>(c.integer(2))), back(c.boolean(4)) {
  Amounts a = amounts_of(c);
  const int64_t rank = a.sizes.size();
  if (is_last(c.tensor(0), mode))
    for (Dims* dims : {&a.sizes, &a.before, &a.after}) std::rotate(dims->begin() + 1, dims->begin() + 2, dims->end());
  const auto is_padded = [&](int64_t d) { return a.before[d] != 0 || a.after[d] != 0; };
  int64_t end = rank;
  do {
    while (end > 0 && !is_padded(end - 1)) --end;
    int64_t begin = std::max<int64_t>(end - 3, 0);
    while (begin < end && !is_padded(begin)) ++begin;
    PadStep s;
    for (int64_t d = 0; d < begin; ++d) s.outer *= a.sizes[d];
    for (int64_t d = end; d < rank; ++d) s.inner *= a.sizes[d];
    for (int64_t d = begin; d < end; ++d) {
      s.axes[3 - end + d] = axis_of(mode, a.sizes[d], a.before[d], a.after[d]);
      a.sizes[d] = s.axes[3 - end + d].padded;
    }
    steps.push_back(s);
    end = begin;
  } while (std::any_of(a.before.begin(), a.before.begin() + end, [](int64_t n) { return n != 0; }) ||
           std::any_of(a.after.begin(), a.after.begin() + end, [](int64_t n) { return n != 0; }));
  check(mode == kPadConstant || steps.size() == 1, "_pad: mode ", mode,
        " is for dimensions side by side, at most three");
}

static const char* name_of_padded(const Call& c) {
  static constexpr const char* kReflection[] = {"ReflectionPad1DBackward0", "ReflectionPad2DBackward0",
                                                "ReflectionPad3DBackward0"};
  static constexpr const char* kReplication[] = {"ReplicationPad1DBackward0", "ReplicationPad2DBackward0",
                                                 "ReplicationPad3DBackward0"};
  const size_t pairs = c.integers(1).size() / 2;
  switch (c.integer(2)) {
    case kPadReflect: return kReflection[pairs - 1];
    case kPadReplicate: return kReplication[pairs - 1];
    case kPadCircular: return "torch::autograd::CopySlices";  // PyTorch copies the parts into what it has allocated
    default: return "ConstantPadNdBackward0";
  }
}

REGISTER(padding) {
  r.add("_pad(Tensor input, int[] pad, int mode, Scalar value, bool back) -> Tensor", infer_pad, run_pad, kFunctionOnly)
      .node_name_of = name_of_padded;
}

}  // namespace cresset
