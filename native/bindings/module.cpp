// The extension module cresset._native.
#include "bindings/profile.h"

#include <nanobind/nanobind.h>

#include "cuda/backend.h"
#include "ops/register.h"

NB_MODULE(native_of_the_main_interpreter, m) {
  using namespace cresset;
  nanobind::set_leak_warnings(false);  // tensors may live in module globals until the very end
  try {
    register_operators();
    cuda::install();
    add_types(m.ptr());
    add_generators(m.ptr());
    add_tensor_type(m.ptr());
    add_operator_type(m.ptr());
    add_node_type(m.ptr());
    add_derivatives(m.ptr());
    add_autograd(m.ptr());
    add_autocast(m.ptr());
    add_data(m.ptr());
    add_dlpack(m.ptr());
    add_runtime(m.ptr());
    add_updates(m.ptr());
    add_foreach(m.ptr());
    add_module_type(m.ptr());
    add_batching(m.ptr());
    add_function_type(m.ptr());
    add_profile(m.ptr());
    add_cuda(m.ptr());
    add_cuda_libraries(m.ptr());
  } catch (...) {
    set_python_error();
    throw nanobind::python_error();
  }
}

// Types and caches are those of the process. A second interpreter that made them its own would take them along when it ends.
extern "C" NB_EXPORT PyObject* PyInit__native() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit_native_of_the_main_interpreter();
  PyErr_SetString(PyExc_ImportError, "cresset: it can be imported in the main interpreter of a process only, and this is another one; start a process instead");
  return nullptr;
}
