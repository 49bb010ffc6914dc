// dtype, device, layout, memory_format, Size, Generator and TensorInfo as Python sees them.
#include <cctype>
#include <cstring>

#include "bindings/python.h"

namespace cresset {

PyTypeObject *dtype_type, *device_type, *layout_type, *memory_format_type, *size_type, *info_type;

namespace {

PyObject* dtypes[kDtypes];
constexpr int kLayouts = 8;
PyObject* layouts[kLayouts];
PyObject* memory_formats[4];

// Native code knows strided memory only; the others are names that the classes of cresset.sparse and cresset.nested go
// by.
const char* const kLayoutNames[kLayouts] = {"strided",    "sparse_coo", "sparse_csr", "jagged",
                                            "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn"};
// Integers with a scale: names that the class of cresset.tensors.quantized goes by, with the dtype that holds the
// integers.
constexpr std::pair<const char*, Dtype> kQuantizedDtypes[] = {{"qint8", Dtype::i8},
                                                              {"quint8", Dtype::u8},
                                                              {"qint32", Dtype::i32},
                                                              {"quint4x2", Dtype::u8},
                                                              {"quint2x4", Dtype::u8}};
const char* const kMemoryFormatNames[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

PyTypeObject* make_type(PyType_Spec& spec, PyObject* base = nullptr) {
  return reinterpret_cast<PyTypeObject*>(require(PyType_FromSpecWithBases(&spec, base)));
}
void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}
template <class T>
T* new_object(PyTypeObject* type) {
  return reinterpret_cast<T*>(require(type->tp_alloc(type, 0)));
}
// Pickles as a global: torch.float32 (the name other programs know).
PyObject* reduce_by_name(PyObject* self, PyObject*) {
  PyObject* text = PyObject_Str(self);
  if (!text) return nullptr;
  const char* s = PyUnicode_AsUTF8(text);
  PyObject* name = PyUnicode_FromString(std::strchr(s, '.') + 1);
  Py_DECREF(text);
  return name;
}

// ---------------------------------------------------------------- dtype
Dtype dtype_value(PyObject* o) { return reinterpret_cast<PyDtype*>(o)->value; }
PyObject* dtype_repr(PyObject* self) {
  const char* quantized = reinterpret_cast<PyDtype*>(self)->quantized;
  return PyUnicode_FromFormat("torch.%s", quantized ? quantized : name_of(dtype_value(self)));
}
PyObject* dtype_is_floating(PyObject* self, void*) { return PyBool_FromLong(is_floating(dtype_value(self))); }
PyObject* dtype_is_complex(PyObject* self, void*) { return PyBool_FromLong(is_complex(dtype_value(self))); }
PyObject* dtype_is_signed(PyObject* self, void*) {
  if (const char* quantized = reinterpret_cast<PyDtype*>(self)->quantized)
    return PyErr_Format(PyExc_RuntimeError, "is_signed: not supported for quantized types, got torch.%s", quantized);
  return PyBool_FromLong(facts(dtype_value(self)).is_signed);
}
PyObject* dtype_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(size_of(dtype_value(self))); }
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const Dtype d = dtype_value(self);
    check(is_complex(d) || (is_floating(d) && size_of(d) > 1), "to_complex: Unknown Complex ScalarType for ",
          facts(d).legacy);
    return wrap(to_complex(d));
  });
}
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(to_real(dtype_value(self))); });
}
PyGetSetDef dtype_getset[] = {{"is_floating_point", dtype_is_floating, nullptr, "is it a floating-point type", nullptr},
                              {"is_complex", dtype_is_complex, nullptr, "is it a complex type", nullptr},
                              {"is_signed", dtype_is_signed, nullptr, "can it hold negative numbers", nullptr},
                              {"itemsize", dtype_itemsize, nullptr, "bytes of one element", nullptr},
                              {}};
PyMethodDef dtype_methods[] = {{"to_complex", dtype_to_complex, METH_NOARGS, "The complex type of this precision."},
                               {"to_real", dtype_to_real, METH_NOARGS, "The real type of this precision."},
                               {"__reduce__", reduce_by_name, METH_NOARGS, nullptr},
                               {}};

// ---------------------------------------------------------------- device
Device device_value(PyObject* o) { return reinterpret_cast<PyDevice*>(o)->value; }

Device parse_device_text(const char* text) {
  const char* colon = std::strchr(text, ':');
  const std::string name(text, colon ? static_cast<size_t>(colon - text) : std::strlen(text));
  std::string known;
  for (int i = 0; i < static_cast<int>(DeviceType::count); ++i) {
    known += join(i ? ", " : "", kDeviceNames[i]);
    if (name != kDeviceNames[i]) continue;
    Device d{static_cast<DeviceType>(i), -1};
    if (colon) {
      char* end;
      const long index = std::strtol(colon + 1, &end, 10);
      check(end != colon + 1 && std::isdigit(static_cast<unsigned char>(colon[1])) && *end == 0 && index >= 0 &&
                index < 128,
            "Invalid device string: '", text, "'");
      d.index = static_cast<int8_t>(index);
    }
    return d;
  }
  check(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos, "Invalid device string: '", text,
        "'");
  fail("Expected one of ", known, " device type at start of device string: ", text);
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject *type, *index = nullptr;
    static const char* words[] = {"type", "index", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(words), &type, &index))
      raise_python();
    Device d = parse_device(type);
    if (index && index != Py_None) {
      check_value(PyUnicode_Check(type) && d.index < 0,
                  "device: type (string) must not include an index because index was passed explicitly: ",
                  PyUnicode_Check(type) ? PyUnicode_AsUTF8(type) : "");
      int64_t i;
      check_type(to_integer(index, i), "device: index must be an integer");
      check(i >= 0 && i < 128, "Device index must not be negative, got ", i);
      d.index = static_cast<int8_t>(i);
    }
    return wrap(d);
  });
}
PyObject* device_repr(PyObject* self) {
  const Device d = device_value(self);
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", name_of(d.type));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", name_of(d.type), static_cast<int>(d.index));
}
PyObject* device_str(PyObject* self) { return PyUnicode_FromString(join(device_value(self)).c_str()); }
PyObject* device_get_type(PyObject* self, void*) { return PyUnicode_FromString(name_of(device_value(self).type)); }
PyObject* device_get_index(PyObject* self, void*) {
  const Device d = device_value(self);
  if (d.index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(d.index);
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, device_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_value(a) == device_value(b)) == (op == Py_EQ));
}
Py_hash_t device_hash(PyObject* self) {
  const Device d = device_value(self);
  return static_cast<int>(d.type) * 256 + d.index + 1000;
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  const Device d = device_value(self);
  if (d.index < 0) return Py_BuildValue("O(s)", device_type, name_of(d.type));
  return Py_BuildValue("O(si)", device_type, name_of(d.type), static_cast<int>(d.index));
}
// `with device:` makes it the default for new tensors.
std::vector<Device>& device_stack() {
  static auto* the = new std::vector<Device>;
  return *the;
}
PyObject* device_enter(PyObject* self, PyObject*) {
  device_stack().push_back(default_device());
  set_default_device(device_value(self));
  Py_INCREF(self);
  return self;
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (!device_stack().empty()) {
    set_default_device(device_stack().back());
    device_stack().pop_back();
  }
  Py_RETURN_NONE;
}
PyGetSetDef device_getset[] = {{"type", device_get_type, nullptr, "\"cpu\", \"cuda\" or \"meta\"", nullptr},
                               {"index", device_get_index, nullptr, "its number, or None", nullptr},
                               {}};
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {}};

// ---------------------------------------------------------------- layout, memory_format
PyObject* layout_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", kLayoutNames[static_cast<int>(reinterpret_cast<PyLayout*>(self)->value)]);
}
PyObject* memory_format_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s",
                              kMemoryFormatNames[static_cast<int>(reinterpret_cast<PyMemoryFormat*>(self)->value)]);
}
PyMethodDef named_methods[] = {{"__reduce__", reduce_by_name, METH_NOARGS, nullptr}, {}};

// ---------------------------------------------------------------- Size
PyObject* size_alloc(Py_ssize_t n) {
  PyObject* s = size_type->tp_alloc(size_type, n);
#if PY_VERSION_HEX >= 0x030E0000
  if (s) reinterpret_cast<PyTupleObject*>(s)->ob_hash = -1;  // a tuple keeps its hash once it is known
#endif
  return s;
}
PyObject* size_from_tuple(PyObject* tuple) {  // steals
  if (!tuple) return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* s = size_alloc(n);
  if (s)
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(tuple, i);
      Py_INCREF(item);
      PyTuple_SET_ITEM(s, i, item);
    }
  Py_DECREF(tuple);
  return s;
}
PyObject* size_new(PyTypeObject*, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* items = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
    Ref tuple(items ? require(PySequence_Tuple(items)) : require(PyTuple_New(0)));
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple.get());
    Ref size(require(size_alloc(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
      int64_t v;
      check_type(to_integer(item, v), "torch.Size() takes an iterable of 'int' (item ", i, " is '",
                 Py_TYPE(item)->tp_name, "')");
      PyTuple_SET_ITEM(size.get(), i, require(PyLong_FromLongLong(v)));
    }
    return size.release();
  });
}
PyObject* size_repr(PyObject* self) {
  std::string text = "torch.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    text += (i ? ", " : "") + std::to_string(PyLong_AsLongLong(PyTuple_GET_ITEM(self, i)));
  return PyUnicode_FromString((text + "])").c_str());
}
PyObject* size_numel(PyObject* self, PyObject*) {
  PyObject* n = PyLong_FromLong(1);
  for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* m = PyNumber_Multiply(n, PyTuple_GET_ITEM(self, i));
    Py_DECREF(n);
    n = m;
  }
  return n;
}
PyObject* size_reduce(PyObject* self, PyObject*) { return Py_BuildValue("O(N)", size_type, PySequence_Tuple(self)); }
// a + b, where either of them is a Size: one too, unless the other has something else than integers.
PyObject* size_add(PyObject* a, PyObject* b) {
  const PyNumberMethods* of_b = Py_TYPE(b)->tp_as_number;
  if (!PyTuple_Check(a) || (!PyTuple_Check(b) && of_b && of_b->nb_add)) Py_RETURN_NOTIMPLEMENTED;
  if (!PyTuple_Check(b))
    return PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", Py_TYPE(b)->tp_name);
  PyObject* r = PyTuple_Type.tp_as_sequence->sq_concat(a, b);
  if (!r) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(r); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(r, i))) return r;
  return size_from_tuple(r);
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  PyObject* r = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return r && PySlice_Check(key) ? size_from_tuple(r) : r;
}
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {}};

// ---------------------------------------------------------------- TensorInfo: what derivatives see of a tensor that
// was not kept
struct PyInfo {
  PyObject_HEAD TensorInfo* value;
  int64_t offset;
};
TensorInfo& info_value(PyObject* o) { return *reinterpret_cast<PyInfo*>(o)->value; }
void info_dealloc(PyObject* self) {
  delete reinterpret_cast<PyInfo*>(self)->value;
  free_object(self);
}
PyObject* info_shape(PyObject* self, void*) { return wrap_size(info_value(self).sizes); }
PyObject* info_strides(PyObject* self, void*) { return wrap_tuple(info_value(self).strides); }
PyObject* info_dtype(PyObject* self, void*) { return wrap(info_value(self).dtype); }
PyObject* info_device(PyObject* self, void*) { return wrap(info_value(self).device); }
PyObject* info_offset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(reinterpret_cast<PyInfo*>(self)->offset);
}
PyObject* info_stride(PyObject* self, PyObject*) { return info_strides(self, nullptr); }
PyObject* info_ndim(PyObject* self, void*) { return PyLong_FromLongLong(info_value(self).sizes.size()); }
PyObject* info_numel(PyObject* self, PyObject*) {
  int64_t n = 1;
  for (int64_t s : info_value(self).sizes) n *= s;
  return PyLong_FromLongLong(n);
}
PyObject* info_is_complex(PyObject* self, PyObject*) { return PyBool_FromLong(is_complex(info_value(self).dtype)); }
PyGetSetDef info_getset[] = {
    {"shape", info_shape, nullptr, nullptr, nullptr}, {"strides", info_strides, nullptr, nullptr, nullptr},
    {"dtype", info_dtype, nullptr, nullptr, nullptr}, {"device", info_device, nullptr, nullptr, nullptr},
    {"ndim", info_ndim, nullptr, nullptr, nullptr},   {}};
PyMethodDef info_methods[] = {{"numel", info_numel, METH_NOARGS, nullptr},
                              {"is_complex", info_is_complex, METH_NOARGS, nullptr},
                              {"stride", info_stride, METH_NOARGS, nullptr},
                              {"storage_offset", info_offset, METH_NOARGS, nullptr},
                              {}};

}  // namespace

PyObject* wrap(Dtype d) {
  PyObject* o = dtypes[static_cast<int>(d)];
  Py_INCREF(o);
  return o;
}
PyObject* wrap(Device d) {
  auto* o = new_object<PyDevice>(device_type);
  o->value = d;
  return reinterpret_cast<PyObject*>(o);
}
PyObject* wrap(LayoutKind k) {
  PyObject* o = layouts[static_cast<int>(k)];
  Py_INCREF(o);
  return o;
}
PyObject* wrap(MemoryFormat f) {
  PyObject* o = memory_formats[static_cast<int>(f)];
  Py_INCREF(o);
  return o;
}
PyObject* wrap_size(DimsView sizes) {
  PyObject* s = require(size_alloc(static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i)
    PyTuple_SET_ITEM(s, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  return s;
}
PyObject* wrap_tuple(DimsView values) {
  PyObject* s = require(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(s, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  return s;
}
PyObject* wrap_info(const TensorInfo& info, int64_t offset) {
  auto* o = new_object<PyInfo>(info_type);
  o->value = new TensorInfo(info);
  o->offset = offset;
  return reinterpret_cast<PyObject*>(o);
}
PyObject* wrap(const Scalar& s) {
  switch (s.kind) {
    case Scalar::Kind::boolean: return PyBool_FromLong(s.integer != 0);
    case Scalar::Kind::integer:
      return s.beyond_int64 ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(s.integer))
                            : PyLong_FromLongLong(s.integer);
    case Scalar::Kind::real: return PyFloat_FromDouble(s.real);
    default: return PyComplex_FromDoubles(s.real, s.imag);
  }
}

Device parse_device(PyObject* o) {
  if (PyObject_TypeCheck(o, device_type)) return device_value(o);
  if (PyUnicode_Check(o)) return parse_device_text(PyUnicode_AsUTF8(o));
  int64_t i;
  if (!PyBool_Check(o) && to_integer(o, i)) {
    check(i >= 0 && i < 128, "Device index must not be negative, got ", i);
    fail(ErrorKind::runtime, "Cannot access accelerator device when none is available. Asked for device ", i,
         "; there is the device 'cpu'");
  }
  fail(ErrorKind::type, "device: expected a torch.device, a string such as 'cuda:0' or an index, got ",
       Py_TYPE(o)->tp_name);
}

void add_types(PyObject* module) {
  PyType_Slot dtype_slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
      {Py_tp_getset, dtype_getset},
      {Py_tp_methods, dtype_methods},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_object)},
      {Py_tp_doc, const_cast<char*>("What the elements of a tensor are: float32, int64, bool, ...")},
      {0, nullptr}};
  PyType_Spec dtype_spec{"torch.dtype", sizeof(PyDtype), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         dtype_slots};
  dtype_type = make_type(dtype_spec);
  for (int d = 0; d < kDtypes; ++d) {
    auto* o = new_object<PyDtype>(dtype_type);
    o->value = static_cast<Dtype>(d);
    dtypes[d] = reinterpret_cast<PyObject*>(o);
    PyModule_AddObjectRef(module, kDtypeFacts[d].name, dtypes[d]);
    if (kDtypeFacts[d].alias) PyModule_AddObjectRef(module, kDtypeFacts[d].alias, dtypes[d]);
  }
  for (auto& [name, held] : kQuantizedDtypes) {
    auto* o = new_object<PyDtype>(dtype_type);
    o->value = held;
    o->quantized = name;
    PyModule_AddObject(module, name, reinterpret_cast<PyObject*>(o));
  }
  PyType_Slot device_slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(device_new)},
      {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
      {Py_tp_str, reinterpret_cast<void*>(device_str)},
      {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
      {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
      {Py_tp_getset, device_getset},
      {Py_tp_methods, device_methods},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_object)},
      {Py_tp_doc, const_cast<char*>("Where tensors live: device('cpu'), device('cuda', 0), device('meta'). As a "
                                    "context, the default for new tensors.")},
      {0, nullptr}};
  PyType_Spec device_spec{"torch.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, device_slots};
  device_type = make_type(device_spec);
  PyType_Slot layout_slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(layout_repr)},
      {Py_tp_methods, named_methods},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_object)},
      {Py_tp_doc, const_cast<char*>("How a tensor keeps its elements: strided, sparse_coo, sparse_csr, jagged, ...")},
      {0, nullptr}};
  PyType_Spec layout_spec{"torch.layout", sizeof(PyLayout), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          layout_slots};
  layout_type = make_type(layout_spec);
  PyType_Slot format_slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(memory_format_repr)},
      {Py_tp_methods, named_methods},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_object)},
      {Py_tp_doc,
       const_cast<char*>(
           "In which order the elements of a new tensor lie: contiguous_format, channels_last, channels_last_3d, or, "
           "as in the tensor it is made from, preserve_format.")},
      {0, nullptr}};
  PyType_Spec format_spec{"torch.memory_format", sizeof(PyMemoryFormat), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, format_slots};
  memory_format_type = make_type(format_spec);
  for (int i = 0; i < kLayouts; ++i) {
    auto* l = new_object<PyLayout>(layout_type);
    l->value = static_cast<LayoutKind>(i);
    layouts[i] = reinterpret_cast<PyObject*>(l);
    PyModule_AddObjectRef(module, kLayoutNames[i], layouts[i]);
  }
  for (int i = 0; i < 4; ++i) {
    auto* f = new_object<PyMemoryFormat>(memory_format_type);
    f->value = static_cast<MemoryFormat>(i);
    memory_formats[i] = reinterpret_cast<PyObject*>(f);
    PyModule_AddObjectRef(module, kMemoryFormatNames[i], memory_formats[i]);
  }
  PyType_Slot size_slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                              {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                              {Py_tp_methods, size_methods},
                              {Py_nb_add, reinterpret_cast<void*>(size_add)},
                              {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                              {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                              {Py_tp_doc, const_cast<char*>("The sizes of a tensor: a tuple of integers.")},
                              {0, nullptr}};
  PyType_Spec size_spec{"torch.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};
  size_type = make_type(size_spec, reinterpret_cast<PyObject*>(&PyTuple_Type));
  PyType_Slot info_slots[] = {{Py_tp_getset, info_getset},
                              {Py_tp_methods, info_methods},
                              {Py_tp_dealloc, reinterpret_cast<void*>(info_dealloc)},
                              {0, nullptr}};
  PyType_Spec info_spec{"cresset.TensorInfo", sizeof(PyInfo), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        info_slots};
  info_type = make_type(info_spec);
  PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(dtype_type));
  PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type));
  PyModule_AddObjectRef(module, "layout", reinterpret_cast<PyObject*>(layout_type));
  PyModule_AddObjectRef(module, "memory_format", reinterpret_cast<PyObject*>(memory_format_type));
  PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type));
}

}  // namespace cresset
