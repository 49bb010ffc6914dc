// Derivatives written in Python: `@operator.derivative` functions whose parameter names say what backward needs.
#pragma once
#include "bindings/python.h"

namespace cresset {

// Reads the function's parameters: grad, grads, arrived, needs, output, outputs, an argument's name, or <tensor
// argument>_info.
void set_derivative(Operator& op, PyObject* function);
PyObject* wrap_owned(const OwnedValue& v, const Node& node);
// What a pair of saved-tensor hooks makes of a tensor.
RefPtr<PackedTensor> pack_with(PyObject* pack, PyObject* unpack, const Tensor& t);

}  // namespace cresset
