// Tensor.grad and Tensor.grad_dtype.
#pragma once
#include "bindings/python.h"

namespace cresset {

PyObject* get_grad(PyObject* self, void*);
int set_grad(PyObject* self, PyObject* value, void*);
PyObject* get_grad_dtype(PyObject* self, void*);
int set_grad_dtype(PyObject* self, PyObject* value, void*);

}  // namespace cresset
