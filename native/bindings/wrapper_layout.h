// Sizes and strides that a class with __torch_dispatch__ tells of its tensors, in place of those they were made with.
#pragma once
#include "bindings/python.h"

namespace cresset {

// What the class says is the "size" or "stride": a tuple; null if it says nothing.
PyObject* said_by_class(PyObject* tensor, const char* what);

}  // namespace cresset
