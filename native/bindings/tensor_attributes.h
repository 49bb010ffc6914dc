// The attributes of a tensor, and the question who answers for them and for the small methods in the tensor's place.
#pragma once
#include "bindings/python.h"

namespace cresset {

extern PyGetSetDef tensor_attributes[];
void add_tensor_attributes(PyObject* module);

// Whether a mode watches attributes, or the tensor's class has a __torch_function__ of its own.
inline bool may_answer_for(PyObject* self) {
  if (is_plain_tensor(self) && !attribute_modes.load(std::memory_order_relaxed)) [[likely]]
    return false;
  return has_attribute_mode || (classes_answer && !is_interpreted(self) && wants_torch_function(self));
}

// What the mode or the class makes of a call of a method of Tensor; null without an error: nobody answered.
PyObject* ask_for_method(const char* name, PyObject* self, PyObject* const* args = nullptr, Py_ssize_t positional = 0,
                         PyObject* names = nullptr);

}  // namespace cresset
