// t[...] and t[...] = value: ints, slices, None and ... become views; tensors go to the index operators.
#include "bindings/arguments.h"
#include "bindings/python.h"
#include "ops/indexed_walk.h"

namespace cresset {

Tensor tensor_from_data(PyObject* data, int dtype, Device device);  // data.cpp; dtype -1: what the data says

namespace {

const Operator& op(const char* name) {
  const Operator* found = Registry::instance().find(name);
  check(found, "no operator '", name, "'");
  return *found;
}

Tensor select(const Tensor& t, int64_t dim, int64_t index) {
  static const Operator& o = op("select");
  return call_operator(o, t, Scalar(dim), Scalar(index));
}

bool is_mask(const Tensor& t) { return t.dtype() == Dtype::b8 || t.dtype() == Dtype::u8; }

// How many dimensions of the tensor an index element uses up.
int64_t dims_used(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
  if (is_tensor(o) && is_mask(unwrap(o))) return impl_of(o)->dim();
  return 1;
}

int64_t slice_end(PyObject* o, const char* what) {
  int64_t v;
  if (PyLong_Check(o)) {  // beyond 64 bits is as good as the end
    int overflow;
    v = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow > 0 ? INT64_MAX / 2 : overflow < 0 ? INT64_MIN / 2 : v;
  }
  check_type(to_integer(o, v), "slice indices must be integers or None or have an __index__ method (", what, " is ",
             Py_TYPE(o)->tp_name, ")");
  return v;
}

struct Indexed {
  Tensor view;
  std::vector<Tensor> indices;  // empty: the view is all
};

// A slice of everything among several items changes nothing; one that stands alone is a view with a node of its own
// (`alone`), as x[:] is in PyTorch.
Indexed apply(const Tensor& self, PyObject* const* items, Py_ssize_t n, bool alone = false) {
  static const Operator &slice_op = op("slice"), &unsqueeze_op = op("unsqueeze");
  int64_t used = 0;
  for (Py_ssize_t i = 0; i < n; ++i) used += dims_used(items[i]);
  check_index(used <= self.dim(), "too many indices for tensor of dimension ", self.dim());
  Indexed r{self, {}};
  int64_t dim = 0, gone = 0;  // how many dimensions of `self` the view has lost, less those it has gained
  const auto pick = [&](int64_t index) {
    const int64_t count = r.view.size(dim);
    check_index(index >= -count && index < count, "index ", index, " is out of bounds for dimension ", dim + gone,
                " with size ", count);
    r.view = select(r.view, dim, index);
    ++gone;
  };
  const auto insert = [&] {
    r.view = call_operator(unsqueeze_op, r.view, Scalar(dim));
    --gone;
  };
  const auto put = [&](Tensor index) {
    r.indices.resize(std::max<size_t>(r.indices.size(), static_cast<size_t>(dim + 1)));
    r.indices[static_cast<size_t>(dim)] = std::move(index);
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = items[i];
    int64_t integer;
    if (PySlice_Check(o)) {
      auto* s = reinterpret_cast<PySliceObject*>(o);
      const int64_t step = s->step == Py_None ? 1 : slice_end(s->step, "step");
      check_value(step > 0, "step must be greater than zero");
      const int64_t start = s->start == Py_None ? 0 : slice_end(s->start, "start");
      const int64_t stop = s->stop == Py_None ? INT64_MAX : slice_end(s->stop, "stop");
      if (alone || start != 0 || step != 1 || stop < r.view.size(dim)) {
        Value none;
        r.view = call_operator(slice_op, r.view, Scalar(dim), s->start == Py_None ? none : Value(Scalar(start)),
                               s->stop == Py_None ? none : Value(Scalar(stop)), Scalar(step));
      }
      ++dim;
    } else if (o == Py_Ellipsis) {
      dim += self.dim() - used;
    } else if (o == Py_None) {
      insert();
      ++dim;
    } else if (PyBool_Check(o)) {
      insert();
      put(full(Dims{1}, Scalar(o == Py_True), Dtype::b8));
      ++dim;
    } else if (is_tensor(o)) {
      const Tensor t = unwrap_elements("index", o);
      if (t.dim() == 0 && !is_mask(t) && is_integral(t.dtype()) && !differs_by_sample(t.get())) {
        pick(item(t).integer);
      } else if (t.dim() == 0 && t.dtype() == Dtype::b8) {
        insert();
        put(full(Dims{1}, Scalar(item(t).to<bool>()), Dtype::b8));
        ++dim;
      } else {
        check_index(is_integral(t.dtype()) || t.dtype() == Dtype::b8,
                    "tensors used as indices must be long, int, byte or bool tensors, got ", name_of(t.dtype()));
        put(t);
        dim += is_mask(t) ? t.dim() : 1;
      }
    } else if (to_integer(o, integer)) {
      pick(integer);
    } else {
      check_type(
          !PyUnicode_Check(o) && !PyBytes_Check(o),
          "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
          Py_TYPE(o)->tp_name, ")");
      check_index(
          PySequence_Check(o),
          "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
          Py_TYPE(o)->tp_name, ")");
      Tensor t = tensor_from_data(o, -1, self.device());
      if (is_floating(t.dtype())) t = convert(t, Dtype::i64);
      check_index(is_integral(t.dtype()) || t.dtype() == Dtype::b8,
                  "tensors used as indices must be long, int, byte or bool tensors, got ", name_of(t.dtype()));
      put(t);
      dim += is_mask(t) ? t.dim() : 1;
    }
  }
  // A mask is one entry, however many dimensions it covers.
  std::vector<Tensor> entries;
  for (size_t d = 0; d < r.indices.size(); ++d) {
    entries.push_back(r.indices[d]);
    if (r.indices[d].defined() && is_mask(r.indices[d]))
      d += static_cast<size_t>(std::max<int64_t>(r.indices[d].dim(), 1)) - 1;
  }
  r.indices = std::move(entries);
  return r;
}

Value list_value(const std::vector<Tensor>& tensors) {
  Value v;
  v.kind = Kind::tensors;
  v.tensors_ = tensors.data();
  v.count = static_cast<int64_t>(tensors.size());
  return v;
}

// A short list that holds more than numbers is meant as a tuple: t[[0, slice(None)]], t[[[0, 1], [0, 1]]].
bool stands_for_tuple(PyObject* index) {
  if (!PyList_Check(index) || PyList_GET_SIZE(index) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index); ++i) {
    PyObject* o = PyList_GET_ITEM(index, i);
    if (o == Py_None || o == Py_Ellipsis || PySlice_Check(o) || is_tensor(o) || PySequence_Check(o)) return true;
  }
  return false;
}

template <class F>
auto with_items(PyObject* index, F&& f) {
  if (stands_for_tuple(index)) {
    Ref tuple(require(PyList_AsTuple(index)));
    return f(reinterpret_cast<PyTupleObject*>(tuple.get())->ob_item, PyTuple_GET_SIZE(tuple.get()));
  }
  if (PyTuple_Check(index)) return f(reinterpret_cast<PyTupleObject*>(index)->ob_item, PyTuple_GET_SIZE(index));
  return f(&index, Py_ssize_t{1});
}

bool needs_override(PyObject* self, PyObject* index, PyObject* value = nullptr) {
  if (has_function_mode) return true;
  if (!classes_answer) return false;
  if (!is_plain_tensor(self) && wants_torch_function(self)) return true;
  return (!PyLong_CheckExact(index) && !PySlice_Check(index) && may_answer(index)) ||
         (value && !PyFloat_CheckExact(value) && may_answer(value));
}

// What a mode or the class of the tensor makes of the call; null without an error: nobody answered.
PyObject* through_override(const char* name, PyObject* self, PyObject* index, PyObject* value = nullptr) {
  Ref method(require(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  PyObject* const args[] = {self, index, value};
  return ask_torch_function(method.get(), {args, value ? 3 : 2, nullptr});
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    if (needs_override(self, index))
      if (PyObject* result = through_override("__getitem__", self, index)) return result;
    const Tensor t = unwrap(self);
    int64_t i;
    if (PyLong_CheckExact(index) && to_integer(index, i)) {
      check_index(
          t.dim() > 0,
          "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number");
      return wrap(select(t, 0, i));
    }
    const bool alone = PySlice_Check(index);
    Indexed r = with_items(index, [&](PyObject* const* items, Py_ssize_t n) { return apply(t, items, n, alone); });
    if (r.indices.empty()) {
      static const Operator& alias = op("alias");
      return wrap(r.view.get() == t.get() ? call_operator(alias, t) : r.view);
    }
    static const Operator& index_op = op("index");
    return wrap(call_operator(index_op, r.view, list_value(r.indices)));
  });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  return guarded(
      [&]() -> int {
        check_type(value, "Tensor does not support deleting items");
        if (needs_override(self, index, value))
          if (PyObject* result = through_override("__setitem__", self, index, value)) return Py_DECREF(result), 0;
        const Tensor t = unwrap(self);
        Tensor v;
        Scalar s;
        if (is_tensor(value)) {
          v = unwrap_elements("__setitem__", value);
        } else if (is_number(value) && to_scalar(value, s)) {
          check_fits(s, t.dtype());
          v = full({}, s, t.dtype(), t.device());
        } else {
          fail(ErrorKind::type, "can't assign a ", Py_TYPE(value)->tp_name, " to a tensor of ", name_of(t.dtype()),
               "; make it a tensor first");
        }
        if (index == Py_False) return 0;
        Indexed r = with_items(index, [&](PyObject* const* items, Py_ssize_t n) { return apply(t, items, n); });
        check_inplace("__setitem__", t, false);
        // Leading dimensions of size one are dropped.
        Dims sizes = v.sizes();
        while (sizes.size() > 0 && sizes[0] == 1 && sizes != r.view.sizes()) sizes.erase(0);
        if (sizes.size() != v.dim()) v = call_operator(op("reshape"), v, DimsView(sizes));
        if (index == Py_True) r.indices.clear();  // all of it
        if (r.indices.empty()) {
          static const Operator& copy = op("copy_");
          check(r.view.dim() >= v.dim(), "shape mismatch: value tensor of shape ", list(v.sizes()),
                " cannot be broadcast to indexing result of shape ", list(r.view.sizes()));
          // A number is read before anything is written, wherever it lies.
          if (v.dim() == 0 && shares_memory(v, r.view)) v = call_operator(op("clone"), v);
          call_operator(copy, r.view, v);
          return 0;
        }
        static const Operator& put = op("index_put_");
        if (v.dtype() != t.dtype())
          check_masks("index_put_", r.view, r.indices);  // what is said of the dtype comes last
        // One number through one mask is a masked fill, which converts.
        int64_t given = 0, masks = 0;
        for (const Tensor& i : r.indices) given += i.defined(), masks += i.defined() && is_mask(i);
        if (given == 1 && masks == 1 && v.numel() == 1 && v.dtype() != t.dtype()) {
          if (!v->level && v.device().is_cpu()) check_fits(item(v), t.dtype());
          v = call_operator(op("to_dtype"), v, t.dtype());
        }
        check(v.dtype() == t.dtype(), "Index put requires the source and destination dtypes match, got ",
              name_of(t.dtype()), " for the destination and ", name_of(v.dtype()), " for the source.");
        call_operator(put, r.view, list_value(r.indices), v, Scalar(false));
        return 0;
      },
      -1);
}

}  // namespace cresset
