// The Tensor type: object identity, number slots and the small methods that every program calls.
//
// Note [Who owns whom]
// A TensorImpl has at most one Python object. As long as Python refers to the object, the object owns the impl. When
// the last Python reference goes while C++ still holds the impl (a graph, a .grad), an object with state of its own (a
// __dict__, weak references, a subclass) must not be lost: ownership flips, the impl keeps the object alive, until
// Python asks for it again (wrap) or the impl dies too.
#include "bindings/python.h"
#include "bindings/tensor_attributes.h"
#include "bindings/wrapper_layout.h"
#include "cuda/device.h"
#include "dispatch/profile.h"
#include "tensor/backend.h"

namespace cresset {

Tensor tensor_from_data(PyObject* data, int dtype, Device device);  // data.cpp; dtype -1: what the data says

PyTypeObject* tensor_type = nullptr;
PyTypeObject* parameter_type = nullptr;
PyTypeObject* interpreted_type = nullptr;

namespace {

PyTensor* object_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

// ---------------------------------------------------------------- life and death

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  PyTensor* t = object_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->dict);
  if (t->impl && t->owns && t->impl->use_count() == 1)
    if (AutogradState* state = state_of(t->impl)) {
      Py_VISIT(static_cast<PyObject*>(state->python_hooks));
      for (auto* hooks : {&state->leaf_hooks, &state->post_accumulate})
        for (auto& hook : *hooks)
          if (hook->use_count() == 1) Py_VISIT(static_cast<PyObject*>(hook->object()));
      if (state->grad_fn && state->grad_fn->use_count() == 1) return visit_node(*state->grad_fn, visit, arg);
    }
  return 0;
}

int tensor_clear(PyObject* self) {
  PyTensor* t = object_of(self);
  Py_CLEAR(t->dict);
  if (t->impl && t->owns)
    if (AutogradState* state = state_of(t->impl)) {
      PyObject* hooks = static_cast<PyObject*>(std::exchange(state->python_hooks, nullptr));
      state->leaf_hooks.clear();
      state->post_accumulate.clear();
      if (state->grad_fn && state->grad_fn->use_count() == 1) clear_node(*state->grad_fn);
      Py_XDECREF(hooks);
    }
  return 0;
}

bool has_state(PyObject* self) {
  return Py_TYPE(self) != tensor_type || object_of(self)->dict || object_of(self)->weakrefs;
}

// The two words in front of a collected object; the lowest bit of the second says that it was finalized.
void forget_finalized(PyObject* self) { reinterpret_cast<uintptr_t*>(self)[-1] &= ~uintptr_t{1}; }

void tensor_finalize(PyObject* self) {
  PyTensor* t = object_of(self);
  if (!t->impl || !t->owns || t->impl->use_count() <= 1 || !has_state(self)) return;
  Py_INCREF(self);  // lives on, held by the impl
  t->owns = false;
  t->impl->owns_wrapper = true;
  t->impl->release();
}

void tensor_dealloc(PyObject* self) {
  PyTensor* t = object_of(self);
  if (t->impl && t->owns && t->impl->use_count() > 1 && has_state(self)) {
    if (PyObject_CallFinalizerFromDealloc(self) < 0) {
      forget_finalized(self);
      return;
    }
  }
  PyObject_GC_UnTrack(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->dict);
  if (TensorImpl* impl = std::exchange(t->impl, nullptr)) {
    impl->wrapper = nullptr;
    if (t->owns) impl->release();
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Nobody but Python may hold the impl any more. Where somebody got the object by a weak reference meanwhile, it takes
// the impl over, which lives on: true.
bool drop_wrapper(TensorImpl* impl) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* o = static_cast<PyObject*>(impl->wrapper);
  impl->owns_wrapper = false;
  const bool held = o && Py_REFCNT(o) > 1;
  if (held) {
    impl->retain();
    object_of(o)->owns = true;
    forget_finalized(o);
  } else if (o) {
    impl->wrapper = nullptr;
    object_of(o)->impl = nullptr;
  }
  Py_XDECREF(o);
  PyGILState_Release(gil);
  return held;
}

// torch.Tensor(...): the old constructor, a float tensor from sizes or data. A subclass made from a tensor shares its
// memory.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* legacy = PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "_legacy_new");
    Ref function(require(legacy));
    Ref made(require(PyObject_Call(function.get(), args, kwargs)));
    if (type == tensor_type) return made.release();
    check_type(is_tensor(made.get()), "Tensor: the constructor expects sizes, a tensor or data");
    Tensor t = unwrap(made.get());
    Tensor alias = view_of(t, t.sizes(), t.strides(), t.offset());
    return wrap_as(alias, type);
  });
}

// ---------------------------------------------------------------- small methods

#define METHOD(name, called, ...)                                       \
  PyObject* name(PyObject* self, PyObject*) {                           \
    return guarded([&]() -> PyObject* {                                 \
      if (may_answer_for(self)) [[unlikely]]                            \
        if (PyObject* said = ask_for_method(called, self)) return said; \
      TensorImpl* t = impl_of(self);                                    \
      (void)t;                                                          \
      __VA_ARGS__;                                                      \
    });                                                                 \
  }

METHOD(method_dim, "dim", return PyLong_FromLongLong(t->dim()))
METHOD(method_numel, "numel", return PyLong_FromLongLong(t->numel))
METHOD(method_item, "item", tell_value_watcher("the number in a tensor", self);
       const Profiled profiled("aten::", "item", ProfileKind::function); return wrap(item(Tensor(t))))
METHOD(method_data_ptr, "data_ptr", check_has_data(Tensor(t)); tell_value_watcher("the address of a tensor", self);
       return PyLong_FromVoidPtr(t->numel ? address_for_others(Tensor(t)) : nullptr))
METHOD(method_storage_offset, "storage_offset", return PyLong_FromLongLong(t->offset))
METHOD(method_is_floating, "is_floating_point", return PyBool_FromLong(is_floating(t->dtype)))
METHOD(method_is_complex, "is_complex", return PyBool_FromLong(is_complex(t->dtype)))
METHOD(method_is_signed, "is_signed", return PyBool_FromLong(facts(t->dtype).is_signed))
METHOD(method_is_inference, "is_inference", return PyBool_FromLong(t->inference))
METHOD(method_is_view, "_is_view", return PyBool_FromLong(static_cast<bool>(t->base)))
bool is_pinned(const Storage& s) {
  if (s.pinned) return true;
  if (!s.device.is_cpu()) return false;
  return std::any_of(std::begin(backends), std::end(backends), [&](Backend* b) { return b && b->is_pinned(s.data); });
}
METHOD(method_is_pinned, "_is_pinned", return PyBool_FromLong(is_pinned(*t->storage)))
METHOD(method_get_device, "get_device",
       return PyLong_FromLong(t->storage->device.is_cpu() ? -1 : std::max<int>(0, t->storage->device.index)))

// The argument of a method that takes one, by place or by name; null when it is not given.
PyObject* only_argument(const char* method, const char* name, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  check_type(n + named <= 1, method, "() takes 1 positional argument but ", n + named, " were given");
  if (named)
    check_type(PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name) == 0, method,
               "() got an unexpected keyword argument '", PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, 0)), "'");
  return n + named ? args[0] : nullptr;
}

// What a class says of its tensor, or one dimension of it.
PyObject* said_dimension(PyObject* stolen, PyObject* dim) {
  const Ref said(stolen);
  if (!dim || dim == Py_None) return Py_NewRef(said.get());
  return require(PyObject_GetItem(said.get(), dim));
}

PyObject* method_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("size", self, args, n, names)) return said;
    TensorImpl* t = impl_of(self);
    PyObject* dim = n == 0 && !names ? nullptr : only_argument("size", "dim", args, n, names);
    if (t->level == kDispatched)
      if (PyObject* said = said_by_class(self, "size")) return said_dimension(said, dim);
    if (!dim || dim == Py_None) return wrap_size(t->sizes);
    int64_t d;
    check_type(to_integer(dim, d), "size(): argument 'dim' must be int, not ", Py_TYPE(dim)->tp_name);
    check_index(t->dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
    return PyLong_FromLongLong(t->sizes[wrap_dim(d, t->dim())]);
  });
}
PyObject* method_stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("stride", self, args, n, names)) return said;
    TensorImpl* t = impl_of(self);
    PyObject* dim = only_argument("stride", "dim", args, n, names);
    if (t->level == kDispatched)
      if (PyObject* said = said_by_class(self, "stride")) return said_dimension(said, dim);
    if (!dim || dim == Py_None) return wrap_tuple(t->strides);
    int64_t d;
    check_type(to_integer(dim, d), "stride(): argument 'dim' must be int, not ", Py_TYPE(dim)->tp_name);
    check_index(t->dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
    return PyLong_FromLongLong(t->strides[wrap_dim(d, t->dim())]);
  });
}
PyObject* method_is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("is_contiguous", self, args, n, names)) return said;
    MemoryFormat format = MemoryFormat::contiguous;
    if (PyObject* given = only_argument("is_contiguous", "memory_format", args, n, names)) {
      check_type(PyObject_TypeCheck(given, memory_format_type),
                 "is_contiguous(): argument 'memory_format' must be torch.memory_format, not ",
                 Py_TYPE(given)->tp_name);
      format = reinterpret_cast<PyMemoryFormat*>(given)->value;
    }
    return PyBool_FromLong(is_contiguous(unwrap(self), format));
  });
}
PyObject* method_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("requires_grad_", self, args, n, names)) return said;
    PyObject* on = only_argument("requires_grad_", "requires_grad", args, n, names);
    check_type(!on || PyBool_Check(on), "requires_grad_(): argument 'requires_grad' must be bool, not ",
               on ? Py_TYPE(on)->tp_name : "");
    set_requires_grad(unwrap(self), on != Py_False, "only Tensors of floating point");
    return Py_NewRef(self);
  });
}
METHOD(
    method_detach_, "detach_", check(!t->base, "Can't detach views in-place. Use detach() instead.");
    if (AutogradState* s = state_of(t)) {
      s->grad_fn.reset();
      s->output_index = 0, s->tangents.clear();
    } t->requires_grad = t->has_tangent = false;
    return Py_NewRef(self))

#define FASTCALL(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef methods[] = {
    {"dim", method_dim, METH_NOARGS, "dim() -> int\n\nThe number of dimensions."},
    {"ndimension", method_dim, METH_NOARGS, "ndimension() -> int\n\nThe number of dimensions."},
    {"numel", method_numel, METH_NOARGS, "numel() -> int\n\nThe number of elements."},
    {"nelement", method_numel, METH_NOARGS, "nelement() -> int\n\nThe number of elements."},
    {"item", method_item, METH_NOARGS, "item() -> number\n\nThe only element as a Python number."},
    {"data_ptr", method_data_ptr, METH_NOARGS, "data_ptr() -> int\n\nThe address of the first element."},
    {"storage_offset", method_storage_offset, METH_NOARGS,
     "storage_offset() -> int\n\nThe place of the first element in the storage, in elements."},
    {"is_floating_point", method_is_floating, METH_NOARGS, "is_floating_point() -> bool"},
    {"is_complex", method_is_complex, METH_NOARGS, "is_complex() -> bool"},
    {"is_signed", method_is_signed, METH_NOARGS, "is_signed() -> bool"},
    {"is_inference", method_is_inference, METH_NOARGS,
     "is_inference() -> bool\n\nWhether it was made under inference_mode."},
    {"_is_view", method_is_view, METH_NOARGS, nullptr},
    {"_is_pinned", method_is_pinned, METH_NOARGS, nullptr},
    {"get_device", method_get_device, METH_NOARGS,
     "get_device() -> int\n\nThe number of the CUDA device, -1 on the CPU."},
    {"size", FASTCALL(method_size), METH_FASTCALL | METH_KEYWORDS,
     "size(dim=None) -> Size or int\n\nThe sizes, or the size of one dimension."},
    {"stride", FASTCALL(method_stride), METH_FASTCALL | METH_KEYWORDS,
     "stride(dim=None) -> tuple or int\n\nThe strides in elements."},
    {"is_contiguous", FASTCALL(method_is_contiguous), METH_FASTCALL | METH_KEYWORDS,
     "is_contiguous(memory_format=contiguous_format) -> bool"},
    {"requires_grad_", FASTCALL(method_requires_grad_), METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_(requires_grad=True) -> Tensor\n\nWant (or no longer want) gradients for this leaf."},
    {"detach_", method_detach_, METH_NOARGS, "detach_() -> Tensor\n\nForget the history, in place."},
    {}};

// ---------------------------------------------------------------- numbers

const Operator* find_op(const char* name) { return Registry::instance().find(name); }

// a OP b for tensors and Python numbers, straight to the call path. Anything else is a call of the method.
PyObject* binary(const Operator* op, Method& method, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    const bool ta = is_plain_tensor(a), tb = is_plain_tensor(b);
    if ((ta || tb) && !has_function_mode) {
      Call c(*op);
      const auto put = [](PyObject* o, bool plain, Value& v) {
        if (plain) {
          v.kind = Kind::tensor;
          v.tensor_ = impl_of(o);
          return true;
        }
        if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o) && !PyBool_Check(o)) return false;
        v.kind = Kind::scalar;
        return to_scalar(o, v.scalar_);
      };
      if (put(a, ta, c.args[0]) && put(b, tb, c.args[1])) {
        const auto& parameters = op->signature.parameters;
        for (size_t i = 2; i < parameters.size(); ++i) c.args[i] = parameters[i].default_value;
        return call_python_operator(c);
      }
    }
    const bool stranger = !(is_tensor(a) || is_number(a)) || !(is_tensor(b) || is_number(b));
    if (stranger && !wants_torch_function(a) && !wants_torch_function(b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject* args[2] = {a, b};
    PyObject* result = method.call(args, 2);
    if (!result && stranger && PyErr_ExceptionMatches(PyExc_TypeError)) {  // the other object may know what to do
      PyErr_Clear();
      Py_RETURN_NOTIMPLEMENTED;
    }
    return result;
  });
}

#define BINARY(function, name)                   \
  PyObject* function(PyObject* a, PyObject* b) { \
    static Method method{name};                  \
    static const Operator* op = find_op(name);   \
    return binary(op, method, a, b);             \
  }
BINARY(plus, "add")
BINARY(number_sub, "sub")
BINARY(multiply, "mul")
BINARY(divide, "div")
BINARY(number_floordiv, "floor_divide")
BINARY(number_remainder, "remainder")
BINARY(number_and, "bitwise_and")
BINARY(number_or, "bitwise_or")
BINARY(number_xor, "bitwise_xor")
BINARY(number_lshift, "bitwise_left_shift")
BINARY(number_rshift, "bitwise_right_shift")
BINARY(number_pow_two, "pow")
BINARY(number_iadd, "add_")
BINARY(number_isub, "sub_")
BINARY(number_imul, "mul_")
BINARY(number_idiv, "div_")
BINARY(number_ifloordiv, "floor_divide_")
BINARY(number_iremainder, "remainder_")
BINARY(number_iand, "bitwise_and_")
BINARY(number_ior, "bitwise_or_")
BINARY(number_ixor, "bitwise_xor_")
BINARY(number_ilshift, "bitwise_left_shift_")
BINARY(number_irshift, "bitwise_right_shift_")
BINARY(number_ipow_two, "pow_")
BINARY(compare_lt, "lt")
BINARY(compare_le, "le")
BINARY(compare_eq, "eq")
BINARY(compare_ne, "ne")
BINARY(compare_gt, "gt")
BINARY(compare_ge, "ge")

#define UNARY(function, name)                           \
  PyObject* function(PyObject* a) {                     \
    static Method method{name};                         \
    return guarded([&] { return method.call(&a, 1); }); \
  }
UNARY(number_neg, "neg")
UNARY(number_abs, "abs")
UNARY(bitwise_not, "bitwise_not")
UNARY(reciprocal, "reciprocal")

// 2 * x is x * 2 and 2 + x is x + 2, as in PyTorch: on the right a number keeps its precision among half ones, and an
// infinite x is not multiplied by an alpha without an imaginary part.
bool is_plain_number(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyComplex_CheckExact(o); }
PyObject* number_mul(PyObject* a, PyObject* b) { return is_plain_number(a) ? multiply(b, a) : multiply(a, b); }
PyObject* number_add(PyObject* a, PyObject* b) { return is_plain_number(a) ? plus(b, a) : plus(a, b); }

// A complex number by x is 1 / x times the number, as in PyTorch: for x = 0 it has no direction.
PyObject* number_div(PyObject* a, PyObject* b) {
  if (!PyComplex_CheckExact(a) || !is_tensor(b)) return divide(a, b);
  PyObject* inverse = reciprocal(b);
  if (!inverse) return nullptr;
  PyObject* result = multiply(inverse, a);
  Py_DECREF(inverse);
  return result;
}

PyObject* matmul(PyObject* a, PyObject* b) {
  static Method method{"matmul"};
  const bool stranger = !is_tensor(a) || !is_tensor(b);
  if (stranger && !wants_torch_function(a) && !wants_torch_function(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[2] = {a, b};
  return guarded([&] { return method.call(args, 2); });
}
// x ** 2 goes straight to square, when the result is what pow would give.
PyObject* number_pow(PyObject* a, PyObject* b, PyObject*) {
  static const Operator* pow = find_op("pow");
  if (is_plain_tensor(a) && !has_function_mode && (PyLong_CheckExact(b) || PyFloat_CheckExact(b)) && pow->instead) {
    return guarded([&]() -> PyObject* {
      Call c(*pow);
      c.args[0].kind = Kind::tensor;
      c.args[0].tensor_ = impl_of(a);
      c.args[1].kind = Kind::scalar;
      to_scalar(b, c.args[1].scalar_);
      const Operator* square = pow->instead(c);
      if (!square) return call_python_operator(c);
      Call squared(*square);
      squared.args[0] = c.args[0];
      return call_python_operator(squared);
    });
  }
  return number_pow_two(a, b);
}
PyObject* number_ipow(PyObject* a, PyObject* b, PyObject*) { return number_ipow_two(a, b); }
PyObject* number_positive(PyObject* a) { return Py_NewRef(a); }
PyObject* number_invert(PyObject* a) {
  return guarded([&] {
    const Dtype d = impl_of(a)->dtype;
    check_type(is_integral(d) || d == Dtype::b8,
               "~ (operator.invert) is only implemented on integer and Boolean-type tensors, this one is ", name_of(d));
    return bitwise_not(a);
  });
}

int truth_of(PyObject* said) {
  const int truth = PyObject_IsTrue(said);
  if (truth < 0) raise_python();
  return truth;
}
int number_bool(PyObject* self) {
  return guarded(
      [&] {
        if (may_answer_for(self)) [[unlikely]]
          if (Ref said(ask_for_method("__bool__", self)); said.get()) return truth_of(said.get());
        TensorImpl* t = impl_of(self);
        check(t->numel == 1, t->numel ? "Boolean value of Tensor with more than one value is ambiguous"
                                      : "Boolean value of Tensor with no values is ambiguous");
        check(!differs_by_sample(t),
              "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. Inside vmap "
              "it has a value for every sample, and the samples may not part ways; use torch.where instead");
        tell_value_watcher("the truth value of a tensor", self);
        const Scalar s = item(Tensor(t));
        return static_cast<int>(s.to<bool>());
      },
      -1);
}
Scalar only_element(PyObject* self) {
  check_value(impl_of(self)->numel == 1, "only one element tensors can be converted to Python scalars, this one has ",
              impl_of(self)->numel);
  tell_value_watcher("the number in a tensor", self);
  return item(unwrap(self));
}
PyObject* number_int(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("__int__", self)) return said;
    const Scalar s = only_element(self);
    if (s.is_integral())
      return s.beyond_int64 ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(s.integer))
                            : PyLong_FromLongLong(s.integer);
    check(s.kind != Scalar::Kind::complex || s.imag == 0,
          "value cannot be converted to type int64_t without overflow: it is complex");
    return PyLong_FromDouble(s.real);
  });
}
PyObject* number_float(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("__float__", self)) return said;
    const Scalar s = only_element(self);
    check(s.kind != Scalar::Kind::complex || s.imag == 0,
          "value cannot be converted to type double without overflow: it is complex");
    return PyFloat_FromDouble(s.real);
  });
}
PyObject* number_index(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (may_answer_for(self)) [[unlikely]]
      if (PyObject* said = ask_for_method("__index__", self)) return said;
    TensorImpl* t = impl_of(self);
    check_type(t->numel == 1 && (is_integral(t->dtype) || t->dtype == Dtype::b8),
               "only integer tensors of a single element can be converted to an index");
    return wrap(Scalar(item(Tensor(t)).integer));
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (std::string_view(Py_TYPE(b)->tp_name) ==
      "numpy.ndarray") {  // NumPy would leave the comparison to us, so Python would compare identities
    Ref shared(guarded([&] { return wrap(tensor_from_data(b, -1, {})); }));
    return shared ? compare(a, shared.get(), op) : nullptr;
  }
  switch (op) {
    case Py_LT: return compare_lt(a, b);
    case Py_LE: return compare_le(a, b);
    case Py_EQ: return compare_eq(a, b);
    case Py_NE: return compare_ne(a, b);
    case Py_GT: return compare_gt(a, b);
    default: return compare_ge(a, b);
  }
}

// id(tensor), as PyTorch's.
Py_hash_t tensor_hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self)); }

Py_ssize_t tensor_length(PyObject* self) {
  return guarded(
      [&]() -> Py_ssize_t {
        if (may_answer_for(self)) [[unlikely]]
          if (Ref said(ask_for_method("__len__", self)); said.get()) {
            const Py_ssize_t length = PyLong_AsSsize_t(said.get());
            if (length == -1 && PyErr_Occurred()) raise_python();
            return length;
          }
        TensorImpl* t = impl_of(self);
        check_type(t->dim() > 0, "len() of a 0-d tensor");
        return t->sizes[0];
      },
      static_cast<Py_ssize_t>(-1));
}

PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
                         {}};

}  // namespace

PyObject* wrap(const Tensor& t) {
  if (!t.defined()) Py_RETURN_NONE;
  TensorImpl* impl = t.get();
  if (impl->wrapper) {
    PyObject* o = static_cast<PyObject*>(impl->wrapper);
    if (impl->owns_wrapper) {  // flip back: the reference the impl held goes to the caller
      impl->owns_wrapper = false;
      impl->retain();
      object_of(o)->owns = true;
      forget_finalized(
          o);  // Python finalizes an object of a subclass once, and must ask again when it is dropped again
      return o;
    }
    return Py_NewRef(o);
  }
  return wrap_as(t, tensor_type);
}

PyObject* wrap_as(const Tensor& t, PyTypeObject* type) {
  auto* o = reinterpret_cast<PyTensor*>(require(type->tp_alloc(type, 0)));
  o->impl = t.get();
  o->impl->retain();
  o->owns = true;
  t->wrapper = o;
  if (type != tensor_type && !t->level && has_torch_dispatch(type)) t->level = kDispatched;
  return reinterpret_cast<PyObject*>(o);
}

void add_tensor_type(PyObject* module) {
  release_wrapper = drop_wrapper;
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_finalize, reinterpret_cast<void*>(tensor_finalize)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_getset, tensor_attributes},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
      {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
      {Py_mp_length, reinterpret_cast<void*>(tensor_length)},
      {Py_mp_subscript, reinterpret_cast<void*>(tensor_getitem)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_setitem)},
      {Py_nb_add, reinterpret_cast<void*>(number_add)},
      {Py_nb_subtract, reinterpret_cast<void*>(number_sub)},
      {Py_nb_multiply, reinterpret_cast<void*>(number_mul)},
      {Py_nb_true_divide, reinterpret_cast<void*>(number_div)},
      {Py_nb_floor_divide, reinterpret_cast<void*>(number_floordiv)},
      {Py_nb_remainder, reinterpret_cast<void*>(number_remainder)},
      {Py_nb_power, reinterpret_cast<void*>(number_pow)},
      {Py_nb_matrix_multiply, reinterpret_cast<void*>(matmul)},
      {Py_nb_and, reinterpret_cast<void*>(number_and)},
      {Py_nb_or, reinterpret_cast<void*>(number_or)},
      {Py_nb_xor, reinterpret_cast<void*>(number_xor)},
      {Py_nb_lshift, reinterpret_cast<void*>(number_lshift)},
      {Py_nb_rshift, reinterpret_cast<void*>(number_rshift)},
      {Py_nb_inplace_add, reinterpret_cast<void*>(number_iadd)},
      {Py_nb_inplace_subtract, reinterpret_cast<void*>(number_isub)},
      {Py_nb_inplace_multiply, reinterpret_cast<void*>(number_imul)},
      {Py_nb_inplace_true_divide, reinterpret_cast<void*>(number_idiv)},
      {Py_nb_inplace_floor_divide, reinterpret_cast<void*>(number_ifloordiv)},
      {Py_nb_inplace_remainder, reinterpret_cast<void*>(number_iremainder)},
      {Py_nb_inplace_power, reinterpret_cast<void*>(number_ipow)},
      {Py_nb_inplace_and, reinterpret_cast<void*>(number_iand)},
      {Py_nb_inplace_or, reinterpret_cast<void*>(number_ior)},
      {Py_nb_inplace_xor, reinterpret_cast<void*>(number_ixor)},
      {Py_nb_inplace_lshift, reinterpret_cast<void*>(number_ilshift)},
      {Py_nb_inplace_rshift, reinterpret_cast<void*>(number_irshift)},
      {Py_nb_negative, reinterpret_cast<void*>(number_neg)},
      {Py_nb_positive, reinterpret_cast<void*>(number_positive)},
      {Py_nb_absolute, reinterpret_cast<void*>(number_abs)},
      {Py_nb_invert, reinterpret_cast<void*>(number_invert)},
      {Py_nb_bool, reinterpret_cast<void*>(number_bool)},
      {Py_nb_int, reinterpret_cast<void*>(number_int)},
      {Py_nb_float, reinterpret_cast<void*>(number_float)},
      {Py_nb_index, reinterpret_cast<void*>(number_index)},
      {Py_tp_doc,
       const_cast<char*>("A multi-dimensional array of one element type, which can record what is computed from it.")},
      {0, nullptr}};
  PyType_Spec spec{"torch.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                   slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  tensor_type->tp_name = "Tensor";  // what messages call it
  PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
  add_tensor_attributes(module);
}

}  // namespace cresset
