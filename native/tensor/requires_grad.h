// Whether gradients are wanted for a tensor.
#pragma once

#include "tensor/tensor.h"

namespace cresset {

// Its own flag, or (for a view) that of the tensor it shows a part of, which may have been set after the view was made.
inline bool requires_grad(const TensorImpl& t) { return t.requires_grad || (t.base && t.base->requires_grad); }
inline bool requires_grad(const Tensor& t) { return requires_grad(*t); }

}  // namespace cresset
