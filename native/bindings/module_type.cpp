// The native part of nn.Module: __call__ and __getattr__. Calling a module without hooks and looking up its parameters
// happen at every step of every layer; they cost a few dictionary lookups here, and a Python frame or an exception less
// than the same in Python.
//
// Module has them as ordinary methods, so that subclasses can override them and call them through super(). A class that
// does not is quickened: its slots lead here without looking for the methods first. Python resets a slot when its
// method is replaced later.
#include "bindings/python.h"

namespace cresset {
namespace {

PyObject *call_method, *getattr_method;  // what Module.__call__ and Module.__getattr__ are
PyObject* hook_tables = nullptr;         // the hooks of all modules: a tuple of dicts
PyObject* note_function = nullptr;       // (module, args, kwargs, exception): says where an exception came from
PyObject *call_name, *getattr_name, *getattribute_name, *forward_name, *call_impl_name, *compiled_name;
PyObject* registers[3];  // _parameters, _buffers, _modules
PyObject* hook_names[4];

PyObject* members_of(PyObject* self) {  // borrowed; null: there are none yet
  PyObject** at = _PyObject_GetDictPtr(self);
  return at ? *at : nullptr;
}

// A parameter, buffer or submodule. Null without an error: there is none of that name.
PyObject* find_registered(PyObject* self, PyObject* name) {
  PyObject* members = members_of(self);
  if (!members) return nullptr;
  for (PyObject* kind : registers) {
    PyObject* table = PyDict_GetItemWithError(members, kind);
    if (!table) {
      if (PyErr_Occurred()) return nullptr;
      continue;
    }
    if (PyDict_CheckExact(table) || PyODict_CheckExact(table)) {
      PyObject* found = PyDict_GetItemWithError(table, name);
      if (found) return Py_NewRef(found);
      if (PyErr_Occurred()) return nullptr;
      continue;
    }
    const int there = PySequence_Contains(table, name);  // some programs put their own mappings here
    if (there < 0) return nullptr;
    if (there) return PyObject_GetItem(table, name);
  }
  return nullptr;
}

PyObject* no_attribute(PyObject* self, PyObject* name) {
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", _PyType_Name(Py_TYPE(self)), name);
  return nullptr;
}

PyObject* module_getattr(PyObject* self, PyObject* name) {
  if (!PyUnicode_Check(name))
    return PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'", Py_TYPE(name)->tp_name);
  PyObject* found = find_registered(self, name);
  return found ? found : no_attribute(self, name);
}

PyObject* module_getattro(PyObject* self, PyObject* name) {
  PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
  return found || PyErr_Occurred() ? found : module_getattr(self, name);
}

bool has_entries(PyObject* table) { return !PyDict_Check(table) || PyDict_GET_SIZE(table) > 0; }

// Whether something beside forward has to run: a hook, or a compiled form of the module.
bool is_hooked(PyObject* members) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(hook_tables); ++i)
    if (has_entries(PyTuple_GET_ITEM(hook_tables, i))) return true;
  for (PyObject* name : hook_names) {
    PyObject* hooks = PyDict_GetItemWithError(members, name);
    if (!hooks || has_entries(hooks)) return true;  // a module without them was not initialized: the full call says so
  }
  PyObject* compiled = PyDict_GetItemWithError(members, compiled_name);
  return compiled && compiled != Py_None;
}

PyObject* call_forward(PyObject* self, PyObject* members, PyObject* args, PyObject* kwargs) {
  PyObject* function =
      Py_TYPE(self)->tp_getattro == module_getattro ? _PyType_Lookup(Py_TYPE(self), forward_name) : nullptr;
  constexpr Py_ssize_t kFew = 8;
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (!function || !PyFunction_Check(function) || count > kFew || PyDict_GetItemWithError(members, forward_name)) {
    Ref forward(PyObject_GetAttr(self, forward_name));
    return forward ? PyObject_Call(forward.get(), args, kwargs) : nullptr;
  }
  PyObject* stack[kFew + 2] = {nullptr, self};
  for (Py_ssize_t i = 0; i < count; ++i) stack[2 + i] = PyTuple_GET_ITEM(args, i);
  Ref kept(Py_NewRef(function));
  return PyObject_VectorcallDict(function, stack + 1, static_cast<size_t>(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 kwargs);
}

void note_module(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (!note_function) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* done = PyObject_CallFunctionObjArgs(note_function, self, args, kwargs ? kwargs : Py_None, value, nullptr);
  Py_XDECREF(done);
  PyErr_Clear();  // the exception itself matters, not what could not be said about it
  PyErr_Restore(type, value, traceback);
}

// The modules whose calls this thread is in, innermost first: who allocates memory can be asked.
struct Running {
  PyObject* module;
  Running* outer;
};
thread_local Running* running = nullptr;

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* members = members_of(self);
  Running here{self, running};
  running = &here;
  PyObject* result;
  if (!members || !hook_tables || is_hooked(members)) {
    Ref full(PyObject_GetAttr(self, call_impl_name));
    result = full ? PyObject_Call(full.get(), args, kwargs) : nullptr;
  } else {
    result = call_forward(self, members, args, kwargs);
  }
  running = here.outer;
  if (!result) note_module(self, args, kwargs);
  return result;
}

// The name of a module in the register of the one around it; empty: it is not there.
std::string name_within(PyObject* outer, PyObject* inner) {
  PyObject* members = members_of(outer);
  PyObject* table = members ? PyDict_GetItemWithError(members, registers[2]) : nullptr;
  if (!table || !PyDict_Check(table)) return "";
  Py_ssize_t at = 0;
  PyObject *name, *module;
  while (PyDict_Next(table, &at, &name, &module)) {
    if (module == inner) return PyUnicode_AsUTF8(name);
    if (!PyDict_Check(members_of(module) ? members_of(module) : Py_None)) continue;
    // A list of modules is not called itself: look one level further.
    PyObject* below = PyDict_GetItemWithError(members_of(module), registers[2]);
    if (!below || !PyDict_Check(below)) continue;
    Py_ssize_t k = 0;
    PyObject *second, *grandchild;
    while (PyDict_Next(below, &k, &second, &grandchild))
      if (grandchild == inner) return std::string(PyUnicode_AsUTF8(name)) + "." + PyUnicode_AsUTF8(second);
  }
  return "";
}

// Gives a subclass of Module the slots that change nothing but the time.
PyObject* quicken_module(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls))
    return PyErr_Format(PyExc_TypeError, "quicken_module: expected a class, got %.100s", Py_TYPE(cls)->tp_name);
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (_PyType_Lookup(type, call_name) == call_method) type->tp_call = module_call;
  if (_PyType_Lookup(type, getattr_name) == getattr_method &&
      _PyType_Lookup(type, getattribute_name) == _PyType_Lookup(&PyBaseObject_Type, getattribute_name))
    type->tp_getattro = module_getattro;
  PyType_Modified(type);
  Py_RETURN_NONE;
}

PyObject* set_module_hooks(PyObject*, PyObject* tables) {
  if (!PyTuple_Check(tables)) return PyErr_Format(PyExc_TypeError, "set_module_hooks: expected a tuple of dicts");
  Py_XDECREF(hook_tables);
  hook_tables = Py_NewRef(tables);
  Py_RETURN_NONE;
}

PyObject* set_module_note(PyObject*, PyObject* function) {
  Py_XDECREF(note_function);
  note_function = Py_NewRef(function);
  Py_RETURN_NONE;
}

#define KEYWORDS(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef call_definition = {"__call__", KEYWORDS(module_call), METH_VARARGS | METH_KEYWORDS,
                               "__call__($self, /, *args, **kwargs)\n--\n\nRun the hooks and forward."};
PyMethodDef getattr_definition = {"__getattr__", module_getattr, METH_O, "A parameter, buffer or submodule."};
PyMethodDef functions[] = {
    {"quicken_module", quicken_module, METH_O, "Let the slots of a class of modules lead straight to the native code."},
    {"set_module_hooks", set_module_hooks, METH_O, "The dicts of hooks that every module runs."},
    {"set_module_note", set_module_note, METH_O, "What is called with a module and the exception that leaves it."},
    {}};

}  // namespace

std::string running_module_path() {
  std::string path;
  for (const Running* r = running; r; r = r->outer) {
    const std::string name = r->outer ? name_within(r->outer->module, r->module) : "";
    if (name.empty()) {
      const std::string type = _PyType_Name(Py_TYPE(r->module));
      path = path.empty() ? type : type + "." + path;
      if (!r->outer) break;
      continue;
    }
    path = path.empty() ? name : name + "." + path;
  }
  return path;
}

void add_module_type(PyObject* module) {
  const auto intern = [](const char* text) { return require(PyUnicode_InternFromString(text)); };
  call_name = intern("__call__"), getattr_name = intern("__getattr__"), getattribute_name = intern("__getattribute__");
  forward_name = intern("forward"), call_impl_name = intern("_call_impl"),
  compiled_name = intern("_compiled_call_impl");
  registers[0] = intern("_parameters"), registers[1] = intern("_buffers"), registers[2] = intern("_modules");
  hook_names[0] = intern("_forward_hooks"), hook_names[1] = intern("_forward_pre_hooks");
  hook_names[2] = intern("_backward_hooks"), hook_names[3] = intern("_backward_pre_hooks");
  call_method = require(PyDescr_NewMethod(&PyBaseObject_Type, &call_definition));
  getattr_method = require(PyDescr_NewMethod(&PyBaseObject_Type, &getattr_definition));
  PyModule_AddObjectRef(module, "module_call", call_method);
  PyModule_AddObjectRef(module, "module_getattr", getattr_method);
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
