// Operators whose result is the same memory seen differently.
#include "base/checked.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

void give_view(Call& c, const Tensor& t, DimsView sizes, DimsView strides, int64_t offset) {
  c.give(view_of(t, sizes, strides, offset));
}

void run_alias(Call& c) {
  const Tensor t = c.tensor(0);
  give_view(c, t, t.sizes(), t.strides(), t.offset());
}

void run_select(Call& c) {
  const Tensor t = c.tensor(0);
  check_index(t.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(c.integer(1), t.dim()), n = t.size(d);
  int64_t i = c.integer(2);
  check_index(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", d, " with size ", n);
  if (i < 0) i += n;
  Dims sizes = t.sizes(), strides = t.strides();
  const int64_t offset = t.offset() + i * strides[d];
  sizes.erase(d);
  strides.erase(d);
  give_view(c, t, sizes, strides, offset);
}

void run_slice(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(c.integer(1), t.dim()), n = t.size(d), step = c.integer(4);
  check(step > 0, "slice step must be positive");
  int64_t start = c.has(2) ? c.integer(2) : 0, end = c.has(3) ? c.integer(3) : n;
  const auto clip = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  start = clip(start);
  end = std::max(clip(end), start);
  Dims sizes = t.sizes(), strides = t.strides();
  const int64_t offset = t.offset() + start * strides[d];
  sizes[d] = end > start ? (end - start - 1) / step + 1 : 0;
  strides[d] = wrapped_product(strides[d], step);
  give_view(c, t, sizes, strides, offset);
}

void run_narrow(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(c.integer(1), t.dim()), n = t.size(d), length = c.integer(3);
  int64_t start = c.integer(2);
  check(length >= 0, "narrow(): length must be non-negative.");
  check_index(start >= -n && start <= n, "start out of range (expected to be in range of [", -n, ", ", n, "], but got ",
              start, ")");
  if (start < 0) start += n;
  check(length <= n - start, "start (", start, ") + length (", length, ") exceeds dimension size (", n, ").");
  Dims sizes = t.sizes();
  sizes[d] = length;
  give_view(c, t, sizes, t.strides(), t.offset() + start * t.stride(d));
}

void run_unsqueeze(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t d = wrap_dim(c.integer(1), t.dim() + 1);
  Dims sizes = t.sizes(), strides = t.strides();
  const int64_t stride = d < t.dim() ? wrapped_product(sizes[d], strides[d]) : 1;
  sizes.insert(d, 1);
  strides.insert(d, stride);
  give_view(c, t, sizes, strides, t.offset());
}

void squeeze_where(Call& c, const Dims* only) {
  const Tensor t = c.tensor(0);
  Dims sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d) {
    const bool asked = !only || std::find(only->begin(), only->end(), d) != only->end();
    if (asked && t.size(d) == 1) continue;
    sizes.push_back(t.size(d));
    strides.push_back(t.stride(d));
  }
  give_view(c, t, sizes, strides, t.offset());
}
void run_squeeze(Call& c) { squeeze_where(c, nullptr); }
void run_squeeze_dim(Call& c) {
  const Dims dims{wrap_dim(c.integer(1), c.tensor(0).dim())};
  squeeze_where(c, &dims);
}
void run_squeeze_dims(Call& c) {
  const Dims dims = wrap_dims(c.integers(1), c.tensor(0).dim());
  squeeze_where(c, &dims);
}

void run_transpose(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t a = wrap_dim(c.integer(1), t.dim()), b = wrap_dim(c.integer(2), t.dim());
  Dims sizes = t.sizes(), strides = t.strides();
  if (t.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  give_view(c, t, sizes, strides, t.offset());
}

void run_t(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", t.dim(), "D");
  Dims sizes = t.sizes(), strides = t.strides();
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  give_view(c, t, sizes, strides, t.offset());
}

void run_permute(Call& c) {
  const Tensor t = c.tensor(0);
  check(static_cast<int64_t>(c.integers(1).size()) == t.dim(),
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of dimensions i.e. input.dim() = ",
        t.dim(), " is not equal to len(dims) = ", c.integers(1).size());
  Dims seen, sizes, strides;
  for (int64_t d : c.integers(1)) {
    d = wrap_dim(d, t.dim());
    check(std::find(seen.begin(), seen.end(), d) == seen.end(), "permute(): duplicate dims are not allowed.");
    seen.push_back(d);
    sizes.push_back(t.size(d));
    strides.push_back(t.stride(d));
  }
  give_view(c, t, sizes, strides, t.offset());
}

void run_expand(Call& c) {
  const Tensor t = c.tensor(0);
  Dims sizes(c.integers(1));
  const int64_t lead = sizes.size() - t.dim();
  for (int64_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      check(d >= lead, "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", d);
      sizes[d] = t.size(d - lead);
    }
    check(sizes[d] >= 0, "expand: a size must not be negative, got ", sizes[d]);
  }
  Dims strides = expanded_strides("expand", t, sizes);
  // A new dimension of size 1 is like one that unsqueeze made.
  for (int64_t d = t.dim() ? lead - 1 : -1; d >= 0; --d)
    if (sizes[d] == 1) strides[d] = sizes[d + 1] * strides[d + 1];
  give_view(c, t, sizes, strides, t.offset());
}

void run_view(Call& c) {
  const Tensor t = c.tensor(0);
  const Dims sizes = infer_size(c.integers(1), t.numel());
  Dims strides;
  check(view_strides(t.sizes(), t.strides(), sizes, strides),
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.");
  give_view(c, t, sizes, strides, t.offset());
}

void run_reshape(Call& c) {
  const Tensor t = c.tensor(0);
  const Dims sizes = infer_size(c.integers(1), t.numel());
  Dims strides;
  if (view_strides(t.sizes(), t.strides(), sizes, strides)) return give_view(c, t, sizes, strides, t.offset());
  Tensor copy = clone(t, MemoryFormat::contiguous);
  copy->sizes = sizes;
  copy->strides = contiguous_strides(sizes);
  copy->update_numel_and_contiguity();
  c.give(copy);
}

void run_view_dtype(Call& c) {
  const Tensor t = c.tensor(0);
  const Dtype to = c.args[1].dtype_;
  const int64_t from_size = size_of(t.dtype()), to_size = size_of(to);
  Dims sizes = t.sizes(), strides = t.strides();
  int64_t offset = t.offset();
  if (from_size != to_size) {
    check(t.dim() > 0, "self.dim() cannot be 0 to view ", name_of(t.dtype()), " as ", name_of(to),
          " (different element sizes)");
    check(t.stride(-1) == 1, "self.stride(-1) must be 1 to view ", name_of(t.dtype()), " as ", name_of(to),
          " (different element sizes), but got ", t.stride(-1));
    const int64_t last = t.dim() - 1;
    if (to_size < from_size) {
      const int64_t ratio = from_size / to_size;
      sizes[last] = checked_product("view", sizes[last], ratio);
      for (int64_t d = 0; d < last; ++d) strides[d] = wrapped_product(strides[d], ratio);
      offset *= ratio;
    } else {
      const int64_t ratio = to_size / from_size;
      check(sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio, " to view ", name_of(t.dtype()),
            " as ", name_of(to), " (different element sizes), but got ", sizes[last]);
      check(offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio, " to view ", name_of(t.dtype()),
            " as ", name_of(to), " (different element sizes), but got ", offset);
      sizes[last] /= ratio;
      for (int64_t d = 0; d < last; ++d) {
        check(strides[d] % ratio == 0, "self.stride(", d, ") must be divisible by ", ratio, " to view ",
              name_of(t.dtype()), " as ", name_of(to), " (different element sizes), but got ", strides[d]);
        strides[d] /= ratio;
      }
      offset /= ratio;
    }
  }
  if ((t.dtype() == Dtype::b8) != (to == Dtype::b8)) t.storage()->note_foreign_bools();
  c.give(view_as_dtype(t, to, sizes, strides, offset));
}

void check_in_storage(const Tensor& t, DimsView sizes, DimsView strides, int64_t offset) {
  const int64_t needed = bytes_needed("as_strided", sizes, strides, offset, t.dtype());
  check(t.is_meta() || needed <= t.storage()->bytes, "setStorage: sizes ", list(sizes), ", strides ", list(strides),
        ", storage offset ", offset, ", and itemsize ", size_of(t.dtype()), " requiring a storage size of ", needed,
        " are out of bounds for storage of size ", t.storage()->bytes);
}

void run_as_strided(Call& c) {
  const Tensor t = c.tensor(0);
  check(c.integers(1).size() == c.integers(2).size(), "mismatch in length of strides and shape");
  const int64_t offset = c.has(3) ? c.integer(3) : t.offset();
  check_in_storage(t, c.integers(1), c.integers(2), offset);
  give_view(c, t, c.integers(1), c.integers(2), offset);
}

void run_diagonal(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t a = wrap_dim(c.integer(2), t.dim()), b = wrap_dim(c.integer(3), t.dim());
  check(a != b, "diagonal dimensions cannot be identical ", c.integer(2), ", ", c.integer(3));
  const int64_t offset = std::clamp(c.integer(1), -t.size(a), t.size(b));
  const int64_t length = std::max<int64_t>(
      offset >= 0 ? std::min(t.size(a), t.size(b) - offset) : std::min(t.size(a) + offset, t.size(b)), 0);
  int64_t start = t.offset();
  if (length > 0) start += offset >= 0 ? offset * t.stride(b) : -offset * t.stride(a);
  Dims sizes = t.sizes(), strides = t.strides();
  const int64_t stride = strides[a] + strides[b];
  sizes.erase(std::max(a, b)), strides.erase(std::max(a, b));
  sizes.erase(std::min(a, b)), strides.erase(std::min(a, b));
  sizes.push_back(length);
  strides.push_back(stride);
  give_view(c, t, sizes, strides, start);
}

void run_unfold(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t d = wrap_dim(c.integer(1), t.dim()), size = c.integer(2), step = c.integer(3);
  const int64_t most = t.dim() == 0 ? 1 : t.size(d);
  check(size >= 0, "size is ", size, " but must be >= 0");
  check(size <= most, "maximum size for tensor at dimension ", d, " is ", most, " but size is ", size);
  check(step > 0, "step is ", step, " but must be > 0");
  Dims sizes = t.sizes(), strides = t.strides();
  if (t.dim() == 0) return give_view(c, t, Dims{size}, Dims{1}, t.offset());
  sizes.push_back(size);
  strides.push_back(strides[d]);
  sizes[d] = (most - size) / step + 1;
  strides[d] = wrapped_product(strides[d], step);
  give_view(c, t, sizes, strides, t.offset());
}

void run_unbind(Call& c) {
  const Tensor t = c.tensor(0);
  check_index(t.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  const int64_t d = wrap_dim(c.integer(1), t.dim()), n = t.size(d), step = t.stride(d);
  Dims sizes = t.sizes(), strides = t.strides();
  sizes.erase(d);
  strides.erase(d);
  for (int64_t i = 0; i < n; ++i) give_view(c, t, sizes, strides, t.offset() + i * step);
}

void split_at(Call& c, const Tensor& t, int64_t d, DimsView lengths) {
  Dims sizes = t.sizes();
  int64_t start = 0;
  for (int64_t length : lengths) {
    sizes[d] = length;
    give_view(c, t, sizes, t.strides(), t.offset() + start * t.stride(d));
    start += length;
  }
}
SmallVector<int64_t, 5> equal_parts(int64_t n, int64_t size) {
  Dims lengths;
  for (int64_t at = 0; at < n; at += size) lengths.push_back(std::min(size, n - at));
  if (n == 0) lengths.push_back(0);
  return lengths;
}
void run_split(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() > 0, "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(c.integer(2), t.dim()), size = c.integer(1), n = t.size(d);
  check(size >= 0, "split expects split_size be non-negative, but got split_size=", size);
  check(size > 0 || n == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", n);
  split_at(c, t, d, size == 0 ? Dims{0} : equal_parts(n, size));
}
void run_split_sizes(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() > 0, "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(c.integer(2), t.dim());
  int64_t sum = 0;
  for (int64_t s : c.integers(1)) {
    check(s >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
          list(c.integers(1)));
    sum = checked_sum("split_with_sizes", sum, s);
  }
  check(sum == t.size(d), "split_with_sizes expects split_sizes to sum exactly to ", t.size(d),
        " (input tensor's size at dimension ", d, "), but got split_sizes=", list(c.integers(1)));
  split_at(c, t, d, c.integers(1));
}
void run_chunk(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(c.integer(2), t.dim()), chunks = c.integer(1), n = t.size(d);
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t size = n / chunks + (n % chunks != 0);
  if (size == 0) return split_at(c, t, d, Dims(chunks, 0));
  split_at(c, t, d, equal_parts(n, size));
}

void run_view_as_real(Call& c) {
  const Tensor t = c.tensor(0);
  check(is_complex(t.dtype()), "view_as_real is only supported for complex tensors");
  Dims sizes = t.sizes(), strides = t.strides();
  for (int64_t& s : strides) s = wrapped_product(s, 2);
  sizes.push_back(2);
  strides.push_back(1);
  c.give(view_as_dtype(t, to_real(t.dtype()), sizes, strides, 2 * t.offset()));
}
void run_view_as_complex(Call& c) {
  const Tensor t = c.tensor(0);
  check(is_floating(t.dtype()) && t.dtype() != Dtype::bf16,
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
        name_of(t.dtype()));
  check(t.dim() > 0, "Input tensor must have one or more dimensions");
  check(t.size(-1) == 2, "Tensor must have a last dimension of size 2");
  check(t.stride(-1) == 1, "Tensor must have a last dimension with stride 1");
  Dims sizes = t.sizes(), strides = t.strides();
  sizes.pop_back();
  strides.pop_back();
  for (int64_t d = 0; d < sizes.size(); ++d) {
    int64_t& s = strides[d];
    check(s % 2 == 0 || sizes[d] == 1, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  check(t.offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  c.give(view_as_dtype(t, to_complex(t.dtype()), sizes, strides, t.offset() / 2));
}
void component(Call& c, int64_t which) {
  const Tensor t = c.tensor(0);
  if (!is_complex(t.dtype())) {
    check(which == 0, "imag is not implemented for tensors with non-complex dtypes.");
    return c.give(t);
  }
  Dims strides = t.strides();
  for (int64_t& s : strides) s = wrapped_product(s, 2);
  c.give(view_as_dtype(t, to_real(t.dtype()), t.sizes(), strides, 2 * t.offset() + which));
}
void run_real(Call& c) { component(c, 0); }
void run_imag(Call& c) { component(c, 1); }

}  // namespace

REGISTER(view) {
  r.add("detach(Tensor input) -> Tensor", nullptr, run_alias, kView | kNotDifferentiable);
  r.add("alias(Tensor input) -> Tensor", nullptr, run_alias, kView | kFunctionOnly);
  r.add("select(Tensor input, int dim, SymInt index) -> Tensor", nullptr, run_select, kView);
  r.add("slice(Tensor input, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", nullptr,
        run_slice, kView | kFunctionOnly);
  r.add("narrow(Tensor input, int dim, int start, SymInt length) -> Tensor", nullptr, run_narrow, kView,
        "SliceBackward0");
  r.add("unsqueeze(Tensor input, int dim) -> Tensor", nullptr, run_unsqueeze, kView);
  r.add("squeeze(Tensor input) -> Tensor", nullptr, run_squeeze, kView);
  r.add("squeeze.dim(Tensor input, int dim) -> Tensor", nullptr, run_squeeze_dim, kView, "SqueezeBackward1");
  r.add("squeeze.dims(Tensor input, int[...] dim) -> Tensor", nullptr, run_squeeze_dims, kView, "SqueezeBackward2");
  r.add("transpose(Tensor input, int dim0, int dim1) -> Tensor", nullptr, run_transpose, kView);
  r.add("t(Tensor input) -> Tensor", nullptr, run_t, kView);
  r.add("permute(Tensor input, int[...] dims) -> Tensor", nullptr, run_permute, kView);
  r.add("expand(Tensor input, int[...] size, *, bool implicit=False) -> Tensor", nullptr, run_expand,
        kView | kMethodOnly);
  r.add("view(Tensor input, int[...] size) -> Tensor", nullptr, run_view, kView | kMethodOnly);
  r.add("view.dtype(Tensor input, ScalarType dtype) -> Tensor", nullptr, run_view_dtype,
        kView | kMethodOnly | kNotDifferentiable);
  r.add("reshape(Tensor input, int[...] shape) -> Tensor", nullptr, run_reshape, kView, "ViewBackward0");
  r.add("as_strided(Tensor input, int[] size, int[] stride, SymInt? storage_offset=None) -> Tensor", nullptr,
        run_as_strided, kView);
  r.add("diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor", nullptr, run_diagonal, kView);
  r.add("unfold(Tensor input, int dimension, int size, int step) -> Tensor", nullptr, run_unfold, kView | kMethodOnly);
  r.add("unbind(Tensor input, int dim=0) -> Tensor[]", nullptr, run_unbind, kView | kSharesResults);
  r.add("split(Tensor input, SymInt split_size, int dim=0) -> Tensor[]", nullptr, run_split, kView | kSharesResults);
  r.add("split.sizes(Tensor input, int[] split_size, int dim=0) -> Tensor[]", nullptr, run_split_sizes,
        kView | kSharesResults, "SplitWithSizesBackward0");
  r.add("split_with_sizes(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]", nullptr, run_split_sizes,
        kView | kSharesResults);
  r.add("chunk(Tensor input, int chunks, int dim=0) -> Tensor[]", nullptr, run_chunk, kView | kSharesResults,
        "SplitBackward0");
  // Pieces that share memory, but are no views to autograd: each may be written to in place, if no other one is used
  // again.
  r.add("unsafe_split(Tensor input, SymInt split_size, int dim=0) -> Tensor[]", nullptr, run_split,
        kAnyDevice | kReadsNothing);
  r.add("unsafe_split_with_sizes(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]", nullptr, run_split_sizes,
        kAnyDevice | kReadsNothing);
  r.add("unsafe_chunk(Tensor input, int chunks, int dim=0) -> Tensor[]", nullptr, run_chunk, kAnyDevice | kReadsNothing,
        "UnsafeSplitBackward0");
  r.add("view_as_real(Tensor input) -> Tensor", nullptr, run_view_as_real, kView | kFunctionOnly);
  r.add("view_as_complex(Tensor input) -> Tensor", nullptr, run_view_as_complex, kView | kFunctionOnly);
  r.add("real(Tensor input) -> Tensor", nullptr, run_real, kView | kFunctionOnly, "SelectBackward0");
  r.add("imag(Tensor input) -> Tensor", nullptr, run_imag, kView | kFunctionOnly, "SelectBackward0");
}

}  // namespace cresset
