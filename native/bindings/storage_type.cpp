// StorageBase: what the storages of Python are made from. See Note [Objects of storages] in tensor/storage.h.
#include "bindings/python.h"

namespace cresset {

namespace {

struct PyStorage {
  PyObject_HEAD Storage* storage;  // holds a reference to it
  PyObject* weakrefs;
  PyObject* dict;
};
PyTypeObject* storage_type = nullptr;

PyStorage* object_of(PyObject* o) { return reinterpret_cast<PyStorage*>(o); }

void attach(PyObject* self, Storage* storage) {
  storage->retain();
  object_of(self)->storage = storage;
  if (storage->set_object(self)) Py_INCREF(self);
}
void detach(PyObject* self) {
  Storage* storage = std::exchange(object_of(self)->storage, nullptr);
  if (!storage) return;
  if (storage->forget_object()) Py_DECREF(self);
  storage->release();
}

void hold(const Storage* storage, bool held) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  auto* o = static_cast<PyObject*>(storage->object());
  held ? Py_XINCREF(o) : Py_XDECREF(o);
  PyGILState_Release(gil);
}

PyObject* storage_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    check(type != storage_type, "Cannot directly construct StorageBase; subclass it and then construct that");
    const RefPtr<Storage> empty = Storage::allocate(0, {});
    PyObject* o = require(type->tp_alloc(type, 0));
    attach(o, empty.get());
    return o;
  });
}
int storage_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object_of(self)->dict);
  return 0;
}
int storage_clear(PyObject* self) {
  Py_CLEAR(object_of(self)->dict);
  return 0;
}
void storage_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (object_of(self)->weakrefs) PyObject_ClearWeakRefs(self);
  storage_clear(self);
  detach(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// A new tensor of all bytes, on the storage's memory.
PyObject* get_bytes(PyObject* self, void*) {
  return guarded([&] { return wrap(bytes_of(unwrap_storage(self))); });
}

// storage_of(tensor, class): the storage of the tensor's memory; one of that class, if it has no object yet
PyObject* storage_of(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *type;
    if (!PyArg_ParseTuple(args, "O!O!", tensor_type, &tensor, &PyType_Type, &type)) raise_python();
    const Tensor t = unwrap(tensor);
    check_has_data(t);
    if (t.dtype() == Dtype::b8) t.storage()->note_foreign_bools();
    Storage& storage = t.storage()->root();
    if (auto* o = static_cast<PyObject*>(storage.object())) return Py_NewRef(o);
    auto* made = reinterpret_cast<PyTypeObject*>(type);
    PyObject* o = require(made->tp_alloc(made, 0));
    attach(o, &storage);
    return o;
  });
}
// set_memory(storage, tensor): a new storage becomes that of a new tensor, whose storage has no object yet
PyObject* set_memory(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *tensor;
    if (!PyArg_ParseTuple(args, "O!O!", storage_type, &self, tensor_type, &tensor)) raise_python();
    detach(self);
    attach(self, unwrap(tensor).storage().get());
    Py_RETURN_NONE;
  });
}

PyGetSetDef getset[] = {{"_bytes", get_bytes, nullptr, nullptr, nullptr}, {}};
PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyStorage, weakrefs), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyStorage, dict), READONLY, nullptr},
                         {}};
PyMethodDef functions[] = {
    {"storage_of", storage_of, METH_VARARGS, "The object of a tensor's storage, of the class given if it is new."},
    {"set_memory", set_memory, METH_VARARGS, "Let a new storage be that of a new tensor."},
    {}};

}  // namespace

RefPtr<Storage> unwrap_storage(PyObject* o) {
  check_type(PyObject_TypeCheck(o, storage_type), "expected a storage, got ", Py_TYPE(o)->tp_name);
  return object_of(o)->storage;
}

void add_storage_type(PyObject* module) {
  Storage::hold_object = hold;
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(storage_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(storage_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(storage_clear)},
                         {Py_tp_getset, getset},
                         {Py_tp_members, members},
                         {Py_tp_doc, const_cast<char*>("What the storages of tensors are made from.")},
                         {0, nullptr}};
  PyType_Spec spec{"torch._C.StorageBase", sizeof(PyStorage), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  storage_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "StorageBase", reinterpret_cast<PyObject*>(storage_type));
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
