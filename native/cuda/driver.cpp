#include "cuda/driver.h"

#include "base/error.h"
#include "cuda/library.h"

namespace cresset::cuda {
namespace {

struct Started {
  Driver table;
  std::string problem;

  Started() {
    static auto* library = new Library({"libcuda.so.1", "libcuda.so"});
    if (!library->found()) {
      problem = "no NVIDIA driver: " + library->problem();
      return;
    }
#define CRESSET_LOOK_UP(name, parameters)                                            \
  table.name.now = reinterpret_cast<decltype(table.name.now)>(library->find(#name)); \
  if (!table.name.now && problem.empty()) problem = "the NVIDIA driver is too old: it has no " #name;
    CRESSET_DRIVER_FUNCTIONS(CRESSET_LOOK_UP)
#undef CRESSET_LOOK_UP
    if (!problem.empty()) return;
    if (const Status status = table.cuInit(0); status != kSuccess) {
      const char* text = nullptr;
      table.cuGetErrorString(status, &text);
      problem = join("the NVIDIA driver did not start: ", text ? text : "unknown error", " (", status, ")");
    }
  }
};

const Started& started() {
  static const auto* the = new Started;
  return *the;
}

}  // namespace

const std::string& driver_problem() { return started().problem; }

const Driver* started_driver = nullptr;

const Driver& start_driver() {
  const Started& s = started();
  check(s.problem.empty(), "Found no NVIDIA driver on your system: ", s.problem);
  started_driver = &s.table;
  return s.table;
}

void raise_status(Status status, const char* what) {
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName(status, &name);
  driver().cuGetErrorString(status, &text);
  const std::string_view call(what);
  fail(status == kOutOfMemory ? ErrorKind::out_of_memory : ErrorKind::runtime,
       "CUDA error: ", text ? text : "unknown error", " (", name ? name : "?", " from ", call.substr(0, call.find('(')),
       ")");
}

}  // namespace cresset::cuda
