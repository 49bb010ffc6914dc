// The extension module cresset._native.
#include "bindings/distributed.h"
#include "bindings/late.h"
#include "bindings/profile.h"
#include "bindings/program.h"

#include <nanobind/nanobind.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dispatch/registration.h"

namespace {

// Kernels keep blocks of numbers on the stack. The main thread's grows when it is used, and where it may not (a limit
// of the address space), that ends the process: no call can raise for it. So it grows now, by one page at its far end.
[[gnu::noinline]] void let_the_stack_grow() {
  constexpr size_t kStack = 1 << 20;
  rlimit most{};
  if (getpid() != gettid() || getrlimit(RLIMIT_STACK, &most) != 0 || most.rlim_cur < 4 * kStack) return;
  [[maybe_unused]] volatile char block[kStack];
  block[0] = 0;
}

}  // namespace

NB_MODULE(native_of_the_main_interpreter, m) {
  using namespace cresset;
  nanobind::set_leak_warnings(false);  // tensors may live in module globals until the very end
  let_the_stack_grow();
  try {
    register_operators();
    add_types(m.ptr());
    add_generators(m.ptr());
    add_tensor_type(m.ptr());
    add_storage_type(m.ptr());
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
    add_dispatching(m.ptr());
    add_function_type(m.ptr());
    add_profile(m.ptr());
    add_late(m.ptr());
    add_program(m.ptr());
    add_cuda(m.ptr());
    add_cuda_libraries(m.ptr());
    add_lapack(m.ptr());
    add_distributed(m.ptr());
  } catch (...) {
    set_python_error();
    throw nanobind::python_error();
  }
}

// Types and caches are those of the process. A second interpreter that made them its own would take them along when it
// ends.
extern "C" NB_EXPORT PyObject* PyInit__native() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit_native_of_the_main_interpreter();
  PyErr_SetString(PyExc_ImportError,
                  "cresset: it can be imported in the main interpreter of a process only, and this is another one; "
                  "start a process instead");
  return nullptr;
}
