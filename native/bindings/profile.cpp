#include "bindings/profile.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "dispatch/profile.h"

namespace cresset {
namespace {

namespace nb = nanobind;

const char* const kKinds[] = {"operation", "function", "node", "range"};

nb::object wrap_shapes(const ProfileEvent::Argument& a) {
  nb::list shapes;
  for (const Dims& sizes : a.shapes) {
    nb::list one;
    for (const int64_t n : sizes) one.append(n);
    if (!a.is_list) return one;
    shapes.append(one);
  }
  return shapes;
}

nb::object wrap_dtypes(const ProfileEvent::Argument& a) {
  nb::list dtypes;
  for (const Dtype d : a.dtypes) {
    if (!a.is_list) return nb::steal(wrap(d));
    dtypes.append(nb::steal(wrap(d)));
  }
  return a.is_list ? nb::object(dtypes) : nb::none();
}

// (name, kind, start, end, thread, parent, bytes, input shapes, input dtypes, result shapes, stack); times in
// nanoseconds, parent an index or -1.
nb::tuple wrap_event(const ProfileEvent& e) {
  nb::list shapes, dtypes, stack;
  for (const auto& a : e.arguments) {
    shapes.append(wrap_shapes(a));
    dtypes.append(wrap_dtypes(a));
  }
  for (const std::string& line : e.stack) stack.append(line);
  ProfileEvent::Argument results = e.results;
  results.is_list = true;
  return nb::make_tuple(e.name, kKinds[static_cast<int>(e.kind)], e.start, e.end, e.thread, e.parent, e.bytes, shapes,
                        dtypes, wrap_shapes(results), stack);
}

void collect_stack(std::vector<std::string>& lines) {
  if (!PyGILState_Check()) return;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    lines.push_back(std::string(PyUnicode_AsUTF8(code->co_filename)) + "(" +
                    std::to_string(PyFrame_GetLineNumber(frame)) + "): " + PyUnicode_AsUTF8(code->co_name));
    Py_DECREF(code);
    PyFrameObject* around = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = around;
  }
}

}  // namespace

void add_profile(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  m.def(
      "profile_start", [](bool shapes, bool memory, bool stack) { return start_profile({shapes, memory, stack}); },
      nb::arg("shapes") = false, nb::arg("memory") = false, nb::arg("stack") = false,
      "Begin to record calls; gives what profile_stop wants.");
  m.def(
      "profile_stop",
      [](int64_t first) {
        const std::vector<ProfileEvent> events = stop_profile(first);
        nb::list all;
        for (const ProfileEvent& e : events) all.append(wrap_event(e));
        return all;
      },
      "Stop, and give the events since profile_start.");
  m.def(
      "profile_enter",
      [](const std::string& name) {
        if (profiling) enter_profile(name, ProfileKind::range, nullptr);
        return profiling.load();
      },
      "Begin a range with a name; whether it is recorded.");
  m.def("profile_leave", [] { leave_profile(nullptr); }, "End the innermost range.");
  m.def("is_profiling", [] { return profiling.load(); }, "Whether somebody records.");
  profile_stack = collect_stack;
}

}  // namespace cresset
