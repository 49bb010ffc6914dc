// What the functions that make new tensors share: their keywords, and tensors shaped like another.
#pragma once
#include "dispatch/call.h"

namespace cresset {

// The keywords at the end of a signature, and how many arguments they are.
#define CRESSET_NEW \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool requires_grad=False"

struct NewOptions {
  Dtype dtype;
  Device device;
};
// Reads dtype, layout, device and pin_memory, which stand from argument `at` on. What is not given comes from out=, or
// else is `dtype` and `device`.
NewOptions new_options(const Call& c, int at, Dtype dtype, Device device = default_device());

// What empty_like promises: the sizes of `like`, with strides for the memory format at argument `format` (its own order
// of dimensions if there is none).
TensorInfo info_like(const Call& c, const Tensor& like, const NewOptions& options, int format);

// A bound of linspace or logspace: a number, or the one in a 0-d tensor, which is waited for.
inline Scalar bound(const Call& c, int i) { return c.args[i].is_tensor() ? item(c.tensor(i)) : c.scalar(i); }

// Whether empty tensors are filled (with nan, the largest integer or true), so that reading them gives the same every
// run.
void set_fill_uninitialized(bool on);
void fill_uninitialized(const Tensor& t);  // where that is asked for

}  // namespace cresset
