// Functions written in Python that obey __torch_function__: a call first asks the modes and the arguments that answer
// for themselves, as a call of an operator does. When there are none, all that happens is a look at the arguments'
// types.
#include <map>
#include <span>
#include <vector>

#include "bindings/arguments.h"
#include "dispatch/profile.h"

namespace cresset {

bool may_answer(PyObject* o, int levels) {
  if (is_plain_tensor(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || o == Py_None)
    return false;
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; levels && i < PySequence_Fast_GET_SIZE(o); ++i)
      if (may_answer(PySequence_Fast_GET_ITEM(o, i), levels - 1)) return true;
    return false;
  }
  return !is_interpreted(o) && wants_torch_function(o);
}

namespace {

PyTypeObject* function_type = nullptr;

struct PyOverridable {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* of;             // what this is another name of; else null
  PyObject *name, *module;  // of a face, else null: those of the function
  bool is_told;             // a profiler is told of calls
  bool is_attribute;        // a method that computes nothing: modes that watch operators are not asked
};
PyOverridable* self_of(PyObject* o) { return reinterpret_cast<PyOverridable*>(o); }

// NumPy's names for the same arguments, as operators take them. Keywords are interned, so looking is comparing
// addresses.
using Names = std::pair<PyObject*, PyObject*>;
std::span<const Names> numpy_names() {
  static const auto interned = [](const char* text) { return PyUnicode_InternFromString(text); };
  static const Names table[] = {{interned("axis"), interned("dim")},  {interned("keepdims"), interned("keepdim")},
                                {interned("x"), interned("input")},   {interned("a"), interned("input")},
                                {interned("x1"), interned("input")},  {interned("x2"), interned("other")},
                                {interned("self"), interned("input")}};
  return table;
}
PyObject* named_otherwise(PyObject* name) {
  for (const auto& [from, to] : numpy_names())
    if (name == from) return to;
  return nullptr;
}
bool some_named_otherwise(PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
    if (named_otherwise(PyTuple_GET_ITEM(names, i))) return true;
  return false;
}

// The names of the parameters of the function that others are wrapped around; null where it is not written in Python.
Ref parameters_of(PyObject* function) {
  Ref at(Py_NewRef(function));
  while (PyObject* inner = PyObject_GetAttrString(at.get(), "__wrapped__")) at = Ref(inner);
  PyErr_Clear();
  if (!PyFunction_Check(at.get())) return Ref(nullptr);
  PyObject* const code = PyFunction_GET_CODE(at.get());
  const Ref all(require(PyObject_GetAttrString(code, "co_varnames")));
  const auto* counts = reinterpret_cast<PyCodeObject*>(code);
  return Ref(require(PyTuple_GetSlice(all.get(), 0, counts->co_argcount + counts->co_kwonlyargcount)));
}

PyObject* call_overridable(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names);

// A call with NumPy's names, which the function does not have itself.
PyObject* call_with_numpy_names(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names, bool& is_done) {
  return guarded([&]() -> PyObject* {
    PyObject* const home = self_of(self)->module;
    if (home && PyUnicode_CompareWithASCIIString(home, "torch.nn.functional") == 0) return nullptr;  // as in PyTorch
    const Ref known = parameters_of(self_of(self)->function);
    const auto has = [&](PyObject* name) { return known && PySequence_Contains(known.get(), name) == 1; };
    const Ref renamed(require(PyTuple_New(PyTuple_GET_SIZE(names))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      PyObject* const other = named_otherwise(name);
      const bool differs = other && !has(name) && has(other);
      is_done |= differs;
      PyTuple_SET_ITEM(renamed.get(), i, Py_NewRef(differs ? other : name));
    }
    return is_done ? call_overridable(self, args, flagged, renamed.get()) : nullptr;
  });
}

PyObject* call_overridable(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  if (names && some_named_otherwise(names)) [[unlikely]] {
    bool is_done = false;
    PyObject* result = call_with_numpy_names(self, args, flagged, names, is_done);
    if (is_done || PyErr_Occurred()) return result;
  }
  if (classes_answer || has_function_mode) {
    const Py_ssize_t positional = PyVectorcall_NARGS(flagged),
                     total = positional + (names ? PyTuple_GET_SIZE(names) : 0);
    bool ask = self_of(self)->is_attribute ? has_attribute_mode : has_function_mode;
    for (Py_ssize_t i = 0; i < total && !ask && classes_answer; ++i) ask = may_answer(args[i]);
    if (ask) {
      PyObject* result = guarded([&] { return ask_torch_function(self, {args, positional, names}, true); });
      if (result || PyErr_Occurred()) return result;
    }
  }
  PyObject* function = self_of(self)->function;
  if (!profiling || !self_of(self)->is_told) [[likely]]
    return PyObject_Vectorcall(function, args, flagged, names);
  const Profiled profiled("aten::",
                          PyFunction_Check(function)
                              ? PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(function)->func_name)
                              : Py_TYPE(function)->tp_name,
                          ProfileKind::function);
  return PyObject_Vectorcall(function, args, flagged, names);
}

// einsum(equation, [a, b]) is einsum(equation, a, b), also for those who are asked.
PyObject* call_with_operands(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  if (PyVectorcall_NARGS(flagged) != 2 || names || !PyUnicode_Check(args[0]) ||
      !(PyList_Check(args[1]) || PyTuple_Check(args[1])))
    return call_overridable(self, args, flagged, names);
  const Ref operands(PySequence_Tuple(args[1]));
  if (!operands) return nullptr;
  std::vector<PyObject*> all{args[0]};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands.get()); ++i) all.push_back(PyTuple_GET_ITEM(operands.get(), i));
  return call_overridable(self, all.data(), all.size(), nullptr);
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}
PyObject* represent(PyObject* self) { return PyObject_Repr(self_of(self)->function); }
PyObject* wrapped(PyObject* self, void*) { return Py_NewRef(self_of(self)->function); }
// The attributes of the function, but for the name and the module of a face.
PyObject* PyOverridable::* own(const char* name) {
  const std::string_view text(name);
  return text == "__module__" ? &PyOverridable::module : text == "__doc__" ? nullptr : &PyOverridable::name;
}
PyObject* get(PyObject* self, void* name) {
  const auto field = own(static_cast<const char*>(name));
  if (field && self_of(self)->*field) return Py_NewRef(self_of(self)->*field);
  return PyObject_GetAttrString(self_of(self)->function, static_cast<const char*>(name));
}
int set(PyObject* self, PyObject* value, void* name) {
  const auto field = own(static_cast<const char*>(name));
  if (field && self_of(self)->*field) {
    PyObject* old = self_of(self)->*field;
    self_of(self)->*field = Py_XNewRef(value);
    Py_DECREF(old);
    return 0;
  }
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
  Py_XDECREF(self_of(self)->of);
  Py_XDECREF(self_of(self)->name);
  Py_XDECREF(self_of(self)->module);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* new_overridable(PyObject* function, PyObject* module, bool is_told = true, bool is_attribute = false,
                          bool takes_list = false) {
  auto* o = reinterpret_cast<PyOverridable*>(function_type->tp_alloc(function_type, 0));
  if (!o) return nullptr;
  o->vectorcall = takes_list ? call_with_operands : call_overridable;
  o->function = Py_NewRef(function);
  o->module = Py_XNewRef(module);
  o->is_told = is_told;
  o->is_attribute = is_attribute;
  return reinterpret_cast<PyObject*>(o);
}

// overridable(function, module=that of the function, is_told=True, is_attribute=False, takes_list=False)
PyObject* overridable(PyObject*, PyObject* args) {
  PyObject *function, *module = nullptr;
  int is_told = 1, is_attribute = 0, takes_list = 0;
  if (!PyArg_ParseTuple(args, "O|Uppp:overridable", &function, &module, &is_told, &is_attribute, &takes_list))
    return nullptr;
  return new_overridable(function, module, is_told, is_attribute, takes_list);
}

PyObject* behind(PyObject* o) {
  if (Py_TYPE(o) == operator_type) return operator_behind(o);
  return Py_TYPE(o) == function_type ? self_of(o)->of : nullptr;
}

// face(function, name, module) -> the same object for the same three.
PyObject* face(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *of, *name, *module;
    if (!PyArg_ParseTuple(args, "OUU:face", &of, &name, &module)) raise_python();
    if (PyObject* first = behind(of)) of = first;
    check_type(Py_TYPE(of) == operator_type || Py_TYPE(of) == function_type,
               "face: expected a function that obeys __torch_function__, got ", Py_TYPE(of)->tp_name);
    static auto* made = new std::map<std::tuple<PyObject*, std::string, std::string>, PyObject*>;
    PyObject*& known = (*made)[{of, PyUnicode_AsUTF8(name), PyUnicode_AsUTF8(module)}];
    if (!known && Py_TYPE(of) == operator_type) known = operator_face(of, name, module);
    if (!known) {
      known = require(new_overridable(self_of(of)->function, module, self_of(of)->is_told));
      self_of(known)->of = Py_NewRef(of);
      self_of(known)->name = Py_NewRef(name);
    }
    return Py_NewRef(known);
  });
}

// has_torch_function(arguments): whether a mode watches, or one of the arguments answers.
PyObject* has_torch_function(PyObject*, PyObject* arguments) {
  if (!PyTuple_Check(arguments) && !PyList_Check(arguments))
    return PyErr_Format(PyExc_TypeError, "has_torch_function: expected a tuple or list of arguments, got %s",
                        Py_TYPE(arguments)->tp_name);
  bool found = has_function_mode;
  for (Py_ssize_t i = 0; !found && classes_answer && i < PySequence_Fast_GET_SIZE(arguments); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(arguments, i);
    found = !is_plain_tensor(o) && wants_torch_function(o);
  }
  return PyBool_FromLong(found);
}

PyObject* function_behind(PyObject*, PyObject* o) {
  PyObject* of = behind(o);
  return Py_NewRef(of ? of : o);
}

PyObject* reduce(PyObject* self, PyObject*) {
  if (PyOverridable* o = self_of(self); o->of) return reduce_face(o->of, o->name, o->module);
  Ref native(PyImport_ImportModule("cresset._native"));
  if (!native) return nullptr;
  Ref make(PyObject_GetAttrString(native.get(), "overridable"));
  if (!make) return nullptr;
  PyObject *function = self_of(self)->function, *module = self_of(self)->module;
  return module ? Py_BuildValue("O(OO)", make.get(), function, module) : Py_BuildValue("O(O)", make.get(), function);
}

#define SHARED(name) {name, get, set, nullptr, const_cast<char*>(name)}
PyGetSetDef getset[] = {SHARED("__name__"),
                        SHARED("__qualname__"),
                        SHARED("__module__"),
                        SHARED("__doc__"),
                        {"__wrapped__", wrapped, nullptr, nullptr, nullptr},
                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {}};
PyObject* copy(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {"__copy__", copy, METH_NOARGS, nullptr},
                         {"__deepcopy__", copy, METH_O, nullptr},
                         {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOverridable, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyOverridable, dict), READONLY, nullptr},
                         {}};
PyMethodDef functions[] = {
    {"overridable", overridable, METH_VARARGS, "A Python function that obeys __torch_function__."},
    {"has_torch_function", has_torch_function, METH_O,
     "Whether a mode watches, or one of the arguments answers for itself."},
    {"face", face, METH_VARARGS, "A function under another name and module."},
    {"function_behind", function_behind, METH_O, "What a face is a name of; others as they are."},
    {}};

}  // namespace

PyObject* reduce_face(PyObject* of, PyObject* name, PyObject* module) {
  Ref native(PyImport_ImportModule("cresset._native"));
  if (!native) return nullptr;
  Ref make(PyObject_GetAttrString(native.get(), "face"));
  return make ? Py_BuildValue("O(OOO)", make.get(), of, name, module) : nullptr;
}

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
