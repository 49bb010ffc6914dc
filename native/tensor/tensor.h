// Tensor: a view of a Storage with sizes, strides, an offset and a dtype.
#pragma once
#include "base/dtype.h"
#include "base/scalar.h"
#include "base/small_vector.h"
#include "tensor/storage.h"

namespace cresset {

// What an operator promises about a result before it is computed.
struct TensorInfo {
  Dims sizes, strides;
  Dtype dtype = Dtype::f32;
  Device device;
};

// What autograd keeps with a tensor; defined in autograd/, opaque below it.
class GradState {
 public:
  virtual ~GradState() = default;
};

// Note [Tensors that answer for themselves]
// A tensor whose Python class has __torch_dispatch__ has this level. It is the highest, so that whatever asks whether a
// tensor has a level takes the way through operators, and the call path hands the operators to the class
// (`dispatcher` in dispatch/call.h). It may have no memory at all: a shape, strides, a dtype and a device.
inline constexpr uint16_t kDispatched = 65535;

class TensorImpl : public RefCounted {
 public:
  RefPtr<Storage> storage;
  Dims sizes, strides;
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  Dtype dtype = Dtype::f32;
  bool contiguous = true;
  bool requires_grad = false;   // a leaf that wants a gradient, or a recorded result
  bool wrapped_number = false;  // made from a Python number: weak in promotion
  bool inference = false;       // made under inference_mode
  bool has_tangent = false;     // forward-mode differentiation
  bool conjugate_view = false;
  bool owns_wrapper = false;  // see Note [Who owns whom] in bindings/tensor_type.cpp
  uint8_t view_origin = 0;    // of a view: autograd's ViewOrigin
  // Inside vmap: how deep; see Note [Tensors of a batch]. kDispatched: Note [Tensors that answer for themselves]. 0: an
  // ordinary tensor
  uint16_t level = 0;
  int16_t batch_dim = -1;     // inside vmap: the dimension of `batch` that is hidden; -1: every sample is the same
  uint32_t seen_history = 0;  // of a view: the base's history its grad_fn belongs to
  GradState* grad_state = nullptr;  // owned
  RefPtr<TensorImpl> base;          // the tensor this is a view of
  RefPtr<TensorImpl> batch;         // inside vmap: all samples
  void* wrapper = nullptr;          // the Python object

  ~TensorImpl() override;
  int64_t dim() const { return sizes.size(); }
  int batch_level() const { return level == kDispatched ? 0 : level; }  // how deep inside vmap
  void update_numel_and_contiguity();
  char* data() const {
    if (storage->layout.load(std::memory_order_acquire)) [[unlikely]]
      return data_in_bounds();
    return storage->data + offset * size_of(dtype);
  }
  void check_in_bounds() const;  // an error if an element lies outside of the storage; Note [Storages that were cut]

  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes);

 protected:
  void last_reference_gone() override;

 private:
  [[gnu::cold]] char* data_in_bounds() const;
};
extern bool (*release_wrapper)(TensorImpl* impl);  // set by the bindings; true: the impl lives on

class Tensor : public RefPtr<TensorImpl> {
 public:
  using RefPtr::RefPtr;
  Tensor(RefPtr<TensorImpl> p) : RefPtr(std::move(p)) {}

  bool defined() const { return get() != nullptr; }
  const Dims& sizes() const { return get()->sizes; }
  const Dims& strides() const { return get()->strides; }
  int64_t size(int64_t d) const { return get()->sizes[d < 0 ? d + dim() : d]; }
  int64_t stride(int64_t d) const { return get()->strides[d < 0 ? d + dim() : d]; }
  int64_t dim() const { return get()->dim(); }
  int64_t numel() const { return get()->numel; }
  Dtype dtype() const { return get()->dtype; }
  Device device() const { return get()->storage->device; }
  int64_t offset() const { return get()->offset; }
  const RefPtr<Storage>& storage() const { return get()->storage; }
  bool is_contiguous() const { return get()->contiguous; }
  bool is_meta() const { return device().is_meta(); }
  uint32_t version() const { return get()->storage->version; }
  char* bytes() const { return get()->data(); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(get()->data());
  }
};

// ---- making tensors (no autograd)
Tensor empty(DimsView sizes, Dtype dtype, Device device = {});
Tensor empty(const TensorInfo& info);
Tensor empty_like_layout(const Tensor& t, Dtype dtype);  // same sizes; dense, in the order of t's strides
Tensor full(DimsView sizes, Scalar value, Dtype dtype, Device device = {});
Tensor scalar_tensor(Scalar value, Dtype dtype);
Tensor wrapped_number(Scalar value);
// A shape on a device, and no memory there: nobody may read or write it.
Tensor without_memory(DimsView sizes, DimsView strides, int64_t offset, Dtype dtype, Device device);
// The same memory seen differently.
Tensor view_of(const Tensor& t, DimsView sizes, DimsView strides, int64_t offset);
Tensor view_as_dtype(const Tensor& t, Dtype dtype, DimsView sizes, DimsView strides, int64_t offset);
Tensor bytes_of(RefPtr<Storage> storage);  // all of them

// Note [Tensors of a batch]
// Inside vmap a function sees one sample, and computes with all: a tensor of level n > 0 has the sizes and strides of a
// sample and refers to the whole `batch`, whose dimension `batch_dim` it hides. Its storage is that of the batch, so
// that writes are counted; its elements are the first sample's, and nobody may read them. Operators that get such a
// tensor are interpreted (`tracer` in dispatch/call.h).
Tensor sample_of(const Tensor& batch, int64_t batch_dim, int64_t level);
bool differs_by_sample(const TensorImpl* t);  // whether its elements are not one number each, but a batch of them
void check_has_data(const Tensor& t);         // raises if it stands for a batch

// ---- shapes
int64_t checked_numel(DimsView sizes);
int64_t bytes_needed(DimsView sizes, int64_t offset, Dtype dtype);  // of a storage for a contiguous tensor
// The same with strides; an error if that is more than there can be, or anything is negative.
int64_t bytes_needed(const char* who, DimsView sizes, DimsView strides, int64_t offset, Dtype dtype);
Dims contiguous_strides(DimsView sizes);
Dims channels_last_strides(DimsView sizes);
bool is_contiguous(DimsView sizes, DimsView strides);
bool is_contiguous(const Tensor& t, MemoryFormat format);
bool is_dense(DimsView sizes, DimsView strides);            // non-overlapping and dense, in any order
bool may_overlap(DimsView sizes, DimsView strides);         // two indices may meet in one element
Dims dense_strides_like(DimsView sizes, DimsView strides);  // PyTorch's preserve_format
Dims broadcast(const char* who, DimsView a, DimsView b);
Dims expanded_strides(const char* who, const Tensor& t, DimsView sizes);
int64_t wrap_dim(int64_t dim, int64_t rank);  // negative dims; IndexError when out of range
Dims wrap_dims(DimsView dims, int64_t rank);  // also: unique
bool view_strides(DimsView sizes, DimsView strides, DimsView wanted, Dims& out);  // false: needs a copy
Dims infer_size(DimsView wanted, int64_t numel);                                  // resolves -1

// ---- copying (tensor/copy.cpp)
void copy_into(const Tensor& to, const Tensor& from,
               bool non_blocking = false);  // broadcasts and converts; to's memory only
Tensor contiguous(const Tensor& t);
Tensor clone(const Tensor& t, MemoryFormat format = MemoryFormat::preserve);
Tensor convert(const Tensor& t, Dtype dtype);  // t itself when the dtype fits
// A tensor of bools as kernels want them: itself, or a copy. Note [Bytes that are bools] in tensor/storage.h
Tensor readable_bools(const Tensor& t);
void fill(const Tensor& t, Scalar value);
Scalar item(const Tensor& t);  // one element
extern Scalar (*item_of_dispatched)(
    const Tensor&);  // Note [Tensors that answer for themselves]; the bindings plug in how

}  // namespace cresset
