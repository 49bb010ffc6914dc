// What of CUDA's mathematical libraries Python asks for by itself: plans of Fourier transforms.
#include <nanobind/nanobind.h>

#include "bindings/python.h"
#include "cuda/cufft.h"

namespace cresset {

namespace nb = nanobind;
using namespace cuda;

void add_cuda_libraries(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(nb::borrow<nb::module_>(module).attr("cuda"));
  m.def("count_fourier_plans", count_fourier_plans);
  m.def("most_fourier_plans", most_fourier_plans);
  m.def("set_most_fourier_plans", set_most_fourier_plans);
  m.def("forget_fourier_plans", forget_fourier_plans);
}

}  // namespace cresset
