// Tensors from Python data and back: nested sequences, NumPy arrays, buffers, lists, raw memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/checked.h"
#include "bindings/arguments.h"
#include "bindings/of_tensor.h"
#include "tensor/convert.h"
#include "tensor/private_layout.h"
#include "tensor/requires_grad.h"

namespace cresset {

Tensor tensor_from_data(PyObject* data, int dtype, Device device);

namespace {

// ---------------------------------------------------------------- nested sequences

// A NumPy array without dimensions, which passes for a sequence.
bool is_number_array(PyObject* o) {
  if (std::string_view(Py_TYPE(o)->tp_name) != "numpy.ndarray" || PySequence_Size(o) >= 0) return false;
  PyErr_Clear();
  return true;
}

// The number in such an array; anything else as it is.
Ref number_in(PyObject* o) {
  if (!is_number_array(o)) return Ref::borrow(o);
  const Ref nothing(require(PyTuple_New(0)));
  return Ref(require(PyObject_GetItem(o, nothing.get())));
}

bool is_sequence(PyObject* o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return true;
  return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !is_tensor(o) && !is_number_array(o);
}

// A tensor among the data that stands for a number, whatever its dimensions.
bool is_number_tensor(PyObject* o, int64_t depth) { return depth > 0 && is_tensor(o) && impl_of(o)->numel == 1; }

// As PyTorch has it; a list that holds itself has more.
constexpr int kMostNesting = 128;

// The elements as a list or tuple: no more than one beyond its length, for iterating over a sequence need not end.
Ref items_of(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return Ref::borrow(o);
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) raise_python();
  const Ref iterator(require(PyObject_GetIter(o)));
  Ref items(require(PyList_New(0)));
  while (PyList_GET_SIZE(items.get()) <= n) {
    const Ref item(PyIter_Next(iterator.get()));
    if (!item && PyErr_Occurred()) raise_python();
    if (!item) break;
    if (PyList_Append(items.get(), item.get()) < 0) raise_python();
  }
  return items;
}

Ref element(PyObject* items, Py_ssize_t i) {
  Ref item = item_of(items, i);
  check_value(static_cast<bool>(item), "tensor: the list became shorter while it was read: it has ",
              PySequence_Fast_GET_SIZE(items), " elements left, and element ", i, " is wanted");
  return item;
}

// Follows the first elements down to find the shape.
void find_shape(PyObject* o, Dims& sizes, int depth) {
  check_value(depth <= kMostNesting, "too many dimensions '", Py_TYPE(o)->tp_name,
              "': tensor: the data is nested deeper than ", kMostNesting, " (a list that holds itself?)");
  if (is_tensor(o)) {
    if (!is_number_tensor(o, depth))
      for (int64_t s : impl_of(o)->sizes) sizes.push_back(s);
    return;
  }
  if (!is_sequence(o)) return;
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) {
    PyErr_Clear();
    return;
  }
  sizes.push_back(n);
  if (n == 0) return;
  Ref first(PySequence_GetItem(o, 0));
  if (!first && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_LookupError))) {
    PyErr_Clear();
    check_value(false, "could not determine the shape of object type '", Py_TYPE(o)->tp_name, "': it has a length of ",
                n, ", but no first element");
  }
  if (!first) raise_python();
  find_shape(first.get(), sizes, depth + 1);
}

// The kind of number the data holds: bool < int < float < complex; -1: nothing seen.
// `depth` is how far `o` is from the outermost, and `rank` how far a number may be.
void find_kind(PyObject* o, int64_t depth, int64_t rank, int& kind, int& exact) {
  if (PyFloat_CheckExact(o))
    kind = std::max(kind, 2);
  else if (PyBool_Check(o))
    kind = std::max(kind, 0);
  else if (PyLong_Check(o))
    kind = std::max(kind, 1);
  else if (PyComplex_Check(o))
    kind = std::max(kind, 3);
  else if (is_tensor(o)) {
    const Dtype d = impl_of(o)->dtype;
    exact = exact < 0 ? static_cast<int>(d) : static_cast<int>(promote(static_cast<Dtype>(exact), d));
  } else if (is_sequence(o)) {
    if (depth >= rank) return;  // fill_from says what is wrong
    const Ref fast = items_of(o);
    for (Py_ssize_t i = 0; const Ref item = item_of(fast.get(), i); ++i) {
      check_type(item.get() != o, "new(): self-referential lists are incompatible: element ", i, " of a ",
                 Py_TYPE(o)->tp_name, " is that ", Py_TYPE(o)->tp_name, " itself");
      find_kind(item.get(), depth + 1, rank, kind, exact);
    }
  } else {
    Scalar s;
    check_type(!PyUnicode_Check(o) && !PyBytes_Check(o), "new(): invalid data type '", Py_TYPE(o)->tp_name, "'");
    const Ref number = number_in(o);
    check(to_scalar(number.get(), s), "Could not infer dtype of ", Py_TYPE(o)->tp_name);
    // NumPy scalars carry a dtype of their own, as arrays without dimensions do.
    const std::string_view type = Py_TYPE(number.get())->tp_name;
    static const std::pair<std::string_view, Dtype> numpy[] = {
        {"numpy.float32", Dtype::f32}, {"numpy.float64", Dtype::f64},   {"numpy.float16", Dtype::f16},
        {"numpy.int64", Dtype::i64},   {"numpy.int32", Dtype::i32},     {"numpy.int16", Dtype::i16},
        {"numpy.int8", Dtype::i8},     {"numpy.uint8", Dtype::u8},      {"numpy.bool_", Dtype::b8},
        {"numpy.bool", Dtype::b8},     {"numpy.complex64", Dtype::c64}, {"numpy.complex128", Dtype::c128}};
    for (auto& [name, d] : numpy)
      if (type == name) {
        exact = exact < 0 ? static_cast<int>(d) : static_cast<int>(promote(static_cast<Dtype>(exact), d));
        return;
      }
    kind = std::max(kind, s.kind == Scalar::Kind::boolean   ? 0
                          : s.kind == Scalar::Kind::integer ? 1
                          : s.kind == Scalar::Kind::real    ? 2
                                                            : 3);
  }
}

template <class T>
void store_scalar(PyObject* o, char* to) {
  T v;
  if (std::is_same_v<T, float> && PyFloat_CheckExact(o)) {
    v = Scalar(PyFloat_AS_DOUBLE(o)).to<T>();
  } else {
    Scalar s;
    int overflow = 0;
    const bool is_truth = std::is_same_v<T, bool> && PyLong_Check(o);
    if (PyLong_Check(o) && std::is_integral_v<T> && !is_truth) (void)PyLong_AsLongLongAndOverflow(o, &overflow);
    check_value(!overflow || (overflow > 0 && std::is_same_v<T, uint64_t>),
                "Overflow when unpacking long long: an integer in the data does not fit in 64 bits");
    check_type(!PyUnicode_Check(o) && !PyBytes_Check(o), "new(): invalid data type '", Py_TYPE(o)->tp_name, "'");
    if (PyLong_Check(o) && !std::is_integral_v<T>) (void)PyLong_AsLongLongAndOverflow(o, &overflow);
    if (is_truth) {
      s = Scalar(PyObject_IsTrue(o) == 1);
    } else if (overflow && !std::is_integral_v<T>) {  // a huge integer, rounded
      s = Scalar(PyLong_AsDouble(o));
      if (PyErr_Occurred()) raise_python();
    } else {
      check_type(to_scalar(o, s), "new(): expected a number, got ", Py_TYPE(o)->tp_name);
    }
    if (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      check(s.kind != Scalar::Kind::complex,
            "value cannot be converted to an integer type without overflow: it is complex");
      check_fits(s, dtype_of<T>);
    }
    const bool takes_complex = is_complex(dtype_of<T>) || dtype_of<T> == Dtype::b8;
    check_type(s.kind != Scalar::Kind::complex || takes_complex,
               "must be real number, not complex: value cannot be converted to type ", name_of(dtype_of<T>),
               " without overflow: it is complex");
    v = s.to<T>();
  }
  std::memcpy(to, &v, sizeof(T));
}
using Store = void (*)(PyObject*, char*);
Store store_for(Dtype d) {
  switch (d) {
#define CRESSET_STORE(tag, type) \
  case Dtype::tag: return store_scalar<type>;
    CRESSET_FOR_EACH_DTYPE(CRESSET_STORE)
#undef CRESSET_STORE
    default:
      return [](PyObject*, char*) {
        fail(
            "tensor: a dtype without arithmetic takes no numbers; view bytes as it: torch.tensor(..., "
            "dtype=torch.uint8).view(dtype)");
      };
  }
}

void fill_from(PyObject* o, DimsView sizes, int64_t depth, Dtype dtype, Store store, char*& at) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  if (is_tensor(o)) {
    const Tensor t = unwrap_elements("tensor", o);
    check_value(
        (depth == rank && is_number_tensor(o, depth)) || t.sizes() == Dims(sizes.subspan(static_cast<size_t>(depth))),
        "expected sequence of equal shapes, but got a tensor of shape ", tuple(t.sizes()), " at dim ", depth);
    const Tensor c = contiguous(convert(t, dtype));
    std::memcpy(at, c.bytes(), static_cast<size_t>(c.numel() * size_of(dtype)));
    at += c.numel() * size_of(dtype);
    return;
  }
  if (depth == rank) {
    check_value(!is_sequence(o), "expected a number at the innermost level (dim ", depth - 1, "), got ",
                Py_TYPE(o)->tp_name, "; too many dimensions or a ragged list");
    store(number_in(o).get(), at);
    at += size_of(dtype);
    return;
  }
  check_type(is_sequence(o), "not a sequence: expected a list at dim ", depth, ", got ", Py_TYPE(o)->tp_name);
  const Ref fast = items_of(o);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
  check_value(n == sizes[static_cast<size_t>(depth)], "expected sequence of length ", sizes[static_cast<size_t>(depth)],
              " at dim ", depth, " (got ", n, ")");
  if (depth + 1 == rank) {
    const int64_t width = size_of(dtype);
    for (Py_ssize_t i = 0; i < n; ++i, at += width) {
      const Ref held = element(fast.get(), i);
      PyObject* const item = held.get();
      check_type(!is_sequence(item), "expected a number at the innermost level (dim ", depth, "), got ",
                 Py_TYPE(item)->tp_name, "; a ragged list?");
      if (is_tensor(item)) {
        Scalar s = cresset::item(unwrap_elements("tensor", item));
        Ref number(wrap(s));
        store(number.get(), at);
      } else if (PyFloat_CheckExact(item) || PyLong_CheckExact(item)) {
        store(item, at);
      } else {
        store(number_in(item).get(), at);
      }
    }
    return;
  }
  for (Py_ssize_t i = 0; i < n; ++i) fill_from(element(fast.get(), i).get(), sizes, depth + 1, dtype, store, at);
}

// ---------------------------------------------------------------- NumPy and buffers

int dtype_from_format(const char* f, Py_ssize_t size) {
  if (!f) return static_cast<int>(Dtype::u8);
  if (*f == '<' || *f == '=' || *f == '@' || *f == '|') ++f;
  const std::string_view s(f);
  if (s == "?") return static_cast<int>(Dtype::b8);
  if (s == "e") return static_cast<int>(Dtype::f16);
  if (s == "f") return static_cast<int>(Dtype::f32);
  if (s == "d") return static_cast<int>(Dtype::f64);
  if (s == "Zf") return static_cast<int>(Dtype::c64);
  if (s == "Zd") return static_cast<int>(Dtype::c128);
  if (s.size() == 1 && std::strchr("bhilqn", f[0]))
    return static_cast<int>(size == 1 ? Dtype::i8 : size == 2 ? Dtype::i16 : size == 4 ? Dtype::i32 : Dtype::i64);
  if (s.size() == 1 && std::strchr("BHILQN", f[0]))
    return static_cast<int>(size == 1 ? Dtype::u8 : size == 2 ? Dtype::u16 : size == 4 ? Dtype::u32 : Dtype::u64);
  return -1;
}

// NumPy tells types of the same size apart by these letters: its int64 is the C type that int64_t is, as PyTorch's is.
constexpr bool kLong = std::is_same_v<int64_t, long>;
const char* format_of(Dtype d) {
  switch (d) {
    case Dtype::u8: return "B";
    case Dtype::i8: return "b";
    case Dtype::i16: return "h";
    case Dtype::i32: return "i";
    case Dtype::i64: return kLong ? "l" : "q";
    case Dtype::u16: return "H";
    case Dtype::u32: return "I";
    case Dtype::u64: return kLong ? "L" : "Q";
    case Dtype::f16: return "e";
    case Dtype::f32: return "f";
    case Dtype::f64: return "d";
    case Dtype::c64: return "Zf";
    case Dtype::c128: return "Zd";
    case Dtype::b8: return "?";
    default: return nullptr;
  }
}

bool is_numpy_array(PyObject* o) {
  const std::string_view type = Py_TYPE(o)->tp_name;
  return type == "numpy.ndarray" ||
         (type != "array.array" && PyObject_CheckBuffer(o) && PyObject_HasAttrString(o, "__array_interface__"));
}

// The strides of an array of no elements, of which NumPy's buffer says what they would be with elements.
Dims strides_of_empty(PyObject* array, int64_t itemsize) {
  Dims strides;
  Ref bytes(require(PyObject_GetAttrString(array, "strides")));
  check_type(to_integers(bytes.get(), strides), "from_numpy: the array's strides are not integers");
  for (int64_t& stride : strides) stride /= itemsize;
  return strides;
}

// A tensor that shares a buffer's memory and keeps its owner alive.
Tensor share_buffer(PyObject* owner, const char* who) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(owner, view, PyBUF_FULL_RO) < 0) {
    delete view;
    raise_python();
  }
  const auto give_up = [&](auto&&... parts) {
    PyBuffer_Release(view);
    delete view;
    fail(ErrorKind::type, parts...);
  };
  const int d = dtype_from_format(view->format, view->itemsize);
  if (d < 0)
    give_up(who, ": can't convert an array of format '", std::string(view->format ? view->format : "?"),
            "'. The supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
            "uint64, uint32, uint16, uint8, and bool.");
  Dims sizes, strides;
  for (int i = 0; i < view->ndim; ++i) {
    sizes.push_back(view->shape[i]);
    const Py_ssize_t stride = view->strides ? view->strides[i] : view->itemsize;
    if (stride < 0) {
      PyBuffer_Release(view);
      delete view;
      fail(ErrorKind::value,
           "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
           "currently supported. (You can probably work around this by making a copy of your array with "
           "array.copy().) ");
    }
    if (stride % view->itemsize) {
      PyBuffer_Release(view);
      delete view;
      fail(ErrorKind::value,
           "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
           "memory.");
    }
    strides.push_back(stride / view->itemsize);
  }
  int64_t span = view->itemsize;
  for (int64_t i = 0; i < sizes.size(); ++i) span += (std::max<int64_t>(sizes[i], 1) - 1) * strides[i] * view->itemsize;
  if (std::ranges::find(sizes, 0) != sizes.end()) span = 0;  // no elements: nothing may be read, wherever it points
  RefPtr<Storage> storage = Storage::borrow(view->buf, std::max<int64_t>(span, 0), Device{}, [view] {
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyBuffer_Release(view);
    delete view;
    PyGILState_Release(gil);
  });
  Tensor t = empty(Dims{0}, static_cast<Dtype>(d));
  if (t.dtype() == Dtype::b8) storage->note_foreign_bools();
  t->storage = storage;
  t->sizes = sizes;
  t->strides = strides;
  t->update_numel_and_contiguity();
  if (!t.numel() && is_numpy_array(owner)) t->strides = strides_of_empty(owner, size_of(t.dtype()));
  return t;
}

// from_buffer(obj) -> Tensor sharing memory
PyObject* from_buffer(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Tensor t = share_buffer(o, "from_numpy");
    t->inference = modes.inference;
    return wrap(t);
  });
}

// make_tensor(data, dtype or None, device or None): copies.
PyObject* make_tensor(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *data, *dtype, *device;
    if (!PyArg_ParseTuple(args, "OOO", &data, &dtype, &device)) raise_python();
    const std::optional<Dtype> named = to_dtype(dtype);
    check_type(dtype == Py_None || named, "tensor(): argument 'dtype' must be torch.dtype, not ",
               Py_TYPE(dtype)->tp_name);
    const Tensor made = tensor_from_data(data, named ? static_cast<int>(*named) : -1,
                                         device == Py_None ? default_device() : parse_device(device));
    made->inference = modes.inference;
    return wrap(made);
  });
}

// ---------------------------------------------------------------- to Python

PyObject* list_of(const char* data, Dtype dtype, DimsView sizes, DimsView strides) {
  if (sizes.empty()) {
    const int64_t width = size_of(dtype);
    Tensor one = empty({}, dtype);
    std::memcpy(one.bytes(), data, static_cast<size_t>(width));
    return wrap(item(one));
  }
  const int64_t n = sizes[0],
                step = wrapped_product(strides[0], size_of(dtype));  // of a length-one dimension it may be any number
  Ref out(require(PyList_New(n)));
  if (sizes.size() == 1 && (dtype == Dtype::f32 || dtype == Dtype::f64 || dtype == Dtype::i64)) {
    for (int64_t i = 0; i < n; ++i) {
      const char* p = data + i * step;
      PyObject* v = dtype == Dtype::f32   ? PyFloat_FromDouble(*reinterpret_cast<const float*>(p))
                    : dtype == Dtype::f64 ? PyFloat_FromDouble(*reinterpret_cast<const double*>(p))
                                          : PyLong_FromLongLong(*reinterpret_cast<const int64_t*>(p));
      PyList_SET_ITEM(out.get(), i, require(v));
    }
    return out.release();
  }
  for (int64_t i = 0; i < n; ++i)
    PyList_SET_ITEM(out.get(), i, require(list_of(data + i * step, dtype, sizes.subspan(1), strides.subspan(1))));
  return out.release();
}
PyObject* tolist(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap_elements("tolist", self);
    check_implemented(!t.is_meta(), "Cannot copy out of meta tensor; no data!");
    check_has_data(t);
    if (!is_integral(t.dtype())) tell_value_watcher("the elements of a tensor as a list", self);
    if (is_accelerator(t.device())) {
      const Tensor here = empty(t.sizes(), t.dtype());
      copy_into(here, t);
      return list_of(here.bytes(), here.dtype(), here.sizes(), here.strides());
    }
    return list_of(t.bytes(), t.dtype(), t.sizes(), t.strides());
  });
}

// Memory in the hands of somebody who was given a buffer: Note [Memory in other hands].
struct Lent {
  RefPtr<Storage> storage;
  std::unique_ptr<Py_ssize_t[]> shape_and_strides;
  Lent(RefPtr<Storage> s, int64_t rank)
      : storage(std::move(s)), shape_and_strides(new Py_ssize_t[static_cast<size_t>(2 * rank + 1)]) {
    storage->lend();
  }
  ~Lent() { storage->give_back(); }
};

// The buffer protocol: memoryview(t), np.frombuffer, bytes(t).
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded(
      [&]() -> int {
        TensorImpl* t = impl_of(self);
        CRESSET_CHECK_KIND(ErrorKind::buffer, !is_interpreted(self),
                           "a sparse, nested or quantized tensor has no buffer; call to_dense(), to_padded_tensor() or "
                           "dequantize() first");
        check_has_data(Tensor(t));
        const char* format = format_of(t->dtype);
        CRESSET_CHECK_KIND(ErrorKind::buffer, format, "a tensor of ", name_of(t->dtype), " has no buffer format");
        CRESSET_CHECK_KIND(ErrorKind::buffer, t->storage->device.is_cpu(), "only a tensor on the CPU has a buffer");
        CRESSET_CHECK_KIND(ErrorKind::buffer, !requires_grad(*t),
                           "Can't export a buffer of a Tensor that requires grad. Use tensor.detach() first.");
        CRESSET_CHECK_KIND(ErrorKind::buffer, (flags & PyBUF_STRIDES) == PyBUF_STRIDES || t->contiguous,
                           "the tensor is not contiguous");
        before_write(*t->storage);  // the borrower may
        static char nothing[1];
        view->buf = t->storage->data || t->numel ? t->data() : nothing;
        if (t->dtype == Dtype::b8) t->storage->note_foreign_bools();
        auto* lent = new Lent(t->storage, t->dim());
        Py_ssize_t* const shape = lent->shape_and_strides.get();
        for (int64_t d = 0; d < t->dim(); ++d) {
          shape[d] = t->sizes[d];
          shape[t->dim() + d] = t->strides[d] * size_of(t->dtype);
        }
        view->obj = Py_NewRef(self);
        view->len = t->numel * size_of(t->dtype);
        view->readonly = t->storage->read_only;
        view->itemsize = size_of(t->dtype);
        view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
        view->ndim = static_cast<int>(t->dim());
        view->shape = shape;
        view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shape + t->dim() : nullptr;
        view->suboffsets = nullptr;
        view->internal = lent;
        return 0;
      },
      -1);
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Lent*>(view->internal); }
// forbid_resizing(tensor): a NumPy array has been made of it
PyObject* forbid_resizing(PyObject*, PyObject* self) {
  impl_of(self)->storage->forbid_resizing();
  Py_RETURN_NONE;
}

// ---------------------------------------------------------------- storage and raw memory

// storage_info(tensor or storage) -> (address of the Storage, data pointer, bytes, shared)
PyObject* storage_info(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    Storage& s = is_tensor(self) ? *impl_of(self)->storage : *unwrap_storage(self);
    before_write(s);
    char* const data = s.plain();
    if (is_accelerator(s.device) && data) backend_of(s.device).settle();
    return Py_BuildValue("KKLO", reinterpret_cast<unsigned long long>(&s.root()),
                         reinterpret_cast<unsigned long long>(data), static_cast<long long>(s.bytes),
                         s.shared ? Py_True : Py_False);
  });
}
// The same for those who only look: nothing is settled for a writer.
PyObject* storage_address(PyObject*, PyObject* self) { return PyLong_FromVoidPtr(&impl_of(self)->storage->root()); }
PyObject* address_for_readers(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const TensorImpl& t = *impl_of(self);
    return PyLong_FromVoidPtr(t.storage->plain() ? t.data() : nullptr);
  });
}
PyObject* shares_lazily(PyObject*, PyObject* self) { return PyBool_FromLong(impl_of(self)->storage->is_lazy()); }
// swap_memory(tensor, tensor): each storage gets the other's memory
PyObject* swap_memory(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "O!O!", tensor_type, &a, tensor_type, &b)) raise_python();
    impl_of(a)->storage->swap_memory(*impl_of(b)->storage);
    Py_RETURN_NONE;
  });
}
// storage_is_resizable(tensor): whether nobody else keeps the address of its memory
PyObject* storage_is_resizable(PyObject*, PyObject* self) {
  return PyBool_FromLong(impl_of(self)->storage->is_resizable());
}
// storage_use_count(address of a Storage that is in use): how many tensors and storages hold it
PyObject* storage_use_count(PyObject*, PyObject* address) {
  const auto* const s = static_cast<const Storage*>(PyLong_AsVoidPtr(address));
  if (PyErr_Occurred()) return nullptr;
  return PyLong_FromUnsignedLong(s->use_count());
}
// How many hold the tensor itself: its object, views of it, nodes of a graph.
PyObject* use_count(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* { return PyLong_FromLong(static_cast<long>(impl_of(self)->use_count())); });
}
// swap_tensors(a, b): from now on each object is the tensor that the other was.
PyObject* swap_tensors(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "O!O!", tensor_type, &a, tensor_type, &b)) raise_python();
    std::swap(reinterpret_cast<PyTensor*>(a)->impl, reinterpret_cast<PyTensor*>(b)->impl);
    impl_of(a)->wrapper = a, impl_of(b)->wrapper = b;
    Py_RETURN_NONE;
  });
}
// has_private_layout(tensor): whether the storage lies in another order than the strides say (for tests)
PyObject* has_private_layout(PyObject*, PyObject* self) { return PyBool_FromLong(is_private(*impl_of(self))); }
// bytes_tensor(tensor): the whole storage as a uint8 tensor that shares it
PyObject* storage_bytes(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = unwrap(self);
    check_has_data(t);
    if (t.dtype() == Dtype::b8) t.storage()->note_foreign_bools();
    const Dims sizes{t.storage()->bytes}, strides{1};
    return wrap(view_as_dtype(t, Dtype::u8, sizes, strides, 0));
  });
}
// set_storage(tensor, uint8 tensor of bytes, offset, sizes, strides)
PyObject* set_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *bytes, *sizes, *strides;
    long long offset;
    if (!PyArg_ParseTuple(args, "O!O!LOO", tensor_type, &self, tensor_type, &bytes, &offset, &sizes, &strides))
      raise_python();
    Dims s, st;
    check_type(to_integers(sizes, s), "set_: sizes must be integers");
    if (strides == Py_None)
      st = contiguous_strides(s);
    else
      check_type(to_integers(strides, st), "set_: strides must be integers");
    TensorImpl* t = impl_of(self);
    const Tensor b = unwrap(bytes);
    const int64_t needed = bytes_needed("set_", s, st, offset, t->dtype);
    check(needed <= b.storage()->bytes, "setStorage: sizes ", list(s), ", strides ", list(st), ", storage offset ",
          offset, ", and itemsize ", size_of(t->dtype), " requiring a storage size of ", needed,
          " are out of bounds for storage of size ", b.storage()->bytes);
    if (t->dtype == Dtype::b8) b.storage()->note_foreign_bools();
    t->storage = b.storage();
    t->sizes = s;
    t->strides = st;
    t->offset = offset;
    t->update_numel_and_contiguity();
    return Py_NewRef(self);
  });
}
PyObject* resize_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    long long bytes;
    if (!PyArg_ParseTuple(args, "O!L", tensor_type, &self, &bytes)) raise_python();
    impl_of(self)->storage->resize(bytes);
    Py_RETURN_NONE;
  });
}
// share_storage(tensor, buffer): moves the storage into memory that other processes can map.
PyObject* share_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *buffer;
    if (!PyArg_ParseTuple(args, "O!O", tensor_type, &self, &buffer)) raise_python();
    Storage& s = *impl_of(self)->storage;
    if (impl_of(self)->dtype == Dtype::b8) s.note_foreign_bools();
    const Tensor shared = share_buffer(buffer, "share_memory_");
    check(shared.storage()->bytes >= s.bytes, "share_memory_: the buffer is too small");
    if (s.bytes) std::memcpy(shared.storage()->data, s.plain(), static_cast<size_t>(s.bytes));
    s.move_to(shared.storage());
    Py_RETURN_NONE;
  });
}
PyMethodDef functions[] = {
    {"from_buffer", from_buffer, METH_O, nullptr},
    {"make_tensor", make_tensor, METH_VARARGS, nullptr},
    {"tolist", of_tensor<tolist>, METH_O, nullptr},
    {"swap_tensors", swap_tensors, METH_VARARGS, "Let two objects be each the tensor that the other was."},
    {"use_count", of_tensor<use_count>, METH_O, "How many hold the tensor itself: its object, views, nodes."},
    {"storage_info", storage_info, METH_O, nullptr},
    {"storage_address", of_tensor<storage_address>, METH_O, "What tells the storages of tensors apart."},
    {"address_for_readers", of_tensor<address_for_readers>, METH_O,
     "Of the first element, for who does not write to it."},
    {"shares_lazily", of_tensor<shares_lazily>, METH_O,
     "Whether the storage is one of several with one memory until a write."},
    {"swap_memory", swap_memory, METH_VARARGS, "Let the storages of two tensors have each other's memory."},
    {"storage_use_count", storage_use_count, METH_O, nullptr},
    {"storage_is_resizable", of_tensor<storage_is_resizable>, METH_O, nullptr},
    {"has_private_layout", of_tensor<has_private_layout>, METH_O, nullptr},
    {"storage_bytes", of_tensor<storage_bytes>, METH_O, nullptr},
    {"set_storage", set_storage, METH_VARARGS, nullptr},
    {"resize_storage", resize_storage, METH_VARARGS, nullptr},
    {"forbid_resizing", of_tensor<forbid_resizing>, METH_O, nullptr},
    {"share_storage", share_storage, METH_VARARGS, nullptr},
    {}};

}  // namespace

Tensor tensor_from_data(PyObject* data, int dtype, Device device) {
  Tensor result;
  if (is_tensor(data)) {
    const Tensor t = readable_bools(unwrap_elements("tensor", data));
    result = dtype < 0 || static_cast<Dtype>(dtype) == t.dtype() ? clone(t, MemoryFormat::preserve)
                                                                 : convert(t, static_cast<Dtype>(dtype));
  } else if (is_numpy_array(data)) {
    const Tensor shared = readable_bools(share_buffer(data, "tensor"));
    result = dtype < 0 || static_cast<Dtype>(dtype) == shared.dtype() ? clone(shared, MemoryFormat::preserve)
                                                                      : convert(shared, static_cast<Dtype>(dtype));
  } else {
    Dims sizes;
    find_shape(data, sizes, 0);
    Dtype d;
    if (dtype >= 0) {
      d = static_cast<Dtype>(dtype);
    } else {
      int kind = -1, exact = -1;
      find_kind(data, 0, sizes.size(), kind, exact);
      d = kind < 0 || kind == 2 ? default_dtype()
          : kind == 0           ? Dtype::b8
          : kind == 1           ? Dtype::i64
                                : to_complex(default_dtype());
      if (exact >= 0) d = kind < 0 ? static_cast<Dtype>(exact) : promote(static_cast<Dtype>(exact), d);
    }
    result = empty(sizes, d);
    char* at = result.bytes();
    fill_from(data, sizes, 0, d, store_for(d), at);
  }
  if (!(device == Device{}) && !(device == result.device()) && device.type != DeviceType::cpu) {
    Tensor there = empty(result.sizes(), result.dtype(), device);
    copy_into(there, result);
    result = there;
  }
  return result;
}

void add_data(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  tensor_type->tp_as_buffer->bf_getbuffer = get_buffer;
  tensor_type->tp_as_buffer->bf_releasebuffer = release_buffer;
}

}  // namespace cresset
