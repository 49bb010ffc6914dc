// Copies between any two layouts and dtypes, fills, and single elements.
#include <cstring>

#include "base/parallel.h"
#include "tensor/blocks.h"
#include "tensor/convert.h"
#include "tensor/tensor.h"

namespace cresset {
namespace {

void copy_loop(char* const* p, const void* context, int64_t n) {
  std::memcpy(p[0], p[1], static_cast<size_t>(n) * *static_cast<const size_t*>(context));
}

// Four rows of four: the transpose of a 4x4 block of 32-bit elements in registers.
using Quad = uint32_t __attribute__((vector_size(16), aligned(4)));

void transpose_quads(uint32_t* to, int64_t to_row, const uint32_t* from, int64_t from_column) {
  const auto load = [&](int64_t k) { return *reinterpret_cast<const Quad*>(from + k * from_column); };
  const Quad a = load(0), b = load(1), c = load(2), d = load(3);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const auto store = [&](int64_t k, Quad v) { *reinterpret_cast<Quad*>(to + k * to_row) = v; };
  store(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store(1, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// A matrix transposed on the way, in tiles of whole cache lines on both sides.
template <class T>
void transpose(T* to, int64_t to_row, const T* from, int64_t from_column, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64 / sizeof(T);
  const int64_t tiles = (rows + kTile - 1) / kTile;
  parallel_for(tiles, std::max<int64_t>(1, kParallelGrain / (kTile * std::max<int64_t>(columns, 1))), [&](int64_t first, int64_t last) {
    for (int64_t r = first * kTile; r < std::min(rows, last * kTile); r += kTile)
      for (int64_t c = 0; c < columns; c += kTile) {
        const int64_t height = std::min(kTile, rows - r), width = std::min(kTile, columns - c);
        T* out = to + r * to_row + c;
        const T* in = from + c * from_column + r;
        if constexpr (sizeof(T) == 4) {
          if (height == kTile && width == kTile) {
            for (int64_t i = 0; i < kTile; i += 4)
              for (int64_t j = 0; j < kTile; j += 4) transpose_quads(out + i * to_row + j, to_row, in + j * from_column + i, from_column);
            continue;
          }
        }
        for (int64_t i = 0; i < height; ++i)
          for (int64_t j = 0; j < width; ++j) out[i * to_row + j] = in[j * from_column + i];
      }
  });
}

}  // namespace

void copy_into(const Tensor& to, const Tensor& from) {
  if (to.numel() == 0) {
    expanded_strides("copy_", from, to.sizes());
    return;
  }
  Operand operands[2] = {{to.bytes(), to.dtype(), from.dtype(), to.strides()},
                         {from.bytes(), from.dtype(), from.dtype(), expanded_strides("copy_", from, to.sizes())}};
  if (to.is_meta() || from.is_meta()) return;
  check(!to.storage()->read_only, "copy_: the memory of the destination is read-only");
  Dims sizes = to.sizes();
  Dims* strides[2] = {&operands[0].strides, &operands[1].strides};
  coalesce(sizes, strides, 2);
  const Dims &a = operands[0].strides, &b = operands[1].strides;
  if (to.dtype() == from.dtype() && sizes.size() == 2 && a[1] == 1 && b[0] == 1 && b[1] != 0 && sizes[0] > 4 && sizes[1] > 4) {
    return visit_width(size_of(to.dtype()), [&]<class T>() { transpose(to.data<T>(), a[0], from.data<T>(), b[1], sizes[0], sizes[1]); });
  }
  if (to.dtype() != from.dtype() && is_contiguous(sizes, a) && is_contiguous(sizes, b)) {
    const Convert convert_run = converter(from.dtype(), to.dtype());
    return parallel_for(to.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
      convert_run(from.bytes() + begin * size_of(from.dtype()), to.bytes() + begin * size_of(to.dtype()), end - begin);
    });
  }
  const size_t width = static_cast<size_t>(size_of(from.dtype()));
  run_blocks(sizes, operands, 2, copy_loop, &width);
}

Tensor contiguous(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = empty(t.sizes(), t.dtype(), t.device());
  copy_into(out, t);
  return out;
}

Tensor clone(const Tensor& t, MemoryFormat format) {
  TensorInfo info{t.sizes(), {}, t.dtype(), t.device()};
  switch (format) {
    case MemoryFormat::contiguous: break;
    case MemoryFormat::preserve: info.strides = dense_strides_like(t.sizes(), t.strides()); break;
    case MemoryFormat::channels_last:
      check(t.dim() == 4, "required rank 4 tensor to use channels_last format");
      info.strides = channels_last_strides(t.sizes());
      break;
    case MemoryFormat::channels_last_3d:
      check(t.dim() == 5, "required rank 5 tensor to use channels_last_3d format");
      info.strides = channels_last_strides(t.sizes());
      break;
  }
  Tensor out = empty(info);
  copy_into(out, t);
  return out;
}

Tensor convert(const Tensor& t, Dtype dtype) {
  if (t.dtype() == dtype) return t;
  Tensor out = empty_like_layout(t, dtype);
  copy_into(out, t);
  return out;
}

namespace {
struct FillContext {
  char value[16];
  int64_t width;
};
void fill_loop(char* const* p, const void* context, int64_t n) {
  const auto* fill = static_cast<const FillContext*>(context);
  visit_width(fill->width, [&]<class T>() {
    T v;
    std::memcpy(&v, fill->value, sizeof(T));
    std::fill(reinterpret_cast<T*>(p[0]), reinterpret_cast<T*>(p[0]) + n, v);
  });
}
}  // namespace

void fill(const Tensor& t, Scalar value) {
  if (t.is_meta() || t.numel() == 0) return;
  FillContext context{{}, size_of(t.dtype())};
  const auto store = [&](auto v) { std::memcpy(context.value, &v, sizeof v); };
  switch (t.dtype()) {
#define CRESSET_STORE(tag, type) \
  case Dtype::tag: store(value.to<type>()); break;
    CRESSET_FOR_EACH_DTYPE(CRESSET_STORE)
#undef CRESSET_STORE
    default: fail("fill: unknown dtype");
  }
  Operand operand{t.bytes(), t.dtype(), t.dtype(), t.strides()};
  run_blocks(t.sizes(), &operand, 1, fill_loop, &context);
}

Scalar item(const Tensor& t) {
  if (t->level) [[unlikely]] {
    check(!differs_by_sample(t.get()), "vmap: It looks like you're calling .item() on a Tensor. Inside vmap it has a value for every sample; compute with the tensor itself instead");
    return item(Tensor(t->batch));
  }
  check(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  check(!t.is_meta(), "Tensor.item() cannot be called on meta tensors");
  const Dtype d = t.dtype();
  if (d == Dtype::b8) return Scalar(*t.data<bool>());
  if (d == Dtype::u64) {
    Scalar s(static_cast<int64_t>(*t.data<uint64_t>()));
    s.beyond_int64 = s.integer < 0;
    s.real = static_cast<double>(*t.data<uint64_t>());
    return s;
  }
  if (is_integral(d)) {
    int64_t v;
    converter(d, Dtype::i64)(t.bytes(), reinterpret_cast<char*>(&v), 1);
    return Scalar(v);
  }
  if (is_complex(d)) {
    complex128 v;
    converter(d, Dtype::c128)(t.bytes(), reinterpret_cast<char*>(&v), 1);
    return Scalar(v);
  }
  double v;
  converter(d, Dtype::f64)(t.bytes(), reinterpret_cast<char*>(&v), 1);
  return Scalar(v);
}

}  // namespace cresset
