// DLPack: tensors to and from other array libraries without a copy. The structures are those of the interface of DLPack
// 0.8 and of version 1, which says its version and whether the memory may be written.
#include "bindings/python.h"
#include "tensor/backend.h"
#include "tensor/requires_grad.h"

namespace cresset {
namespace {

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  static constexpr const char *name = "dltensor", *used = "used_dltensor";
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  static constexpr const char *name = "dltensor_versioned", *used = "used_dltensor_versioned";
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;  // 1: the memory may not be written; 2: it is a copy
  DLTensor tensor;
};
enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };
constexpr int32_t kCUDAHost = 3;

DLDataType dl_type(Dtype d) {
  const DtypeFacts& f = facts(d);
  const uint8_t bits = static_cast<uint8_t>(8 * f.size);
  check(!(f.floating && f.size == 1) && !is_container(d), "DLPack: ", f.name, " is not supported");
  if (d == Dtype::bf16) return {kBFloat, bits, 1};
  return {static_cast<uint8_t>(d == Dtype::b8 ? kBool
                               : f.floating   ? kFloat
                               : f.complex    ? kComplex
                               : f.is_signed  ? kInt
                                              : kUInt),
          bits, 1};
}

Dtype from_dl(DLDataType t) {
  check(t.lanes == 1, "DLPack: vectors of lanes are not supported");
  for (int d = 0; d < kDtypes; ++d) {
    const Dtype dtype = static_cast<Dtype>(d);
    if ((is_floating(dtype) && size_of(dtype) == 1) || is_container(dtype)) continue;
    const DLDataType have = dl_type(dtype);
    if (have.code == t.code && have.bits == t.bits) return dtype;
  }
  fail(ErrorKind::buffer, "DLPack: unsupported type (code ", static_cast<int>(t.code), ", ", static_cast<int>(t.bits),
       " bits)");
}

// Note [Memory in other hands]. The storage itself is kept: the tensor may be given another one meanwhile.
template <class Managed>
struct Export {
  Managed managed;
  RefPtr<Storage> storage;
  Dims shape, strides;
  ~Export() { storage->give_back(); }
};

template <class Managed>
void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Managed::name)) return;  // consumed: the consumer calls the deleter
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::name));
  m->deleter(m);
}

template <class Managed>
PyObject* export_as(const Tensor& t, Managed head) {
  const DLDevice device{backend_of(t.device()).dlpack_type(), std::max<int>(t.device().index, 0)};
  const DLDataType type = dl_type(t.dtype());
  t->check_in_bounds();
  auto* e = new Export<Managed>{head, t.storage(), t.sizes(), t.strides()};
  e->storage->lend();
  if (t.dtype() == Dtype::b8) e->storage->note_foreign_bools();
  e->managed.tensor = {address_for_others(t), device, static_cast<int32_t>(t.dim()), type, e->shape.data(),
                       e->strides.data(),     0};
  e->managed.context = e;
  e->managed.deleter = [](Managed* m) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    delete static_cast<Export<Managed>*>(m->context);
    PyGILState_Release(gil);
  };
  return PyCapsule_New(&e->managed, Managed::name, drop_capsule<Managed>);
}

// to_dlpack(tensor, versioned=False, is_copy=False)
PyObject* to_dlpack(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    int versioned = 0, is_copy = 0;
    if (!PyArg_ParseTuple(args, "O|pp:to_dlpack", &self, &versioned, &is_copy)) raise_python();
    check_type(is_tensor(self), "to_dlpack: expected a tensor, got ", Py_TYPE(self)->tp_name);
    const Tensor t = unwrap(self);
    check_has_data(t);
    CRESSET_CHECK_KIND(ErrorKind::buffer, !requires_grad(t),
                       "Can't export tensors that require gradient, use tensor.detach()");
    CRESSET_CHECK_KIND(ErrorKind::buffer, find_backend(t.device()),
                       "DLPack: only tensors on the CPU and on CUDA devices can be exported, this one is on ",
                       t.device());
    if (!versioned) return export_as(t, DLManagedTensor{});
    DLManagedTensorVersioned head{};
    head.major = 1;
    head.flags = is_copy ? 2 : 0;
    return export_as(t, head);
  });
}

// Page-locked memory of the host is the CPU's.
const Backend* backend_of_dlpack(int type) {
  if (type == kCUDAHost) return find_backend(Device{});
  const auto found = std::find_if(std::begin(backends), std::end(backends),
                                  [&](const Backend* b) { return b && b->dlpack_type() == type; });
  return found == std::end(backends) ? nullptr : *found;
}

template <class Managed>
PyObject* import_from(PyObject* capsule) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::name));
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>)
    CRESSET_CHECK_KIND(ErrorKind::buffer, m->major == 1, "from_dlpack: version ", m->major, ".", m->minor,
                       " of DLPack is not known, only 1 is");
  const DLTensor& d = m->tensor;
  const Backend* const backend = backend_of_dlpack(d.device.type);
  CRESSET_CHECK_KIND(ErrorKind::buffer, backend, "from_dlpack: the data is on device type ", d.device.type,
                     ", only the CPU (1) and CUDA (2) are supported");
  const Device device =
      is_accelerator({backend->type}) ? resolve({backend->type, static_cast<int8_t>(d.device.id)}) : Device{};
  const Dtype dtype = from_dl(d.dtype);
  Dims sizes(d.shape, d.shape + d.ndim),
      strides = d.strides ? Dims(d.strides, d.strides + d.ndim) : contiguous_strides(sizes);
  const int64_t bytes = bytes_needed("from_dlpack", sizes, strides, 0, dtype);
  PyCapsule_SetName(capsule, Managed::used);
  Tensor t = empty(Dims{0}, dtype);
  t->storage = Storage::borrow(static_cast<char*>(d.data) + d.byte_offset, bytes, device, [m] {
    if (!m->deleter) return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    m->deleter(m);
    PyGILState_Release(gil);
  });
  if (dtype == Dtype::b8) t->storage->note_foreign_bools();
  t->sizes = sizes;
  t->strides = strides;
  t->update_numel_and_contiguity();
  t->inference = modes.inference;
  return wrap(t);
}

PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_IsValid(capsule, DLManagedTensorVersioned::name))
      return import_from<DLManagedTensorVersioned>(capsule);
    check(PyCapsule_IsValid(capsule, DLManagedTensor::name),
          "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
          "might have already constructed a tensor from it once.");
    return import_from<DLManagedTensor>(capsule);
  });
}

PyMethodDef functions[] = {{"to_dlpack", to_dlpack, METH_VARARGS, "A DLPack capsule that shares the tensor's memory."},
                           {"from_dlpack_capsule", from_dlpack, METH_O, nullptr},
                           {}};

}  // namespace

void add_dlpack(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
