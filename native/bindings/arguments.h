// Binding Python arguments to an operator's signature.
#pragma once
#include <array>
#include <optional>

#include "bindings/python.h"

namespace cresset {

// Keeps alive what bound Values point to.
struct Arena {
  std::array<Dims, 4> integers;
  std::vector<Tensor> tensors[3];
  std::vector<double> reals;
  SmallVector<Tensor, 2> made;  // 0-d tensors made from numbers
  int used_integers = 0, used_tensors = 0;
  bool override_seen = false;     // an argument wants __torch_function__
  bool interpreted_seen = false;  // and has no elements of its own
};

struct Arguments {
  PyObject* const* args;
  Py_ssize_t positional;
  PyObject* names;  // tuple of keyword names, or null; their values follow the positional ones
};

// Asks the modes, then the overriding arguments, to compute a call of `function`. Null without an error: nobody
// answered. `skip_interpreted`: tensors that are made of others are not asked, as they know only operators.
PyObject* ask_torch_function(PyObject* function, const Arguments& arguments, bool skip_interpreted = false);

// Whether an object, or one in it, has a __torch_function__ of its own: `levels` of lists and tuples are looked into.
// Tensors that are made of others are not asked (function_type.cpp).
bool may_answer(PyObject* o, int levels = 2);

// Faces: further objects for one function, each with a name and a module of its own, by which __torch_function__ tells
// Tensor.add from torch.add and special.erfinv from torch.erfinv (function_type.cpp).
PyObject* operator_face(PyObject* of, PyObject* name, PyObject* module);
PyObject* operator_behind(PyObject* face);  // borrowed; null where it is none
PyObject* reduce_face(PyObject* of, PyObject* name, PyObject* module);

// The dtype that an object names: a torch.dtype, or one of the Python types float, int, bool and complex.
std::optional<Dtype> to_dtype(PyObject* o);

// Fills call.args. False: the arguments do not fit, and `why` (when given) says how.
bool bind(const Operator& op, const Arguments& arguments, Call& call, Arena& arena, std::string* why);

}  // namespace cresset
