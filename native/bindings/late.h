// Compiled regions, for Python: see Note [Computing late] in dispatch/late.h.
#pragma once
#include "bindings/python.h"

namespace cresset {

void add_late(PyObject* module);

}  // namespace cresset
