// Tensors whose Python class has __torch_dispatch__ (Note [Tensors that answer for themselves] in tensor/tensor.h), and
// modes that listen to every call: making such tensors, and handing their calls to the function that finds the handler
// (cresset/dispatch/handling.py).
#include "bindings/python.h"
#include "bindings/wrapper_layout.h"

namespace cresset {
namespace {

PyObject* handler = nullptr;       // (operator's name, arguments in the signature's order, out= or None) -> result(s)
PyObject* item_handler = nullptr;  // (tensor) -> number
PyObject* disabled = nullptr;      // the __torch_dispatch__ of classes that have none

void dispatch(Call& c) {
  check(handler, c.op.name(), ": a tensor with __torch_dispatch__, but nobody handles it");
  const Py_ssize_t n = static_cast<Py_ssize_t>(c.op.signature.parameters.size());
  Ref args(require(PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(args.get(), i, require(wrap_value(c, static_cast<int>(i))));
  Ref out = Ref::borrow(Py_None);
  if (c.given_out) {
    out = Ref(require(PyList_New(0)));
    for (const Tensor& t : c.outputs) PyList_Append(out.get(), Ref(wrap(t)).get());
  }
  const std::string& overload = c.op.signature.overload;
  Ref name(PyUnicode_FromString((overload.empty() ? c.op.name() : c.op.name() + "." + overload).c_str()));
  GradModeGuard off(false);  // recording stands above
  PyObject* passed[] = {name.get(), args.get(), out.get()};
  Ref result(require(PyObject_Vectorcall(handler, passed, 3, nullptr)));
  if (c.given_out) return;
  c.outputs.clear();
  if (c.op.inplace || c.op.mutates) return c.give(c.tensor(0));
  const auto give = [&](PyObject* o) {
    if (o == Py_None) return c.give(Tensor());
    check_type(is_tensor(o), c.op.name(), ": __torch_dispatch__ gave a ", Py_TYPE(o)->tp_name, " instead of a Tensor");
    c.give(unwrap(o));
  };
  if (PyTuple_Check(result.get()) || PyList_Check(result.get()))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result.get()); ++i)
      give(PySequence_Fast_GET_ITEM(result.get(), i));
  else if (!c.op.signature.results.empty())
    give(result.get());
}

Scalar item_of(const Tensor& t) {
  check(item_handler, "item: a tensor with __torch_dispatch__, but nobody handles it");
  Ref number(require(PyObject_CallOneArg(item_handler, Ref(wrap(t)).get())));
  Scalar s;
  check_type(to_scalar(number.get(), s), "item: __torch_dispatch__ gave a ", Py_TYPE(number.get())->tp_name,
             " instead of a number");
  return s;
}

// set_dispatch_handlers(handler, item_handler, disabled)
PyObject* set_dispatch_handlers(PyObject*, PyObject* args) {
  PyObject *calls, *items, *none;
  if (!PyArg_ParseTuple(args, "OOO", &calls, &items, &none)) return nullptr;
  handler = Py_NewRef(calls), item_handler = Py_NewRef(items), disabled = Py_NewRef(none);
  dispatcher = dispatch, item_of_dispatched = item_of;
  Py_RETURN_NONE;
}
PyObject* set_dispatching(PyObject*, PyObject* on) {
  const bool before = modes.dispatching;
  modes.dispatching = PyObject_IsTrue(on) == 1;
  return PyBool_FromLong(before);
}
PyObject* set_dispatch_disabled(PyObject*, PyObject* on) {
  const bool before = modes.dispatch_disabled;
  modes.dispatch_disabled = PyObject_IsTrue(on) == 1;
  return PyBool_FromLong(before);
}
PyObject* is_dispatching(PyObject*, PyObject*) { return PyBool_FromLong(modes.dispatching); }
PyObject* is_dispatched(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && impl_of(o)->level == kDispatched);
}
// set_dispatched(tensor, on): whether its class is asked; returns what was so
PyObject* set_dispatched(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    int on;
    if (!PyArg_ParseTuple(args, "O!p", tensor_type, &self, &on)) raise_python();
    TensorImpl* t = impl_of(self);
    check(!t->batch_level(), "set_dispatched: a tensor of vmap");
    const bool before = t->level == kDispatched;
    t->level = on ? kDispatched : 0;
    return PyBool_FromLong(before);
  });
}
PyObject* layout_speaker = nullptr;  // cresset.dispatch.modes; null before a class wanted to be asked

// make_wrapper(class, sizes, strides or None, offset, dtype, device): a tensor without memory
PyObject* make_wrapper(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *type, *sizes, *strides, *dtype, *device;
    long long offset;
    if (!PyArg_ParseTuple(args, "O!OOLO!O", &PyType_Type, &type, &sizes, &strides, &offset, dtype_type, &dtype,
                          &device))
      raise_python();
    check_type(PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type),
               "_make_wrapper_subclass: expected a subclass of Tensor, got ",
               reinterpret_cast<PyTypeObject*>(type)->tp_name);
    Dims s, st;
    check_type(to_integers(sizes, s), "_make_wrapper_subclass: sizes must be integers");
    if (strides == Py_None)
      st = contiguous_strides(s);
    else
      check_type(to_integers(strides, st), "_make_wrapper_subclass: strides must be integers");
    check_value(s.size() == st.size(), "_make_wrapper_subclass: ", s.size(), " sizes, but ", st.size(), " strides");
    const Tensor t = without_memory(s, st, offset, reinterpret_cast<PyDtype*>(dtype)->value, parse_device(device));
    return wrap_as(t, reinterpret_cast<PyTypeObject*>(type));
  });
}

PyObject* set_layout_speaker(PyObject*, PyObject* function) {
  Py_XDECREF(std::exchange(layout_speaker, Py_NewRef(function)));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"set_layout_speaker", set_layout_speaker, METH_O,
     "Who asks a class for the size or stride of its tensor: (tensor, which) -> tuple or NotImplemented."},
    {"set_dispatch_handlers", set_dispatch_handlers, METH_VARARGS, "Who finds the __torch_dispatch__ of a call."},
    {"set_dispatching", set_dispatching, METH_O, "Whether every call of this thread is handled; returns what it was."},
    {"set_dispatch_disabled", set_dispatch_disabled, METH_O, "Whether no class of tensors is asked; what it was."},
    {"is_dispatching", is_dispatching, METH_NOARGS, nullptr},
    {"is_dispatched", is_dispatched, METH_O, "Whether a tensor's class answers for it."},
    {"set_dispatched", set_dispatched, METH_VARARGS, nullptr},
    {"make_wrapper", make_wrapper, METH_VARARGS, "A tensor of a subclass that has no memory."},
    {}};

}  // namespace

PyObject* said_by_class(PyObject* tensor, const char* what) {
  if (!layout_speaker) return nullptr;
  PyObject* said = require(PyObject_CallFunction(layout_speaker, "Os", tensor, what));
  if (said != Py_NotImplemented) return said;
  Py_DECREF(said);
  return nullptr;
}

bool has_torch_dispatch(PyTypeObject* type) {
  static PyObject* name = PyUnicode_InternFromString("__torch_dispatch__");
  PyObject* found = _PyType_Lookup(type, name);
  return found && found != disabled && found != Py_None;
}

void add_dispatching(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
