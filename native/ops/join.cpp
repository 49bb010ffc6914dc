// Joining tensors along a dimension: cat and stack.
#include <cstring>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"

namespace cresset {
namespace {

// An empty vector may stand among tensors of any shape: it was the empty tensor before there were others.
bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

Dtype common_dtype(std::span<const Tensor> tensors) {
  bool same = true;
  for (const Tensor& t : tensors) same &= t.dtype() == tensors[0].dtype();
  if (same) return tensors[0].dtype();
  ResultType common;
  for (const Tensor& t : tensors) common.add(*t);
  return common.result();
}

Device common_device(const char* who, std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    check(t.device() == tensors[0].device(), who,
          ": Expected all tensors to be on the same device, but found at least two devices, ", tensors[0].device(),
          " and ", t.device());
  return tensors[0].device();
}

// What goes into the result from `start` on, along the joined dimension.
struct Piece {
  const Tensor* from;
  int64_t start;
};
using Pieces = SmallVector<Piece, 8>;

// `rows` times `bytes` that lie together, `pitch` apart in the result.
void copy_rows(char* to, int64_t pitch, const char* from, int64_t bytes, int64_t rows) {
  const auto few = [&]<class T>() {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + r * pitch, from + r * static_cast<int64_t>(sizeof(T)), sizeof(T));
  };
  switch (bytes) {
    case 0: return;  // nothing, which may lie nowhere
    case 1: return few.operator()<uint8_t>();
    case 2: return few.operator()<uint16_t>();
    case 4: return few.operator()<uint32_t>();
    case 8: return few.operator()<uint64_t>();
    case 16: return few.operator()<Bytes16>();
    default:
      for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * pitch, from + r * bytes, static_cast<size_t>(bytes));
  }
}

// A tensor that is stacked lacks the dimension.
Tensor with_dimension(const Tensor& t, int64_t dim, int64_t rank) {
  if (t.dim() == rank) return t;
  Dims sizes = t.sizes(), strides = t.strides();
  sizes.insert(dim, 1);
  strides.insert(dim, 0);
  return view_of(t, sizes, strides, t.offset());
}

void copy_pieces(const Tensor& out, int64_t dim, const Pieces& pieces) {
  if (out.numel() == 0) return;
  const int64_t width = size_of(out.dtype());
  int64_t rows = 1, inner = width;
  for (int64_t d = 0; d < dim; ++d) rows *= out.size(d);
  for (int64_t d = dim + 1; d < out.dim(); ++d) inner *= out.size(d);
  const int64_t pitch = out.size(dim) * inner;
  const auto is_dense = [&](const Tensor& t) {
    return out.is_contiguous() && t.is_contiguous() && t.dtype() == out.dtype();
  };
  for (const Piece& piece : pieces) {
    const Tensor& t = *piece.from;
    if (t.numel() == 0 || is_dense(t)) continue;
    const Tensor whole = with_dimension(t, dim, out.dim());
    copy_into(view_of(out, whole.sizes(), out.strides(), out.offset() + piece.start * out.stride(dim)), whole);
  }
  constexpr int64_t kGrain = kParallelGrain * 4;  // bytes
  if (rows == 1) {
    for (const Piece& piece : pieces) {
      if (!is_dense(*piece.from)) continue;
      char* to = out.bytes() + piece.start * inner;
      const char* from = piece.from->bytes();
      parallel_for(piece.from->numel() * width, kGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      });
    }
    return;
  }
  parallel_for(rows, std::max<int64_t>(1, kGrain / pitch), [&](int64_t begin, int64_t end) {
    // Some rows from every piece before the next rows, so that what is written stays in the cache until it is complete.
    const int64_t together = std::max<int64_t>(1, kGrain / 8 / pitch);
    for (int64_t r = begin; r < end; r += together) {
      const int64_t count = std::min(together, end - r);
      for (const Piece& piece : pieces) {
        if (!is_dense(*piece.from)) continue;
        const int64_t bytes = piece.from->numel() / rows * width;
        copy_rows(out.bytes() + r * pitch + piece.start * inner, pitch, piece.from->bytes() + r * bytes, bytes, count);
      }
    }
  });
}

void check_castable(const Call& c, Dtype dtype) {
  check_type(!c.target || can_cast(dtype, c.target->dtype()), c.op.name(),
             "(): input types can't be cast to the desired output type ",
             c.target ? facts(c.target->dtype()).legacy : "", "; they are ", name_of(dtype));
}

// Then so does the result. Every tensor has a say, also one that is skipped.
bool lie_channels_last(std::span<const Tensor> tensors, const Tensor& like) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) {
    return is_channels_last(t) && suggested_format(t) == suggested_format(like);
  });
}

void infer_cat(Call& c) {
  const std::span<const Tensor> tensors = c.tensors(0);
  check_value(!tensors.empty(), "cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].dim() > 0, "cat: zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    if (!first && !is_skipped(tensors[i])) first = &tensors[i];
  }
  const Tensor& like = first ? *first : tensors[0];
  // Of empty vectors alone any dimension may be asked for.
  const int64_t dim = first ? wrap_dim(c.integer(1), like.dim()) : 0;
  Dims sizes = like.sizes();
  sizes[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t)) continue;
    check(t.dim() == like.dim(), "cat: Tensors must have same number of dimensions: got ", like.dim(), " and ",
          t.dim());
    for (int64_t d = 0; d < like.dim(); ++d)
      check(d == dim || t.size(d) == like.size(d), "cat: Sizes of tensors must match except in dimension ", dim,
            ". Expected size ", like.size(d), " but got size ", t.size(d), " for tensor number ", i, " in the list.");
    sizes[dim] = checked_sum("cat", sizes[dim], t.size(dim));
  }
  TensorInfo info{sizes, {}, common_dtype(tensors), common_device("cat", tensors)};
  check_castable(c, info.dtype);
  if (lie_channels_last(tensors, like)) info.strides = channels_last_strides(sizes);
  c.promise(std::move(info));
}
void run_cat(Call& c) {
  const std::span<const Tensor> tensors = c.tensors(0);
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const int64_t dim = wrap_dim(c.integer(1), out.dim());
  Pieces pieces;
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    pieces.push_back({&t, start});
    start += t.size(dim);
  }
  copy_pieces(out, dim, pieces);
}

void infer_stack(Call& c) {
  const std::span<const Tensor> tensors = c.tensors(0);
  check(!tensors.empty(), "stack expects a non-empty TensorList");
  Dims sizes = tensors[0].sizes();
  const int64_t dim = wrap_dim(c.integer(1), sizes.size() + 1);
  for (size_t i = 1; i < tensors.size(); ++i)
    check(tensors[i].sizes() == sizes, "stack expects each tensor to be equal size, but got ", list(sizes),
          " at entry 0 and ", list(tensors[i].sizes()), " at entry ", i);
  const int64_t count = static_cast<int64_t>(tensors.size());
  Dims strides;
  // As what `cat` joins along it, taken apart; an out= of another size becomes contiguous.
  if (!c.given_out && dim < sizes.size() && lie_channels_last(tensors, tensors[0])) {
    Dims joined = sizes;
    joined[dim] = checked_product("stack", joined[dim], count);
    strides = channels_last_strides(joined);
    strides.insert(dim, strides[dim] * sizes[dim]);
  }
  sizes.insert(dim, count);
  check_castable(c, common_dtype(tensors));
  c.promise({sizes, strides, common_dtype(tensors), common_device("stack", tensors)});
}
void run_stack(Call& c) {
  const std::span<const Tensor> tensors = c.tensors(0);
  Pieces pieces;
  for (const Tensor& t : tensors) pieces.push_back({&t, pieces.size()});
  copy_pieces(c.out(), wrap_dim(c.integer(1), c.out().dim()), pieces);
}

}  // namespace

REGISTER(join) {
  r.add("cat(Tensor[] tensors, int dim=0) -> Tensor", infer_cat, run_cat, kWritesApart);
  r.add("stack(Tensor[] tensors, int dim=0) -> Tensor", infer_stack, run_stack, kWritesApart);
}

}  // namespace cresset
