// The machine and the build: threads, memory, instruction set, defaults.
#include "base/instruction_set.h"
#include "bindings/python.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

#include "base/denormals.h"
#include "base/parallel.h"
#include "base/thread_data.h"
#include "bindings/arguments.h"
#include "bindings/dictionary.h"
#include "dispatch/casting.h"
#include "dispatch/late.h"
#include "ops/creation.h"
#include "tensor/allocator.h"

namespace cresset {

namespace nb = nanobind;

thread_local PyObject* value_watcher = nullptr;
// What this thread was doing before it let go of the interpreter.
static constinit thread_local bool late_while_away = false;

static nb::dict build_info() {
  nb::dict d;
  d["version"] = CRESSET_VERSION;
  d["compiler"] = "g++ " __VERSION__;
  d["isa"] = instruction_set();
#ifdef __x86_64__
  d["isa_levels"] = nb::make_tuple("baseline", "avx2", "avx512");
#else
  d["isa_levels"] = nb::make_tuple("baseline");
#endif
#ifdef NDEBUG
  d["build_type"] = "Release";
#else
  d["build_type"] = "Debug";
#endif
  return d;
}

static nb::object result_type(nb::args args) {
  check_type(args.size() == 2, "result_type(): expected two tensors or numbers, got ", args.size(), " arguments");
  ResultType type;
  for (nb::handle h : args) {
    Scalar s;
    if (is_tensor(h.ptr()))
      type.add(*impl_of(h.ptr()));
    else if (to_scalar(h.ptr(), s))
      type.add(s);
    else
      fail(ErrorKind::type, "result_type(): expected tensors and numbers, got ", Py_TYPE(h.ptr())->tp_name);
  }
  return nb::steal(wrap(type.result()));
}

static Dtype dtype_argument(nb::handle h, const char* who) {
  const std::optional<Dtype> dtype = to_dtype(h.ptr());
  check_type(dtype.has_value(), who, "(): expected torch.dtype, got ", Py_TYPE(h.ptr())->tp_name);
  return *dtype;
}

// Not one of nanobind's functions: they use thread-local data themselves.
static PyObject* make_data(PyObject*, PyObject*) { return PyBool_FromLong(make_thread_data()); }

void add_runtime(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      set_python_error();
    } catch (const PythonError&) {
    }
  });
  m.def(
      "watch_values",
      [](nb::object watcher) {
        nb::object before = value_watcher ? nb::steal(value_watcher) : nb::none();
        value_watcher = watcher.is_none() ? nullptr : watcher.release().ptr();
        return before;
      },
      nb::arg("watcher").none(),
      "Who is told when a program in this thread asks for the truth value of a tensor, its number, its elements as a "
      "list or its address; gives who was before.");
  m.def("running_module_path", running_module_path,
        "The dotted path of the module whose forward runs in this thread; empty in none.");
  m.def("build_info", build_info, "Version, compiler, instruction set and libraries of this build.");
  m.def("get_num_threads", thread_count, "get_num_threads() -> int\n\nHow many threads an operation may use.");
  m.def(
      "set_num_threads",
      [](nb::int_ given) {
        const long long n = PyLong_AsLongLong(given.ptr());
        if (n == -1 && PyErr_Occurred()) {
          PyErr_Clear();
          throw nb::value_error("set_num_threads: the number does not fit in 64 bits");
        }
        check(n > 0, "set_num_threads expects a positive integer, got ", n);
        set_thread_count(static_cast<int>(std::min<long long>(n, std::numeric_limits<int>::max())));
        if (thread_count() < n)
          warn(join("set_num_threads: an operation is divided among ", thread_count(),
                    " threads at most, and so many are used; asked for were ", n));
      },
      "set_num_threads(int)\n\nHow many threads an operation may use: 256 at most.");
  m.def(
      "set_flush_denormal",
      [](nb::handle mode) {
        check(PyBool_Check(mode.ptr()), "set_flush_denormal: flush_denormal expects a bool, but got ",
              Py_TYPE(mode.ptr())->tp_name);
        flush_denormals(mode.ptr() == Py_True);
        return kCanFlushDenormals;
      },
      nb::arg("mode").none(),
      "set_flush_denormal(mode) -> bool\n\nLet this thread's operations take numbers for zero that are too small for a "
      "whole mantissa, or compute with them; False where the processor cannot.");
  m.def("set_fill_uninitialized", set_fill_uninitialized,
        "Fill empty tensors, so that reading them gives the same in every run.");
  m.def("has_room", has_room,
        "Whether the system would give this many bytes: for those who call what ends the process for want of memory.");
  static PyMethodDef functions[] = {{"make_thread_data", make_data, METH_NOARGS,
                                     "Make this thread's part of the native module, while a lack of memory can still "
                                     "be told; False where there is one."},
                                    {}};
  PyModule_AddFunctions(module, functions);
  m.def("empty_host_cache", empty_host_cache, "Give cached memory back to the system.");
  m.def("host_memory_statistics", [] {
    const HostMemoryStatistics s = host_memory_statistics();
    return dictionary("in_use", s.in_use, "peak", s.peak, "cached", s.cached);
  });
  m.def("reset_peak_host_memory", reset_peak_host_memory);
  m.def(
      "get_default_dtype", [] { return nb::steal(wrap(default_dtype())); },
      "get_default_dtype() -> dtype\n\nThe dtype of new floating-point tensors.");
  m.def(
      "set_default_dtype",
      [](nb::handle d) {
        check_type(Py_TYPE(d.ptr()) == dtype_type,
                   "set_default_dtype(): invalid dtype object, only floating-point types are supported as the default "
                   "type, got ",
                   Py_TYPE(d.ptr())->tp_name);
        set_default_dtype(dtype_argument(d, "set_default_dtype"));
      },
      "set_default_dtype(dtype)\n\nThe dtype of new floating-point tensors.");
  m.def("default_device", [] { return nb::steal(wrap(default_device())); });
  m.def(
      "set_default_device_raw",
      [](nb::handle d) { set_default_device(d.is_none() ? Device{} : parse_device(d.ptr())); },
      nb::arg("device").none());
  m.def("result_type", result_type,
        "result_type(tensor1, tensor2) -> dtype\n\nThe dtype that arithmetic on the two would have.");
  m.def(
      "as_dtype",
      [](nb::handle named) {
        return Py_TYPE(named.ptr()) == dtype_type ? nb::borrow(named)
                                                  : nb::steal(wrap(dtype_argument(named, "as_dtype")));
      },
      "as_dtype(named) -> torch.dtype\n\nThe dtype that `named` is, or that it names: float, int, bool and complex "
      "do.");
  m.def(
      "promote_types",
      [](nb::handle a, nb::handle b) {
        return nb::steal(wrap(promote(dtype_argument(a, "promote_types"), dtype_argument(b, "promote_types"))));
      },
      "promote_types(type1, type2) -> dtype\n\nThe smallest dtype that holds both.");
  m.def(
      "can_cast",
      [](nb::handle a, nb::handle b) { return can_cast(dtype_argument(a, "can_cast"), dtype_argument(b, "can_cast")); },
      "can_cast(from_, to) -> bool");
  m.def(
      "check_cast",
      [](const std::string& who, nb::handle from, nb::handle to, nb::handle result) {
        const Dtype a = dtype_argument(from, "check_cast"), b = dtype_argument(to, "check_cast");
        if (result.is_none())
          check_cast(who, a, b);
        else
          check_cast_of(who, nb::cast<std::string>(result), a, b);
      },
      nb::arg("who"), nb::arg("from_"), nb::arg("to"), nb::arg("result") = nb::none(),
      "check_cast(who, from_, to, result=None)\n\nRaise unless a result of dtype `from_` may be written to a tensor of "
      "dtype `to`; linear algebra has a name for the result.");
  leave_interpreter = []() -> void* {
    if (!PyGILState_Check()) return nullptr;
    late_while_away = std::exchange(computes_late, false);  // late values are made under the lock alone
    return PyEval_SaveThread();
  };
  enter_interpreter = [](void* state) {
    PyEval_RestoreThread(static_cast<PyThreadState*>(state));
    computes_late = late_while_away;
  };
  warn = [](const std::string& message) {
    const PyGILState_STATE gil = PyGILState_Ensure();  // a long computation may have let the interpreter go
    const bool raised = PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0;
    PyGILState_Release(gil);
    if (raised) throw PythonError{};
  };
}

}  // namespace cresset
