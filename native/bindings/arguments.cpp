#include "bindings/arguments.h"

#include <cstring>

namespace cresset {
namespace {

const char* expected(const Parameter& p) {
  switch (p.type) {
    case ArgType::tensor: return "Tensor";
    case ArgType::tensors: return "tuple of Tensors";
    case ArgType::tensor_or_scalar: return "Tensor or Number";
    case ArgType::scalar: return "Number";
    case ArgType::integer: return "int";
    case ArgType::integers: return "tuple of ints";
    case ArgType::real: return "float";
    case ArgType::reals: return "tuple of floats";
    case ArgType::boolean: return "bool";
    case ArgType::dtype: return "torch.dtype";
    case ArgType::device: return "torch.device";
    case ArgType::layout: return "torch.layout";
    case ArgType::memory_format: return "torch.memory_format";
    case ArgType::text: return "str";
    case ArgType::generator: return "torch.Generator";
    default: return "object";
  }
}

// Of tensors: whether it may stand for a Python number, as a 0-d one without a gradient may.
bool is_one_number(PyObject* o) { return !is_tensor(o) || (impl_of(o)->dim() == 0 && !impl_of(o)->requires_grad); }

// The same for an integer, which a bool is not.
bool is_one_integer(PyObject* o) { return is_one_number(o) && !(is_tensor(o) && impl_of(o)->dtype == Dtype::b8); }

// One of several integers given as separate arguments: view(2, 3).
bool fits_varargs(PyObject* o, int64_t* value = nullptr) {
  if (PyBool_Check(o) || PyTuple_Check(o) || PyList_Check(o) || !PyIndex_Check(o)) return false;
  int64_t i = 0;
  try {
    if (!to_integer(o, i)) return false;
  } catch (const Error& e) {
    fail(ErrorKind::type, e.what());
  }
  if (value) *value = i;
  return true;
}

// A number without an imaginary part. Integers of any size are rounded.
bool to_real(PyObject* o, double& value) {
  if (PyFloat_Check(o)) {
    value = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyLong_Check(o)) {
    value = PyLong_AsDouble(o);
    if (value == -1.0 && PyErr_Occurred()) raise_python();
    return true;
  }
  Scalar s;
  if (!to_scalar(o, s) || s.kind == Scalar::Kind::complex) return false;
  value = s.real;
  return true;
}

// Subclasses see the calls while that is on; those that have no elements of their own see them always.
void note_override(PyObject* tensor, Arena& arena) {
  if (is_plain_tensor(tensor)) return;
  if (is_interpreted(tensor))
    arena.override_seen = arena.interpreted_seen = true;
  else if (classes_answer && wants_torch_function(tensor))
    arena.override_seen = true;
}

// One argument. False: of the wrong type.
bool convert_argument(const Parameter& p, PyObject* o, Value& v, Arena& arena) {
  if (o == Py_None && (p.optional || (p.has_default && p.default_value.is_none()))) {
    v = Value();
    return true;
  }
  switch (p.type) {
    case ArgType::tensor_or_scalar:
    case ArgType::tensor:
      if (is_tensor(o)) {
        note_override(o, arena);
        check(impl_of(o), "this tensor object was never initialized");
        v.kind = Kind::tensor;
        v.tensor_ = impl_of(o);
        return true;
      }
      if (p.type == ArgType::tensor || !is_number(o)) {  // not a tensor, but perhaps it answers for itself
        const bool answers = classes_answer && wants_torch_function(o);
        arena.override_seen |= answers;
        return answers;
      }
      v.kind = Kind::scalar;
      return to_scalar(o, v.scalar_);
    case ArgType::scalar:
      if (is_tensor(o) && (impl_of(o)->dim() != 0 || impl_of(o)->requires_grad || differs_by_sample(impl_of(o))))
        return false;
      v.kind = Kind::scalar;
      return (is_number(o) || is_tensor(o)) && to_scalar(o, v.scalar_);
    case ArgType::integer: {
      int64_t i;
      if (PyBool_Check(o) || !to_integer(o, i)) return false;
      if (!PyLong_CheckExact(o) && !p.one_element && !is_one_integer(o)) return false;
      v = Value(Scalar(i));
      return true;
    }
    case ArgType::real: {
      double real;
      if ((!is_number(o) && !(is_tensor(o) && is_one_number(o))) || !to_real(o, real)) return false;
      v = Value(Scalar(real));
      return true;
    }
    case ArgType::boolean:
      if (o == Py_None && p.name == "requires_grad") {
        v = Value(Scalar(false));
        return true;
      }
      if (PyBool_Check(o)) {
        v = Value(Scalar(o == Py_True));
        return true;
      } else {
        const std::string_view name = Py_TYPE(o)->tp_name;
        if (name != "numpy.bool" && name != "numpy.bool_")
          return false;  // a number is no answer: sum(0, 1) means two dimensions to most who write it
        v = Value(Scalar(PyObject_IsTrue(o) == 1));
        return true;
      }
    case ArgType::integers: {
      Dims& dims = arena.integers[static_cast<size_t>(arena.used_integers)];
      int64_t one;
      if (PyTuple_Check(o) || PyList_Check(o)) {
        if (!to_integers(o, dims)) return false;
      } else if (p.varargs ? fits_varargs(o, &one) : p.single && !PyBool_Check(o) && to_integer(o, one)) {
        dims = Dims{one};
      } else if (!to_integers(o, dims)) {
        return false;
      }
      ++arena.used_integers;
      v = Value(DimsView(dims));
      return true;
    }
    case ArgType::reals: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      arena.reals.clear();
      for (Py_ssize_t i = 0; const Ref item = item_of(o, i); ++i) {
        double real;
        if (!to_real(item.get(), real)) return false;
        arena.reals.push_back(real);
      }
      v.kind = Kind::reals;
      v.reals_ = arena.reals.data();
      v.count = static_cast<int64_t>(arena.reals.size());
      return true;
    }
    case ArgType::tensors: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      auto& tensors = arena.tensors[arena.used_tensors];
      tensors.clear();
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, i);
        if (item == Py_None && std::strchr(p.type_text.c_str(), '?')) {
          tensors.emplace_back();
          continue;
        }
        if (!is_tensor(item)) {
          if (classes_answer && wants_torch_function(item)) {
            arena.override_seen = true;
            continue;
          }
          return false;
        }
        note_override(item, arena);
        tensors.push_back(unwrap(item));
      }
      ++arena.used_tensors;
      v.kind = Kind::tensors;
      v.tensors_ = tensors.data();
      v.count = static_cast<int64_t>(tensors.size());
      return true;
    }
    case ArgType::dtype: {
      if (Py_TYPE(o) == dtype_type) {
        const char* quantized = reinterpret_cast<PyDtype*>(o)->quantized;
        check_implemented(
            !quantized, "torch.", quantized ? quantized : "",
            ": only a quantized tensor has this dtype; quantize_per_tensor and quantize_per_channel make one");
      }
      const std::optional<Dtype> dtype = to_dtype(o);
      if (dtype) v = Value(*dtype);
      return dtype.has_value();
    }
    case ArgType::device: {
      if (!PyObject_TypeCheck(o, device_type) && !PyUnicode_Check(o) && !(PyLong_Check(o) && !PyBool_Check(o)))
        return false;
      v = Value(parse_device(o));
      return true;
    }
    case ArgType::layout:
      if (Py_TYPE(o) != layout_type) return false;
      v.kind = Kind::layout;
      v.layout_ = reinterpret_cast<PyLayout*>(o)->value;
      if (v.layout_ != LayoutKind::strided) arena.override_seen = arena.interpreted_seen = true;
      return true;
    case ArgType::memory_format:
      if (Py_TYPE(o) != memory_format_type) return false;
      v.kind = Kind::memory_format;
      v.memory_format_ = reinterpret_cast<PyMemoryFormat*>(o)->value;
      return true;
    case ArgType::text: {
      if (!PyUnicode_Check(o)) return false;
      Py_ssize_t n;
      v.kind = Kind::text;
      v.text_ = PyUnicode_AsUTF8AndSize(o, &n);
      v.count = n;
      return true;
    }
    case ArgType::generator:
      if (!PyObject_TypeCheck(o, generator_type)) return false;
      v.kind = Kind::generator;
      v.generator_ = reinterpret_cast<PyGenerator*>(o)->value;
      return true;
    case ArgType::object:
      v.kind = Kind::object;
      v.object_ = o;
      return true;
  }
  return false;
}

// Of an argument that does not fit: its class, or that of the first of several integers that is none.
std::string what_it_is(const Parameter& p, PyObject* o) {
  if (p.type == ArgType::integers && (PyTuple_Check(o) || PyList_Check(o)))
    for (Py_ssize_t i = 0; const Ref item = item_of(o, i); ++i)
      if (!PyIndex_Check(item.get()))
        return join("but found element of type ", Py_TYPE(item.get())->tp_name, " at pos ", i);
  return join("not ", Py_TYPE(o)->tp_name);
}

// NumPy's names for the same arguments.
std::string_view canonical(std::string_view name) {
  static const std::pair<std::string_view, std::string_view> table[] = {
      {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"}, {"self", "input"},
      {"x1", "input"}, {"x2", "other"},         {"a", "input"}};
  for (auto& [from, to] : table)
    if (name == from) return to;
  return name;
}

}  // namespace

std::optional<Dtype> to_dtype(PyObject* o) {
  if (Py_TYPE(o) == dtype_type) return reinterpret_cast<PyDtype*>(o)->value;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return Dtype::f64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return Dtype::i64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return Dtype::b8;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return Dtype::c128;
  return std::nullopt;
}

bool bind(const Operator& op, const Arguments& a, Call& call, Arena& arena, std::string* why) {
  const auto& parameters = op.signature.parameters;
  const int n = static_cast<int>(parameters.size());
  Py_ssize_t next = 0;
  uint32_t given = 0;
  const auto wrong = [&](const Parameter& p, PyObject* o, Py_ssize_t position) {
    if (why) {
      *why = join(op.name(), "(): argument '", p.name, "'", position >= 0 ? join(" (position ", position + 1, ")") : "",
                  " must be ", expected(p), ", ", what_it_is(p, o));
    }
    return false;
  };
  int i = 0;
  for (; i < n && next < a.positional; ++i) {
    const Parameter& p = parameters[static_cast<size_t>(i)];
    if (p.keyword_only) break;
    if (p.varargs && (a.positional - next > 1 || fits_varargs(a.args[next])) && fits_varargs(a.args[next])) {
      // view(2, 3): all remaining positional arguments
      Dims& dims = arena.integers[static_cast<size_t>(arena.used_integers++)];
      dims.clear();
      for (; next < a.positional; ++next) {
        int64_t v;
        if (!fits_varargs(a.args[next], &v)) return wrong(p, a.args[next], next);
        dims.push_back(v);
      }
      call.args[i] = Value(DimsView(dims));
    } else {
      if (!convert_argument(p, a.args[next], call.args[i], arena)) return wrong(p, a.args[next], next);
      ++next;
    }
    given |= 1u << i;
  }
  if (next < a.positional) {
    if (why)
      *why = join(op.name(), "() takes ", i, " positional argument", i == 1 ? "" : "s", " but ", a.positional,
                  " were given");
    return false;
  }
  if (a.names) {
    const Py_ssize_t count = PyTuple_GET_SIZE(a.names);
    for (Py_ssize_t k = 0; k < count; ++k) {
      Py_ssize_t length;
      const char* text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(a.names, k), &length);
      std::string_view name(text, static_cast<size_t>(length));
      if (name == "out" && op.signature.index_of("out") < 0 && !op.inplace && !op.mutates && !op.view) {
        PyObject* o = a.args[a.positional + k];
        if (o == Py_None) continue;
        call.given_out = true;
        if (is_tensor(o)) {
          note_override(o, arena);
          call.give(unwrap(o));
        } else if (PyTuple_Check(o) || PyList_Check(o)) {
          for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(o); ++j) {
            PyObject* item = PySequence_Fast_GET_ITEM(o, j);
            if (!is_tensor(item)) {
              if (why)
                *why = join(op.name(), "(): argument 'out' must be tuple of Tensors, but found element of type ",
                            Py_TYPE(item)->tp_name, " at pos ", j);
              return false;
            }
            call.give(unwrap(item));
          }
        } else {
          if (why) *why = join(op.name(), "(): argument 'out' must be Tensor, not ", Py_TYPE(o)->tp_name);
          return false;
        }
        if (static_cast<size_t>(call.outputs.size()) != op.signature.results.size()) {
          if (why)
            *why = join(op.name(), "(): argument 'out' must hold ", op.signature.results.size(), " tensors, got ",
                        call.outputs.size());
          return false;
        }
        continue;
      }
      int at = op.signature.index_of(name);
      if (at < 0) at = op.signature.index_of(canonical(name));
      if (at < 0) {
        if (why) *why = join(op.name(), "() got an unexpected keyword argument '", name, "'");
        return false;
      }
      if (given & (1u << at)) {
        if (why) *why = join(op.name(), "() got multiple values for argument '", name, "'");
        return false;
      }
      PyObject* o = a.args[a.positional + k];
      if (!convert_argument(parameters[static_cast<size_t>(at)], o, call.args[at], arena))
        return wrong(parameters[static_cast<size_t>(at)], o, -1);
      given |= 1u << at;
    }
  }
  for (int k = 0; k < n; ++k) {
    if (given & (1u << k)) continue;
    const Parameter& p = parameters[static_cast<size_t>(k)];
    if (!p.has_default) {
      if (why) *why = join(op.name(), "() missing 1 required positional argument: \"", p.name, "\"");
      return false;
    }
    call.args[k] = p.default_value;
  }
  if (op.inplace && call.args[0].kind != Kind::tensor && !arena.override_seen) {  // there is nothing to write to
    if (why)
      *why = join(op.name(), "(): argument '", parameters[0].name, "' (position 1) must be Tensor, not a number");
    return false;
  }
  // A call on numbers alone has no tensor to promote to.
  if (op.pointwise) {
    bool any = false;
    for (int k = 0; k < op.pointwise->input_count; ++k) any |= call.args[k].kind == Kind::tensor;
    if (!any && !arena.override_seen) {
      if (op.pointwise->inputs[0] == 'b')
        return why ? (*why = join(op.name(), "(): argument 'condition' (position 1) must be Tensor"), false) : false;
      arena.made.push_back(wrapped_number(call.args[0].scalar_));
      call.args[0] = Value(arena.made.back());
    }
  }
  return true;
}

}  // namespace cresset
