// Lists of tensors on CUDA: one operation on all of them, their norms, and what a GradScaler does to gradients. Where
// these functions cannot go, they answer NotImplemented, and the caller takes the tensors one by one.
#include <unordered_set>

#include "bindings/python.h"
#include "cuda/device.h"
#include "cuda/foreach.h"

namespace cresset {
namespace {

// A tensor that can be worked on without anybody noticing that it was not an ordinary call.
bool is_usable(PyObject* o) {
  if (!is_tensor(o) || !is_plain_tensor(o)) return false;
  const TensorImpl* t = impl_of(o);
  return cuda::is_cuda(t->storage->device) && !(t->requires_grad && modes.grad_enabled) && !t->has_tangent &&
         !t->level && !t->conjugate_view && !t->inference && !t->storage->read_only && !t->storage->is_lazy();
}

// False: not a list of usable tensors.
bool read_tensors(PyObject* o, std::vector<Tensor>& to) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  to.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (!is_usable(item)) return false;
    to.push_back(unwrap(item));
  }
  return n > 0;
}

bool read_number(PyObject* o, double& to) {
  Scalar s;
  if (!is_number(o) || !to_scalar(o, s) || s.kind == Scalar::Kind::complex) return false;
  to = s.real;
  return true;
}
// A number for each of `count` targets: from one, or from a list of them.
bool read_numbers(PyObject* o, size_t count, std::vector<double>& to) {
  to.resize(count);
  if (!PyList_Check(o) && !PyTuple_Check(o)) {
    double one;
    if (!read_number(o, one)) return false;
    std::fill(to.begin(), to.end(), one);
    return true;
  }
  if (static_cast<size_t>(PySequence_Fast_GET_SIZE(o)) != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const Ref item = item_of(o, static_cast<Py_ssize_t>(i));
    if (!item || !read_number(item.get(), to[i])) return false;
  }
  return true;
}

bool has_twins(const std::vector<Tensor>& tensors) {
  std::unordered_set<const char*> seen;
  for (const Tensor& t : tensors)
    if (t.numel() && !seen.insert(t.bytes()).second) return true;
  return false;
}

bool is_one_kind(const std::vector<Tensor>& tensors) {
  const Dtype d = tensors[0].dtype();
  if (d != Dtype::f32 && d != Dtype::f64 && d != Dtype::f16 && d != Dtype::bf16) return false;
  for (const Tensor& t : tensors)
    if (t.dtype() != d || !(t.device() == tensors[0].device())) return false;
  return true;
}

// foreach(name, in_place, inputs, attributes): inputs are lists of tensors or numbers, a number, or a tensor without
// dimensions.
PyObject* foreach (PyObject*, PyObject * args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    int in_place;
    PyObject *inputs, *attributes;
    if (!PyArg_ParseTuple(args, "spO!O!:foreach", &name, &in_place, &PyTuple_Type, &inputs, &PyTuple_Type, &attributes))
      raise_python();
    const Operator* op = Registry::instance().find(name);
    if (!op || has_function_mode || modes.autocast || modes.vmap_depth) Py_RETURN_NOTIMPLEMENTED;
    std::vector<cuda::ForeachInput> read(static_cast<size_t>(PyTuple_GET_SIZE(inputs)));
    for (size_t i = 0; i < read.size(); ++i) {
      PyObject* o = PyTuple_GET_ITEM(inputs, static_cast<Py_ssize_t>(i));
      const bool is_list = PyList_Check(o) || PyTuple_Check(o);
      if (i == 0 || (is_list && PySequence_Fast_GET_SIZE(o) > 0 && is_tensor(PySequence_Fast_GET_ITEM(o, 0)))) {
        read[i].kind = cuda::ForeachInput::tensors;
        if (!read_tensors(o, read[i].list) || read[i].list.size() != read[0].list.size()) Py_RETURN_NOTIMPLEMENTED;
      } else if (is_tensor(o)) {
        read[i].kind = cuda::ForeachInput::shared;
        if (!is_usable(o) || impl_of(o)->dim() != 0) Py_RETURN_NOTIMPLEMENTED;
        read[i].list.push_back(unwrap(o));
      } else {
        read[i].kind = cuda::ForeachInput::numbers;
        if (!read_numbers(o, read[0].list.size(), read[i].values)) Py_RETURN_NOTIMPLEMENTED;
      }
    }
    std::vector<std::vector<double>> scalars(static_cast<size_t>(PyTuple_GET_SIZE(attributes)));
    for (size_t a = 0; a < scalars.size(); ++a)
      if (!read_numbers(PyTuple_GET_ITEM(attributes, static_cast<Py_ssize_t>(a)), read[0].list.size(), scalars[a]))
        Py_RETURN_NOTIMPLEMENTED;
    if (!cuda::can_foreach(*op, read) || op->pointwise->scalar_count != scalars.size() ||
        (in_place && has_twins(read[0].list)))
      Py_RETURN_NOTIMPLEMENTED;
    if (in_place) {
      cuda::launch_foreach(*op, read, scalars, read[0].list);
      for (const Tensor& t : read[0].list) ++t->storage->version;
      return require(PySequence_List(PyTuple_GET_ITEM(inputs, 0)));
    }
    std::vector<Tensor> results;
    for (const Tensor& t : read[0].list)
      results.push_back(empty(TensorInfo{t.sizes(), t.strides(), t.dtype(), t.device()}));
    cuda::launch_foreach(*op, read, scalars, results);
    Ref made(require(PyTuple_New(static_cast<Py_ssize_t>(results.size()))));
    for (size_t i = 0; i < results.size(); ++i)
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), wrap(results[i]));
    return made.release();
  });
}

// foreach_copy(to, from): in place; zeros when `from` is None.
PyObject* foreach_copy(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *to, *from;
    if (!PyArg_ParseTuple(args, "OO:foreach_copy", &to, &from)) raise_python();
    std::vector<Tensor> targets, sources;
    if (has_function_mode || modes.vmap_depth || !read_tensors(to, targets) || !is_one_kind(targets) ||
        has_twins(targets))
      Py_RETURN_NOTIMPLEMENTED;
    if (from != Py_None && (!read_tensors(from, sources) || sources.size() != targets.size() || !is_one_kind(sources) ||
                            !(sources[0].device() == targets[0].device())))
      Py_RETURN_NOTIMPLEMENTED;
    for (size_t i = 0; i < targets.size(); ++i) {
      const Tensor& t = targets[i];
      if (!(t.is_contiguous() || is_dense(t.sizes(), t.strides()))) Py_RETURN_NOTIMPLEMENTED;
      if (!sources.empty() && (!(sources[i].sizes() == t.sizes()) || !(sources[i].strides() == t.strides())))
        Py_RETURN_NOTIMPLEMENTED;
    }
    cuda::launch_copies(targets, sources);
    for (const Tensor& t : targets) ++t->storage->version;
    return require(PySequence_List(to));
  });
}

// foreach_norms(tensors, order): one tensor with the norm of each; the order is 1, 2 or infinity.
PyObject* foreach_norms(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double order;
    if (!PyArg_ParseTuple(args, "Od:foreach_norms", &list, &order)) raise_python();
    std::vector<Tensor> tensors;
    const bool known = order == 1 || order == 2 || order == std::numeric_limits<double>::infinity();
    if (!known || has_function_mode || modes.autocast || !read_tensors(list, tensors) || !is_one_kind(tensors))
      Py_RETURN_NOTIMPLEMENTED;
    for (const Tensor& t : tensors)
      if (t.numel() == 0 && order > 2)
        Py_RETURN_NOTIMPLEMENTED;  // of nothing there is no largest: an ordinary operation says so
    return wrap(cuda::launch_norms(tensors, order == 1 ? 1 : order == 2 ? 2 : 0));
  });
}

bool is_one_number(PyObject* o, Dtype d) {
  return is_tensor(o) && impl_of(o)->dtype == d && impl_of(o)->numel == 1 && cuda::is_cuda(impl_of(o)->storage->device);
}

// unscale(gradients, factor, found): multiplies in place; `found`, a float32, becomes 1 where something is not finite.
PyObject* unscale(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *list, *factor, *found;
    if (!PyArg_ParseTuple(args, "OOO:unscale", &list, &factor, &found)) raise_python();
    std::vector<Tensor> tensors;
    if (!is_one_number(factor, Dtype::f32) || !is_one_number(found, Dtype::f32) || has_function_mode ||
        !read_tensors(list, tensors) || !is_one_kind(tensors))
      Py_RETURN_NOTIMPLEMENTED;
    for (const Tensor& t : tensors)
      if (!(t.is_contiguous() || is_dense(t.sizes(), t.strides())) || !(t.device() == unwrap(factor).device()) ||
          !(t.device() == unwrap(found).device()))
        Py_RETURN_NOTIMPLEMENTED;
    cuda::launch_unscale(tensors, unwrap(factor), unwrap(found));
    for (const Tensor& t : tensors) ++t->storage->version;
    Py_RETURN_NONE;
  });
}

// update_scale(scale, tracker, found, growth, backoff, interval): what GradScaler.update does, on the device.
PyObject* update_scale(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *scale, *tracker, *found;
    double growth, backoff;
    int interval;
    if (!PyArg_ParseTuple(args, "OOOddi:update_scale", &scale, &tracker, &found, &growth, &backoff, &interval))
      raise_python();
    if (!is_one_number(scale, Dtype::f32) || !is_one_number(tracker, Dtype::i32) || !is_one_number(found, Dtype::f32))
      Py_RETURN_NOTIMPLEMENTED;
    cuda::launch_update_scale(unwrap(scale), unwrap(tracker), unwrap(found), growth, backoff, interval);
    ++impl_of(scale)->storage->version;
    ++impl_of(tracker)->storage->version;
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"foreach", foreach, METH_VARARGS, "A pointwise operator on lists of CUDA tensors."},
                           {"foreach_copy", foreach_copy, METH_VARARGS, "Copy CUDA tensors, or set them to zero."},
                           {"foreach_norms", foreach_norms, METH_VARARGS, "The norms of CUDA tensors, as one tensor."},
                           {"unscale", unscale, METH_VARARGS, "Multiply CUDA tensors, and note what is not finite."},
                           {"update_scale", update_scale, METH_VARARGS, "The next scale of a GradScaler."},
                           {}};

}  // namespace

void add_foreach(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
