// The profiler's record, for Python.
#pragma once
#include "bindings/python.h"

namespace cresset {

void add_profile(PyObject* module);

}  // namespace cresset
