// DLPack: tensors to and from other array libraries without a copy. The structures are those of the DLPack 0.8
// interface.
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
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };
constexpr int32_t kCUDAHost = 3;

DLDataType dl_type(Dtype d) {
  const DtypeFacts& f = facts(d);
  const uint8_t bits = static_cast<uint8_t>(8 * f.size);
  check(!(f.floating && f.size == 1), "DLPack: ", f.name, " is not supported");
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
    if (is_floating(dtype) && size_of(dtype) == 1) continue;
    const DLDataType have = dl_type(dtype);
    if (have.code == t.code && have.bits == t.bits) return dtype;
  }
  fail(ErrorKind::buffer, "DLPack: unsupported type (code ", static_cast<int>(t.code), ", ", static_cast<int>(t.bits),
       " bits)");
}

// Note [Memory in other hands]. The storage itself is kept: the tensor may be given another one meanwhile.
struct Export {
  DLManagedTensor managed;
  RefPtr<Storage> storage;
  Dims shape, strides;
  ~Export() { storage->give_back(); }
};

void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // consumed: the consumer calls the deleter
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  m->deleter(m);
}

PyObject* to_dlpack(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap(self);
    check_has_data(unwrap(self));
    CRESSET_CHECK_KIND(ErrorKind::buffer, !requires_grad(t),
                       "Can't export tensors that require gradient, use tensor.detach()");
    CRESSET_CHECK_KIND(ErrorKind::buffer, find_backend(t.device()),
                       "DLPack: only tensors on the CPU and on CUDA devices can be exported, this one is on ",
                       t.device());
    const DLDevice device{backend_of(t.device()).dlpack_type(), std::max<int>(t.device().index, 0)};
    const DLDataType type = dl_type(t.dtype());
    t->check_in_bounds();
    auto* e = new Export{{}, t.storage(), t.sizes(), t.strides()};
    e->storage->lend();
    if (t.dtype() == Dtype::b8) e->storage->note_foreign_bools();
    e->managed.tensor = {address_for_others(t), device, static_cast<int32_t>(t.dim()), type, e->shape.data(),
                         e->strides.data(),     0};
    e->managed.context = e;
    e->managed.deleter = [](DLManagedTensor* m) {
      const PyGILState_STATE gil = PyGILState_Ensure();
      delete static_cast<Export*>(m->context);
      PyGILState_Release(gil);
    };
    return PyCapsule_New(&e->managed, "dltensor", drop_capsule);
  });
}

// Page-locked memory of the host is the CPU's.
const Backend* backend_of_dlpack(int type) {
  if (type == kCUDAHost) return find_backend(Device{});
  const auto found = std::find_if(std::begin(backends), std::end(backends),
                                  [&](const Backend* b) { return b && b->dlpack_type() == type; });
  return found == std::end(backends) ? nullptr : *found;
}

PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    check(PyCapsule_IsValid(capsule, "dltensor"),
          "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
          "might have already constructed a tensor from it once.");
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
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
    PyCapsule_SetName(capsule, "used_dltensor");
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
    return wrap(t);
  });
}

PyMethodDef functions[] = {{"to_dlpack", to_dlpack, METH_O, "A DLPack capsule that shares the tensor's memory."},
                           {"from_dlpack_capsule", from_dlpack, METH_O, nullptr},
                           {}};

}  // namespace

void add_dlpack(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
