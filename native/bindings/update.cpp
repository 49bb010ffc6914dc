// The steps of the optimizers, called from Python with the groups and the state as they are: parameters, gradients and
// what is kept for them are looked up here, so that Python does nothing for the single parameter.
#include <unordered_set>

#include "bindings/python.h"
#include "cuda/update_eight_bit.h"
#include "dispatch/profile.h"
#include "ops/update.h"
#include "tensor/backend.h"

namespace cresset {
namespace {

// A variant with its names as Python strings.
struct NamedVariant {
  const UpdateVariant* variant;
  PyObject *tensors[kMaxUpdateTensors], *numbers[kMaxUpdateNumbers], *singles[kMaxUpdateSingles];
};

const NamedVariant& find_variant(const char* name, int flags) {
  static auto* known = new std::vector<std::unique_ptr<NamedVariant>>;
  for (const auto& v : *known)
    if (v->variant->flags == flags && !std::strcmp(v->variant->name, name)) return *v;
  const UpdateVariant* found = find_update(name, flags);
  check_value(found, "update: there is no variant ", flags, " of '", name, "'");
  auto made = std::make_unique<NamedVariant>();
  made->variant = found;
  for (int i = 0; i < found->tensor_count; ++i)
    made->tensors[i] = require(PyUnicode_InternFromString(found->tensors[i]));
  for (int i = 0; i < found->number_count; ++i)
    made->numbers[i] = require(PyUnicode_InternFromString(found->numbers[i]));
  for (int i = 0; i < found->single_count; ++i)
    made->singles[i] = require(PyUnicode_InternFromString(found->singles[i]));
  known->push_back(std::move(made));
  return *known->back();
}

PyObject* look_up(PyObject* dict, PyObject* key) {  // borrowed; null: not there
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (!value && PyErr_Occurred()) raise_python();
  return value;
}

double read_number(const char* who, PyObject* name, PyObject* numbers, PyObject* group) {
  PyObject* value = look_up(numbers, name);
  if (!value) value = look_up(group, name);
  check_value(value, who, ": the group has no '", PyUnicode_AsUTF8(name), "'");
  if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
  Scalar s;
  check_type((is_number(value) || (is_tensor(value) && impl_of(value)->numel == 1)) && to_scalar(value, s) &&
                 s.kind != Scalar::Kind::complex,
             who, ": '", PyUnicode_AsUTF8(name), "' must be a real number, not ", Py_TYPE(value)->tp_name);
  return s.real;
}

enum class Answer { ready, missing, elsewhere };

// Tensors and parameters, and subclasses of parameters that do not interpret calls.
bool is_ordinary(PyObject* o) {
  return is_plain_tensor(o) || (parameter_type && PyObject_TypeCheck(o, parameter_type) && !wants_torch_function(o));
}

// Whether the loops can use it. Tensors of other classes and devices and lazy views are left to ordinary operations.
bool is_usable(const TensorImpl* t, Device device) {
  return t->storage->device == device && !t->conjugate_view &&
         (!t->wrapper || is_ordinary(static_cast<PyObject*>(t->wrapper)));
}

// Whether two parameters lie in the same memory: then their steps have to follow each other.
bool has_twins(const std::vector<UpdateTarget>& targets) {
  constexpr size_t kFew = 16;
  if (targets.size() <= kFew) {
    for (size_t i = 1; i < targets.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (targets[i].tensors[0].bytes() == targets[j].tensors[0].bytes() && targets[i].count) return true;
    return false;
  }
  std::unordered_set<const char*> seen;
  seen.reserve(2 * targets.size());
  for (const UpdateTarget& t : targets)
    if (t.count && !seen.insert(t.tensors[0].bytes()).second) return true;
  return false;
}

Answer gather(const NamedVariant& names, PyObject* param, PyObject* state, UpdateTarget& target) {
  const UpdateVariant& v = *names.variant;
  const AutogradState* grads = state_of(impl_of(param));
  const Device device = impl_of(param)->storage->device;
  if (device.is_meta() || !is_ordinary(param) || !is_usable(impl_of(param), device) ||
      !is_usable(grads->grad.get(), device))
    return Answer::elsewhere;
  target.tensors[0] = unwrap(param);
  target.tensors[1] = grads->grad;
  if (v.tensor_count == 2 && v.single_count == 0) return Answer::ready;
  PyObject* kept = look_up(state, param);
  if (!kept || !PyDict_Check(kept)) return Answer::missing;
  const auto take = [&](PyObject* name, Tensor& to, Device where) {
    PyObject* value = look_up(kept, name);
    if (!value || !is_tensor(value)) return Answer::missing;
    if (!is_ordinary(value) || !is_usable(impl_of(value), where)) return Answer::elsewhere;
    to = unwrap(value);
    return Answer::ready;
  };
  for (int i = 2; i < v.tensor_count; ++i)
    if (const Answer a = take(names.tensors[i], target.tensors[i], device); a != Answer::ready) return a;
  // A step count may be on the CPU though the parameter is not.
  PyObject* first = v.single_count ? look_up(kept, names.singles[0]) : nullptr;
  target.singles_on_device = first && is_tensor(first) && is_accelerator(impl_of(first)->storage->device);
  for (int i = 0; i < v.single_count; ++i)
    if (const Answer a = take(names.singles[i], target.singles[i], target.singles_on_device ? device : Device{});
        a != Answer::ready)
      return a;
  for (int i = 1; i < v.single_count && target.singles_on_device;
       ++i)  // a state that was loaded can have several dtypes
    if (target.singles[i].dtype() != target.singles[0].dtype()) return Answer::elsewhere;
  return Answer::ready;
}

// A tensor of one float32 on a device, or None.
Tensor read_single_float(const char* who, PyObject* o) {
  if (o == Py_None) return {};
  check_type(is_tensor(o), who, ": expected a tensor of one element, got ", Py_TYPE(o)->tp_name);
  const Tensor t = unwrap(o);
  check(t.numel() == 1 && t.dtype() == Dtype::f32 && is_accelerator(t.device()), who,
        ": expected one float32 on the device of the parameters, got ", name_of(t.dtype()), " of shape ",
        list(t.sizes()), " on '", t.device(), "'");
  return t;
}

// update(who, name, groups, state[, scale, found]): one step of all groups, each (flags, numbers, group). Numbers that
// are not in `numbers` are the group's. Returns None when it is done; a list of (index of the group, parameter) for
// which something is not in the state yet, and then nothing was changed; NotImplemented when ordinary operations have
// to do it. On CUDA `scale` and `found` may be a tensor of one float32 each: gradients are divided by `scale`, and
// where `found` is not zero nothing changes; then step counts must be on the device too.
PyObject* update(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *who, *name;
    PyObject *calls, *state, *scale = Py_None, *found = Py_None;
    if (!PyArg_ParseTuple(args, "ssO!O|OO:update", &who, &name, &PyList_Type, &calls, &state, &scale, &found))
      raise_python();
    if (has_function_mode || !PyDict_Check(state)) Py_RETURN_NOTIMPLEMENTED;
    static PyObject* params_name = PyUnicode_InternFromString("params");
    const Py_ssize_t count = PyList_GET_SIZE(calls);
    std::vector<UpdateGroup> groups(static_cast<size_t>(count));
    Ref missing;
    bool on_cpu = false, on_device = false;
    Device device;
    for (Py_ssize_t g = 0; g < count; ++g) {
      PyObject* call = PyList_GET_ITEM(calls, g);
      check_type(PyTuple_Check(call) && PyTuple_GET_SIZE(call) == 3 && PyLong_Check(PyTuple_GET_ITEM(call, 0)) &&
                     PyDict_Check(PyTuple_GET_ITEM(call, 1)) && PyDict_Check(PyTuple_GET_ITEM(call, 2)),
                 who, ": update expects (flags, numbers, group)");
      const NamedVariant& names = find_variant(name, static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(call, 0))));
      PyObject *numbers = PyTuple_GET_ITEM(call, 1), *group = PyTuple_GET_ITEM(call, 2);
      UpdateGroup& made = groups[static_cast<size_t>(g)];
      made.variant = names.variant;
      for (int i = 0; i < names.variant->number_count; ++i)
        made.numbers[i] = read_number(who, names.numbers[i], numbers, group);
      PyObject* params = look_up(group, params_name);
      check_value(params && PyList_Check(params), who, ": the parameters of a group must be a list");
      made.targets.reserve(static_cast<size_t>(PyList_GET_SIZE(params)));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
        PyObject* param = PyList_GET_ITEM(params, i);
        check_type(is_tensor(param), who, ": a parameter must be a Tensor, not ", Py_TYPE(param)->tp_name);
        const AutogradState* grads = state_of(impl_of(param));
        if (!grads || !grads->grad.defined()) continue;
        switch (gather(names, param, state, made.targets.emplace_back())) {
          case Answer::ready:
            device = made.targets.back().tensors[0].device();
            (device.is_cpu() ? on_cpu : on_device) = true;
            break;
          case Answer::elsewhere: Py_RETURN_NOTIMPLEMENTED;
          case Answer::missing:
            made.targets.pop_back();
            if (!missing) missing = Ref(require(PyList_New(0)));
            Ref pair(require(Py_BuildValue("nO", g, param)));
            if (PyList_Append(missing.get(), pair.get()) < 0) raise_python();
        }
      }
      prepare_update(who, made);
      if (has_twins(made.targets)) Py_RETURN_NOTIMPLEMENTED;
    }
    if (on_cpu && on_device) Py_RETURN_NOTIMPLEMENTED;
    if (missing) return missing.release();
    const Tensor scaled = on_device ? read_single_float(who, scale) : Tensor(),
                 skipped = on_device ? read_single_float(who, found) : Tensor();
    const Profiled profiled("Optimizer.update#", who, ProfileKind::function);
    backend_of(device).run(UpdateLaunch{who, groups, scaled, skipped});
    Py_RETURN_NONE;
  });
}

// clear_gradients(parameters): p.grad = None for each of a list.
PyObject* clear_gradients(PyObject*, PyObject* params) {
  return guarded([&]() -> PyObject* {
    Ref fast(require(PySequence_Fast(params, "clear_gradients: expected a list of tensors")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
      PyObject* p = PySequence_Fast_GET_ITEM(fast.get(), i);
      check_type(is_tensor(p), "clear_gradients: expected Tensors, got ", Py_TYPE(p)->tp_name);
      if (is_interpreted(p)) {  // its gradient is that of a part
        if (PyObject_SetAttrString(p, "grad", Py_None) < 0) raise_python();
      } else if (AutogradState* s = state_of(impl_of(p))) {
        s->grad.reset();
      }
    }
    Py_RETURN_NONE;
  });
}

// adam_in_8_bits(param, grad, means, largest, values, (lr, beta1, beta2, eps, weight_decay), step, decoupled): pairs of
// the mean and the mean of squares.
PyObject* step_in_8_bits(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *param, *grad, *means[2], *largest[2], *values[2];
    EightBitAdam s;
    long long step;
    int decoupled;
    if (!PyArg_ParseTuple(args, "OO(OO)(OO)(OO)(ddddd)Lp:adam_in_8_bits", &param, &grad, &means[0], &means[1],
                          &largest[0], &largest[1], &values[0], &values[1], &s.lr, &s.beta1, &s.beta2, &s.eps,
                          &s.weight_decay, &step, &decoupled))
      raise_python();
    const auto given = [](PyObject* o, const char* what, Dtype dtype) {
      check_type(is_tensor(o), "adam_in_8_bits: ", what, " must be a Tensor, not ", Py_TYPE(o)->tp_name);
      Tensor t = unwrap(o);
      check(t.dtype() == dtype && t.is_contiguous(), "adam_in_8_bits: ", what, " must be contiguous and of dtype ",
            name_of(dtype), ", got ", name_of(t.dtype()));
      return t;
    };
    const auto is_read = [](Dtype d) { return d == Dtype::f32 || d == Dtype::bf16 || d == Dtype::f16; };
    check_type(is_tensor(param) && is_tensor(grad), "adam_in_8_bits: a parameter and its gradient must be Tensors");
    s.param = given(param, "a parameter", unwrap(param).dtype());
    s.grad = given(grad, "a gradient", unwrap(grad).dtype());
    check(is_read(s.param.dtype()) && is_read(s.grad.dtype()),
          "adam_in_8_bits: expected float32, bfloat16 or float16, got a parameter of dtype ", name_of(s.param.dtype()),
          " and a gradient of dtype ", name_of(s.grad.dtype()));
    s.first = given(means[0], "a mean", Dtype::u8), s.second = given(means[1], "a mean", Dtype::u8);
    s.first_largest = given(largest[0], "largest", Dtype::f32),
    s.second_largest = given(largest[1], "largest", Dtype::f32);
    s.first_values = given(values[0], "values", Dtype::f32), s.second_values = given(values[1], "values", Dtype::f32);
    s.step = step, s.decoupled = decoupled != 0;
    const int64_t count = s.param.numel(), blocks = (count + kEightBitBlock - 1) / kEightBitBlock;
    check(s.grad.numel() == count && s.first.numel() == count && s.second.numel() == count &&
              s.first_largest.numel() == blocks && s.second_largest.numel() == blocks &&
              s.first_values.numel() == 256 && s.second_values.numel() == 256,
          "adam_in_8_bits: the state does not fit a parameter of ", count, " elements");
    for (const Tensor* t :
         {&s.grad, &s.first, &s.second, &s.first_largest, &s.second_largest, &s.first_values, &s.second_values})
      check(t->device() == s.param.device(), "adam_in_8_bits: the state of a parameter is on ", t->device(),
            ", the parameter on ", s.param.device());
    if (count) s.param.device().is_cpu() ? adam_in_8_bits(s) : cuda::adam_in_8_bits(s);
    for (const Tensor* t : {&s.param, &s.first, &s.second, &s.first_largest, &s.second_largest})
      ++(*t)->storage->version;
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"adam_in_8_bits", step_in_8_bits, METH_VARARGS, "One step of Adam for a parameter whose state is in 8 bits."},
    {"update", update, METH_VARARGS, "One step of an optimizer over all its groups."},
    {"clear_gradients", clear_gradients, METH_O, "Forget the gradients of a list of parameters."},
    {}};

}  // namespace

void add_updates(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
