// Operator objects: what `torch.add` and `Tensor.add` are. A call binds the arguments to a signature, lets tracers and
// tensor subclasses interpret it, or sends it down the call path.
#include <deque>
#include <map>

#include "bindings/arguments.h"
#include "bindings/derivative.h"
#include "dispatch/casting.h"

namespace cresset {

PyTypeObject* operator_type = nullptr;
thread_local bool classes_answer = true;
thread_local bool has_function_mode = false;
thread_local bool has_attribute_mode = false;
std::atomic<int> attribute_modes{0};

namespace {

struct FunctionMode {
  PyObject* object;
  bool sees_attributes;  // not one that only wants to know of operators, as a recorder of programs
};
thread_local std::vector<FunctionMode> function_modes;  // the innermost last
thread_local Answering answering = Answering::modes_and_classes;

void note_who_answers() {
  has_function_mode = !function_modes.empty() && answering != Answering::nobody;
  has_attribute_mode = has_function_mode && function_modes.back().sees_attributes;
  classes_answer = answering == Answering::modes_and_classes;
}
void push_mode(FunctionMode mode) {
  function_modes.push_back(mode);
  attribute_modes += mode.sees_attributes;
  note_who_answers();
}
FunctionMode pop_mode() {
  const FunctionMode mode = function_modes.back();
  function_modes.pop_back();
  attribute_modes -= mode.sees_attributes;
  note_who_answers();
  return mode;
}

struct Overload {
  const Operator* op;
  int requires_grad_at;       // factories have a requires_grad argument
  PyTypeObject* result_type;  // named results
};

struct PyOperator {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::vector<Overload>* overloads;
  PyObject* name;
  PyObject* module;
  PyObject* doc;
  PyObject* dict;
  PyObject* of;  // the operator that this is another name of, whose forms it has; else null
};
PyOperator* self_of(PyObject* o) { return reinterpret_cast<PyOperator*>(o); }

std::map<std::string, PyObject*>& objects() {
  static auto* the = new std::map<std::string, PyObject*>;
  return *the;
}

// ---------------------------------------------------------------- results

PyObject* wrap_results(Call& c, const Overload* overload) {
  const Signature& s = c.op.signature;
  const Py_ssize_t n = static_cast<Py_ssize_t>(c.outputs.size());
  if (s.results_are_list) {
    Ref tuple(require(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap(c.outputs[i]));
    return tuple.release();
  }
  if (!s.results_are_tuple) return n ? wrap(c.outputs[0]) : Py_NewRef(Py_None);
  PyTypeObject* type = overload ? overload->result_type : nullptr;
  Ref tuple(require(type ? PyStructSequence_New(type) : PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    type ? PyStructSequence_SetItem(tuple.get(), i, wrap(c.outputs[i]))
         : (void)PyTuple_SET_ITEM(tuple.get(), i, wrap(c.outputs[i]));
  return tuple.release();
}

// One field a line, as PyTorch prints them.
PyObject* repr_result(PyObject* self) {
  Ref names(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__"));
  if (!names.get()) return nullptr;
  Ref text(PyUnicode_FromFormat("%s(", Py_TYPE(self)->tp_name));
  for (Py_ssize_t i = 0; text.get() && i < PyTuple_GET_SIZE(names.get()); ++i)
    text = Ref(PyUnicode_FromFormat("%U%s%U=%R", text.get(), i ? ",\n" : "\n", PyTuple_GET_ITEM(names.get(), i),
                                    PyTuple_GET_ITEM(self, i)));
  return text.get() ? PyUnicode_FromFormat("%U)", text.get()) : nullptr;
}

// A type of named results. It and the names that it points to live as long as the process.
PyTypeObject* make_result_type(const std::string& name, const std::vector<std::string>& results) {
  static std::deque<std::string> names;
  std::vector<PyStructSequence_Field> fields;
  for (const std::string& r : results) fields.push_back({names.emplace_back(r).c_str(), nullptr});
  fields.push_back({nullptr, nullptr});
  const char* title = names.emplace_back("torch.return_types." + name).c_str();
  PyStructSequence_Desc desc{title, nullptr, fields.data(), static_cast<int>(results.size())};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) raise_python();
  type->tp_repr = repr_result;
  PyType_Modified(type);
  Ref module(require(PyUnicode_FromString("cresset.return_types")));  // where pickle finds it
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__module__", module.get()) < 0) raise_python();
  return type;
}

PyTypeObject* result_type_of(const Operator& op) {
  if (!op.signature.results_are_tuple || op.signature.results.empty() || op.signature.results[0].empty())
    return nullptr;
  static std::map<std::string, PyTypeObject*> made;
  PyTypeObject*& type = made[op.name()];
  if (!type) type = make_result_type(op.name(), op.signature.results);
  return type;
}

// ---------------------------------------------------------------- __torch_function__

PyObject* torch_function_name() {
  static PyObject* name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

PyObject* keyword_dict(const Arguments& a) {
  Ref kwargs(require(PyDict_New()));
  if (a.names)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a.names); ++i)
      if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(a.names, i), a.args[a.positional + i]) < 0) raise_python();
  return kwargs.release();
}

// `levels` of lists and tuples are looked into: an index is a tuple that may have lists. A list may hold itself.
void collect_overriders(PyObject* o, std::vector<Ref>& found, bool skip_interpreted, int levels = 2) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; levels && i < PySequence_Fast_GET_SIZE(o); ++i)
      collect_overriders(PySequence_Fast_GET_ITEM(o, i), found, skip_interpreted, levels - 1);
    return;
  }
  if (is_tensor(o) && is_plain_tensor(o)) return;
  if (Py_TYPE(o) == layout_type && !skip_interpreted) {
    if (reinterpret_cast<PyLayout*>(o)->value == LayoutKind::strided || !found.empty()) return;
    if (!interpreted_type) Ref(require(PyImport_ImportModule("cresset.tensors.interpreted")));  // which sets it
    found.push_back(Ref::borrow(reinterpret_cast<PyObject*>(interpreted_type)));  // it answers for all layouts
    return;
  }
  if (!wants_torch_function(o) || (is_interpreted(o) ? skip_interpreted : !classes_answer)) return;
  for (const Ref& f : found)
    if (Py_TYPE(f.get()) == Py_TYPE(o)) return;
  // Subclasses before their bases.
  auto at = found.begin();
  while (at != found.end() && !PyType_IsSubtype(Py_TYPE(o), Py_TYPE(at->get()))) ++at;
  found.insert(at, Ref::borrow(o));
}

}  // namespace

PyObject* ask_torch_function(PyObject* function, const Arguments& a, bool skip_interpreted) {
  std::vector<Ref> overriders;
  const Py_ssize_t total = a.positional + (a.names ? PyTuple_GET_SIZE(a.names) : 0);
  for (Py_ssize_t i = 0; i < total; ++i) collect_overriders(a.args[i], overriders, skip_interpreted);
  Ref types(require(PyTuple_New(static_cast<Py_ssize_t>(overriders.size()))));
  for (size_t i = 0; i < overriders.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(overriders[i].get()))));
  Ref args(require(PyTuple_New(a.positional)));
  for (Py_ssize_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(a.args[i]));
  Ref kwargs(keyword_dict(a));
  if (has_function_mode) {
    const FunctionMode mode = pop_mode();  // inside, the mode below is the one asked
    PyObject* result = PyObject_CallMethodObjArgs(mode.object, torch_function_name(), function, types.get(), args.get(),
                                                  kwargs.get(), nullptr);
    push_mode(mode);
    if (!result) raise_python();
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  for (const Ref& o : overriders) {
    Ref method(require(PyObject_GetAttr(o.get(), torch_function_name())));  // one without @classmethod gets the object
    PyObject* result =
        PyObject_CallFunctionObjArgs(method.get(), function, types.get(), args.get(), kwargs.get(), nullptr);
    if (!result) raise_python();
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  if (overriders.empty()) return nullptr;
  PyErr_Format(PyExc_TypeError,
               "Multiple dispatch failed for '%S'; all __torch_function__ handlers returned NotImplemented",
               Ref(require(PyObject_GetAttrString(function, "__name__"))).get());
  raise_python();
}

namespace {

// ---------------------------------------------------------------- calls

// The older orders of arguments (ops/older_overload.h) are not what a caller should be told of.
bool is_of_today(const Overload& o) { return o.op->signature.overload.rfind("older", 0) != 0; }

// Whether this form takes out=: bindings/arguments.cpp decides by the same facts.
bool takes_out(const Operator& op) {
  return op.signature.index_of("out") < 0 && !op.inplace && !op.mutates && !op.view && !op.signature.results_are_list &&
         !op.signature.results.empty();
}

// Whether a call of so many arguments may mean this overload.
bool takes_as_many(const Overload& o, Py_ssize_t count) {
  Py_ssize_t least = 0, most = takes_out(*o.op) ? 1 : 0;
  for (const Parameter& p : o.op->signature.parameters) {
    if (p.varargs) return true;
    ++most;
    if (!p.has_default) ++least;
  }
  return least <= count && count <= most;
}

[[noreturn]] void no_overload(PyOperator* self, const Arguments& a) {
  const Py_ssize_t total = a.positional + (a.names ? PyTuple_GET_SIZE(a.names) : 0);
  const Overload *of_today = nullptr, *meant = nullptr;
  int forms = 0, fitting = 0;
  for (const Overload& o : *self->overloads) {
    if (!is_of_today(o)) continue;
    of_today = &o, ++forms;
    if (takes_as_many(o, total)) meant = &o, ++fitting;
  }
  if (const Overload* only = forms == 1 ? of_today : fitting == 1 ? meant : nullptr) {
    Call c(*only->op);
    Arena arena;
    std::string why;
    bind(*only->op, a, c, arena, &why);
    if (!why.empty()) throw Error(ErrorKind::type, why);
  }
  std::string got;
  for (Py_ssize_t i = 0; i < total; ++i) {
    got += i ? ", " : "";
    if (i >= a.positional) got += std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(a.names, i - a.positional))) + "=";
    got += Py_TYPE(a.args[i])->tp_name;
  }
  std::string expected;
  for (const Overload& o : *self->overloads) {
    if (!is_of_today(o)) continue;
    std::string text = o.op->signature.text.substr(o.op->signature.text.find('('));
    for (size_t at; (at = text.find("SymInt")) != std::string::npos;) text.replace(at, 6, "int");
    expected += "\n * " + text;
  }
  fail(ErrorKind::type, PyUnicode_AsUTF8(self->name), "() received an invalid combination of arguments - got (", got,
       "), but expected one of:", expected);
}

// Aligned: where it begins in a line of the cache showed as 4 % of a small call.
[[gnu::aligned(64)]] PyObject* operator_vectorcall(PyObject* self, PyObject* const* args, size_t flagged,
                                                   PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyOperator* o = self_of(self);
    const Arguments a{args, PyVectorcall_NARGS(flagged), names};
    if (has_function_mode) [[unlikely]]
      if (PyObject* result = ask_torch_function(self, a)) return result;
    for (const Overload& overload : *o->overloads) {
      Call c(*overload.op);
      Arena arena;
      if (!bind(*overload.op, a, c, arena, nullptr)) continue;
      if (arena.override_seen && (classes_answer || arena.interpreted_seen)) [[unlikely]]
        if (PyObject* result = ask_torch_function(self, a)) return result;
      call(c);
      if (overload.requires_grad_at >= 0 && (c.given_out || c.boolean(overload.requires_grad_at)))
        for (const Tensor& t : c.outputs)  // an out= that was a leaf requires no gradient, unless that is asked for
          if (is_leaf(t)) set_requires_grad(t, c.boolean(overload.requires_grad_at));
      return wrap_results(c, &overload);
    }
    // No form fits: perhaps what stands for a number or a size answers for itself.
    if (classes_answer)
      if (PyObject* result = ask_torch_function(self, a, true)) return result;
    no_overload(o, a);
  });
}

PyObject* operator_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* operator_repr(PyObject* self) { return PyUnicode_FromFormat("<built-in function %U>", self_of(self)->name); }
PyObject* operator_name(PyObject* self, void*) { return Py_NewRef(self_of(self)->name); }
PyObject* operator_module(PyObject* self, void*) { return Py_NewRef(self_of(self)->module); }
PyOperator* named(PyObject* self) { return self_of(self_of(self)->of ? self_of(self)->of : self); }
PyObject* operator_doc(PyObject* self, void*) { return Py_NewRef(named(self)->doc); }
int operator_set_doc(PyObject* self, PyObject* value, void*) {
  PyObject* old = named(self)->doc;
  named(self)->doc = Py_NewRef(value ? value : Py_None);
  Py_DECREF(old);
  return 0;
}
PyObject* operator_signatures(PyObject* self, void*) {
  PyObject* list = PyList_New(0);
  for (const Overload& o : *self_of(self)->overloads) {
    PyObject* text = PyUnicode_FromString(o.op->signature.text.c_str());
    PyList_Append(list, text);
    Py_DECREF(text);
  }
  return list;
}
PyObject* operator_takes_out(PyObject* self, void*) {
  for (const Overload& o : *self_of(self)->overloads)
    if (takes_out(*o.op)) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}
// The form in place of a formula of one tensor that gives floating numbers of the dtype it got, or None.
PyObject* operator_written_over(PyObject* self, void*) {
  const Operator& op = *self_of(self)->overloads->front().op;
  const PointwiseDefinition* formula = op.pointwise;
  const auto found = objects().find(op.name() + "_");
  if (self_of(self)->overloads->size() != 1 || op.inplace || !formula || formula->input_count != 1 ||
      formula->scalar_count || (formula->promotion != Promotion::same && formula->promotion != Promotion::to_float) ||
      found == objects().end())
    Py_RETURN_NONE;
  return Py_NewRef(found->second);
}
PyObject* operator_reduce(PyObject* self, PyObject*) {
  PyOperator* o = self_of(self);
  return o->of ? reduce_face(o->of, o->name, o->module) : Py_NewRef(o->name);
}
PyObject* operator_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

// operator.derivative(function, overload=""): see bindings/derivative.h.
PyObject* operator_derivative(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* function;
    const char* overload = nullptr;
    static const char* words[] = {"function", "overload", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s:derivative", const_cast<char**>(words), &function, &overload))
      raise_python();
    bool found = false;
    for (const Overload& o : *self_of(self)->overloads) {
      if (overload && o.op->signature.overload != overload) continue;
      set_derivative(*const_cast<Operator*>(o.op), function);
      found = true;
      break;  // without an overload's name, the first
    }
    check(found, PyUnicode_AsUTF8(self_of(self)->name), ": no overload '", overload ? overload : "", "'");
    return Py_NewRef(function);
  });
}

PyGetSetDef getset[] = {
    {"__name__", operator_name, nullptr, nullptr, nullptr},
    {"__qualname__", operator_name, nullptr, nullptr, nullptr},
    {"__module__", operator_module, nullptr, nullptr, nullptr},
    {"__doc__", operator_doc, operator_set_doc, nullptr, nullptr},
    {"signatures", operator_signatures, nullptr, "the signatures as text", nullptr},
    {"takes_out", operator_takes_out, nullptr, "whether out= can be given", nullptr},
    {"written_over", operator_written_over, nullptr,
     "the form in place of a formula of one tensor, if it keeps floating dtypes, else None", nullptr},
    {"__dict__", PyObject_GenericGetDict, nullptr, nullptr, nullptr},
    {}};
PyMethodDef methods[] = {
    {"derivative", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_derivative)),
     METH_VARARGS | METH_KEYWORDS, "Declare the derivative; used as a decorator."},
    {"__reduce__", operator_reduce, METH_NOARGS, nullptr},
    {"__copy__", operator_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", operator_copy, METH_O, nullptr},
    {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOperator, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyOperator, dict), READONLY, nullptr},
                         {}};

PyObject* new_operator(const char* name) {
  static PyObject* torch = PyUnicode_InternFromString("torch");
  auto* o = reinterpret_cast<PyOperator*>(require(operator_type->tp_alloc(operator_type, 0)));
  o->vectorcall = operator_vectorcall;
  o->overloads = new std::vector<Overload>;
  o->name = PyUnicode_InternFromString(name);
  o->module = Py_NewRef(torch);
  o->doc = Py_NewRef(Py_None);
  return reinterpret_cast<PyObject*>(o);
}

void operator_dealloc(PyObject* self) {
  PyOperator* o = self_of(self);
  if (!o->of) delete o->overloads;
  Py_XDECREF(o->of);
  Py_XDECREF(o->name);
  Py_XDECREF(o->module);
  Py_XDECREF(o->doc);
  Py_XDECREF(o->dict);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void add_overload(const Operator& op, PyObject* object) {
  self_of(object)->overloads->push_back({&op, op.signature.index_of("requires_grad"), result_type_of(op)});
  if (!op.doc.empty() && self_of(object)->doc == Py_None) {
    Py_DECREF(Py_None);
    self_of(object)->doc = PyUnicode_FromString(op.doc.c_str());
  }
}

void add_overload(const Operator& op) {
  PyObject*& object = objects()[op.name()];
  if (!object) object = new_operator(op.name().c_str());
  add_overload(op, object);
}

// ---- operators that are defined while the program runs

// Reads n numbers of a Python sequence.
template <class T>
void read_numbers(PyObject* sequence, Py_ssize_t n, T* to) {
  Ref fast(require(PySequence_Fast(sequence, "add_pointwise: expected a sequence")));
  check_value(PySequence_Fast_GET_SIZE(fast.get()) == n, "add_pointwise: expected ", n, " numbers, got ",
              PySequence_Fast_GET_SIZE(fast.get()));
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Ref item = item_of(fast.get(), i);
    check_value(static_cast<bool>(item), "add_pointwise: expected ", n,
                " numbers; the list became shorter while it was read");
    const double v = PyFloat_AsDouble(item.get());
    if (v == -1 && PyErr_Occurred()) raise_python();
    to[i] = static_cast<T>(v);
  }
}

// add_pointwise(key, signature, doc, inputs, scalar_count, promotion, inplace, differentiable, uses, has_gradient,
// missing, loops) -> (operator, its in-place form or None). `loops` is the address of a PointwiseLoops, which must live
// as long as the process. The operator is not listed among those of the package. `key` is what the formula's derivative
// on tensors is asked for.
PyObject* add_pointwise(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *key, *signature, *doc, *inputs;
    int scalars, promotion, inplace, differentiable;
    PyObject *uses, *has_gradient, *missing;
    unsigned long long loops;
    if (!PyArg_ParseTuple(args, "ssssiippOOOK:add_pointwise", &key, &signature, &doc, &inputs, &scalars, &promotion,
                          &inplace, &differentiable, &uses, &has_gradient, &missing, &loops))
      raise_python();
    const std::string_view letters(inputs);
    check_value(
        !letters.empty() && letters.size() <= kMaxPointwiseInputs && scalars >= 0 && scalars <= kMaxPointwiseInputs,
        key, ": expected 1 to ", kMaxPointwiseInputs, " inputs and at most as many attributes, got ", letters.size(),
        " and ", scalars);
    check_value(promotion >= 0 && promotion <= static_cast<int>(Promotion::to_real) && loops != 0, key,
                ": no such promotion, or no loops");
    const auto keep = [](std::string_view text) {
      return (new std::string(text))->c_str();
    };  // operators live as long as the process
    auto* def = new PointwiseDefinition{};
    def->name = keep(key), def->signature = keep(signature), def->doc = keep(doc), def->inputs = keep(letters);
    def->input_count = static_cast<uint8_t>(letters.size());
    def->scalar_count = static_cast<uint8_t>(scalars);
    def->promotion = static_cast<Promotion>(promotion);
    def->inplace = inplace, def->method = true, def->differentiable = differentiable;
    read_numbers(uses, def->input_count, def->uses);
    read_numbers(has_gradient, def->input_count, def->has_gradient);
    read_numbers(missing, scalars, def->missing);
    const Operator& op = Registry::instance().add_pointwise(*def, *reinterpret_cast<const PointwiseLoops*>(loops));
    check_value(op.signature.parameters.size() == letters.size() + static_cast<size_t>(scalars), key,
                ": the signature does not fit: ", signature);
    Ref object(new_operator(op.name().c_str())), in_place(Py_NewRef(Py_None));
    add_overload(op, object.get());
    if (inplace) {
      in_place = Ref(new_operator((op.name() + "_").c_str()));
      add_overload(*Registry::instance().find(op.name() + "_"), in_place.get());
    }
    return Py_BuildValue("OO", object.get(), in_place.get());
  });
}

// ---- module functions

PyObject* get_operators(PyObject*, PyObject*) {
  PyObject* d = PyDict_New();
  for (auto& [name, object] : objects()) PyDict_SetItemString(d, name.c_str(), object);
  return d;
}
// name -> (is a function, is a method)
PyObject* operator_forms(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  auto it = objects().find(text);
  if (it == objects().end()) return PyErr_Format(PyExc_KeyError, "no operator %s", text);
  const Operator* op = (*self_of(it->second)->overloads)[0].op;
  return Py_BuildValue("OO", op->is_function ? Py_True : Py_False, op->is_method ? Py_True : Py_False);
}
// Its results, and those of its overloads, are cast to an out= of another dtype.
PyObject* let_cast_out_py(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  auto it = objects().find(text);
  if (it == objects().end()) return PyErr_Format(PyExc_KeyError, "no operator %s", text);
  for (const auto& overload : *self_of(it->second)->overloads) let_cast_out(*overload.op);
  Py_RETURN_NONE;
}
PyObject* push_function_mode(PyObject*, PyObject* mode) {
  return guarded([&]() -> PyObject* {
    const Ref sees(require(PyObject_GetAttrString(mode, "_sees_attributes")));
    push_mode({Py_NewRef(mode), sees.get() == Py_True});
    Py_RETURN_NONE;
  });
}
PyObject* pop_function_mode(PyObject*, PyObject*) {
  if (function_modes.empty()) return PyErr_Format(PyExc_RuntimeError, "no function mode is active");
  return pop_mode().object;
}
PyObject* function_mode_depth(PyObject*, PyObject*) { return PyLong_FromSize_t(function_modes.size()); }
PyObject* get_function_modes(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (const FunctionMode& mode : function_modes) PyList_Append(list, mode.object);
  return list;
}
PyObject* set_answering_py(PyObject*, PyObject* who) {
  return guarded([&]() -> PyObject* {
    const long wanted = PyLong_AsLong(who);
    check_value(0 <= wanted && wanted <= 2, "set_answering: expected 0, 1 or 2");
    return PyLong_FromLong(static_cast<long>(set_answering(static_cast<Answering>(wanted))));
  });
}
PyObject* get_answering(PyObject*, PyObject*) { return PyLong_FromLong(static_cast<long>(answering)); }
PyObject* set_parameter_type(PyObject*, PyObject* type) {
  parameter_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  Py_RETURN_NONE;
}
PyObject* set_interpreted_type(PyObject*, PyObject* type) {
  interpreted_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  Py_RETURN_NONE;
}
PyObject* make_subclass(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *type, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTuple(args, "OO|p", &type, &data, &requires_grad)) raise_python();
    check_type(PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type),
               "as_subclass: expected a subclass of Tensor, got ", Py_TYPE(type)->tp_name);
    check_type(is_tensor(data), "_make_subclass: the second argument must be a Tensor, not ", Py_TYPE(data)->tp_name);
    Tensor d = detach(unwrap_elements("as_subclass", data));
    PyObject* o = wrap_as(d, reinterpret_cast<PyTypeObject*>(type));
    if (requires_grad) set_requires_grad(d, true);
    return o;
  });
}
// A view of all of a tensor, as an instance of a subclass. Nobody who handles calls is asked: it is not whole yet.
PyObject* as_subclass(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *type, *data;
    if (!PyArg_ParseTuple(args, "OO!", &type, tensor_type, &data)) raise_python();
    check_type(PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type),
               "Creating a Tensor subclass from a class that does not inherit from Tensor: ",
               PyType_Check(type) ? reinterpret_cast<PyTypeObject*>(type)->tp_name : Py_TYPE(type)->tp_name);
    static const Operator* alias = Registry::instance().find("alias");
    struct Unhandled {
      const bool dispatching = modes.dispatching, disabled = modes.dispatch_disabled;
      Unhandled() { modes.dispatching = false, modes.dispatch_disabled = true; }
      ~Unhandled() { modes.dispatching = dispatching, modes.dispatch_disabled = disabled; }
    } unhandled;
    const Tensor t = unwrap_elements("as_subclass", data);
    Call c(*alias);
    c.args[0] = Value(t);
    call(c);
    return wrap_as(c.outputs[0], reinterpret_cast<PyTypeObject*>(type));
  });
}
// named_results(name, fields): for functions that are made of others; of an operator, the type that it gives.
PyObject* named_results(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    PyObject* fields;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &fields)) return nullptr;
    if (const Operator* op = Registry::instance().find(name))
      if (PyTypeObject* type = result_type_of(*op)) return Py_NewRef(reinterpret_cast<PyObject*>(type));
    std::vector<std::string> results;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i) {
      const char* field = PyUnicode_AsUTF8(PyTuple_GET_ITEM(fields, i));
      if (!field) return nullptr;
      results.push_back(field);
    }
    return reinterpret_cast<PyObject*>(make_result_type(name, results));
  });
}
PyMethodDef functions[] = {
    {"operators", get_operators, METH_NOARGS, "All operators by name."},
    {"add_pointwise", add_pointwise, METH_VARARGS,
     "Make an operator of compiled loops: (operator, its in-place form or None)."},
    {"operator_forms", operator_forms, METH_O, "Whether an operator is a function and a method."},
    {"let_cast_out", let_cast_out_py, METH_O, "Let an operator cast its result to an out= of another dtype."},
    {"push_function_mode", push_function_mode, METH_O, nullptr},
    {"pop_function_mode", pop_function_mode, METH_NOARGS, nullptr},
    {"function_mode_depth", function_mode_depth, METH_NOARGS, "How many function modes are active."},
    {"function_modes", get_function_modes, METH_NOARGS, "The active function modes, the innermost last."},
    {"set_answering", set_answering_py, METH_O,
     "Who answers for calls in this thread: nobody (0), function modes (1), also classes with a __torch_function__ "
     "(2). "
     "Returns what it was."},
    {"answering", get_answering, METH_NOARGS, "Who answers for calls in this thread; see set_answering."},
    {"set_parameter_type", set_parameter_type, METH_O, nullptr},
    {"set_interpreted_type", set_interpreted_type, METH_O, nullptr},
    {"named_results", named_results, METH_VARARGS, "A type of named results."},
    {"make_subclass", make_subclass, METH_VARARGS, "A tensor of a subclass that shares memory with another."},
    {"as_subclass", as_subclass, METH_VARARGS, "A view of a tensor that is an instance of a subclass."},
    {}};

}  // namespace

Answering set_answering(Answering who) {
  const Answering before = std::exchange(answering, who);
  note_who_answers();
  return before;
}

bool wants_torch_function(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type || type == parameter_type || type == &PyFloat_Type || type == &PyLong_Type ||
      type == &PyTuple_Type || type == &PyList_Type || o == Py_None || PyUnicode_Check(o))
    return false;
  PyObject* found = _PyType_Lookup(type, torch_function_name());
  if (!found) return false;
  static PyObject* disabled = nullptr;  // cresset._disabled_torch_function
  if (!disabled) {
    if (PyObject* attribute =
            PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "_disabled_torch_function"))
      disabled = attribute;
    else
      PyErr_Clear();
  }
  return found != disabled;
}

PyObject* call_python_operator(Call& c) {
  call(c);
  return c.outputs.empty() ? Py_NewRef(Py_None) : wrap(c.outputs[0]);
}

PyObject* operator_face(PyObject* of, PyObject* name, PyObject* module) {
  auto* o = reinterpret_cast<PyOperator*>(require(operator_type->tp_alloc(operator_type, 0)));
  o->vectorcall = operator_vectorcall;
  o->overloads = self_of(of)->overloads;
  o->name = Py_NewRef(name);
  o->module = Py_NewRef(module);
  o->doc = Py_NewRef(Py_None);
  o->of = Py_NewRef(of);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* operator_behind(PyObject* o) { return self_of(o)->of; }

PyObject* Method::call(PyObject* const* args, size_t count) {
  if (!object) {
    PyObject* found = _PyType_Lookup(tensor_type, Ref(PyUnicode_InternFromString(name)).get());
    object = found && Py_TYPE(found) == operator_type ? found : operator_object(name);
  }
  return PyObject_Vectorcall(object, args, count, nullptr);
}

PyObject* operator_object(const char* name) {
  auto it = objects().find(name);
  if (it == objects().end()) fail("no operator '", name, "'");
  return it->second;
}

void add_operator_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(operator_get)},
                         {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
                         {Py_tp_getset, getset},
                         {Py_tp_methods, methods},
                         {Py_tp_members, members},
                         {Py_tp_dealloc, reinterpret_cast<void*>(operator_dealloc)},
                         {0, nullptr}};
  PyType_Spec spec{"cresset.Operator", sizeof(PyOperator), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  operator_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Operator", reinterpret_cast<PyObject*>(operator_type));
  PyModule_AddFunctions(module, functions);
  for (const Operator& op : Registry::instance().all()) add_overload(op);
}

}  // namespace cresset
