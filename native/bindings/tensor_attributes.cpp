// The attributes of a tensor. Each asks the mode that watches and the tensor's class before it answers: a class with a
// __torch_function__ of its own is asked about `x.shape` as `Tensor.shape.__get__`.
#include "bindings/tensor_attributes.h"

#include "bindings/arguments.h"
#include "bindings/tensor_gradient.h"
#include "bindings/wrapper_layout.h"
#include "cuda/device.h"

namespace cresset {

namespace {

#define GETTER(name, ...)                 \
  PyObject* name(PyObject* self, void*) { \
    return guarded([&]() -> PyObject* {   \
      TensorImpl* t = impl_of(self);      \
      (void)t;                            \
      __VA_ARGS__;                        \
    });                                   \
  }

GETTER(get_shape, PyObject* said = t->level == kDispatched ? said_by_class(self, "size") : nullptr;
       return said ? said : wrap_size(t->sizes))
GETTER(get_dtype, return wrap(t->dtype))
GETTER(get_device, return wrap(t->storage->device))
GETTER(get_layout, return wrap(LayoutKind::strided))
GETTER(get_ndim, return PyLong_FromLongLong(t->dim()))
GETTER(get_itemsize, return PyLong_FromLongLong(size_of(t->dtype)))
GETTER(get_nbytes, return PyLong_FromLongLong(size_of(t->dtype) * t->numel))
GETTER(get_requires_grad, return PyBool_FromLong(requires_grad(Tensor(t))))
GETTER(get_is_leaf, return PyBool_FromLong(is_leaf(Tensor(t))))
GETTER(get_grad_fn, return wrap(t->requires_grad || t->base ? grad_fn(Tensor(t)) : RefPtr<Node>()))
GETTER(get_output_nr, const AutogradState* s = state_of(t); return PyLong_FromUnsignedLong(s ? s->output_index : 0))
GETTER(get_version, check(!t->inference, "Inference tensors do not track version counter.");
       return PyLong_FromUnsignedLong(t->storage->version))
GETTER(get_base, return t->base ? wrap(Tensor(t->base)) : Py_NewRef(Py_None))
GETTER(get_retains_grad, const AutogradState* s = state_of(t); return PyBool_FromLong(s && s->retains_grad))
GETTER(get_is_cuda, return PyBool_FromLong(cuda::is_cuda(t->storage->device)))
GETTER(get_is_cpu, return PyBool_FromLong(t->storage->device.is_cpu()))
GETTER(get_is_meta, return PyBool_FromLong(t->storage->device.is_meta()))
GETTER(get_false, Py_RETURN_FALSE)
GETTER(get_none, Py_RETURN_NONE)
GETTER(get_data, if (t->level) return wrap(detach(Tensor(t)));
       Tensor d = view_of(Tensor(t), t->sizes, t->strides, t->offset); d->storage = Storage::alias(t->storage);
       return wrap(d))
GETTER(get_impl_address, return PyLong_FromVoidPtr(t))
GETTER(get_backward_hooks, const AutogradState* s = state_of(t);
       return Py_NewRef(s && s->python_hooks ? static_cast<PyObject*>(s->python_hooks) : Py_None))

template <class F>
int set_guarded(PyObject* value, F&& f) {
  return guarded([&] { return value ? (f(), 0) : (fail("this attribute of a tensor cannot be deleted"), 0); }, -1);
}
int set_requires_grad_attribute(PyObject* self, PyObject* value, void*) {
  return set_guarded(value, [&] {
    check_type(PyBool_Check(value), "requires_grad must be a bool");
    const Tensor t = unwrap(self);
    check(value != Py_True || is_leaf(t), "you can only change requires_grad flags of leaf variables.");
    set_requires_grad(t, value == Py_True);
  });
}
int set_grad_fn(PyObject*, PyObject* value, void*) {
  return set_guarded(value, [] { check_type(false, "_grad_fn is set by operations; detach_() takes it away"); });
}
int set_data(PyObject* self, PyObject* value, void*) {
  return set_guarded(value, [&] {
    check_type(is_tensor(value), "Variable data has to be a tensor, but got ", Py_TYPE(value)->tp_name);
    TensorImpl *t = impl_of(self), *v = unwrap_elements("data: incompatible tensor type", value).get();
    check(!t->batch_level() && !v->batch_level(),
          "mutating directly with `.data` under vmap transform is not allowed: a sample has no memory of its own");
    check(is_differentiable(v->dtype) || !requires_grad(Tensor(t)),
          "data set to a tensor that requires gradients must be floating point or complex dtype");
    const bool has_another_dtype = t->dtype != v->dtype;
    // The version goes on: saved values of this tensor are no longer what they were.
    t->storage = v->storage;
    t->sizes = v->sizes;
    t->strides = v->strides;
    t->offset = v->offset;
    t->dtype = v->dtype;
    t->update_numel_and_contiguity();
    if (AutogradState* s = state_of(t); s && s->accumulator) s->accumulator->results[0] = gradient_info(Tensor(t));
    if (has_another_dtype) forget_accumulator(Tensor(t));  // as PyTorch's: what was recorded leads to the tensor it was
  });
}
int set_backward_hooks(PyObject* self, PyObject* value, void*) {
  return set_guarded(value, [&] {
    AutogradState& s = state_for_writing(impl_of(self));
    PyObject* old = static_cast<PyObject*>(s.python_hooks);
    s.python_hooks = value != Py_None ? Py_NewRef(value) : nullptr;
    Py_XDECREF(old);
  });
}

// ---------------------------------------------------------------- who is asked first

// The part of Tensor's descriptor that does it: __get__, __set__ or __delete__.
PyObject* ask_for_attribute(const void* name, const char* part, PyObject* self, PyObject* value = nullptr) {
  Ref attribute(
      require(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), static_cast<const char*>(name))));
  Ref function(require(PyObject_GetAttrString(attribute.get(), part)));
  PyObject* const args[] = {self, value};
  return ask_torch_function(function.get(), {args, value ? 2 : 1, nullptr}, true);
}
template <getter get>
PyObject* asking(PyObject* self, void* name) {
  if (may_answer_for(self)) [[unlikely]] {
    PyObject* said = guarded([&] { return ask_for_attribute(name, "__get__", self); });
    if (said || PyErr_Occurred()) return said;
  }
  return get(self, name);
}
template <setter set>
int asking(PyObject* self, PyObject* value, void* name) {
  if (may_answer_for(self)) [[unlikely]] {
    const Ref said(guarded([&] { return ask_for_attribute(name, value ? "__set__" : "__delete__", self, value); }));
    if (said.get() || PyErr_Occurred()) return said.get() ? 0 : -1;
  }
  return set(self, value, name);
}

// Attributes that are made of operators: the closure is the name, with the functions behind it.
struct Composed {
  std::string name;
  PyObject *get, *set;
};
PyObject* get_composed(PyObject* self, void* closure) {
  auto* c = static_cast<Composed*>(closure);
  if (may_answer_for(self)) [[unlikely]] {
    PyObject* said = guarded([&] { return ask_for_attribute(c->name.c_str(), "__get__", self); });
    if (said || PyErr_Occurred()) return said;
  }
  return PyObject_CallOneArg(c->get, self);
}
int set_composed(PyObject* self, PyObject* value, void* closure) {
  auto* c = static_cast<Composed*>(closure);
  return guarded(
      [&] {
        check(value, "this attribute of a tensor cannot be deleted");
        if (may_answer_for(self)) [[unlikely]]
          if (Ref said(ask_for_attribute(c->name.c_str(), "__set__", self, value)); said.get()) return 0;
        Ref(require(PyObject_CallFunctionObjArgs(c->set, self, value, nullptr)));
        return 0;
      },
      -1);
}

// PyTorch's attributes belong to a base class of Tensor, whose name some programs see.
void name_as_base(PyObject* descriptor) {
  auto* d = reinterpret_cast<PyDescrObject*>(descriptor);
  Py_XSETREF(d->d_qualname, require(PyUnicode_FromFormat("TensorBase.%U", d->d_name)));
}

// add_attribute(name, get, set=None): an attribute of Tensor that Python functions answer.
PyObject* add_attribute(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    PyObject *get, *set = Py_None;
    if (!PyArg_ParseTuple(args, "sO|O:add_attribute", &name, &get, &set)) raise_python();
    auto* composed = new Composed{name, Py_NewRef(get), Py_NewRef(set)};  // as long as Tensor
    auto* definition = new PyGetSetDef{composed->name.c_str(), get_composed, set == Py_None ? nullptr : set_composed,
                                       nullptr, composed};
    Ref descriptor(require(PyDescr_NewGetSet(tensor_type, definition)));
    name_as_base(descriptor.get());
    if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), name, descriptor.get()) < 0) raise_python();
    Py_RETURN_NONE;
  });
}
PyMethodDef functions[] = {
    {"add_attribute", add_attribute, METH_VARARGS, "An attribute of Tensor that Python functions answer."}, {}};

void* name(const char* text) { return const_cast<char*>(text); }

}  // namespace

PyGetSetDef tensor_attributes[] = {
    {"shape", asking<get_shape>, nullptr, "the sizes", name("shape")},
    {"dtype", asking<get_dtype>, nullptr, "the type of the elements", name("dtype")},
    {"device", asking<get_device>, nullptr, "where the data lives", name("device")},
    {"layout", asking<get_layout>, nullptr, nullptr, name("layout")},
    {"ndim", asking<get_ndim>, nullptr, "the number of dimensions", name("ndim")},
    {"itemsize", asking<get_itemsize>, nullptr, "bytes of one element", name("itemsize")},
    {"nbytes", asking<get_nbytes>, nullptr, "bytes of all elements", name("nbytes")},
    {"requires_grad", asking<get_requires_grad>, asking<set_requires_grad_attribute>, "whether gradients are wanted",
     name("requires_grad")},
    {"is_leaf", asking<get_is_leaf>, nullptr, "whether no recorded operation made it", name("is_leaf")},
    {"grad_fn", asking<get_grad_fn>, nullptr, "the node that made it, or None", name("grad_fn")},
    {"_grad_fn", asking<get_grad_fn>, asking<set_grad_fn>, nullptr, name("grad_fn")},
    {"grad", asking<get_grad>, asking<set_grad>, "the accumulated gradient, or None", name("grad")},
    {"_grad", asking<get_grad>, asking<set_grad>, nullptr, name("grad")},
    {"grad_dtype", asking<get_grad_dtype>, asking<set_grad_dtype>,
     "the dtype that gradients of this leaf have: its own unless another one is set; None takes them as they come",
     name("grad_dtype")},
    {"data", asking<get_data>, asking<set_data>, "the same memory without history", name("data")},
    {"output_nr", asking<get_output_nr>, nullptr, nullptr, name("output_nr")},
    {"_version", asking<get_version>, nullptr, "how often it was changed in place", name("_version")},
    {"_base", asking<get_base>, nullptr, "the tensor this is a view of, or None", name("_base")},
    {"retains_grad", asking<get_retains_grad>, nullptr, nullptr, name("retains_grad")},
    {"is_cuda", asking<get_is_cuda>, nullptr, nullptr, name("is_cuda")},
    {"is_cpu", asking<get_is_cpu>, nullptr, nullptr, name("is_cpu")},
    {"is_meta", asking<get_is_meta>, nullptr, nullptr, name("is_meta")},
    {"is_sparse", asking<get_false>, nullptr, nullptr, name("is_sparse")},
    {"is_sparse_csr", asking<get_false>, nullptr, nullptr, name("is_sparse_csr")},
    {"is_quantized", asking<get_false>, nullptr, nullptr, name("is_quantized")},
    {"is_mkldnn", asking<get_false>, nullptr, nullptr, name("is_mkldnn")},
    {"is_mps", asking<get_false>, nullptr, nullptr, name("is_mps")},
    {"is_xpu", asking<get_false>, nullptr, nullptr, name("is_xpu")},
    {"is_xla", asking<get_false>, nullptr, nullptr, name("is_xla")},
    {"is_ipu", asking<get_false>, nullptr, nullptr, name("is_ipu")},
    {"is_nested", asking<get_false>, nullptr, nullptr, name("is_nested")},
    {"name", asking<get_none>, nullptr, nullptr, name("name")},
    {"_cdata", asking<get_impl_address>, nullptr, nullptr, name("_cdata")},
    {"_backward_hooks", asking<get_backward_hooks>, asking<set_backward_hooks>, nullptr, name("_backward_hooks")},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};

PyObject* ask_for_method(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t positional,
                         PyObject* names) {
  Ref method(require(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + positional + (names ? PyTuple_GET_SIZE(names) : 0));
  return ask_torch_function(method.get(), {all.data(), positional + 1, names}, true);
}

void add_tensor_attributes(PyObject* module) {
  for (const PyGetSetDef* a = tensor_attributes; a->closure; ++a)
    name_as_base(Ref(require(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), a->name))).get());
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
