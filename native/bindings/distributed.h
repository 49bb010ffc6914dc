// Exchanges between processes, for Python.
#pragma once
#include "bindings/python.h"

namespace cresset {

void add_distributed(PyObject* module);

}  // namespace cresset
