// Functions of one tensor that Python calls: what is no tensor is a TypeError before it is read as one.
#pragma once
#include "bindings/python.h"

namespace cresset {

template <PyObject* (*function)(PyObject*, PyObject*)>
PyObject* of_tensor(PyObject* module, PyObject* argument) {
  if (is_tensor(argument)) [[likely]]
    return function(module, argument);
  return PyErr_Format(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(argument)->tp_name);
}

}  // namespace cresset
