// The elements in another order, or some of them: flip, roll, repeat, tril, triu.
#include <cstring>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"
#include "tensor/blocks.h"

namespace cresset {
namespace {

// ---------------------------------------------------------------- flip

void infer_flip(Call& c) {
  const Tensor t = c.tensor(0);
  wrap_dims(c.integers(1), t.dim());
  c.promise({t.sizes(), dense_strides_like(t.sizes(), t.strides()), t.dtype(), t.device()});
}
void copy_loop(char* const* p, const void* width, int64_t n) {
  std::memcpy(p[0], p[1], static_cast<size_t>(n * *static_cast<const int64_t*>(width)));
}

constexpr int64_t kForeseen = int64_t{1} << 20;  // bytes: about the second-level cache

// Rows one after the other, each read from its end.
template <class T>
void reverse_rows(const T* from, DimsView sizes, DimsView strides, T* out, int64_t row) {
  int64_t rows = 1;
  for (int64_t s : sizes) rows *= s;
  parallel_for(rows, std::max<int64_t>(1, kParallelGrain / row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t offset = 0, rest = r;
      for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
        offset += rest % sizes[static_cast<size_t>(d)] * strides[static_cast<size_t>(d)];
        rest /= sizes[static_cast<size_t>(d)];
      }
      const T* last = from + offset;
      T* to = out + r * row;
      // Rows one after the other, each from its end, are no order that the processor foresees.
      if (rows * row * static_cast<int64_t>(sizeof(T)) > kForeseen &&
          row * static_cast<int64_t>(sizeof(T)) <= kForeseen)
        read_ahead(reinterpret_cast<const char*>(last + 1), row * static_cast<int64_t>(sizeof(T)));
      for (int64_t i = 0; i < row; ++i) to[i] = last[-i];
    }
  });
}

// A flipped dimension is one that is read from its end, with a negative stride.
void run_flip(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  if (t.numel() == 0) return;
  Dims strides = t.strides();
  int64_t end = 0;
  if (t.dim()) {
    for (int64_t d : wrap_dims(c.integers(1), t.dim())) {
      end += (t.size(d) - 1) * strides[d];
      strides[d] = -strides[d];
    }
  }
  const int64_t width = size_of(t.dtype());
  if (t.dim() && strides.back() == -1 && out.is_contiguous()) {
    const size_t outer = static_cast<size_t>(t.dim() - 1);
    return visit_width(width, [&]<class T>() {
      reverse_rows(t.data<T>() + end, DimsView(t.sizes()).first(outer), DimsView(strides).first(outer), out.data<T>(),
                   t.size(-1));
    });
  }
  Operand operands[2] = {{out.bytes(), t.dtype(), t.dtype(), out.strides()},
                         {t.bytes() + end * width, t.dtype(), t.dtype(), strides}};
  run_blocks(t.sizes(), operands, 2, copy_loop, &width);
}

// ---------------------------------------------------------------- roll

// Whether the two pieces that change places lie in channels_last, in each dimension: then so does the result, as that
// of `cat`, which PyTorch joins them with.
bool rolls_channels_last(const Tensor& t, DimsView shifts, DimsView dims) {
  if (suggested_format(t) == MemoryFormat::contiguous) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], t.dim()), size = t.size(d), first = (size - shifts[i] % size) % size;
    for (const int64_t length : {first, size - first}) {
      Dims sizes = t.sizes();
      sizes[d] = length;
      if (suggested_format(view_of(t, sizes, t.strides(), t.offset())) == MemoryFormat::contiguous) return false;
    }
  }
  return !dims.empty();
}

// The shift of each dimension, between 0 and its size. Without dims the tensor is rolled as if it were flat.
void infer_roll(Call& c) {
  const Tensor t = c.tensor(0);
  const DimsView shifts = c.integers(1), dims = c.integers(2);
  check(!shifts.empty(), "roll: `shifts` required");
  check(dims.size() == shifts.size() || (dims.empty() && shifts.size() == 1),
        "roll: shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (int64_t d : dims) {
    check_index(t.dim() > 0, "roll: Dimension specified as ", d, " but tensor has no dimensions");
    wrap_dim(d, t.dim());
  }
  if (t.numel() == 0)
    c.promise({t.sizes(), t.strides(), t.dtype(), t.device()});
  else if (rolls_channels_last(t, shifts, dims))
    c.promise({t.sizes(), channels_last_strides(t.sizes()), t.dtype(), t.device()});
  else
    c.promise_like(t);
}

// Copies the part of `t` that remains together, dimension by dimension: each splits in two, which change places.
void roll_from(const Tensor& out, const Tensor& t, const Dims& shifts, int64_t d, Dims& sizes, int64_t out_offset,
               int64_t offset) {
  if (d == t.dim())
    return copy_into(view_of(out, sizes, out.strides(), out_offset), view_of(t, sizes, t.strides(), offset));
  const int64_t size = t.size(d), shift = shifts[d];
  if (shift == 0) return roll_from(out, t, shifts, d + 1, sizes, out_offset, offset);
  sizes[d] = size - shift;
  roll_from(out, t, shifts, d + 1, sizes, out_offset + shift * out.stride(d), offset);
  sizes[d] = shift;
  roll_from(out, t, shifts, d + 1, sizes, out_offset, offset + (size - shift) * t.stride(d));
  sizes[d] = size;
}
void run_roll(Call& c) {
  Tensor t = c.tensor(0), out = c.out();
  if (t.numel() == 0) return;
  DimsView dims = c.integers(2);
  const int64_t zero = 0;
  if (dims.empty()) {
    t = contiguous(t);
    t = view_of(t, {{t.numel()}}, {{1}}, t.offset());
    out = view_of(out, {{t.numel()}}, {{1}}, out.offset());
    dims = {&zero, 1};
  }
  Dims shifts(t.dim(), 0), sizes = t.sizes();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], t.dim()), size = t.size(d);
    shifts[d] = ((shifts[d] + c.integers(1)[i] % size) % size + size) % size;
  }
  roll_from(out, t, shifts, 0, sizes, out.offset(), t.offset());
}

// ---------------------------------------------------------------- repeat

void infer_repeat(Call& c) {
  const Tensor t = c.tensor(0);
  const DimsView repeats = c.integers(1);
  const int64_t lead = static_cast<int64_t>(repeats.size()) - t.dim();
  check(lead >= 0,
        "repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor; they are ",
        repeats.size(), " and ", t.dim());
  Dims sizes(repeats);
  checked_numel(sizes);  // none is negative
  for (int64_t d = 0; d < t.dim(); ++d) sizes[lead + d] = checked_product("repeat", sizes[lead + d], t.size(d));
  c.promise(sizes, t.dtype(), t.device());
}
// Each dimension of the result is two: which copy, and the place in the copy. The first does not move in the tensor.
void run_repeat(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  const DimsView repeats = c.integers(1);
  const int64_t lead = static_cast<int64_t>(repeats.size()) - t.dim();
  Dims sizes, strides;
  for (int64_t d = 0; d < out.dim(); ++d) {
    sizes.push_back(repeats[static_cast<size_t>(d)]);
    strides.push_back(0);
    if (d < lead) continue;
    sizes.push_back(t.size(d - lead));
    strides.push_back(t.stride(d - lead));
  }
  if (out.numel())
    copy_into(view_of(out, sizes, contiguous_strides(sizes), out.offset()), view_of(t, sizes, strides, t.offset()));
}

// ---------------------------------------------------------------- triangles

template <bool lower>
void infer_triangle(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() >= 2, lower ? "tril" : "triu", ": input tensor must have at least 2 dimensions, got ", t.dim());
  c.promise_like(t);
}
template <bool lower>
void run_triangle(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  const int64_t rows = t.size(-2), columns = t.size(-1), width = size_of(t.dtype());
  const int64_t diagonal = std::clamp(c.integer(1), -rows, columns);
  if (out.numel() == 0) return;
  const DimsView batch = DimsView(t.sizes()).first(static_cast<size_t>(t.dim() - 2));
  const int64_t step = t.stride(-1), row_step = t.stride(-2);
  parallel_for(out.numel() / columns, std::max<int64_t>(1, kParallelGrain / columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t i = r % rows, cut = std::clamp<int64_t>(i + diagonal + (lower ? 1 : 0), 0, columns);
      const int64_t first = lower ? 0 : cut, last = lower ? cut : columns;  // the columns that are kept
      int64_t offset = i * row_step, rest = r / rows;
      for (int64_t d = static_cast<int64_t>(batch.size()) - 1; d >= 0; --d) {
        offset += rest % batch[static_cast<size_t>(d)] * t.stride(d);
        rest /= batch[static_cast<size_t>(d)];
      }
      char* to = out.bytes() + r * columns * width;
      const char* from = t.bytes() + offset * width;
      std::memset(to, 0, static_cast<size_t>(first * width));
      std::memset(to + last * width, 0, static_cast<size_t>((columns - last) * width));
      if (last > first && step == 1)
        std::memcpy(to + first * width, from + first * width, static_cast<size_t>((last - first) * width));
      else if (last > first)
        gather(to + first * width, from + first * step * width, Dims{last - first}, Dims{step}, 0, last - first, width);
    }
  });
}

}  // namespace

REGISTER(rearrange) {
  r.add("flip(Tensor input, int[...] dims) -> Tensor", infer_flip, run_flip);
  r.add("roll(Tensor input, int[1] shifts, int[1]? dims=[]) -> Tensor", infer_roll, run_roll, kAnyDevice);
  r.add("repeat(Tensor input, int[...] repeats) -> Tensor", infer_repeat, run_repeat, kMethodOnly | kAnyDevice);
  r.add("tril(Tensor input, SymInt diagonal=0) -> Tensor", infer_triangle<true>, run_triangle<true>, kInplace);
  r.add("triu(Tensor input, SymInt diagonal=0) -> Tensor", infer_triangle<false>, run_triangle<false>, kInplace);
}

}  // namespace cresset
