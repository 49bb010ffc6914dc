#include "bindings/profile.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/python_stack.h"
#include "bindings/sampler.h"
#include "dispatch/profile.h"
#include "dispatch/profile_memory.h"

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

// (name, kind, start, end, thread, parent, bytes here, bytes on devices, input shapes, input dtypes, result shapes,
// stack); times in nanoseconds, parent and stack an index or -1.
nb::tuple wrap_event(const ProfileEvent& e) {
  nb::list shapes, dtypes;
  for (const auto& a : e.arguments) {
    shapes.append(wrap_shapes(a));
    dtypes.append(wrap_dtypes(a));
  }
  ProfileEvent::Argument results = e.results;
  results.is_list = true;
  return nb::make_tuple(e.name, kKinds[static_cast<int>(e.kind)], e.start, e.end, e.thread, e.parent, e.host_bytes,
                        e.device_bytes, shapes, dtypes, wrap_shapes(results), e.stack);
}

// (address, bytes, device, start, end, event, stack, uses, in a backward pass)
nb::tuple wrap_allocation(const ProfileAllocation& a, int64_t first) {
  return nb::make_tuple(a.address, a.bytes, nb::steal(wrap(a.device)), a.start, a.end,
                        a.place.event >= first ? a.place.event - first : -1, a.place.stack, a.uses,
                        a.place.in_backward);
}

// (stack around, file, line, function) of each stack.
nb::list wrap_stacks() {
  nb::list all;
  for (const PythonStacks::Line& line : python_stacks().lines())
    all.append(nb::make_tuple(line.around, nb::borrow(line.code->co_filename),
                              PyCode_Addr2Line(line.code, line.instruction), nb::borrow(line.code->co_name)));
  return all;
}

int32_t collect_stack() { return PyGILState_Check() ? python_stacks().number_of(PyEval_GetFrame()) : -1; }

Sampler& sampler() {
  static auto* the = new Sampler;
  return *the;
}

nb::dict wrap_sums() {
  nb::list operators, python, memory;
  for (const ProfileSum& s : profile_sums()) operators.append(nb::make_tuple(s.stack, s.name, s.calls, s.time));
  const Sampler::Sums sampled = sampler().sums();
  for (const auto& [stack, time] : sampled.time) python.append(nb::make_tuple(stack, time));
  const ProfileHolders holders = profile_holders();
  for (const ProfileHolder& h : holders.holders)
    for (const auto& s : h.sides)
      if (s.allocations)
        memory.append(nb::make_tuple(h.stack, &s == h.sides ? "cpu" : "device", s.allocations, s.allocated, s.held,
                                     s.at_peak, s.most));
  nb::dict all;
  all["operators"] = operators;
  all["python"] = python;
  all["samples"] = sampled.samples;
  all["memory"] = memory;
  all["peaks"] = nb::make_tuple(holders.peaks[0], holders.peaks[1]);
  return all;
}

}  // namespace

void add_profile(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  m.def(
      "profile_start",
      [](bool shapes, bool memory, bool stack, bool events, bool sums) {
        const ProfileRecorder made =
            start_profile({.events = events, .shapes = shapes, .memory = memory, .stack = stack, .sums = sums});
        return nb::make_tuple(made.number, made.first);
      },
      nb::arg("shapes") = false, nb::arg("memory") = false, nb::arg("stack") = false, nb::arg("events") = true,
      nb::arg("sums") = false,
      "Begin to record calls; gives what profile_stop wants, and the number of the first event.");
  m.def(
      "profile_stop",
      [](int64_t number, int64_t first) {
        nb::list all, allocations;
        for (const ProfileAllocation& a : profile_allocations()) allocations.append(wrap_allocation(a, first));
        const nb::dict sums = wrap_sums();
        const bool last = is_profiling_last();
        for (const ProfileEvent& e : stop_profile(number)) all.append(wrap_event(e));
        const nb::list stacks = wrap_stacks();
        if (last) python_stacks().forget();
        return nb::make_tuple(all, allocations, stacks, sums);
      },
      "Stop, and give the events since profile_start, the allocations, the stacks and the sums.");
  m.def(
      "profile_sample", [](double seconds, int signal) { sampler().start(seconds, signal); },
      "Look which lines of Python run, every so many seconds, until profile_sample_stop. From the main thread, where "
      "profile_look handles this signal.");
  m.def("profile_look", [](nb::handle, nb::handle) { sampler().look(); });
  m.def("profile_sample_stop", [] { sampler().stop(); });
  m.def(
      "profile_note",
      [](nb::handle tensor, const std::string& use) {
        check_type(is_tensor(tensor.ptr()), "profile_note: expected a tensor");
        note_memory_use(unwrap(tensor.ptr()), use == "parameter"  ? MemoryUse::parameter
                                              : use == "gradient" ? MemoryUse::gradient
                                                                  : MemoryUse::optimizer_state);
      },
      "Say what a tensor's memory serves for: parameter, gradient or optimizer_state.");
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
