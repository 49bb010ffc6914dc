// Copies between any two layouts and dtypes, fills, and single elements.
#include <cstring>

#include "base/parallel.h"
#include "tensor/backend.h"
#include "tensor/blocks.h"
#include "tensor/convert.h"
#include "tensor/on_cpu.h"
#include "tensor/pending.h"
#include "tensor/tensor.h"
#include "tensor/transpose.h"

namespace cresset {
namespace {

void copy_loop(char* const* p, const void* context, int64_t n) {
  std::memcpy(p[0], p[1], static_cast<size_t>(n) * *static_cast<const size_t*>(context));
}

// A matrix transposed on the way, by stripes of the result.
template <class T>
void transpose(T* to, int64_t to_row, const T* from, int64_t from_column, int64_t rows, int64_t columns) {
  constexpr int64_t kStripe = 64 / sizeof(T);
  const int64_t stripes = (rows + kStripe - 1) / kStripe;
  parallel_for(stripes, std::max<int64_t>(1, kParallelGrain / (kStripe * std::max<int64_t>(columns, 1))),
               [&](int64_t first, int64_t last) {
                 for (int64_t r = first * kStripe; r < std::min(rows, last * kStripe); r += kStripe)
                   transpose_matrix(to + r * to_row, to_row, from + r, from_column, columns,
                                    std::min(kStripe, rows - r));
               });
}

}  // namespace

void copy_into(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (to.numel() == 0) {
    expanded_strides("copy_", from, to.sizes());
    return;
  }
  if (to.is_meta() || from.is_meta()) {
    expanded_strides("copy_", from, to.sizes());
    return;
  }
  before_write(*to.storage());
  backend_of(is_accelerator(to.device()) ? to.device() : from.device()).copy(to, from, non_blocking);
}

void copy_on_cpu(const Tensor& to, const Tensor& from) {
  Operand operands[2] = {{to.bytes(), to.dtype(), from.dtype(), to.strides()},
                         {from.bytes(), from.dtype(), from.dtype(), expanded_strides("copy_", from, to.sizes())}};
  check(!to.storage()->read_only, "copy_: the memory of the destination is read-only");
  Dims sizes = to.sizes();
  Dims* strides[2] = {&operands[0].strides, &operands[1].strides};
  coalesce(sizes, strides, 2);
  const Dims &a = operands[0].strides, &b = operands[1].strides;
  if (to.dtype() == from.dtype() && sizes.size() == 2 && a[1] == 1 && b[0] == 1 && b[1] != 0 && sizes[0] > 4 &&
      sizes[1] > 4) {
    return visit_width(size_of(to.dtype()),
                       [&]<class T>() { transpose(to.data<T>(), a[0], from.data<T>(), b[1], sizes[0], sizes[1]); });
  }
  if (to.dtype() != from.dtype() && is_contiguous(sizes, a) && is_contiguous(sizes, b)) {
    const Convert convert_run = converter(from.dtype(), to.dtype());
    return parallel_for(to.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
      convert_run(from.bytes() + begin * size_of(from.dtype()), to.bytes() + begin * size_of(to.dtype()), end - begin);
    });
  }
  // Where one side lies in the order of the elements, they go there without a block between.
  if (to.dtype() == from.dtype() && !sizes.empty() && (is_contiguous(sizes, a) || is_contiguous(sizes, b))) {
    const int64_t bytes = size_of(to.dtype());
    const bool gathers = is_contiguous(sizes, a);
    return parallel_for(to.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
      gathers ? gather(to.bytes() + begin * bytes, from.bytes(), sizes, b, begin, end - begin, bytes)
              : scatter(to.bytes(), from.bytes() + begin * bytes, sizes, a, begin, end - begin, bytes);
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

// Whether a byte is neither 0 nor 1, in a tensor of bytes on the CPU.
static bool has_other_bytes(const Tensor& bytes) {
  const int64_t count = bytes.numel();
  const auto any = [](const uint8_t* b, int64_t n) {
    uint8_t all = 0;
    for (int64_t i = 0; i < n; ++i) all |= b[i];
    return all > 1;
  };
  if (is_dense(bytes.sizes(), bytes.strides())) return any(bytes.data<uint8_t>(), count);
  uint8_t block[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    gather(reinterpret_cast<char*>(block), bytes.bytes(), bytes.sizes(), bytes.strides(), begin, n, 1);
    if (any(block, n)) return true;
  }
  return false;
}

Tensor readable_bools(const Tensor& t) {
  if (t.dtype() != Dtype::b8 || t.is_meta() || t.numel() == 0 || !t.storage()->has_foreign_bools()) return t;
  const Tensor bytes = view_as_dtype(t, Dtype::u8, t.sizes(), t.strides(), t.offset());
  if (t.device().is_cpu() && !has_other_bytes(bytes)) return t;
  // The copy has the same strides, with what lies between the elements: a result's strides depend on them.
  int64_t span = 1;
  for (int64_t d = 0; d < t.dim(); ++d) span += (t.size(d) - 1) * t.stride(d);
  const Tensor out = empty({{span}}, Dtype::b8, t.device());
  copy_into(out, view_of(bytes, {{span}}, {{1}}, t.offset()));
  return view_of(out, t.sizes(), t.strides(), 0);
}

namespace {
struct FillContext {
  char value[16];
  int64_t width;
};
void fill_loop(char* const* p, const void* context, int64_t n) {
  const auto* fill = static_cast<const FillContext*>(context);
  fill_run(p[0], fill->value, n, fill->width);
}
}  // namespace

void fill(const Tensor& t, Scalar value) {
  if (t.is_meta() || t.numel() == 0) return;
  before_write(*t.storage());
  backend_of(t.device()).fill(t, value);
}

void fill_on_cpu(const Tensor& t, const Scalar& value) {
  FillContext context{{}, size_of(t.dtype())};
  const auto store = [&](auto v) { std::memcpy(context.value, &v, sizeof v); };
  switch (t.dtype()) {
#define CRESSET_STORE(tag, type) \
  case Dtype::tag: store(value.to<type>()); break;
    CRESSET_FOR_EACH_DTYPE(CRESSET_STORE)
#undef CRESSET_STORE
    default:
      check_implemented(value.to<double>() == 0, "\"fill_cpu\" not implemented for '", facts(t.dtype()).legacy, "'");
  }
  Operand operand{t.bytes(), t.dtype(), t.dtype(), t.strides()};
  run_blocks(t.sizes(), &operand, 1, fill_loop, &context);
}

Scalar (*item_of_dispatched)(const Tensor&) = nullptr;

Scalar item(const Tensor& t) {
  if (t->level) [[unlikely]] {
    if (t->level == kDispatched) return item_of_dispatched(t);
    check(!differs_by_sample(t.get()),
          "vmap: It looks like you're calling .item() on a Tensor. Inside vmap it has a value for every sample; "
          "compute with the tensor itself instead");
    return item(Tensor(t->batch));
  }
  check(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  check(!t.is_meta(), "Tensor.item() cannot be called on meta tensors");
  return backend_of(t.device()).item(t);
}

Scalar item_on_cpu(const Tensor& t) {
  const Dtype d = t.dtype();
  if (d == Dtype::b8) return Scalar(*t.data<uint8_t>() != 0);
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
