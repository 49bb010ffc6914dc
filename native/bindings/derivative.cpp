#include "bindings/derivative.h"

namespace cresset {
namespace {

class PythonDerivative : public Derivative {
 public:
  ~PythonDerivative() override { Py_XDECREF(function), Py_XDECREF(flat); }
  PyObject* function = nullptr;
  // For each parameter: 'g' the gradient, 'G' all gradients, 'a' which of them arrived, 'n' which are needed, 's' the
  // next saved value.
  std::string roles;
  PyObject* flat = nullptr;  // what a first gradient that is constant in pieces leads to, as a word
};

PyObject* wrap_saved(const SavedTensor& t, const Node& node) {
  return t.defined() ? wrap(t.unpack(node)) : Py_NewRef(Py_None);
}

PyObject* grads_tuple(const OperatorNode& node, const Grads& grads) {
  Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (int64_t i = 0; i < grads.size(); ++i) {
    Tensor grad = grads[i];
    // Zeros where no gradient arrived; None for results that have none, such as indices.
    if (!grad.defined() && i < node.results.size() && is_differentiable(node.results[i].dtype))
      grad = full(node.results[i].sizes, Scalar(0), node.results[i].dtype, node.results[i].device);
    PyTuple_SET_ITEM(tuple.get(), i, wrap(grad));
  }
  return tuple.release();
}

PyObject* arrived_tuple(const Grads& grads) {
  Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (int64_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, PyBool_FromLong(grads[i].defined()));
  return tuple.release();
}

PyObject* needs_tuple(const OperatorNode& node) {
  Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(node.edge_counts.size()))));
  int64_t edge = 0;
  for (int64_t k = 0; k < node.edge_counts.size(); ++k) {
    bool any = false;
    for (int j = 0; j < node.edge_counts[k]; ++j) any |= node.needs(edge++);
    PyTuple_SET_ITEM(tuple.get(), k, PyBool_FromLong(any));
  }
  return tuple.release();
}

Tensor as_gradient(PyObject* o, const char* who) {
  if (o == Py_None) return {};
  check_type(is_tensor(o), who, ": a derivative must give a Tensor or None, got ", Py_TYPE(o)->tp_name);
  return unwrap(o);
}

// Takes the callables a derivative yields and calls those whose gradient is needed: of autograd.grad, only what leads
// to its inputs.
void collect(const OperatorNode& node, PyObject* yielded, Grads& out) {
  const bool partial = backward_is_partial() && will_run(&node);  // forward mode runs nodes that are none of the run's
  const uint32_t constants = node.op.derivative->constants;
  const auto wanted = [&](int64_t edge) {
    return node.needs(edge) && (!partial || will_run(node.edges[edge].node.get()));
  };
  Ref iterator(require(PyObject_GetIter(yielded)));
  int64_t edge = 0;
  for (int64_t k = 0; k < node.edge_counts.size(); ++k) {
    if (constants >> k & 1) continue;  // it yields nothing for these
    const int count = node.edge_counts[k];
    bool any = false;
    for (int j = 0; j < count; ++j) any |= wanted(edge + j);
    Ref item(PyIter_Next(iterator.get()));
    if (!item) {
      if (PyErr_Occurred()) raise_python();
      break;  // the rest have no gradient
    }
    if (any && item.get() != Py_None) {
      Ref value(require(PyObject_CallNoArgs(item.get())));
      if (PyList_Check(value.get()) || PyTuple_Check(value.get())) {
        for (Py_ssize_t j = 0; j < count && j < PySequence_Fast_GET_SIZE(value.get()); ++j)
          if (wanted(edge + j)) out[edge + j] = as_gradient(PySequence_Fast_GET_ITEM(value.get(), j), node.name());
      } else {
        out[edge] = as_gradient(value.get(), node.name());
      }
    }
    edge += count;
  }
}

// Gives the first gradient, which is constant in pieces, a history that leads to what the derivative names as `flat`.
// A view has that of its base.
void lead_on(OperatorNode& node, PyObject* flat, const Grads& grads, Grads& out) {
  if (node.op.pointwise && node.edge_of_input(0) != 0) return;  // the first is a number
  if (!modes.grad_enabled || !node.needs(0) || !out[0].defined() || out[0]->base || is_interpreted(out[0])) return;
  const bool to_output = PyUnicode_CompareWithASCIIString(flat, "output") == 0;
  for (const Tensor& grad : grads)
    if (grad.get() == out[0].get()) out[0] = detach(grad);
  lead_flatly(out[0], to_output ? edge_of_output(node, 0) : node.edges[0]);
}

// A gradient may be of a class of its own, which a program gave it. A derivative is no question of the program's: no
// class that answers for calls is asked on its way.
struct Unasked {
  Answering before = Answering::nobody;
  bool is_changed = false;
  explicit Unasked(const Grads& grads) {
    for (const Tensor& grad : grads) is_changed |= grad.defined() && grad->wrapper && answers(grad);
    if (is_changed) before = set_answering(has_function_mode ? Answering::modes : Answering::nobody);
  }
  ~Unasked() {
    if (is_changed) set_answering(before);
  }
  static bool answers(const Tensor& grad) {
    PyObject* const o = static_cast<PyObject*>(grad->wrapper);
    if (is_plain_tensor(o) || is_interpreted(o) || has_torch_dispatch(Py_TYPE(o)))
      return false;  // or it is asked below
    return wants_torch_function(o);
  }
};

PyObject* pointwise_function = nullptr;  // cresset.ops.pointwise: backward by formula, on tensors

void pointwise_by_formula(OperatorNode& node, Grads& grads, Grads& out) {
  check(pointwise_function, node.name(), ": the formulas are not loaded");
  const PointwiseDefinition& def = *node.op.pointwise;
  Ref inputs(require(PyTuple_New(def.input_count))), attributes(require(PyTuple_New(def.scalar_count))),
      needs(needs_tuple(node));
  for (int i = 0; i < def.input_count; ++i)
    PyTuple_SET_ITEM(
        inputs.get(), i,
        node.is_number & (1 << i) ? wrap(node.pointwise_numbers[i]) : wrap_saved(node.pointwise_inputs[i], node));
  for (int k = 0; k < def.scalar_count; ++k) {
    const ScalarAttribute& value = node.attributes[k];
    PyTuple_SET_ITEM(
        attributes.get(), k,
        require(value.imag != 0 ? PyComplex_FromDoubles(value.real, value.imag) : PyFloat_FromDouble(value.real)));
  }
  Ref output(wrap_saved(node.pointwise_output, node)), grad(wrap(grads[0])), name(PyUnicode_FromString(def.name));
  const Unasked unasked(grads);
  Ref result(require(PyObject_CallFunctionObjArgs(pointwise_function, name.get(), grad.get(), inputs.get(),
                                                  output.get(), attributes.get(), needs.get(), nullptr)));
  PyObject *gradients = nullptr, *flat = nullptr;
  if (!PyArg_ParseTuple(result.get(), "O!O", &PyTuple_Type, &gradients, &flat)) raise_python();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(gradients); ++i)
    if (node.needs_input(static_cast<int>(i)))
      out[node.edge_of_input(static_cast<int>(i))] = as_gradient(PyTuple_GET_ITEM(gradients, i), node.name());
  if (flat != Py_None) lead_on(node, flat, grads, out);
}

void run_derivative(OperatorNode& node, Grads& grads, Grads& out) {
  if (node.op.pointwise) return pointwise_by_formula(node, grads, out);
  const auto& d = static_cast<const PythonDerivative&>(*node.op.derivative);
  std::vector<Ref> args;
  std::vector<PyObject*> raw;
  int64_t saved = 0;
  for (char role : d.roles) {
    switch (role) {
      case 'g':
        args.emplace_back(wrap(grads[0].defined() ? grads[0]
                                                  : full(node.results[0].sizes, Scalar(0), node.results[0].dtype,
                                                         node.results[0].device)));
        break;
      case 'G': args.emplace_back(grads_tuple(node, grads)); break;
      case 'a': args.emplace_back(arrived_tuple(grads)); break;
      case 'n': args.emplace_back(needs_tuple(node)); break;
      default: args.emplace_back(wrap_owned(node.saved[saved++], node)); break;
    }
    raw.push_back(args.back().get());
  }
  const Unasked unasked(grads);
  Ref yielded(require(PyObject_Vectorcall(d.function, raw.data(), raw.size(), nullptr)));
  collect(node, yielded.get(), out);
  if (d.flat) lead_on(node, d.flat, grads, out);
}

PyObject* set_pointwise_derivative(PyObject*, PyObject* function) {
  PyObject* old = pointwise_function;
  pointwise_function = Py_NewRef(function);
  Py_XDECREF(old);
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"set_pointwise_derivative", set_pointwise_derivative, METH_O, nullptr}, {}};

}  // namespace

PyObject* wrap_owned(const OwnedValue& v, const Node& node) {
  using What = Derivative::Saved::What;
  if (v.what == What::information) {
    if (v.value.kind != Kind::tensors)
      return v.value.is_none() ? Py_NewRef(Py_None) : wrap_info(v.rest->info, v.rest->integers[0]);
    Ref listed(require(PyList_New(0)));
    for (const TensorInfo& info : v.rest->infos) PyList_Append(listed.get(), Ref(wrap_info(info)).get());
    return listed.release();
  }
  switch (v.value.kind) {
    case Kind::none: Py_RETURN_NONE;
    case Kind::scalar: return wrap(v.value.scalar_);
    case Kind::tensor: return wrap_saved(v.tensor, node);
    case Kind::tensors: {
      Ref listed(require(PyList_New(0)));
      for (const SavedTensor& t : v.rest->tensors) PyList_Append(listed.get(), Ref(wrap_saved(t, node)).get());
      return listed.release();
    }
    case Kind::integers: return wrap_tuple(v.rest->integers);
    case Kind::reals: {
      Ref listed(require(PyList_New(0)));
      for (double x : v.rest->reals) PyList_Append(listed.get(), Ref(PyFloat_FromDouble(x)).get());
      return listed.release();
    }
    case Kind::dtype: return wrap(v.value.dtype_);
    case Kind::device: return wrap(v.value.device_);
    case Kind::layout: return wrap(v.value.layout_);
    case Kind::memory_format: return wrap(v.value.memory_format_);
    case Kind::text:
      return PyUnicode_FromStringAndSize(v.rest->text.data(), static_cast<Py_ssize_t>(v.rest->text.size()));
    default: Py_RETURN_NONE;
  }
}

// What the derivative says in `kept_for`: for which arguments' gradients this one is read; see registry.py.
static uint32_t kept_for(const Operator& op, PyObject* kept, const std::string& name) {
  PyObject* others = kept ? PyDict_GetItemString(kept, name.c_str()) : nullptr;
  uint32_t bits = 0;
  for (Py_ssize_t i = 0; others && i < PyTuple_GET_SIZE(others); ++i) {
    const int at = op.signature.index_of(PyUnicode_AsUTF8(PyTuple_GET_ITEM(others, i)));
    check_type(at >= 0, op.name(), ": kept_for names an argument that is none of ", op.signature.text);
    bits |= uint32_t{1} << at;
  }
  return bits;
}

void set_derivative(Operator& op, PyObject* function) {
  Ref code(require(PyObject_GetAttrString(function, "__code__")));
  Ref names(require(PyObject_GetAttrString(code.get(), "co_varnames"))),
      count(require(PyObject_GetAttrString(code.get(), "co_argcount")));
  Ref kept(PyObject_GetAttrString(function, "kept_for"));
  if (!kept) PyErr_Clear();
  Ref constants(PyObject_GetAttrString(function, "constants"));
  if (!constants) PyErr_Clear();
  auto d = std::make_unique<PythonDerivative>();
  d->function = Py_NewRef(function);
  if (!(d->flat = PyObject_GetAttrString(function, "flat"))) PyErr_Clear();
  for (long i = 0; i < PyLong_AsLong(count.get()); ++i) {
    const std::string name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names.get(), i));
    using S = Derivative::Saved;
    if (name == "grad") {
      d->roles += 'g';
    } else if (name == "grads") {
      d->roles += 'G';
    } else if (name == "arrived") {
      d->roles += 'a';
    } else if (name == "needs") {
      d->roles += 'n';
    } else if (name == "output" && op.signature.index_of(name) < 0) {  // unless an argument is called so
      d->roles += 's';
      d->saves.push_back({S::output, 0});
    } else if (name == "outputs") {
      d->roles += 's';
      d->saves.push_back({S::all_outputs, 0});
    } else if (int at = op.signature.index_of(name); at >= 0) {
      d->roles += 's';
      d->saves.push_back({S::argument, at, kept_for(op, kept.get(), name)});
    } else if (name.size() > 5 && name.ends_with("_info") &&
               (at = op.signature.index_of(name.substr(0, name.size() - 5))) >= 0) {
      d->roles += 's';
      d->saves.push_back({S::information, at});
    } else if (int result = 0; [&] {
                 for (; result < static_cast<int>(op.signature.results.size()); ++result)
                   if (op.signature.results[static_cast<size_t>(result)] == name) return true;
                 return false;
               }()) {
      d->roles += 's';
      d->saves.push_back({S::output, result});
    } else {
      fail(ErrorKind::type, op.name(), ": the derivative's parameter '", name,
           "' is none of grad, grads, needs, output, outputs, a result's name, an argument of ", op.signature.text);
    }
  }
  int k = 0;
  for (const Parameter& parameter : op.signature.parameters) {
    if (parameter.type != ArgType::tensor && parameter.type != ArgType::tensor_or_scalar &&
        parameter.type != ArgType::tensors)
      continue;
    if (constants && PySet_Contains(constants.get(), Ref(PyUnicode_FromString(parameter.name.c_str())).get()) == 1)
      d->constants |= uint32_t{1} << k;
    ++k;
  }
  op.derivative = std::move(d);
}

void add_derivatives(PyObject* module) {
  python_steps.derivative = run_derivative;
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
