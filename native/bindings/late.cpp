#include "bindings/late.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "autograd/engine.h"
#include "bindings/dictionary.h"
#include "dispatch/late.h"
#include "dispatch/printed_groups.h"
#include "tensor/pending.h"

namespace cresset {

namespace nb = nanobind;

namespace {

// compute_late(on) -> bool: whether pointwise calls of this thread are computed late from now on; gives what was so.
PyObject* compute_late_from_now(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(computes_late, on == Py_True));
}

// end_region(): nothing is computed late from now on, and what somebody can see is there.
PyObject* end_region(PyObject*, PyObject*) {
  computes_late = false;
  if (!pending_count.load(std::memory_order_relaxed)) [[likely]]
    Py_RETURN_NONE;
  return guarded([] {
    settle_all("the region returns");
    return Py_NewRef(Py_None);
  });
}

nb::dict as_dict(const LateGroup& g) {
  return dictionary("reason", g.reason, "calls", nb::cast(g.calls), "reads", nb::cast(g.reads), "is_kept",
                    nb::cast(g.is_kept), "elements", g.elements, "read", g.read, "written", g.written, "kept", g.kept);
}

// Hears of the groups of this thread while it is entered.
class Listener {
 public:
  void enter() { before_ = std::exchange(late_listener, &groups_); }
  void leave() { late_listener = before_; }
  nb::list groups() const {
    nb::list all;
    for (const LateGroup& g : groups_) all.append(as_dict(g));
    return all;
  }

 private:
  std::vector<LateGroup> groups_;
  std::vector<LateGroup>* before_ = nullptr;
};

PyObject* group_printer = nullptr;

// Asks Python to print and compile a group. That goes on in the background; what goes wrong there is its own business.
void ask_printer(const std::string& key) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* const said = PyObject_CallFunction(group_printer, "s", key.c_str());
  if (!said) PyErr_WriteUnraisable(group_printer);
  Py_XDECREF(said);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(gil);
}

}  // namespace

void add_late(PyObject* module) {
  // The object on the interpreter's stack, and the handle of the call.
  is_temporary = [](const TensorImpl& t) {
    return t.wrapper && !t.owns_wrapper && Py_REFCNT(static_cast<PyObject*>(t.wrapper)) == 1 && t.use_count() <= 2;
  };
  static PyMethodDef functions[] = {
      {"compute_late", compute_late_from_now, METH_O,
       "Whether pointwise calls of this thread are computed late from now on; gives what was so before."},
      {"end_region", end_region, METH_NOARGS,
       "Pointwise calls of this thread are computed at once from now on, and all that waits in it now."},
      {}};
  PyModule_AddFunctions(module, functions);
  nb::module_ m = nb::borrow<nb::module_>(module);
  m.def(
      "settle_late",
      [](const std::string& reason) {
        if (pending_count.load(std::memory_order_relaxed)) settle_all(reason.c_str());
      },
      "Compute all that waits in this thread.");
  m.def(
      "is_pending",
      [](nb::handle t) {
        check_type(is_tensor(t.ptr()), "is_pending: expected a Tensor, got ", Py_TYPE(t.ptr())->tp_name);
        return static_cast<bool>(pending_of(*impl_of(t.ptr())->storage));
      },
      "Whether the elements of a tensor are still to be computed.");
  m.def("late_statistics", [] {
    const LateStatistics& s = late_statistics;
    return dictionary("groups", s.groups, "calls", s.calls, "kept", s.kept, "read", s.read, "written", s.written,
                      "forgotten", s.forgotten);
  });
  m.def(
      "set_late_elements", [](int64_t least) { return std::exchange(late_elements, std::max<int64_t>(least, 1)); },
      "Tensors of fewer elements are computed at once; gives what was so before.");
  m.def(
      "set_late_elements_on_device",
      [](int64_t least) { return std::exchange(late_elements_on_device, std::max<int64_t>(least, 1)); },
      "The same of tensors that are not on the CPU.");
  m.def(
      "set_group_printer",
      [](nb::object printer) {
        print_group = printer.is_none() ? nullptr : ask_printer;
        Py_XSETREF(group_printer, printer.release().ptr());
      },
      nb::arg("printer").none(), "Who prints and compiles groups that are computed often: see compiler/printing.py.");
  m.def(
      "install_group",
      [](const std::string& key, uintptr_t function) { printed_group(key).install(reinterpret_cast<Loop>(function)); },
      "The compiled function of a group; 0: there will be none.");
  m.def("printed_statistics", [] {
    const PrintedStatistics& s = printed_statistics;
    return dictionary("asked", s.asked, "ready", s.ready, "runs", s.runs);
  });
  m.def("backwards_started", backwards_started, "How many backward passes have been started.");
  nb::class_<Listener>(m, "LateListener")
      .def(nb::init<>())
      .def("enter", &Listener::enter)
      .def("leave", &Listener::leave)
      .def("groups", &Listener::groups);
}

}  // namespace cresset
