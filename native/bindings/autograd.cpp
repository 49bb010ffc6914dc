// Autograd's module functions: backward, modes, hooks, saved-tensor hooks, forward mode, and where in the program
// things happened.
#include "bindings/derivative.h"
#include "bindings/of_tensor.h"

namespace cresset {
namespace {

// ---------------------------------------------------------------- backward

// A tensor's edge, or a GradientEdge: (node, index, ...).
Edge edge_of(PyObject* o) {
  if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2) {
    RefPtr<Node> node = unwrap_node(PyTuple_GET_ITEM(o, 0));
    const long index = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
    if (index == -1 && PyErr_Occurred()) raise_python();
    check_index(index >= 0 && index < std::max<long>(static_cast<long>(node->results.size()), 1),
                "GradientEdge: ", node->name(), " has no result ", index);
    return {std::move(node), static_cast<uint32_t>(index)};
  }
  check_type(is_tensor(o), "expected a Tensor or a GradientEdge, got ", Py_TYPE(o)->tp_name);
  return gradient_edge(unwrap(o));
}

// run_backward(tensors, grads, keep_graph, create_graph, inputs or None, accumulate)
PyObject* run_backward_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *grads, *inputs;
    int keep, create, accumulate;
    if (!PyArg_ParseTuple(args, "O!O!ppOp", &PyTuple_Type, &tensors, &PyTuple_Type, &grads, &keep, &create, &inputs,
                          &accumulate))
      raise_python();
    BackwardRequest request;
    request.keep_graph = keep;
    request.create_graph = create;
    request.accumulate = accumulate;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
      Edge edge = edge_of(PyTuple_GET_ITEM(tensors, i));
      check(edge.node, "element ", i, " of tensors does not require grad and does not have a grad_fn");
      request.roots.push_back(edge);
      check_type(is_tensor(PyTuple_GET_ITEM(grads, i)), "gradients can be either Tensors or None, but got ",
                 Py_TYPE(PyTuple_GET_ITEM(grads, i))->tp_name);
      request.root_grads.push_back(unwrap(PyTuple_GET_ITEM(grads, i)));
    }
    if (inputs == Py_None) {
      run_backward(request);
      Py_RETURN_NONE;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs);
    for (Py_ssize_t i = 0; i < n; ++i) {
      Edge edge = edge_of(PyTuple_GET_ITEM(inputs, i));
      check(edge.node, "One of the differentiated Tensors does not require grad");
      request.wanted.push_back(edge);
    }
    const std::vector<Tensor> found = run_backward(request);
    Ref tuple(require(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap(found[static_cast<size_t>(i)]));
    return tuple.release();
  });
}

// Tensor.backward() on a scalar without further arguments, without a detour through Python.
PyObject* backward_scalar(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap(self);
    Edge edge = gradient_edge(t);
    check(edge.node, "element 0 of tensors does not require grad and does not have a grad_fn");
    check(t.numel() == 1, "grad can be implicitly created only for scalar outputs, but got shape ", tuple(t.sizes()));
    check(!is_complex(t.dtype()), "grad can be implicitly created only for real scalar outputs but got ",
          name_of(t.dtype()));
    BackwardRequest request;
    request.roots.push_back(edge);
    request.root_grads.push_back(full(t.sizes(), Scalar(1), t.dtype(), t.device()));
    run_backward(request);
    Py_RETURN_NONE;
  });
}

// ---------------------------------------------------------------- hooks

class DictHook : public TensorHook {  // calls every value of a dict; handles remove entries from it
 public:
  explicit DictHook(PyObject* dict) : dict_(Py_NewRef(dict)) {}
  ~DictHook() override { Py_DECREF(dict_); }
  void* object() const override { return dict_; }
  Tensor call(const Tensor& grad) override {
    Ref values(require(PyDict_Values(dict_)));
    Tensor now = grad;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      Ref result(
          require(PyObject_CallFunctionObjArgs(PyList_GET_ITEM(values.get(), i), Ref(wrap(now)).get(), nullptr)));
      if (result.get() == Py_None) continue;
      check_type(is_tensor(result.get()), "a tensor hook must return None or a Tensor, got ",
                 Py_TYPE(result.get())->tp_name);
      const Tensor changed = unwrap(result.get());
      now = changed;
      if (!grad.defined()) continue;
      check(changed.sizes() == grad.sizes(), "hook has changed the size of value: from ", list(grad.sizes()), " to ",
            list(changed.sizes()));
      check(changed.dtype() == grad.dtype(), "hook has changed the type of value: from ", name_of(grad.dtype()), " to ",
            name_of(changed.dtype()));
    }
    return now.get() == grad.get() ? Tensor() : now;
  }

 protected:
  PyObject* dict_;
};

RefPtr<WeakTensor> weak_of(const Tensor& t) {
  AutogradState& state = state_for_writing(t.get());
  if (!state.weak) {
    state.weak = RefPtr<WeakTensor>(new WeakTensor);
    state.weak->tensor = t.get();
  }
  return state.weak;
}

PyObject* add_tensor_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *dict;
    if (!PyArg_ParseTuple(args, "O!O!", tensor_type, &self, &PyDict_Type, &dict)) raise_python();
    const Tensor t = unwrap(self);
    check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
    RefPtr<TensorHook> hook(new DictHook(dict));
    if (RefPtr<Node> node = grad_fn(t))
      node->hooks_for_writing().on_results.push_back({state_of(t.get())->output_index, hook});
    else
      state_for_writing(t.get()).leaf_hooks.push_back(hook);
    Py_RETURN_NONE;
  });
}
PyObject* add_post_accumulate_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *dict;
    if (!PyArg_ParseTuple(args, "O!O!", tensor_type, &self, &PyDict_Type, &dict)) raise_python();
    const Tensor t = unwrap(self);
    check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
    check(is_leaf(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
    class Post : public DictHook {
     public:
      using DictHook::DictHook;
      Tensor call(const Tensor& leaf) override {
        Ref values(require(PyDict_Values(dict_)));
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
          const Ref given(wrap(leaf));
          const Ref result(
              require(PyObject_CallFunctionObjArgs(PyList_GET_ITEM(values.get(), i), given.get(), nullptr)));
          // What changes the leaf in place gives the leaf: `lambda p: p.add_(p.grad, alpha=-0.1)`.
          check_type(result.get() == Py_None || is_tensor(result.get()), "expected Variable, but hook returned '",
                     Py_TYPE(result.get())->tp_name, "'");
          check(result.get() == Py_None || result.get() == given.get(),
                "Tensor post accumulate grad hooks should return None.");
        }
        return {};
      }
    };
    state_for_writing(t.get()).post_accumulate.push_back(RefPtr<TensorHook>(new Post(dict)));
    Py_RETURN_NONE;
  });
}
PyObject* retain_grad(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap(self);
    check(requires_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
    RefPtr<Node> node = grad_fn(t);
    AutogradState& state = state_for_writing(t.get());
    if (!node || state.retains_grad) Py_RETURN_NONE;
    state.retains_grad = true;
    node->hooks_for_writing().retain.push_back({state.output_index, weak_of(t)});
    Py_RETURN_NONE;
  });
}

// ---------------------------------------------------------------- saved-tensor hooks

struct HookPair {
  Ref pack, unpack;
};
thread_local std::vector<HookPair> saved_hooks;
thread_local std::string saved_hooks_disabled;

class PackedByPython : public PackedTensor {
 public:
  PackedByPython(Ref packed, Ref unpack) : packed_(std::move(packed)), unpack_(std::move(unpack)) {}
  void* packed() const override { return packed_.get(); }
  void* unpack_hook() const override { return unpack_.get(); }
  Tensor unpack() override {
    Ref result(require(PyObject_CallFunctionObjArgs(unpack_.get(), packed_.get(), nullptr)));
    check_type(is_tensor(result.get()),
               "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
               Py_TYPE(result.get())->tp_name);
    return unwrap(result.get());
  }

 private:
  Ref packed_, unpack_;
};

RefPtr<PackedTensor> pack(const Tensor& t) {
  if (saved_hooks.empty()) return nullptr;
  const HookPair top = saved_hooks.back();
  return pack_with(top.pack.get(), top.unpack.get(), t);
}

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *p, *u;
    if (!PyArg_ParseTuple(args, "OO", &p, &u)) raise_python();
    check_type(PyCallable_Check(p) && PyCallable_Check(u), "saved_tensors_hooks: the hooks must be callable, got ",
               Py_TYPE(p)->tp_name, " and ", Py_TYPE(u)->tp_name);
    check(saved_hooks_disabled.empty(), saved_hooks_disabled);
    saved_hooks.push_back({Ref::borrow(p), Ref::borrow(u)});
    packs_saved_tensors = true;
    Py_RETURN_NONE;
  });
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  if (!saved_hooks.empty()) saved_hooks.pop_back();
  packs_saved_tensors = !saved_hooks.empty();
  Py_RETURN_NONE;
}
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    check_type(message == Py_None || PyUnicode_Check(message),
               "disable_saved_tensors_hooks: the message must be a str, got ", Py_TYPE(message)->tp_name);
    if (message != Py_None) check(saved_hooks.empty(), PyUnicode_AsUTF8(message));
    PyObject* before =
        saved_hooks_disabled.empty() ? Py_NewRef(Py_None) : PyUnicode_FromString(saved_hooks_disabled.c_str());
    saved_hooks_disabled = message == Py_None ? "" : PyUnicode_AsUTF8(message);
    return before;
  });
}
PyObject* saved_hooks_message(PyObject*, PyObject*) {
  return saved_hooks_disabled.empty() ? Py_NewRef(Py_None) : PyUnicode_FromString(saved_hooks_disabled.c_str());
}

// ---------------------------------------------------------------- where in the program

std::string package_folder;  // frames of cresset itself are skipped

bool is_ours(PyCodeObject* code) {
  if (package_folder.empty()) return false;
  Py_ssize_t n;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &n);
  return file && std::string_view(file, static_cast<size_t>(n)).starts_with(package_folder);
}

CodePosition capture() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  Ref holder = Ref::borrow(reinterpret_cast<PyObject*>(frame));
  while (true) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (!is_ours(code)) return {code, PyFrame_GetLasti(frame)};
    PyFrameObject* back = PyFrame_GetBack(frame);
    if (!back) return {code, PyFrame_GetLasti(frame)};
    Py_DECREF(code);
    holder = Ref(reinterpret_cast<PyObject*>(back));
    frame = back;
  }
}

std::string describe(CodePosition p) {
  auto* code = static_cast<PyCodeObject*>(p.code);
  const int line = PyCode_Addr2Line(code, p.instruction);
  std::string where = join(PyUnicode_AsUTF8(code->co_filename), ":", line, " in ", PyUnicode_AsUTF8(code->co_name));
  if (PyObject* linecache = PyImport_ImportModule("linecache")) {
    if (PyObject* text = PyObject_CallMethod(linecache, "getline", "Oi", code->co_filename, line)) {
      std::string source = PyUnicode_AsUTF8(text);
      const size_t first = source.find_first_not_of(" \t\n");
      if (first != std::string::npos)
        where += ": " + source.substr(first, source.find_last_not_of(" \t\n") - first + 1);
      Py_DECREF(text);
    }
    Py_DECREF(linecache);
  }
  if (PyErr_Occurred()) PyErr_Clear();
  return where;
}

void release_code_object(void* code) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(code));
  PyGILState_Release(gil);
}
void release_object(void* o) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(o));
  PyGILState_Release(gil);
}

// ---------------------------------------------------------------- anomaly mode, forward mode

PyObject *anomaly_note = nullptr, *anomaly_explain = nullptr, *forward_function = nullptr;

void note_anomaly(Node& node) {
  if (anomaly_note)
    Ref(require(PyObject_CallFunctionObjArgs(anomaly_note, Ref(wrap(RefPtr<Node>(&node))).get(), nullptr)));
}
void explain_anomaly(Node& node) {
  if (!anomaly_explain) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyObject* r = PyObject_CallFunctionObjArgs(anomaly_explain, Ref(wrap(RefPtr<Node>(&node))).get(), nullptr))
    Py_DECREF(r);
  else
    PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

}  // namespace

RefPtr<PackedTensor> pack_with(PyObject* pack, PyObject* unpack, const Tensor& t) {
  // The hook itself must not be seen by the hooks, nor recorded.
  const NoPacking alone;
  GradModeGuard off(false);
  const uint32_t version = t.version();
  Ref packed(require(PyObject_CallFunctionObjArgs(pack, Ref(wrap(t)).get(), nullptr)));
  check(t.version() == version,
        "A saved tensor pack hook is modifying its input in place. What is needed for backward would be another tensor "
        "then; clone it in the hook first.");
  return RefPtr<PackedTensor>(new PackedByPython(std::move(packed), Ref::borrow(unpack)));
}

PyObject* wrap_value(const Call& c, int i) {
  const Value& v = c.args[i];
  switch (v.kind) {
    case Kind::scalar: return wrap(v.scalar_);
    case Kind::tensor: return wrap(Tensor(v.tensor_));
    case Kind::tensors: {
      PyObject* l = PyList_New(0);
      for (const Tensor& t : c.tensors(i)) PyList_Append(l, Ref(wrap(t)).get());
      return l;
    }
    case Kind::integers: return wrap_tuple(c.integers(i));
    case Kind::reals: {
      PyObject* l = PyList_New(0);
      for (double x : c.reals(i)) PyList_Append(l, Ref(PyFloat_FromDouble(x)).get());
      return l;
    }
    case Kind::dtype: return wrap(v.dtype_);
    case Kind::device: return wrap(v.device_);
    case Kind::layout: return wrap(v.layout_);
    case Kind::generator: return wrap(*v.generator_);
    case Kind::memory_format: return wrap(v.memory_format_);
    case Kind::text: return PyUnicode_FromStringAndSize(v.text_, v.count);
    case Kind::object: return Py_NewRef(static_cast<PyObject*>(v.object_));
    default: Py_RETURN_NONE;
  }
}

namespace {

// forward_function(name, {argument: value}, outputs, the first argument before an in-place call, node, the tensor of
// each of its edges)
void forward_mode(Call& c) {
  if (!forward_function) return;
  Ref arguments(require(PyDict_New())), outputs(require(PyTuple_New(static_cast<Py_ssize_t>(c.outputs.size()))));
  for (size_t i = 0; i < c.op.signature.parameters.size(); ++i)
    PyDict_SetItemString(arguments.get(), c.op.signature.parameters[i].name.c_str(),
                         Ref(wrap_value(c, static_cast<int>(i))).get());
  for (int64_t i = 0; i < c.outputs.size(); ++i) PyTuple_SET_ITEM(outputs.get(), i, wrap(c.outputs[i]));
  Ref before(c.before.defined() ? wrap(c.before) : Py_NewRef(Py_None));
  std::vector<Tensor> sources;
  Ref node(wrap(node_for_tangents(c, sources))), edges(require(PyList_New(0)));
  for (const Tensor& t : sources) PyList_Append(edges.get(), Ref(wrap(t)).get());
  Ref(require(PyObject_CallFunction(forward_function, "sOOOOO", c.op.name().c_str(), arguments.get(), outputs.get(),
                                    before.get(), node.get(), edges.get())));
}

PyObject* set_python_hooks(PyObject*, PyObject* args) {
  PyObject *note, *explain, *forward;
  const char* folder;
  if (!PyArg_ParseTuple(args, "OOOs", &note, &explain, &forward, &folder)) return nullptr;
  anomaly_note = Py_NewRef(note);
  anomaly_explain = Py_NewRef(explain);
  forward_function = Py_NewRef(forward);
  package_folder = folder;
  Py_RETURN_NONE;
}
// run_node(node, gradients of its results): the gradients along its edges.
PyObject* run_node(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *object, *given;
    if (!PyArg_ParseTuple(args, "OO!", &object, &PyTuple_Type, &given)) raise_python();
    const RefPtr<Node> node = unwrap_node(object);
    Grads grads, out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i)
      grads.push_back(PyTuple_GET_ITEM(given, i) == Py_None ? Tensor() : unwrap(PyTuple_GET_ITEM(given, i)));
    out.resize(node->edges.size());
    node->backward(grads, out);
    Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(out.size()))));
    for (int64_t i = 0; i < out.size(); ++i) {
      const Edge& edge = node->edges[i];
      PyTuple_SET_ITEM(tuple.get(), i,
                       wrap(out[i].defined() && edge.node ? fit(node->name(), i, out[i], edge.node->results[edge.index])
                                                          : Tensor()));
    }
    return tuple.release();
  });
}
PyObject* set_tangent(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *tangent;
    long long level;
    if (!PyArg_ParseTuple(args, "O!OL", tensor_type, &self, &tangent, &level)) raise_python();
    check_type(tangent == Py_None || is_tensor(tangent), "set_tangent: expected a Tensor or None, got ",
               Py_TYPE(tangent)->tp_name);
    TensorImpl* t = impl_of(self);
    AutogradState& s = state_for_writing(t);
    std::erase_if(s.tangents, [&](auto& had) { return had.level == level; });
    if (tangent != Py_None) s.tangents.push_back({level, unwrap(tangent)});
    t->has_tangent = !s.tangents.empty();
    Py_RETURN_NONE;
  });
}
// What the node of a result keeps of the results: [(tensor, index)]. These are tensors of their own, and need tangents
// too.
PyObject* saved_outputs(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    Ref found(require(PyList_New(0)));
    const auto add = [&](const SavedTensor& s) {
      if (s.is_output() && s.raw().defined())
        PyList_Append(found.get(), Ref(require(Py_BuildValue("NI", wrap(s.raw()), s.output_index()))).get());
    };
    const RefPtr<Node> node = grad_fn(unwrap(self));
    if (auto* n = dynamic_cast<OperatorNode*>(node.get())) {
      add(n->pointwise_output);
      for (const OwnedValue& v : n->saved) {
        add(v.tensor);
        if (v.rest)
          for (const SavedTensor& s : v.rest->tensors) add(s);
      }
    }
    return found.release();
  });
}
// get_tangents(tensor) -> [(level, tangent)]
PyObject* get_tangents(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const TensorImpl* t = impl_of(self);
    if (t->base && t->base->has_tangent && !t->has_tangent) renew_view(*t);
    Ref found(require(PyList_New(0)));
    if (const AutogradState* s = state_of(t))
      for (auto& [level, tangent] : s->tangents)
        PyList_Append(found.get(),
                      Ref(require(Py_BuildValue("LN", static_cast<long long>(level), wrap(tangent)))).get());
    return found.release();
  });
}

// ---------------------------------------------------------------- modes

template <bool Modes::* member>
PyObject* get_mode(PyObject*, PyObject*) {
  return PyBool_FromLong(modes.*member);
}
// Sets a mode and returns what it was.
template <bool Modes::* member>
PyObject* set_mode(PyObject*, PyObject* on) {
  const bool before = modes.*member;
  modes.*member = PyObject_IsTrue(on) == 1;
  return PyBool_FromLong(before);
}
PyObject* gradient_edge_py(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    Edge e = gradient_edge(unwrap(self));
    check(e.node, "It is not possible to get the gradient edge for a Tensor that does not require gradients");
    return Py_BuildValue("NI", wrap(e.node), e.index);
  });
}
PyObject* current_backward_py(PyObject*, PyObject*) { return PyLong_FromLongLong(current_backward()); }
PyObject* running_node_py(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    RefPtr<Node> node = running_node();
    return node ? wrap(node) : Py_NewRef(Py_None);
  });
}
PyObject* backward_is_partial_py(PyObject*, PyObject*) { return PyBool_FromLong(backward_is_partial()); }
PyObject* will_run_py(PyObject*, PyObject* node) {
  return guarded([&] { return PyBool_FromLong(will_run(unwrap_node(node).get())); });
}
PyObject* after_backward_py(PyObject*, PyObject* step) {
  return guarded([&]() -> PyObject* {
    after_backward([callable = Ref::borrow(step)] { Ref(require(PyObject_CallNoArgs(callable.get()))); });
    Py_RETURN_NONE;
  });
}
PyObject* become_view_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* who;
    PyObject *self, *view;
    if (!PyArg_ParseTuple(args, "sO!O!", &who, tensor_type, &self, tensor_type, &view)) raise_python();
    const Tensor t = unwrap(self);
    if (!t.storage()->read_only) check_inplace(who, t, false);  // the memory itself is not written to
    become_view(t, unwrap(view));
    return Py_NewRef(self);
  });
}
PyObject* check_change(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* who;
    PyObject* self;
    if (!PyArg_ParseTuple(args, "sO!", &who, tensor_type, &self)) raise_python();
    check_inplace(who, unwrap(self), false);
    Py_RETURN_NONE;
  });
}
// enter_function(tensors): see Note [Captured tensors]; what leave_function wants afterwards. `tensors` is what the
// function is given: samples of vmap with the batches behind them.
PyObject* enter_function(PyObject*, PyObject* given) {
  return guarded([&]() -> PyObject* {
    check_type(PyTuple_Check(given), "enter_function: expected a tuple of tensors, got ", Py_TYPE(given)->tp_name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i)
      check_type(is_tensor(PyTuple_GET_ITEM(given, i)), "enter_function: expected tensors");
    Ref births(require(PyList_New(0)));
    const uint32_t number = ++functions_differentiated;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i)
      for (Tensor t = unwrap(PyTuple_GET_ITEM(given, i)); t.defined();
           t = t->batch_level() ? Tensor(t->batch) : Tensor())
        PyList_Append(births.get(), Ref(require(Py_BuildValue("NI", wrap(t), t.storage()->root().born))).get()),
            t.storage()->root().born = number;
    return require(Py_BuildValue("IN", std::exchange(modes.function, number), births.release()));
  });
}
PyObject* leave_function(PyObject*, PyObject* before) {
  return guarded([&]() -> PyObject* {
    PyObject* births;
    if (!PyArg_ParseTuple(before, "IO!", &modes.function, &PyList_Type, &births)) raise_python();
    for (Py_ssize_t i = PyList_GET_SIZE(births) - 1; i >= 0; --i) {  // the first counts of one that was given twice
      PyObject* tensor;
      unsigned born;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(births, i), "O!I", tensor_type, &tensor, &born)) raise_python();
      unwrap(tensor).storage()->root().born = born;
    }
    Py_RETURN_NONE;
  });
}
PyObject* bump_version(PyObject*, PyObject* self) {
  ++impl_of(self)->storage->version;
  Py_RETURN_NONE;
}
PyObject* set_version(PyObject*, PyObject* args) {
  PyObject* self;
  unsigned version;
  if (!PyArg_ParseTuple(args, "O!I", tensor_type, &self, &version)) return nullptr;
  impl_of(self)->storage->version = version;
  Py_RETURN_NONE;
}
// What inference mode made counts as made outside of it then: derivatives of `func` may be taken by it.
Tensor detach_from_inference(const Tensor& t) {
  if (t->batch_level() && t->inference)
    return sample_of(detach_from_inference(Tensor(t->batch)), t->batch_dim, t->level);
  const Tensor detached = detach(t);
  detached->inference = false;
  return detached;
}
PyObject* detach_py(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* { return wrap(detach_from_inference(unwrap(self))); });
}
// For the result of a function: what it is a view of was made there, and nobody else has it.
PyObject* forget_base(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap(self);
    if (!t->level) t->base = {}, t->view_origin = 0;
    return Py_NewRef(self);
  });
}
PyObject* set_keeps_grad_layout(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    check_type(PyBool_Check(on), "enforce_grad_layout_policy: expected a bool, got ", Py_TYPE(on)->tp_name);
    return PyBool_FromLong(std::exchange(keeps_grad_layout, on == Py_True));
  });
}
PyObject* forget_accumulator_py(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    forget_accumulator(unwrap(self));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"run_backward", run_backward_py, METH_VARARGS, nullptr},
    {"backward_scalar", of_tensor<backward_scalar>, METH_O, nullptr},
    {"add_tensor_hooks", add_tensor_hooks, METH_VARARGS, nullptr},
    {"add_post_accumulate_hooks", add_post_accumulate_hooks, METH_VARARGS, nullptr},
    {"retain_grad", of_tensor<retain_grad>, METH_O, nullptr},
    {"forget_accumulator", of_tensor<forget_accumulator_py>, METH_O, nullptr},
    {"push_saved_hooks", push_saved_hooks, METH_VARARGS, nullptr},
    {"pop_saved_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {"disable_saved_hooks", disable_saved_hooks, METH_O, nullptr},
    {"saved_hooks_message", saved_hooks_message, METH_NOARGS,
     "Why hooks on saved tensors are refused; None: they are not."},
    {"set_python_hooks", set_python_hooks, METH_VARARGS, nullptr},
    {"run_node", run_node, METH_VARARGS, nullptr},
    {"set_tangent", set_tangent, METH_VARARGS, nullptr},
    {"get_tangents", of_tensor<get_tangents>, METH_O, nullptr},
    {"saved_outputs", of_tensor<saved_outputs>, METH_O, nullptr},
    {"is_grad_enabled", get_mode<&Modes::grad_enabled>, METH_NOARGS,
     "is_grad_enabled() -> bool\n\nWhether operations are recorded."},
    {"set_grad_mode", set_mode<&Modes::grad_enabled>, METH_O, nullptr},
    {"set_keeps_grad_layout", set_keeps_grad_layout, METH_O, nullptr},
    {"is_inference_mode_enabled", get_mode<&Modes::inference>, METH_NOARGS, "is_inference_mode_enabled() -> bool"},
    {"set_inference_mode", set_mode<&Modes::inference>, METH_O, nullptr},
    {"set_keeps_inference", set_mode<&Modes::keeps_inference>, METH_O, nullptr},
    {"is_anomaly_enabled", get_mode<&Modes::anomaly>, METH_NOARGS, "is_anomaly_enabled() -> bool"},
    {"set_anomaly", set_mode<&Modes::anomaly>, METH_O, nullptr},
    {"is_anomaly_check_nan_enabled", get_mode<&Modes::anomaly_checks_nan>, METH_NOARGS,
     "is_anomaly_check_nan_enabled() -> bool\n\nWhether detect_anomaly() looks for nan in gradients."},
    {"set_anomaly_check_nan", set_mode<&Modes::anomaly_checks_nan>, METH_O, nullptr},
    {"gradient_edge", of_tensor<gradient_edge_py>, METH_O, nullptr},
    {"current_backward", current_backward_py, METH_NOARGS, nullptr},
    {"running_node", running_node_py, METH_NOARGS,
     "The node whose derivative or hooks this thread's backward runs; None outside of any."},
    {"backward_is_partial", backward_is_partial_py, METH_NOARGS, nullptr},
    {"will_run", will_run_py, METH_O, nullptr},
    {"after_backward", after_backward_py, METH_O, nullptr},
    {"become_view", become_view_py, METH_VARARGS, nullptr},
    {"check_change", check_change, METH_VARARGS,
     "check_change(who, tensor)\n\nRaise what a change of the tensor in place would, now."},
    {"enter_function", enter_function, METH_O, nullptr},
    {"leave_function", leave_function, METH_O, nullptr},
    {"bump_version", of_tensor<bump_version>, METH_O, nullptr},
    {"set_version", set_version, METH_VARARGS, nullptr},
    {"detach_raw", of_tensor<detach_py>, METH_O, nullptr},
    {"forget_base", of_tensor<forget_base>, METH_O, nullptr},
    {}};

bool interpreted(const Tensor& t) { return is_interpreted(static_cast<PyObject*>(t->wrapper)); }

Tensor interpret(const char* method, const Tensor& self, const Tensor& other) {
  Ref object(wrap(self)), name(require(PyUnicode_FromString(method))),
      argument(other.defined() ? wrap(other) : nullptr);
  Ref result(require(PyObject_CallMethodObjArgs(object.get(), name.get(), argument.get(), nullptr)));
  check_type(is_tensor(result.get()), method, ": expected a Tensor, got ", Py_TYPE(result.get())->tp_name);
  return unwrap(result.get());
}

}  // namespace

void add_autograd(PyObject* module) {
  install_autograd();
  python_steps.forward_mode = forward_mode;
  python_steps.capture = capture;
  python_steps.describe = describe;
  python_steps.pack = pack;
  python_steps.release_object = release_object;
  python_steps.note_anomaly = note_anomaly;
  python_steps.explain_anomaly = explain_anomaly;
  python_steps.interpreted = interpreted;
  python_steps.interpret = interpret;
  release_code = release_code_object;
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
