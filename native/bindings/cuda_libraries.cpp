// What of CUDA's mathematical libraries Python asks for by itself: plans of Fourier transforms, and the routines of
// linear algebra (cresset/linalg/cusolver.py), which take matrices that lie column after column and write into them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/python.h"
#include "cuda/cufft.h"
#include "cuda/linalg.h"

namespace cresset {
namespace {

namespace nb = nanobind;
using namespace cuda;

Matrices matrices(nb::handle tensor) { return Matrices(unwrap(tensor.ptr())); }
char* bytes(nb::handle tensor) { return unwrap(tensor.ptr()).bytes(); }
int* numbers(nb::handle tensor) { return unwrap(tensor.ptr()).data<int>(); }

Form form_of(const std::string& letter) {
  return letter == "N" ? Form::plain : letter == "T" ? Form::transposed : Form::adjoint;
}

// A decomposition with two bases, each None if only values are asked for.
void with_bases(nb::handle a, nb::handle values, nb::handle u, nb::handle v, nb::handle info,
                void (*run)(const Matrices&, char*, const Matrices*, const Matrices*, int*)) {
  if (u.is_none()) return run(matrices(a), bytes(values), nullptr, nullptr, numbers(info));
  const Matrices left = matrices(u), right = matrices(v);
  run(matrices(a), bytes(values), &left, &right, numbers(info));
}

void add_solver(nb::module_ m) {
  m.def("problem", [] { return cusolver_problem(); }, "Why cuSOLVER is not there; empty when it is.");
  m.def("has_geev", has_geev);
  m.def("potrf", [](nb::handle a, bool upper, nb::handle info) { potrf(matrices(a), upper, numbers(info)); });
  m.def(
      "getrf",
      [](nb::handle a, nb::handle pivots, nb::handle info) {
        lu_factor(unwrap(a.ptr()), pivots.is_none() ? Tensor() : unwrap(pivots.ptr()), unwrap(info.ptr()));
      },
      nb::arg(), nb::arg().none(), nb::arg());
  m.def("getrs", [](nb::handle lu, nb::handle pivots, nb::handle b, const std::string& form) {
    lu_solve(unwrap(lu.ptr()), unwrap(pivots.ptr()), unwrap(b.ptr()), form_of(form));
  });
  m.def("row_order", [](nb::handle pivots, nb::handle order) { row_order(unwrap(pivots.ptr()), unwrap(order.ptr())); });
  m.def("trsm", [](nb::handle a, nb::handle b, bool upper, bool left, bool unit, const std::string& form) {
    solve_triangle(unwrap(a.ptr()), unwrap(b.ptr()), upper, left, unit, form_of(form));
  });
  m.def("potrs", [](nb::handle factor, nb::handle b, bool upper, bool by_rows) {
    cholesky_solve(unwrap(factor.ptr()), unwrap(b.ptr()), upper, by_rows);
  });
  m.def("check_pivots",
        [](const char* who, nb::handle pivots, int64_t rows) { check_pivots(who, unwrap(pivots.ptr()), rows); });
  m.def("geqrf", [](nb::handle a, nb::handle tau) { householder(unwrap(a.ptr()), unwrap(tau.ptr())); });
  m.def("orgqr", [](nb::handle q, nb::handle tau) { householder_product(unwrap(q.ptr()), unwrap(tau.ptr())); });
  m.def("least_squares", [](nb::handle a, nb::handle b, nb::handle info) {
    return least_squares(unwrap(a.ptr()), unwrap(b.ptr()), unwrap(info.ptr()));
  });
  m.def("ormqr", [](nb::handle a, nb::handle tau, nb::handle c, bool left, const std::string& form) {
    ormqr(matrices(a), bytes(tau), unwrap(tau.ptr()).size(-1), matrices(c), left, form_of(form));
  });
  m.def("sytrf",
        [](nb::handle a, nb::handle pivots, nb::handle info) { sytrf(matrices(a), numbers(pivots), numbers(info)); });
  m.def("sytrs", [](nb::handle a, nb::handle pivots, nb::handle b) {
    sytrs(matrices(a), unwrap(pivots.ptr()).data<int64_t>(), matrices(b));
  });
  m.def("syevd", [](nb::handle a, nb::handle values, bool upper, bool vectors, nb::handle info) {
    syevd(matrices(a), bytes(values), upper, vectors, numbers(info));
  });
  m.def(
      "gesvdj",
      [](nb::handle a, nb::handle values, nb::handle u, nb::handle v, nb::handle info) {
        with_bases(a, values, u, v, info, gesvdj);
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg());
  m.def(
      "gesvd",
      [](nb::handle a, nb::handle values, nb::handle u, nb::handle vh, nb::handle info) {
        with_bases(a, values, u, vh, info, gesvd);
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg());
  m.def(
      "geev",
      [](nb::handle a, nb::handle values, nb::handle vectors, nb::handle info) {
        if (vectors.is_none()) return geev(matrices(a), bytes(values), nullptr, numbers(info));
        const Matrices right = matrices(vectors);
        geev(matrices(a), bytes(values), &right, numbers(info));
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace

void add_cuda_libraries(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(nb::borrow<nb::module_>(module).attr("cuda"));
  m.def("count_fourier_plans", count_fourier_plans);
  m.def("most_fourier_plans", most_fourier_plans);
  m.def("set_most_fourier_plans", set_most_fourier_plans);
  m.def("forget_fourier_plans", forget_fourier_plans);
  add_solver(m.def_submodule("solver", "Routines of linear algebra on CUDA, under LAPACK's names."));
}

}  // namespace cresset
