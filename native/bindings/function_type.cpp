// Functions written in Python that obey __torch_function__: a call first asks the modes and the arguments that answer
// for themselves, as a call of an operator does. When there are none, all that happens is a look at the arguments'
// types.
#include "bindings/arguments.h"
#include "dispatch/profile.h"

namespace cresset {
namespace {

PyTypeObject* function_type = nullptr;

struct PyOverridable {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
};
PyOverridable* self_of(PyObject* o) { return reinterpret_cast<PyOverridable*>(o); }

// `levels` of lists and tuples are looked into, as in collect_overriders.
bool may_answer(PyObject* o, int levels = 2) {
  if (is_plain_tensor(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || o == Py_None)
    return false;
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; levels && i < PySequence_Fast_GET_SIZE(o); ++i)
      if (may_answer(PySequence_Fast_GET_ITEM(o, i), levels - 1)) return true;
    return false;
  }
  return !is_interpreted(o) && wants_torch_function(o);
}

PyObject* call_overridable(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  if (torch_function_enabled) {
    const Py_ssize_t positional = PyVectorcall_NARGS(flagged),
                     total = positional + (names ? PyTuple_GET_SIZE(names) : 0);
    bool ask = has_function_mode;
    for (Py_ssize_t i = 0; i < total && !ask; ++i) ask = may_answer(args[i]);
    if (ask) {
      PyObject* result = guarded([&] { return ask_torch_function(self, {args, positional, names}, true); });
      if (result || PyErr_Occurred()) return result;
    }
  }
  PyObject* function = self_of(self)->function;
  if (!profiling) [[likely]]
    return PyObject_Vectorcall(function, args, flagged, names);
  const Profiled profiled("aten::",
                          PyFunction_Check(function)
                              ? PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(function)->func_name)
                              : Py_TYPE(function)->tp_name,
                          ProfileKind::function);
  return PyObject_Vectorcall(function, args, flagged, names);
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}
PyObject* represent(PyObject* self) { return PyObject_Repr(self_of(self)->function); }
PyObject* wrapped(PyObject* self, void*) { return Py_NewRef(self_of(self)->function); }
PyObject* get(PyObject* self, void* name) {
  return PyObject_GetAttrString(self_of(self)->function, static_cast<const char*>(name));
}
int set(PyObject* self, PyObject* value, void* name) {
  return PyObject_SetAttrString(self_of(self)->function, static_cast<const char*>(name), value);
}

PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(self_of(self)->function, name);
}

void destroy(PyObject* self) {
  Py_XDECREF(self_of(self)->function);
  Py_XDECREF(self_of(self)->dict);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* overridable(PyObject*, PyObject* function) {
  auto* o = reinterpret_cast<PyOverridable*>(function_type->tp_alloc(function_type, 0));
  if (!o) return nullptr;
  o->vectorcall = call_overridable;
  o->function = Py_NewRef(function);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* reduce(PyObject* self, PyObject*) {
  Ref native(PyImport_ImportModule("cresset._native"));
  if (!native) return nullptr;
  Ref make(PyObject_GetAttrString(native.get(), "overridable"));
  return make ? Py_BuildValue("O(O)", make.get(), self_of(self)->function) : nullptr;
}

#define SHARED(name) {name, get, set, nullptr, const_cast<char*>(name)}
PyGetSetDef getset[] = {SHARED("__name__"),
                        SHARED("__qualname__"),
                        SHARED("__module__"),
                        SHARED("__doc__"),
                        {"__wrapped__", wrapped, nullptr, nullptr, nullptr},
                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOverridable, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyOverridable, dict), READONLY, nullptr},
                         {}};
PyMethodDef functions[] = {{"overridable", overridable, METH_O, "A Python function that obeys __torch_function__."},
                           {}};

}  // namespace

void add_function_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
                         {Py_tp_repr, reinterpret_cast<void*>(represent)},
                         {Py_tp_getset, getset},
                         {Py_tp_methods, methods},
                         {Py_tp_members, members},
                         {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                         {0, nullptr}};
  PyType_Spec spec{"cresset.function", sizeof(PyOverridable), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  function_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
