// Nodes as Python sees them (grad_fn), and nodes whose backward is a Python method (autograd.Function).
//
// The object of an operator's node owns the node and is made anew when asked for. A Function's context is the other way
// round: the node owns the Python object, which only points back. When nobody needs the node any more but somebody
// holds the context, the context becomes its owner.
#include <map>

#include "bindings/derivative.h"

namespace cresset {
namespace {

PyTypeObject* node_type = nullptr;

struct PyNode {
  PyObject_HEAD Node* node;
  bool owns;
  PyObject* weakrefs;
  PyObject* dict;
};
PyNode* self_of(PyObject* o) { return reinterpret_cast<PyNode*>(o); }
Node& node_of(PyObject* o) {
  check(self_of(o)->node, "this node belongs to no graph (yet, or no longer)");
  return *self_of(o)->node;
}

class PythonFunctionNode : public Node {
 public:
  PythonFunctionNode(PyObject* context, std::string name) : context_(Py_NewRef(context)), name_(std::move(name)) {}
  ~PythonFunctionNode() override {
    if (!owns_context_) return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    self_of(context_)->node = nullptr;
    wrapper = nullptr;
    Py_DECREF(context_);
    PyGILState_Release(gil);
  }
  PyObject* owned_context() const { return owns_context_ ? context_ : nullptr; }
  void context_is_gone() { context_ = nullptr; }
  const char* own_name() const override { return name_.c_str(); }
  bool runs_without_gradient() const override { return true; }
  void backward(Grads& grads, Grads& out) override {
    check(context_, name_, ": the context of this call is gone");
    Ref args(require(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
    for (int64_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(args.get(), i, wrap(grads[i]));
    Ref method(require(PyObject_GetAttrString(context_, "_run_backward")));
    Ref result(require(PyObject_CallObject(method.get(), args.get())));
    check_type(PyTuple_Check(result.get()), name_, ": backward must return a tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()) && i < out.size(); ++i) {
      PyObject* g = PyTuple_GET_ITEM(result.get(), i);
      if (g == Py_None) continue;
      check(is_tensor(g), name_, ": expected Variable or None (got ", Py_TYPE(g)->tp_name, ") as gradient ", i);
      out[i] = unwrap(g);
    }
  }
  void release_saved() override {
    if (!context_) return;
    if (PyObject* r = PyObject_CallMethod(context_, "_release_saved", nullptr))
      Py_DECREF(r);
    else
      raise_python();
  }

 protected:
  void last_reference_gone() override {
    if (owns_context_) {
      const PyGILState_STATE gil = PyGILState_Ensure();
      const bool held = Py_REFCNT(context_) > 1;
      if (held) {
        retain();
        self_of(context_)->owns = true;
        owns_context_ = false;
        Py_DECREF(context_);
      }
      PyGILState_Release(gil);
      if (held) return;
    }
    Node::last_reference_gone();
  }

 private:
  PyObject* context_;
  bool owns_context_ = true;
  std::string name_;
};

PyObject* node_new(PyTypeObject* type, PyObject*, PyObject*) { return type->tp_alloc(type, 0); }
int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self_of(self)->dict);
  const PyNode* n = self_of(self);
  return n->node && n->owns && n->node->use_count() == 1 ? visit_node(*n->node, visit, arg) : 0;
}
int node_clear(PyObject* self) {
  PyNode* n = self_of(self);
  Py_CLEAR(n->dict);
  if (n->node && n->owns && n->node->use_count() == 1) clear_node(*n->node);
  return 0;
}
void node_dealloc(PyObject* self) {
  PyNode* n = self_of(self);
  PyObject_GC_UnTrack(self);
  if (n->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(n->dict);
  if (Node* node = std::exchange(n->node, nullptr); node && n->owns) {
    node->wrapper = nullptr;
    if (auto* function = dynamic_cast<PythonFunctionNode*>(node)) function->context_is_gone();
    node->release();
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* node_name(PyObject* self, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(node_of(self).name()); });
}
PyObject* node_sequence(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(node_of(self).sequence); });
}
PyObject* node_set_sequence(PyObject* self, PyObject* number) {
  return guarded([&]() -> PyObject* {
    node_of(self).sequence = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) raise_python();
    Py_RETURN_NONE;
  });
}
// What comes in: (shape, dtype, device) of each gradient, which are those of the results.
PyObject* node_results(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Node& n = node_of(self);
    Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(n.results.size()))));
    for (int64_t i = 0; i < n.results.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), i,
                       require(Py_BuildValue("NNN", wrap_size(n.results[i].sizes), wrap(n.results[i].dtype),
                                             wrap(n.results[i].device))));
    return tuple.release();
  });
}
// node(*grads): its backward alone, without hooks.
PyObject* node_call(PyObject* self, PyObject* args, PyObject* names) {
  return guarded([&]() -> PyObject* {
    check_type(!names || !PyDict_GET_SIZE(names), "a node takes no named arguments");
    Node& n = node_of(self);
    const RefPtr<Node> alive(&n);
    check_type(PyTuple_GET_SIZE(args) == static_cast<Py_ssize_t>(n.results.size()), n.name(), ": expected ",
               n.results.size(), " arguments, got ", PyTuple_GET_SIZE(args), " instead");
    Grads grads, out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* const g = PyTuple_GET_ITEM(args, i);
      check_type(g == Py_None || is_tensor(g), n.name(), ": expected a Tensor or None as argument ", i, ", got ",
                 Py_TYPE(g)->tp_name);
      grads.push_back(g == Py_None ? Tensor() : unwrap(g));
    }
    out.resize(n.edges.size());
    n.backward(grads, out);
    if (out.size() == 1) return wrap(out[0]);
    Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(out.size()))));
    for (int64_t i = 0; i < out.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap(out[i]));
    return tuple.release();
  });
}
PyObject* node_next(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = node_of(self);
    Ref tuple(require(PyTuple_New(static_cast<Py_ssize_t>(n.edges.size()))));
    for (int64_t i = 0; i < n.edges.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), i, require(Py_BuildValue("NI", wrap(n.edges[i].node), n.edges[i].index)));
    return tuple.release();
  });
}
PyObject* node_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = node_of(self);
    if (!n.metadata) n.metadata = require(PyDict_New());
    return Py_NewRef(static_cast<PyObject*>(n.metadata));
  });
}
PyObject* node_variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = node_of(self);
    if (!n.is_accumulate()) {
      PyErr_SetString(PyExc_AttributeError, "only AccumulateGrad nodes have a variable");
      raise_python();
    }
    return wrap(static_cast<AccumulateGrad&>(n).variable);
  });
}
// What backward of an operator keeps, as {name: value}.
PyObject* node_saved(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto* n = dynamic_cast<OperatorNode*>(&node_of(self));
    Ref result(require(PyDict_New()));
    if (!n) return result.release();
    check(!n->released,
          "Trying to backward through the graph a second time (or directly access saved tensors after they have "
          "already been freed).");
    const auto& parameters = n->op.signature.parameters;
    const auto put = [&](const std::string& name, PyObject* value) {
      PyDict_SetItemString(result.get(), name.c_str(), Ref(require(value)).get());
    };
    if (n->op.pointwise) {
      for (int i = 0; i < n->op.pointwise->input_count; ++i)
        if (n->pointwise_inputs[i].defined())
          put(parameters[static_cast<size_t>(i)].name, wrap(n->pointwise_inputs[i].unpack(*n)));
      if (n->pointwise_output.defined()) put("result", wrap(n->pointwise_output.unpack(*n)));
    } else if (n->op.derivative) {
      for (int64_t k = 0; k < n->saved.size(); ++k) {
        const auto& s = n->op.derivative->saves[static_cast<size_t>(k)];
        using S = Derivative::Saved;
        if (s.what == S::argument && n->saved[k].what == S::information)
          put(parameters[static_cast<size_t>(s.index)].name, Py_NewRef(Py_None));  // it was not needed
        else if (s.what == S::argument)
          put(parameters[static_cast<size_t>(s.index)].name, wrap_owned(n->saved[k], *n));
        else if (s.what == S::output)
          put("result", wrap_owned(n->saved[k], *n));
      }
    }
    return result.release();
  });
}

// A tensor that backward needs, as it is kept: one of a Function's context, which owns it, or a look into the node of
// an operator.
struct PySaved {
  PyObject_HEAD SavedTensor* value;
  PyObject* node;  // whose it is; null: its own
};
PyTypeObject* saved_type = nullptr;
PySaved* saved_of(PyObject* o) { return reinterpret_cast<PySaved*>(o); }
void saved_dealloc(PyObject* self) {
  if (!saved_of(self)->node) delete saved_of(self)->value;
  Py_XDECREF(saved_of(self)->node);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* look_at(SavedTensor& value, PyObject* node) {
  PyObject* s = require(saved_type->tp_alloc(saved_type, 0));
  saved_of(s)->value = &value;
  saved_of(s)->node = Py_NewRef(node);
  return s;
}
// unpack(node): a result of the node gets it as its history.
PyObject* saved_unpack(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* node = saved_of(self)->node;
    if (!PyArg_ParseTuple(args, "|O!", node_type, &node)) raise_python();
    const SavedTensor& s = *saved_of(self)->value;
    if (!s.defined()) {
      const auto* n = node ? dynamic_cast<OperatorNode*>(&node_of(node)) : nullptr;
      check(!n || !n->released, "Trying to unpack a saved tensor after it has been freed.");
      Py_RETURN_NONE;
    }
    if (node) return wrap(s.unpack(node_of(node)));
    check(!s.is_output(), "unpack: a saved result needs the node it is a result of");
    return wrap(s.packed() ? s.packed()->unpack() : s.raw());
  });
}
PyObject* saved_output(PyObject* self, PyObject*) {
  const SavedTensor& s = *saved_of(self)->value;
  if (!s.is_output() || !s.raw().defined()) Py_RETURN_NONE;
  return guarded([&]() -> PyObject* { return Py_BuildValue("NI", wrap(s.raw()), s.output_index()); });
}
PyObject* saved_register_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const bool two = PyTuple_GET_SIZE(args) == 2;
    check_type(two && PyCallable_Check(PyTuple_GET_ITEM(args, 0)) && PyCallable_Check(PyTuple_GET_ITEM(args, 1)),
               "register_hooks(): incompatible function arguments: expected two functions, pack_hook and unpack_hook");
    SavedTensor& s = *saved_of(self)->value;
    check(!s.packed(),
          "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
          "pair of hooks is allowed at a time.");
    if (!s.raw().defined()) {
      const auto* n = saved_of(self)->node ? dynamic_cast<OperatorNode*>(&node_of(saved_of(self)->node)) : nullptr;
      check(!n || !n->released, "Calling register_hooks on a saved tensor after it has been freed.");
      fail("Calling register_hooks on a saved tensor with value None is forbidden");
    }
    s.replace(pack_with(PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1), s.raw()));
    Py_RETURN_NONE;
  });
}
PyObject* saved_data(PyObject* self, void*) {
  const SavedTensor& s = *saved_of(self)->value;
  if (s.packed()) return Py_NewRef(static_cast<PyObject*>(s.packed()->packed()));
  return guarded([&]() -> PyObject* { return s.raw().defined() ? wrap(s.raw()) : Py_NewRef(Py_None); });
}
PyObject* saved_unpack_hook(PyObject* self, void*) {
  const SavedTensor& s = *saved_of(self)->value;
  return Py_NewRef(s.packed() ? static_cast<PyObject*>(s.packed()->unpack_hook()) : Py_None);
}
PyObject* saved_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError,
                  "Trying to create a SavedTensor object from Python is forbidden; a Function saves tensors with "
                  "ctx.save_for_backward");
  return nullptr;
}
PyMethodDef saved_methods[] = {
    {"unpack", saved_unpack, METH_VARARGS, "The tensor, checked to be unchanged."},
    {"output", saved_output, METH_NOARGS, "Of a result of the node: what is kept of it and its number; else None."},
    {"register_hooks", saved_register_hooks, METH_VARARGS,
     "Let pack_hook(tensor) say what is kept in the tensor's place, and unpack_hook make a tensor of that."},
    {}};
PyGetSetDef saved_getset[] = {
    {"data", saved_data, nullptr, "what is kept: the tensor, or what a hook made of it", nullptr},
    {"unpack_hook", saved_unpack_hook, nullptr, "the hook that makes a tensor of it; None: there is none", nullptr},
    {}};
// The tensors among it as they are kept, as {name: SavedTensor, or a list of them}.
PyObject* node_raw_saved(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto* n = dynamic_cast<OperatorNode*>(&node_of(self));
    Ref result(require(PyDict_New()));
    if (!n) return result.release();
    const auto& parameters = n->op.signature.parameters;
    const auto put = [&](const std::string& name, SavedTensor& value) {
      PyDict_SetItemString(result.get(), name.c_str(), Ref(look_at(value, self)).get());
    };
    if (n->op.pointwise) {
      for (int i = 0; i < n->op.pointwise->input_count; ++i)
        put(parameters[static_cast<size_t>(i)].name, n->pointwise_inputs[i]);
      put("result", n->pointwise_output);
    } else if (n->op.derivative) {
      for (int64_t k = 0; k < n->saved.size(); ++k) {
        const auto& s = n->op.derivative->saves[static_cast<size_t>(k)];
        using S = Derivative::Saved;
        const std::string name = s.what == S::output ? "result" : parameters[static_cast<size_t>(s.index)].name;
        if (s.what != S::output && s.what != S::argument) continue;
        if (n->saved[k].value.kind == Kind::tensors) {
          Ref listed(require(PyTuple_New(static_cast<Py_ssize_t>(n->saved[k].more().tensors.size()))));
          for (size_t i = 0; i < n->saved[k].rest->tensors.size(); ++i)
            PyTuple_SET_ITEM(listed.get(), static_cast<Py_ssize_t>(i), look_at(n->saved[k].rest->tensors[i], self));
          PyDict_SetItemString(result.get(), name.c_str(), listed.get());
        } else if (n->saved[k].value.kind == Kind::tensor) {
          put(name, n->saved[k].tensor);
        }
      }
    }
    return result.release();
  });
}

class PythonNodeHook : public NodeHook {
 public:
  PythonNodeHook(PyObject* dict, bool before) : dict_(Py_NewRef(dict)), before_(before) {}
  ~PythonNodeHook() override { Py_DECREF(dict_); }
  void* object() const override { return dict_; }
  bool is_before() const { return before_; }
  void before(Grads& grads) override {
    if (before_)
      each([&](PyObject* hook) { take(PyObject_CallFunctionObjArgs(hook, Ref(tuple(grads)).get(), nullptr), grads); });
  }
  void after(Grads& inputs, const Grads& outputs) override {
    if (!before_)
      each([&](PyObject* hook) {
        take(PyObject_CallFunctionObjArgs(hook, Ref(tuple(inputs)).get(), Ref(tuple(outputs)).get(), nullptr), inputs);
      });
  }

 private:
  template <class F>
  void each(F&& f) {
    Ref values(require(PyDict_Values(dict_)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) f(PyList_GET_ITEM(values.get(), i));
  }
  static PyObject* tuple(const Grads& grads) {
    PyObject* t = require(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
    for (int64_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(t, i, wrap(grads[i]));
    return t;
  }
  static void take(PyObject* result, Grads& grads) {
    Ref r(require(result));
    if (r.get() == Py_None) return;
    if (is_tensor(r.get())) {
      check_replaced(grads[0]);
      grads[0] = unwrap(r.get());
      return;
    }
    check_type(PyTuple_Check(r.get()), "a node hook must return None or a tuple of gradients, got ",
               Py_TYPE(r.get())->tp_name);
    check(PyTuple_GET_SIZE(r.get()) == static_cast<Py_ssize_t>(grads.size()),
          "a node hook returned an incorrect number of gradients: got ", PyTuple_GET_SIZE(r.get()), ", but expected ",
          grads.size());
    for (int64_t i = 0; i < grads.size(); ++i) {
      PyObject* g = PyTuple_GET_ITEM(r.get(), i);
      check_type(g == Py_None || is_tensor(g), "a node hook returned a gradient that is no Tensor: expected Tensor or ",
                 "None at place ", i, ", got ", Py_TYPE(g)->tp_name);
      if (g != Py_None) check_replaced(grads[i]);
      grads[i] = g == Py_None ? Tensor() : unwrap(g);
    }
  }
  PyObject* dict_;
  bool before_;
};

// _add_hook_dict(dict, before): the dict's values are called; the Python side hands out removable handles on it.
PyObject* node_add_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* dict;
    int before;
    if (!PyArg_ParseTuple(args, "O!p", &PyDict_Type, &dict, &before)) raise_python();
    node_of(self).hooks_for_writing().node.push_back(RefPtr<NodeHook>(new PythonNodeHook(dict, before)));
    Py_RETURN_NONE;
  });
}

// _hook_dict(before): the dict that was added first, or None.
PyObject* node_hook_dict(PyObject* self, PyObject* arg) {
  return guarded([&]() -> PyObject* {
    const int before = PyObject_IsTrue(arg);
    if (before < 0) raise_python();
    if (NodeHooks* hooks = node_of(self).hooks)
      for (auto& hook : hooks->node)
        if (auto* ours = dynamic_cast<PythonNodeHook*>(hook.get());
            ours && ours->is_before() == static_cast<bool>(before))
          return Py_NewRef(static_cast<PyObject*>(ours->object()));
    Py_RETURN_NONE;
  });
}

PyGetSetDef getset[] = {
    {"next_functions", node_next, nullptr, "the nodes behind, with the index of their result", nullptr},
    {"metadata", node_metadata, nullptr, "a dict to keep things in", nullptr},
    {"variable", node_variable, nullptr, "of a leaf's node: the leaf", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMethodDef methods[] = {{"name", node_name, METH_NOARGS, "The name of the recorded operation."},
                         {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
                         {"_set_sequence_nr", node_set_sequence, METH_O, nullptr},
                         {"_results", node_results, METH_NOARGS, nullptr},
                         {"_saved", node_saved, METH_NOARGS, nullptr},
                         {"_raw_saved", node_raw_saved, METH_NOARGS, nullptr},
                         {"_add_hook_dict", node_add_hooks, METH_VARARGS, nullptr},
                         {"_hook_dict", node_hook_dict, METH_O, nullptr},
                         {}};
PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weakrefs), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
                         {}};

// One Python type per kind of node, so that str(grad_fn) says <AddBackward0 object at ...>.
PyTypeObject* type_for(const char* name) {
  static auto* made = new std::map<std::string, PyTypeObject*>;
  const size_t scope = std::string_view(name).rfind(':');
  const char* short_name = scope == std::string_view::npos ? name : name + scope + 1;
  PyTypeObject*& type = (*made)[short_name];
  if (!type) {
    Ref dict(require(Py_BuildValue("{s:(),s:s}", "__slots__", "__module__", "builtins")));
    type = reinterpret_cast<PyTypeObject*>(require(
        PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O)O", short_name, node_type, dict.get())));
  }
  return type;
}

// attach_function(context, name, inputs, outputs): the context becomes the node of the outputs. Inputs that are no
// tensors are None.
PyObject* attach_function(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *context, *inputs, *outputs;
    const char* name;
    if (!PyArg_ParseTuple(args, "O!sO!O!", node_type, &context, &name, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs))
      raise_python();
    auto* node = new PythonFunctionNode(context, name);
    RefPtr<Node> holder(node);
    self_of(context)->node = node;
    self_of(context)->owns = false;
    node->wrapper = context;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
      PyObject* o = PyTuple_GET_ITEM(inputs, i);
      node->edges.push_back(is_tensor(o) ? gradient_edge(unwrap(o)) : Edge{});
    }
    node->position = python_steps.capture();
    if (modes.anomaly) python_steps.note_anomaly(*node);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
      // (tensor, mode): "new", "dirty" (changed in place) or "constant" (not differentiable)
      PyObject* pair = PyTuple_GET_ITEM(outputs, i);
      PyObject* o = PyTuple_GET_ITEM(pair, 0);
      const std::string_view mode = PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 1));
      if (!is_tensor(o)) {
        node->results.push_back({});
        continue;
      }
      const Tensor t = unwrap(o);
      if (mode == "constant")
        node->results.push_back({t.sizes(), t.dtype(), t.device()});
      else if (mode == "dirty") {
        check_inplace(name, t, true);
        state_for_writing(t.get()).grad = {};  // one that was retained is of the tensor as it was
        rebase_history(t, holder);
      } else {
        if (t->base)
          t->view_origin =
              static_cast<uint8_t>(PyTuple_GET_SIZE(outputs) > 1 ? ViewOrigin::several_views : ViewOrigin::function);
        set_history(t, holder);
      }
    }
    Py_RETURN_NONE;
  });
}

// A view that a Function's forward made of its input, of a call that is not recorded.
PyObject* made_in_function(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (is_tensor(o) && impl_of(o)->base && impl_of(o)->view_origin == static_cast<uint8_t>(ViewOrigin::no_grad))
      impl_of(o)->view_origin = static_cast<uint8_t>(ViewOrigin::function);
    Py_RETURN_NONE;
  });
}

// save_tensor(tensor, is_output, output_index)
PyObject* save_tensor(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* tensor;
    int is_output = 0;
    unsigned index = 0;
    if (!PyArg_ParseTuple(args, "O|pI", &tensor, &is_output, &index)) raise_python();
    check_type(tensor == Py_None || is_tensor(tensor), "save_tensor: expected a Tensor or None, got ",
               Py_TYPE(tensor)->tp_name);
    Ref s(require(saved_type->tp_alloc(saved_type, 0)));
    saved_of(s.get())->value = tensor == Py_None ? new SavedTensor : new SavedTensor(unwrap(tensor), is_output, index);
    return s.release();
  });
}

// name_node(result, name): the node of a tensor that a function of several operators has just made, or of each of a
// tuple or list of them, has the name that PyTorch gives the function. What is no tensor is left alone.
PyObject* name_results(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check_type(count == 2 && PyUnicode_Check(args[1]), "name_node: expected a result and a name");
    PyObject* kept = Py_NewRef(args[1]);  // for good, as the node keeps an address in it; one object for equal names
    PyUnicode_InternInPlace(&kept);
    const char* const text = PyUnicode_AsUTF8(kept);
    if (!text) raise_python();
    const auto name = [&](PyObject* o) {
      if (is_tensor(o)) name_node(unwrap(o), text);
    };
    name(args[0]);
    for (Py_ssize_t i = 0; PyTuple_Check(args[0]) && i < PyTuple_GET_SIZE(args[0]); ++i)
      name(PyTuple_GET_ITEM(args[0], i));
    for (Py_ssize_t i = 0; PyList_Check(args[0]) && i < PyList_GET_SIZE(args[0]); ++i)
      name(PyList_GET_ITEM(args[0], i));
    return Py_NewRef(args[0]);
  });
}

// node_class(name): the class of such nodes as Python sees them
PyObject* node_class(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* const text = PyUnicode_AsUTF8(name);
    if (!text) raise_python();
    return Py_NewRef(reinterpret_cast<PyObject*>(type_for(text)));
  });
}

PyMethodDef functions[] = {{"node_class", node_class, METH_O, nullptr},
                           {"name_node", reinterpret_cast<PyCFunction>(name_results), METH_FASTCALL, nullptr},
                           {"attach_function", attach_function, METH_VARARGS, nullptr},
                           {"save_tensor", save_tensor, METH_VARARGS, nullptr},
                           {"made_in_function", made_in_function, METH_O, nullptr},
                           {}};

}  // namespace

int visit_node(const Node& node, visitproc visit, void* arg) {
  Py_VISIT(static_cast<PyObject*>(node.metadata));
  if (auto* function = dynamic_cast<const PythonFunctionNode*>(&node)) Py_VISIT(function->owned_context());
  if (!node.hooks) return 0;
  for (auto& h : node.hooks->on_results)
    if (h.hook->use_count() == 1) Py_VISIT(static_cast<PyObject*>(h.hook->object()));
  for (auto& h : node.hooks->node)
    if (h->use_count() == 1) Py_VISIT(static_cast<PyObject*>(h->object()));
  return 0;
}

void clear_node(Node& node) {
  delete std::exchange(node.hooks, nullptr);
  if (void* metadata = std::exchange(node.metadata, nullptr)) python_steps.release_object(metadata);
}

PyObject* wrap(const RefPtr<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (node->wrapper) return Py_NewRef(static_cast<PyObject*>(node->wrapper));
  PyTypeObject* type = type_for(node->name());
  auto* o = reinterpret_cast<PyNode*>(require(type->tp_alloc(type, 0)));
  o->node = node.get();
  o->node->retain();
  o->owns = true;
  node->wrapper = o;
  return reinterpret_cast<PyObject*>(o);
}

RefPtr<Node> unwrap_node(PyObject* o) {
  check_type(PyObject_TypeCheck(o, node_type), "expected a node of the graph, got ", Py_TYPE(o)->tp_name);
  return RefPtr<Node>(&node_of(o));
}

void add_node_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(node_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
      {Py_tp_call, reinterpret_cast<void*>(node_call)},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("A step of the graph that backward walks: what a tensor's grad_fn is.")},
      {0, nullptr}};
  PyType_Spec spec{"torch.autograd.graph.Node", sizeof(PyNode), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  node_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type));
  PyType_Slot saved_slots[] = {{Py_tp_new, reinterpret_cast<void*>(saved_new)},
                               {Py_tp_dealloc, reinterpret_cast<void*>(saved_dealloc)},
                               {Py_tp_methods, saved_methods},
                               {Py_tp_getset, saved_getset},
                               {0, nullptr}};
  PyType_Spec saved_spec{"torch._C._autograd.SavedTensor", sizeof(PySaved), 0, Py_TPFLAGS_DEFAULT, saved_slots};
  saved_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&saved_spec)));
  PyModule_AddObjectRef(module, "SavedTensor", reinterpret_cast<PyObject*>(saved_type));
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
