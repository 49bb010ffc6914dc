// cresset._native.distributed: exchanges by MPI and signs of life, as plain functions on addresses; cresset/distributed
// makes PyTorch's functions of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arguments.h"
#include "bindings/distributed.h"
#include "cuda/nccl.h"
#include "distributed/heartbeat.h"
#include "distributed/mpi.h"

namespace cresset {
namespace {

namespace nb = nanobind;

// Runs f without the interpreter's lock; its errors become Python's.
template <class F>
auto unlocked(F&& f) {
  try {
    const nb::gil_scoped_release release;
    return f();
  } catch (...) {
    set_python_error();
    throw nb::python_error();
  }
}

Dtype dtype_from(PyObject* o) {
  const std::optional<Dtype> dtype = to_dtype(o);
  if (!dtype) throw nb::type_error("begin: expects a dtype");
  return *dtype;
}

// A call of the program in words. Every collective passes here, so nothing of Python is called.
std::string called(int64_t number, const char* name, nb::handle shape, const char* more, const char* file, int line) {
  std::string text = "call " + std::to_string(number) + ", " + name + "(";
  if (PyTuple_Check(shape.ptr())) {
    text += "[";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.ptr()); i++)
      text += (i ? ", " : "") + std::to_string(PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), i)));
    text += "] of ";
  }
  return text + more + "), at " + file + ":" + std::to_string(line);
}

void add_nccl(nb::module_ m) {
  m.def("nccl_problem", &cuda::nccl_problem, "Why NCCL is not there; empty when it is.");
  m.def("nccl_version", [] { return unlocked(cuda::nccl_version); });
  m.def("nccl_unique_id", [] {
    const std::string id = unlocked(cuda::nccl_unique_id);
    return nb::bytes(id.data(), id.size());
  });
  m.def("nccl_group_start", [] { unlocked(cuda::nccl_group_start); });
  m.def("nccl_group_end", [] { unlocked(cuda::nccl_group_end); });
  nb::class_<cuda::Communicator>(m, "Communicator", "Processes with a GPU each, which exchange by NCCL.")
      .def("__init__",
           [](cuda::Communicator* self, nb::bytes id, int rank, int size, int device) {
             const std::string words(id.c_str(), id.size());
             unlocked([&] { new (self) cuda::Communicator(words, rank, size, device); });
           })
      .def("begin",
           [](cuda::Communicator& c, int kind, uintptr_t from, uintptr_t to, int64_t count, nb::handle dtype,
              int reduction, int root, std::vector<int64_t> sent, std::vector<int64_t> received, uintptr_t stream) {
             const cuda::NcclPlan plan{kind,
                                       reinterpret_cast<const void*>(from),
                                       reinterpret_cast<void*>(to),
                                       count,
                                       dtype_from(dtype.ptr()),
                                       reduction,
                                       root,
                                       std::move(sent),
                                       std::move(received)};
             unlocked([&] { c.begin(plan, reinterpret_cast<cuda::StreamHandle>(stream)); });
           })
      .def("error", &cuda::Communicator::error)
      .def("abort", [](cuda::Communicator& c) { unlocked([&] { c.abort(); }); });
}

const char* const kStates[] = {"waiting", "moving", "done", "different", "failed"};

}  // namespace

void add_distributed(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module).def_submodule("distributed", "Exchanges between processes.");
  m.def("open_mpi", [](const std::string& path) { unlocked([&] { mpi::open(path); }); }, "Open the library at a path.");
  m.def("is_mpi_open", &mpi::is_open, "Whether a library is open.");
  m.def("start_mpi", [] { unlocked(mpi::start); }, "Start MPI, once in a process.");
  m.def("finish_mpi", [] { unlocked(mpi::finish); }, "End it.");

  nb::class_<mpi::Exchange>(m, "Exchange", "An exchange on its way.")
      .def_prop_ro("state", [](const mpi::Exchange& e) { return kStates[static_cast<int>(e.state())]; })
      .def_prop_ro("problem", &mpi::Exchange::problem)
      .def_prop_ro("source", &mpi::Exchange::source);
  nb::class_<mpi::Channel>(m, "Channel", "A group of processes that exchange in a fixed order.")
      .def_static("world", [] { return unlocked(mpi::Channel::world); })
      .def("among", [](const mpi::Channel& c, const std::vector<int>& ranks,
                       int tag) { return unlocked([&] { return c.among(ranks, tag); }); })
      .def_prop_ro("rank", &mpi::Channel::rank)
      .def_prop_ro("size", &mpi::Channel::size)
      .def_prop_ro("shares_memory", &mpi::Channel::shares_memory)
      .def("begin",
           [](mpi::Channel& c, int kind, uintptr_t from, uintptr_t to, int64_t count, nb::handle dtype, int reduction,
              int root, int tag, int64_t fingerprint, std::vector<int64_t> sent, std::vector<int64_t> received) {
             mpi::Plan plan{static_cast<mpi::Kind>(kind),
                            reinterpret_cast<const void*>(from),
                            reinterpret_cast<void*>(to),
                            count,
                            dtype_from(dtype.ptr()),
                            static_cast<mpi::Reduction>(reduction),
                            root,
                            tag,
                            fingerprint,
                            std::move(sent),
                            std::move(received),
                            {},
                            1};
             return unlocked([&] { return c.begin(std::move(plan)); });
           })
      .def("begin_sum",
           [](mpi::Channel& c, const std::vector<std::pair<uintptr_t, int64_t>>& pieces, nb::handle dtype,
              double factor, int64_t fingerprint) {
             mpi::Plan plan{};
             plan.kind = mpi::Kind::all_reduce;
             plan.dtype = dtype_from(dtype.ptr());
             plan.fingerprint = fingerprint;
             for (const auto& [at, count] : pieces) plan.pieces.push_back({reinterpret_cast<void*>(at), count});
             plan.factor = factor;
             return unlocked([&] { return c.begin(std::move(plan)); });
           })
      .def("poll", [](mpi::Channel& c, const mpi::Exchange& e,
                      int64_t microseconds) { return unlocked([&] { return c.poll(e, microseconds); }); })
      .def("abandon", &mpi::Channel::abandon)
      .def("release", [](mpi::Channel& c) { unlocked([&] { c.release(); }); });

  add_nccl(m);
  nb::class_<Heartbeat>(m, "Heartbeat", "A thread that tells a socket what the program does, each so many seconds.")
      .def("__init__",
           [](Heartbeat* self, int socket, nb::bytes before, double seconds) {
             new (self) Heartbeat(socket, std::string(before.c_str(), before.size()), seconds);
           })
      .def(
          "note",
          [](Heartbeat& self, int64_t number, const char* name, nb::handle shape, const char* more, const char* file,
             int line) { self.note(called(number, name, shape, more, file, line)); },
          nb::arg("number"), nb::arg("name"), nb::arg("shape").none(), nb::arg("more"), nb::arg("file"),
          nb::arg("line"))
      .def("heard",
           [](Heartbeat& self) {
             const std::string text = self.heard();
             return nb::bytes(text.data(), text.size());
           })
      .def("silence", &Heartbeat::silence);
}

}  // namespace cresset
