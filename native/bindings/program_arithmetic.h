// What the interpreter of torch.jit computes itself: numbers, texts and tensors by the slots of their types.
#pragma once
#include "bindings/python.h"
#include "dispatch/call.h"
#include "dispatch/late.h"
#include "dispatch/profile.h"
#include "tensor/requires_grad.h"

namespace cresset {

// Note [Temporaries that are written over]
// In `x * 2 + 1` nobody but the program sees `x * 2`. The lowering marks an operand that is read for the last time and
// that an operator of the program made; if then nobody else refers to it, the sum is written to its memory, and no
// storage, tensor and Python object is made: half of what a small operator costs. Gradients, tangents, vmap, modes and
// whoever watches calls find them as they stand in the program.
inline bool may_write_over(PyObject* o) {
  if (Py_REFCNT(o) != 1 || Py_TYPE(o) != tensor_type) return false;
  const PyTensor& object = *reinterpret_cast<PyTensor*>(o);
  const TensorImpl& t = *object.impl;
  const bool alone = object.owns && !object.weakrefs && !object.dict && t.use_count() == 1 &&
                     t.storage->use_count() == 1 && !t.base && !t.grad_state && t.level == 0;
  const bool plain = is_floating(t.dtype) && t.contiguous && !t.requires_grad && !t.has_tangent && !t.wrapped_number &&
                     t.storage->device.is_cpu() && !t.storage->layout.load(std::memory_order_relaxed);
  return alone && plain && t.inference == modes.inference && !modes.autocast && !modes.dispatching &&
         !has_function_mode && !computes_late && !profiling.load(std::memory_order_relaxed);
}
// The same where the result has the first operand's shape and dtype.
inline bool may_write_over(PyObject* o, PyObject* other) {
  if (PyFloat_CheckExact(other) || PyLong_CheckExact(other)) return may_write_over(o);
  if (!is_plain_tensor(other) || !is_tensor(o)) return false;
  const TensorImpl &a = *impl_of(o), &b = *impl_of(other);
  return a.dtype == b.dtype && a.sizes == b.sizes && !(requires_grad(b) && modes.grad_enabled) && !b.has_tangent &&
         !(b.base && b.base->has_tangent) && b.level == 0 && b.storage->device.is_cpu() &&
         !b.storage->layout.load(std::memory_order_relaxed) && may_write_over(o);
}

// To the program the result is new: the write is not counted.
class KeptVersion {
 public:
  explicit KeptVersion(PyObject* o) : storage_(*impl_of(o)->storage), version_(storage_.version) {}
  KeptVersion(const KeptVersion&) = delete;
  KeptVersion& operator=(const KeptVersion&) = delete;
  ~KeptVersion() { storage_.version = version_; }

 private:
  Storage& storage_;
  uint32_t version_;
};

inline PyObject* apply_over(PyObject* in_place, PyObject* a) {
  const KeptVersion version(a);
  return PyObject_CallOneArg(in_place, a);
}

inline PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
inline PyObject* power_in_place(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }
struct Binary {
  const char* name;
  PyObject* (*function)(PyObject*, PyObject*);
  binaryfunc PyNumberMethods::* slot = nullptr;      // what `function` finds when both operands are of one type
  binaryfunc PyNumberMethods::* in_place = nullptr;  // what writes the result to the first

  PyObject* operator()(PyObject* a, PyObject* b) const {
    PyTypeObject* const type = Py_TYPE(a);
    if (slot && type == Py_TYPE(b) && type->tp_as_number) {
      const binaryfunc direct = type->tp_as_number->*slot;
      PyObject* result = direct ? direct(a, b) : Py_NewRef(Py_NotImplemented);
      if (result != Py_NotImplemented) return result;
      Py_DECREF(result);
    }
    return function(a, b);
  }
  PyObject* over(PyObject* a, PyObject* b) const {
    const KeptVersion version(a);
    return (tensor_type->tp_as_number->*in_place)(a, b);
  }
};
const Binary kBinary[] = {
    {"add", PyNumber_Add, &PyNumberMethods::nb_add, &PyNumberMethods::nb_inplace_add},
    {"sub", PyNumber_Subtract, &PyNumberMethods::nb_subtract, &PyNumberMethods::nb_inplace_subtract},
    {"mul", PyNumber_Multiply, &PyNumberMethods::nb_multiply, &PyNumberMethods::nb_inplace_multiply},
    {"truediv", PyNumber_TrueDivide, &PyNumberMethods::nb_true_divide, &PyNumberMethods::nb_inplace_true_divide},
    {"floordiv", PyNumber_FloorDivide},
    {"mod", PyNumber_Remainder},
    {"pow", power},
    {"matmul", PyNumber_MatrixMultiply},
    {"and", PyNumber_And},
    {"or", PyNumber_Or},
    {"xor", PyNumber_Xor},
    {"lshift", PyNumber_Lshift},
    {"rshift", PyNumber_Rshift},
    {"iadd", PyNumber_InPlaceAdd},
    {"isub", PyNumber_InPlaceSubtract},
    {"imul", PyNumber_InPlaceMultiply},
    {"itruediv", PyNumber_InPlaceTrueDivide},
    {"ipow", power_in_place}};

inline PyObject* logical_not(PyObject* a) {
  const int truth = PyObject_IsTrue(a);
  return truth < 0 ? nullptr : PyBool_FromLong(!truth);
}
inline PyObject* to_bool(PyObject* a) {
  const int truth = PyObject_IsTrue(a);
  return truth < 0 ? nullptr : PyBool_FromLong(truth);
}
struct Unary {
  const char* name;
  PyObject* (*function)(PyObject*);
};
const Unary kUnary[] = {{"neg", PyNumber_Negative}, {"invert", PyNumber_Invert}, {"not", logical_not},
                        {"bool", to_bool},          {"int", PyNumber_Long},      {"float", PyNumber_Float},
                        {"abs", PyNumber_Absolute}};
const char* const kCompare[] = {"lt", "le", "eq", "ne", "gt", "ge"};  // in the order of Py_LT...

}  // namespace cresset
