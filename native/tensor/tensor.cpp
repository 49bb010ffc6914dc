#include "tensor/tensor.h"

#include <numeric>

#include "base/checked.h"
#include "tensor/allocator.h"

namespace cresset {

bool (*release_wrapper)(TensorImpl*) = nullptr;

void* TensorImpl::operator new(size_t bytes) { return allocate_cell(bytes); }
void TensorImpl::operator delete(void* p, size_t bytes) { free_cell(p, bytes); }

TensorImpl::~TensorImpl() { delete grad_state; }

void TensorImpl::last_reference_gone() {
  if (owns_wrapper && release_wrapper(this)) return;
  delete this;
}

char* TensorImpl::data_in_bounds() const {
  check_in_bounds();
  return storage->plain() + offset * size_of(dtype);
}

void TensorImpl::check_in_bounds() const {
  if (numel == 0 || storage->device.is_meta()) return;
  const int64_t needed = bytes_needed("storage", sizes, strides, offset, dtype);
  check(needed <= storage->bytes, "setStorage: sizes ", list(sizes), ", strides ", list(strides), ", storage offset ",
        offset, ", and itemsize ", size_of(dtype), " requiring a storage size of ", needed,
        " are out of bounds for storage of size ", storage->bytes, ": it was resized under the tensor");
}

void TensorImpl::update_numel_and_contiguity() {
  numel = 1;
  bool overflow = false;
  for (int64_t s : sizes) overflow |= __builtin_mul_overflow(numel, s, &numel);
  check(!overflow, "numel: integer multiplication overflow, the sizes are ", list(sizes));
  contiguous = is_contiguous(sizes, strides);
}

// ---------------------------------------------------------------- making

static RefPtr<TensorImpl> make(RefPtr<Storage> storage, Dims sizes, Dims strides, int64_t offset, Dtype dtype) {
  RefPtr<TensorImpl> t(new TensorImpl);
  t->storage = std::move(storage);
  t->sizes = std::move(sizes);
  t->strides = std::move(strides);
  t->offset = offset;
  t->dtype = dtype;
  t->update_numel_and_contiguity();
  return t;
}

int64_t checked_numel(DimsView sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) {
    check(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", list(sizes));
    check(!__builtin_mul_overflow(n, s, &n), "Storage size calculation overflowed with sizes=", list(sizes));
  }
  if (n == 0) [[unlikely]] {  // the strides count the other sizes
    int64_t step = 1;
    for (int64_t s : sizes.subspan(1))
      check(!__builtin_mul_overflow(step, std::max<int64_t>(s, 1), &step),
            "Stride calculation overflowed with sizes=", list(sizes));
  }
  return n;
}

int64_t bytes_needed(DimsView sizes, int64_t offset, Dtype dtype) {
  int64_t elements, bytes;
  const bool overflows = __builtin_add_overflow(checked_numel(sizes), offset, &elements) ||
                         __builtin_mul_overflow(elements, size_of(dtype), &bytes);
  check(!overflows, "Storage size calculation overflowed with sizes=", list(sizes));
  return bytes;
}

int64_t bytes_needed(const char* who, DimsView sizes, DimsView strides, int64_t offset, Dtype dtype) {
  check(offset >= 0, who, ": the storage offset must not be negative, got ", offset);
  check(sizes.size() == strides.size(), who, ": mismatch in length of strides and shape, there are ", strides.size(),
        " and ", sizes.size());
  int64_t elements = 1, bytes;
  bool overflows = __builtin_add_overflow(elements, offset, &elements);
  for (size_t d = 0; d < sizes.size(); ++d)
    check(strides[d] >= 0, who, ": Negative strides are not supported at the moment, got strides: ", list(strides));
  if (checked_numel(sizes) == 0) return 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t reach;
    overflows = overflows || __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) ||
                __builtin_add_overflow(elements, reach, &elements);
  }
  overflows = overflows || __builtin_mul_overflow(elements, size_of(dtype), &bytes);
  check(!overflows, who, ": Storage size calculation overflowed with sizes=", list(sizes), ", strides=", list(strides),
        " and storage offset ", offset);
  return bytes;
}

Tensor empty(DimsView sizes, Dtype dtype, Device device) {
  const int64_t bytes = bytes_needed(sizes, 0, dtype);
  return make(Storage::allocate(bytes, device), Dims(sizes), contiguous_strides(sizes), 0, dtype);
}

Tensor empty(const TensorInfo& info) {
  if (info.strides.empty()) return empty(info.sizes, info.dtype, info.device);
  return make(Storage::allocate(bytes_needed(info.sizes, 0, info.dtype), info.device), info.sizes, info.strides, 0,
              info.dtype);
}

Tensor empty_like_layout(const Tensor& t, Dtype dtype) {
  return empty(TensorInfo{t.sizes(), dense_strides_like(t.sizes(), t.strides()), dtype, t.device()});
}

Tensor full(DimsView sizes, Scalar value, Dtype dtype, Device device) {
  Tensor t = empty(sizes, dtype, device);
  fill(t, value);
  return t;
}

Tensor scalar_tensor(Scalar value, Dtype dtype) { return full({}, value, dtype); }

Tensor wrapped_number(Scalar value) {
  const Dtype dtype = value.kind == Scalar::Kind::real      ? Dtype::f64
                      : value.kind == Scalar::Kind::complex ? Dtype::c128
                      : value.beyond_int64                  ? Dtype::u64
                                                            : value.dtype();
  Tensor t = scalar_tensor(value, dtype);
  t->wrapped_number = true;
  return t;
}

Tensor view_of(const Tensor& t, DimsView sizes, DimsView strides, int64_t offset) {
  return view_as_dtype(t, t.dtype(), sizes, strides, offset);
}

Tensor view_as_dtype(const Tensor& t, Dtype dtype, DimsView sizes, DimsView strides, int64_t offset) {
  Tensor v = make(t.storage(), Dims(sizes), Dims(strides), offset, dtype);
  v->inference = t->inference;
  return v;
}

Tensor bytes_of(RefPtr<Storage> storage) {
  const Dims sizes{storage->bytes}, strides{1};
  return make(std::move(storage), sizes, strides, 0, Dtype::u8);
}

Tensor without_memory(DimsView sizes, DimsView strides, int64_t offset, Dtype dtype, Device device) {
  RefPtr<Storage> storage = Storage::without_memory(bytes_needed("storage", sizes, strides, offset, dtype), device);
  return make(std::move(storage), Dims(sizes), Dims(strides), offset, dtype);
}

Tensor sample_of(const Tensor& batch, int64_t batch_dim, int64_t level) {
  Dims sizes = batch.sizes(), strides = batch.strides();
  if (batch_dim >= 0) sizes.erase(batch_dim), strides.erase(batch_dim);
  Tensor t = make(batch.storage(), std::move(sizes), std::move(strides), batch.offset(), batch.dtype());
  t->inference = batch->inference;
  t->wrapped_number = batch->wrapped_number;
  t->level = static_cast<uint16_t>(level);
  t->batch_dim = static_cast<int16_t>(batch_dim);
  t->batch = batch;
  return t;
}

bool differs_by_sample(const TensorImpl* t) {
  for (; t->batch_level(); t = t->batch.get())
    if (t->batch_dim >= 0) return true;
  return false;
}

void check_has_data(const Tensor& t) {
  check(t->level != kDispatched || !t->numel || t->storage->bytes || t->storage->device.is_meta(),
        "Cannot access data pointer of Tensor that doesn't have storage: its class ",
        "answers for it with __torch_dispatch__");
  check(!t->batch_level(),
        "vmap: Cannot access data pointer of Tensor that doesn't have storage: inside vmap it stands for all samples, "
        "whose elements cannot be read one by one");
}

// ---------------------------------------------------------------- shapes

Dims contiguous_strides(DimsView sizes) {
  Dims strides;
  strides.resize(static_cast<int64_t>(sizes.size()));
  int64_t step = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    strides[d] = step;
    step = wrapped_product(step, std::max<int64_t>(sizes[d], 1));
  }
  return strides;
}

Dims channels_last_strides(DimsView sizes) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  Dims strides(rank, 1);
  int64_t step = sizes[1];  // of no elements strides are zero, as in PyTorch
  for (int64_t d = rank - 1; d >= 2; --d) {
    strides[d] = step;
    step = wrapped_product(step, sizes[d]);
  }
  strides[0] = step;
  return strides;
}

bool is_contiguous(DimsView sizes, DimsView strides) {
  int64_t step = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) {
      if (strides[d] != step) return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
      step = wrapped_product(step, sizes[d]);
    }
  }
  return true;
}

bool is_contiguous(const Tensor& t, MemoryFormat format) {
  if (format == MemoryFormat::contiguous || format == MemoryFormat::preserve) return t.is_contiguous();
  const int64_t rank = format == MemoryFormat::channels_last ? 4 : 5;
  if (t.dim() != rank) return false;
  const Dims wanted = channels_last_strides(t.sizes());
  for (int64_t d = 0; d < rank; ++d)
    if (t.size(d) != 1 && t.stride(d) != wanted[d]) return false;
  return true;
}

bool is_dense(DimsView sizes, DimsView strides) {
  SmallVector<std::pair<int64_t, int64_t>, 5> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) order.push_back({strides[d], sizes[d]});
  }
  std::sort(order.begin(), order.end());
  int64_t step = 1;
  for (auto [stride, size] : order) {
    if (stride != step) return false;
    step *= size;
  }
  return true;
}

bool may_overlap(DimsView sizes, DimsView strides) {
  SmallVector<std::pair<int64_t, int64_t>, 5> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] != 1) order.push_back({std::abs(strides[d]), sizes[d]});
  }
  std::sort(order.begin(), order.end());
  int64_t reach = 0;  // the furthest element of the inner dimensions
  for (auto [stride, size] : order) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

// The order of dimensions by stride, the outermost first; equal strides and broadcast dimensions keep their order, as
// PyTorch does it.
Dims dense_strides_like(DimsView sizes, DimsView strides) {
  if (is_dense(sizes, strides)) return Dims(strides);
  const int64_t rank = static_cast<int64_t>(sizes.size());
  Dims perm(rank, 0);
  for (int64_t d = 0; d < rank; ++d) perm[d] = rank - 1 - d;  // innermost first
  const auto should_swap = [&](int64_t a, int64_t b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    return sizes[a] > sizes[b] ? 1 : 0;
  };
  for (int64_t i = 1; i < rank; ++i) {
    int64_t current = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int order = should_swap(perm[j], perm[current]);
      if (order > 0) {
        std::swap(perm[j], perm[current]);
        current = j;
      } else if (order < 0) {
        break;
      }
    }
  }
  Dims out(rank, 0);
  int64_t step = 1;
  for (int64_t i = 0; i < rank; ++i) {
    out[perm[i]] = step;
    step = wrapped_product(step, std::max<int64_t>(sizes[perm[i]], 1));
  }
  return out;
}

Dims broadcast(const char* who, DimsView a, DimsView b) {
  const int64_t rank = static_cast<int64_t>(std::max(a.size(), b.size()));
  Dims out(rank, 1);
  for (int64_t d = rank - 1; d >= 0; --d) {
    const int64_t i = d - (rank - static_cast<int64_t>(a.size())), j = d - (rank - static_cast<int64_t>(b.size()));
    const int64_t x = i >= 0 ? a[i] : 1, y = j >= 0 ? b[j] : 1;
    check(x == y || x == 1 || y == 1, who, ": shapes ", tuple(a), " and ", tuple(b),
          " do not broadcast; The size of tensor a (", x, ") must match the size of tensor b (", y,
          ") at non-singleton dimension ", d);
    out[d] = x == 1 ? y : x;
  }
  return out;
}

Dims expanded_strides(const char* who, const Tensor& t, DimsView sizes) {
  const int64_t lead = static_cast<int64_t>(sizes.size()) - t.dim();
  check(lead >= 0, who, ": the number of sizes provided (", sizes.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", t.dim(), ")");
  Dims strides(static_cast<int64_t>(sizes.size()), 0);
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t have = t.sizes()[d], want = sizes[lead + d];
    check(have == want || have == 1, who, ": The expanded size of the tensor (", want,
          ") must match the existing size (", have, ") at non-singleton dimension ", lead + d,
          ".  Target sizes: ", list(sizes), ".  Tensor sizes: ", list(t.sizes()));
    strides[lead + d] = have == want ? t.strides()[d] : 0;
  }
  return strides;
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  const int64_t n = rank == 0 ? 1 : rank;
  check_index(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
              "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

Dims wrap_dims(DimsView dims, int64_t rank) {
  check(rank <= 64, "only tensors with up to 64 dims are supported, this one has ", rank);
  Dims out;
  for (int64_t d : dims) {
    d = wrap_dim(d, rank);
    check(std::find(out.begin(), out.end(), d) == out.end(), "dim ", d, " appears multiple times in the list of dims");
    out.push_back(d);
  }
  return out;
}

// Each run of old dimensions that lies contiguous in memory may be cut anew.
bool view_strides(DimsView sizes, DimsView strides, DimsView wanted, Dims& out) {
  const int64_t rank = static_cast<int64_t>(sizes.size()), wanted_rank = static_cast<int64_t>(wanted.size());
  out = Dims(wanted_rank, 1);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
    if (std::equal(sizes.begin(), sizes.end(), wanted.begin(), wanted.end()))
      out = Dims(strides);
    else
      out = contiguous_strides(wanted);
    return true;
  }
  if (rank == 0) return true;
  int64_t view_d = wanted_rank - 1, chunk_base = strides[rank - 1], have = 1, made = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    have *= sizes[d];
    if (d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != have * chunk_base)) {
      while (view_d >= 0 && (made < have || wanted[view_d] == 1)) {
        out[view_d] = made * chunk_base;
        made *= wanted[view_d];
        --view_d;
      }
      if (made != have) return false;
      if (d > 0) {
        chunk_base = strides[d - 1];
        have = made = 1;
      }
    }
  }
  return view_d == -1;
}

Dims infer_size(DimsView wanted, int64_t numel) {
  Dims out(wanted);
  int64_t known = 1, hole = -1;
  for (int64_t d = 0; d < out.size(); ++d) {
    if (out[d] == -1) {
      check(hole < 0, "only one dimension can be inferred");
      hole = d;
    } else {
      check(out[d] >= 0, "invalid shape dimension ", out[d]);
      check(!__builtin_mul_overflow(known, out[d], &known), "shape '", list(wanted), "' is invalid for input of size ",
            numel);
    }
  }
  if (hole >= 0) {
    check(known != 0, "cannot reshape tensor of 0 elements into shape ", list(wanted),
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    check(numel % known == 0, "shape '", list(wanted), "' is invalid for input of size ", numel);
    out[hole] = numel / known;
  } else {
    check(known == numel, "shape '", list(wanted), "' is invalid for input of size ", numel);
  }
  return out;
}

}  // namespace cresset
