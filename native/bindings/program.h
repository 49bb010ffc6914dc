// The interpreter of torch.jit, for Python.
#pragma once
#include "bindings/python.h"

namespace cresset {

void add_program(PyObject* module);

}  // namespace cresset
