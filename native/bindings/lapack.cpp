// What native linear algebra asks of Python: where LAPACK lies, and kernels of devices whose libraries are reached from
// there.
#include <map>
#include <utility>

#include "bindings/python.h"
#include "dispatch/on_host.h"
#include "ops/lapack.h"

namespace cresset {
namespace {

std::vector<std::string> listed_places() {
  const PyGILState_STATE gil = PyGILState_Ensure();  // a long computation may have let the interpreter go
  std::vector<std::string> places;
  {
    const Ref module(PyImport_ImportModule("cresset.linalg.lapack"));
    const Ref found(module ? PyObject_CallMethod(module.get(), "places", nullptr) : nullptr);
    for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(found.get()); ++i)
      if (const char* path = PyUnicode_AsUTF8(PyList_GET_ITEM(found.get(), i))) places.emplace_back(path);
    PyErr_Clear();
  }
  PyGILState_Release(gil);
  return places;
}

std::map<std::pair<const Operator*, DeviceType>, PyObject*>& kernels() {
  static auto* the = new std::map<std::pair<const Operator*, DeviceType>, PyObject*>;
  return *the;
}

// The kernel of an operator that is a Python function of its arguments, which gives the results; NotImplemented: the
// call is for the CPU.
void run_python_kernel(Call& c) {
  Device device;
  const Py_ssize_t n = static_cast<Py_ssize_t>(c.op.signature.parameters.size());
  for (int i = 0; i < n && device.is_cpu(); ++i)
    if (c.args[i].is_tensor()) device = c.tensor(i).device();
  const GradModeGuard off(false);  // recording stands above
  std::vector<Ref> arguments;
  std::vector<PyObject*> words;
  for (int i = 0; i < n; ++i) words.push_back(arguments.emplace_back(require(wrap_value(c, i))).get());
  const Ref result(
      require(PyObject_Vectorcall(kernels().at({&c.op, device.type}), words.data(), words.size(), nullptr)));
  if (result.get() == Py_NotImplemented) {
    const bool given = std::exchange(c.given_out, false);  // what is given is written to when this is done
    execute_on_host(c, device);
    c.given_out = given;
    return;
  }
  if (!PyTuple_Check(result.get())) {
    c.outputs[0] = unwrap(result.get());
    return;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i)
    if (PyObject* const part = PyTuple_GET_ITEM(result.get(), i); part != Py_None) c.outputs[i] = unwrap(part);
}

// set_python_kernel(name, device, function)
PyObject* set_python_kernel(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    PyObject *device, *function;
    if (!PyArg_ParseTuple(args, "sOO:set_python_kernel", &name, &device, &function)) raise_python();
    const DeviceType type = parse_device(device).type;
    Registry::instance().set_kernel(name, type, run_python_kernel);
    kernels()[{Registry::instance().find(name), type}] = Py_NewRef(function);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"set_python_kernel", set_python_kernel, METH_VARARGS, "The kernel of an operator on a device is this function."},
    {}};

}  // namespace

void add_lapack(PyObject* module) {
  places_of_lapack = listed_places;
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
