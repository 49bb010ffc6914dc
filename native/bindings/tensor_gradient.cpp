// Tensor.grad, and Tensor.grad_dtype, which says what it is made to fit.
#include "bindings/tensor_gradient.h"

#include "bindings/arguments.h"
#include "dispatch/casting.h"

namespace cresset {

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    TensorImpl* const t = impl_of(self);
    const AutogradState* const s = state_of(t);
    if (s && s->grad.defined()) return wrap(s->grad);
    if (t->requires_grad && !t->level && !(s && s->retains_grad) && !is_leaf(Tensor(t)))
      warn(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed; backward leaves it None. Call "
          ".retain_grad() on it before backward to have its gradient kept, or read .grad of the leaf you meant");
    Py_RETURN_NONE;
  });
}

static void assign_grad(TensorImpl* t, PyObject* value) {
  if (!value || value == Py_None) {
    if (AutogradState* s = state_of(t)) s->grad.reset();
    return;
  }
  check_type(is_tensor(value), "assigned grad expected to be a Tensor or None but got ", Py_TYPE(value)->tp_name);
  const Tensor grad = unwrap(value);
  check(grad.get() != t, "can't assign Variable as its own grad");
  const ResultInfo to = gradient_info(Tensor(t));
  check(to.any_dtype || grad.dtype() == to.dtype, "attempting to assign a gradient with dtype '",
        alias_of(grad.dtype()), "' to a tensor with grad_dtype '", facts(to.dtype).legacy,
        "'. grad_dtype, where the tensor's own is not meant, says which dtype gradients have; None allows any");
  check(grad.device() == t->storage->device, "assigned grad has data located on a different device");
  check(grad.sizes() == t->sizes, "assigned grad has data of a different size: ", list(grad.sizes()),
        " for a tensor of size ", list(t->sizes));
  state_for_writing(t).grad = grad;
}
int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] { return assign_grad(impl_of(self), value), 0; }, -1);
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap(self);
    check(is_leaf(t), "grad_dtype can only be accessed on leaf tensors.");
    const ResultInfo to = gradient_info(t);
    return to.any_dtype ? Py_NewRef(Py_None) : wrap(to.dtype);
  });
}

static void choose_grad_dtype(const Tensor& t, PyObject* value) {
  check(value, "this attribute of a tensor cannot be deleted");
  check(is_leaf(t), "grad_dtype can only be set on leaf tensors.");
  check(value == Py_None || Py_TYPE(value) == dtype_type, "grad_dtype must be a torch.dtype or None, but got ",
        Py_TYPE(value)->tp_name);
  AutogradState& s = state_for_writing(t.get());
  if (value != Py_None) {
    const Dtype wanted = *to_dtype(value);
    check(!s.grad.defined() || s.grad.dtype() == wanted, "Cannot set grad_dtype to '", facts(wanted).legacy,
          "' because there is already a gradient with dtype '", alias_of(s.grad.dtype()), "'; set .grad to None first");
    s.grad_dtype = wanted;
  }
  s.any_grad_dtype = value == Py_None;
  if (s.accumulator) s.accumulator->results[0] = gradient_info(t);
}
int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  return guarded([&] { return choose_grad_dtype(unwrap(self), value), 0; }, -1);
}

}  // namespace cresset
