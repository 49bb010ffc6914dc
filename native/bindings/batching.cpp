// Tensors that stand for a batch (Note [Tensors of a batch] in tensor/tensor.h): making them, looking into them, and
// handing the calls they are in to the function that interprets them (cresset/func/batching.py).
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "bindings/of_tensor.h"

namespace cresset {
namespace {

PyObject* interpreter =
    nullptr;  // (operator's name, arguments in the signature's order, level, out= or None) -> result or results

PyObject* name_of(const Operator& op) {
  static auto* names = new std::unordered_map<const Operator*, PyObject*>;
  PyObject*& name = (*names)[&op];
  if (!name)
    name = PyUnicode_FromString(
        (op.signature.overload.empty() ? op.name() : op.name() + "." + op.signature.overload).c_str());
  return name;
}

void give(Call& c, PyObject* o) {
  if (o == Py_None) return c.give(Tensor());
  check_type(is_tensor(o), "vmap: the rule for ", c.op.name(), " gave a ", Py_TYPE(o)->tp_name, " instead of a Tensor");
  c.give(unwrap(o));
}

void interpret(Call& c) {
  check(interpreter, c.op.name(), ": a tensor of vmap, but torch.func is not loaded");
  const Py_ssize_t n = static_cast<Py_ssize_t>(c.op.signature.parameters.size());
  Ref args(require(PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(args.get(), i, require(wrap_value(c, static_cast<int>(i))));
  Ref out = Ref::borrow(Py_None);
  if (c.given_out) {
    out = Ref(require(PyList_New(0)));
    for (const Tensor& t : c.outputs) PyList_Append(out.get(), Ref(wrap(t)).get());
  }
  Ref level(PyLong_FromLong(c.level));
  PyObject* passed[] = {name_of(c.op), args.get(), level.get(), out.get()};
  const Answering before = set_answering(Answering::nobody);  // a sample has no class of its own
  PyObject* const answer = PyObject_Vectorcall(interpreter, passed, 4, nullptr);
  set_answering(before);
  Ref result(require(answer));
  c.outputs.clear();
  if (PyTuple_Check(result.get()) || PyList_Check(result.get()))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result.get()); ++i)
      give(c, PySequence_Fast_GET_ITEM(result.get(), i));
  else if (result.get() != Py_None || !c.op.signature.results.empty())
    give(c, result.get());
}

PyObject* set_interpreter(PyObject*, PyObject* function) {
  PyObject* old = interpreter;
  interpreter = Py_NewRef(function);
  Py_XDECREF(old);
  tracer = interpret;
  Py_RETURN_NONE;
}
// sample_of(batch, dim or None, level)
PyObject* sample_of_py(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    check_type(n == 3 && is_tensor(args[0]), "sample_of: expected a Tensor, its batch dimension and a level");
    const Tensor batch = unwrap(args[0]);
    const long level = PyLong_AsLong(args[2]);
    const int64_t dim = args[1] == Py_None ? -1 : wrap_dim(PyLong_AsLongLong(args[1]), batch.dim());
    if (PyErr_Occurred()) raise_python();
    check(args[1] == Py_None || batch.dim() > 0, "sample_of: a 0-d tensor has no batch dimension");
    check(level > batch->batch_level() && level < kDispatched, "sample_of: level ", level,
          " is not above the tensor's, ", batch->batch_level());
    return wrap(sample_of(batch, dim, level));
  });
}
// batch_of(tensor) -> (batch, dim or None)
PyObject* batch_of(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const TensorImpl* t = impl_of(self);
    check(t->batch_level(), "batch_of: an ordinary tensor");
    return Py_BuildValue("NN", wrap(Tensor(t->batch)),
                         t->batch_dim < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(t->batch_dim));
  });
}
// The level of a tensor; 0 of an ordinary one, and of anything else.
PyObject* level_of(PyObject*, PyObject* o) { return PyLong_FromLong(is_tensor(o) ? impl_of(o)->batch_level() : 0); }
PyObject* set_vmap_depth(PyObject*, PyObject* depth) {
  modes.vmap_depth = static_cast<int>(PyLong_AsLong(depth));
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

// depends_only_on(tensor, leaves): whether no gradient of the tensor could reach a leaf that is not among these.
PyObject* depends_only_on(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *leaves;
    if (!PyArg_ParseTuple(args, "O!O!", tensor_type, &self, &PyTuple_Type, &leaves)) raise_python();
    std::unordered_set<const Node*> seen;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); ++i) {
      PyObject* const leaf = PyTuple_GET_ITEM(leaves, i);
      check_type(is_tensor(leaf), "depends_only_on: expected Tensors, got ", Py_TYPE(leaf)->tp_name);
      seen.insert(gradient_edge(unwrap(leaf)).node.get());
    }
    std::vector<const Node*> open;
    const auto visit = [&](const Node* node) {
      if (node && seen.insert(node).second) open.push_back(node);
    };
    const RefPtr<Node> root = gradient_edge(unwrap(self)).node;
    visit(root.get());
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (node->is_accumulate()) Py_RETURN_FALSE;
      for (const Edge& e : node->edges) visit(e.node.get());
    }
    Py_RETURN_TRUE;
  });
}

PyMethodDef functions[] = {
    {"set_interpreter", set_interpreter, METH_O, "Who computes calls with tensors of a batch."},
    {"sample_of", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(sample_of_py)), METH_FASTCALL,
     "A tensor that stands for the samples of a batch."},
    {"batch_of", of_tensor<batch_of>, METH_O, "The batch a tensor stands for, and its hidden dimension."},
    {"level_of", level_of, METH_O, "How deep in vmap a tensor is; 0 of an ordinary one."},
    {"set_vmap_depth", set_vmap_depth, METH_O, nullptr},
    {"depends_only_on", depends_only_on, METH_VARARGS, nullptr},
    {}};

}  // namespace

void add_batching(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
