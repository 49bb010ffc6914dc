// Kernels that compute in float or double: half precision is computed in float.
#pragma once
#include "ops/reduction.h"
#include "tensor/convert.h"

namespace cresset {

inline Dtype computed_dtype(Dtype d) { return d == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

// f.operator()<T>() with the type that elements of this dtype are computed in.
template <class F>
void visit_computed(Dtype d, const char* who, F&& f) {
  check_implemented(is_floating(d) && size_of(d) > 1, '"', who, "\" not implemented for '", legacy_name(d), "'");
  if (d == Dtype::f64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

// The elements as T, one after the other.
template <class T>
Tensor ready(const Tensor& t) {
  return contiguous(convert(t, dtype_of<T>));
}

}  // namespace cresset
