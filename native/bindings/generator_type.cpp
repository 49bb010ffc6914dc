// torch.Generator: a stream of random numbers of one device.
#include "bindings/python.h"
#include "tensor/backend.h"

namespace cresset {

PyTypeObject* generator_type;

namespace {

Generator& generator_of(PyObject* o) { return *reinterpret_cast<PyGenerator*>(o)->value; }

Philox& counter_of(const char* who, PyObject* o) {
  auto* counter = dynamic_cast<Philox*>(&generator_of(o));
  check(counter, who, ": only generators of CUDA devices have an offset");
  return *counter;
}

PyObject* make_object(PyTypeObject* type, Generator* value, bool owned) {
  auto* g = reinterpret_cast<PyGenerator*>(require(type->tp_alloc(type, 0)));
  g->value = value;
  g->owned = owned;
  value->wrapper = g;
  return reinterpret_cast<PyObject*>(g);
}

std::unique_ptr<Generator> make_generator(Device device) {
  Backend* const backend = find_backend(device);
  check(backend, "Device type ", name_of(device.type), " is not supported for torch.Generator() api.");
  return backend->make_generator(resolve(device).index);
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* device = nullptr;
    static const char* words[] = {"device", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(words), &device)) raise_python();
    return make_object(type, make_generator(device && device != Py_None ? parse_device(device) : Device{}).release(),
                       true);
  });
}
void generator_dealloc(PyObject* self) {
  if (reinterpret_cast<PyGenerator*>(self)->owned) delete &generator_of(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

uint64_t parse_seed(PyObject* o) {
  int overflow;
  Ref index(require(PyNumber_Index(o)));
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (!overflow) return static_cast<uint64_t>(v);
  const unsigned long long u = PyLong_AsUnsignedLongLong(index.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::value,
         "manual_seed: Overflow when unpacking long long; the seed must be between -2**63 and 2**64 - 1");
  }
  return u;
}

PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    generator_of(self).set_seed(parse_seed(seed));
    return Py_NewRef(self);
  });
}
PyObject* generator_seed(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(generator_of(self).seed_from_system()); });
}
PyObject* generator_initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator_of(self).initial_seed());
}

PyObject* generator_get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    const Generator& g = generator_of(self);
    Tensor t = empty(Dims{static_cast<int64_t>(g.state_size())}, Dtype::u8);
    g.save_state(t.data<uint8_t>());
    return wrap(t);
  });
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    check_type(is_tensor(state) && impl_of(state)->dtype == Dtype::u8 && impl_of(state)->storage->device.is_cpu(),
               "expected a torch.ByteTensor as the generator's state");
    const Tensor t = contiguous(unwrap(state));
    Generator& g = generator_of(self);
    const auto bytes = static_cast<size_t>(t.numel());
    check(bytes == g.state_size() || (bytes == 8 && !g.device.is_cpu()), "RNG state is wrong size: expected ",
          g.state_size(), " bytes, got ", bytes);
    g.load_state(t.data<uint8_t>(), bytes);
    return Py_NewRef(self);
  });
}
PyObject* generator_clone(PyObject* self, PyObject*) {
  return guarded([&] { return make_object(generator_type, generator_of(self).clone().release(), true); });
}
PyObject* generator_take_state(PyObject* self, PyObject* other) {
  return guarded([&] {
    check_type(PyObject_TypeCheck(other, generator_type), "graphsafe_set_state: expected a torch.Generator, got ",
               Py_TYPE(other)->tp_name);
    const Generator& from = generator_of(other);
    Generator& to = generator_of(self);
    check(from.state_size() == to.state_size(), "graphsafe_set_state: the state of a generator of '", from.device,
          "' does not fit one of '", to.device, "'");
    std::vector<uint8_t> bytes(from.state_size());
    from.save_state(bytes.data());
    to.load_state(bytes.data(), bytes.size());
    return Py_NewRef(self);
  });
}
PyObject* generator_get_offset(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(counter_of("get_offset", self).offset()); });
}
PyObject* generator_set_offset(PyObject* self, PyObject* offset) {
  return guarded([&] {
    Philox& g = counter_of("set_offset", self);
    g.set_offset(parse_seed(offset));
    return Py_NewRef(self);
  });
}
PyObject* generator_device(PyObject* self, void*) { return wrap(generator_of(self).device); }

PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, "Start the stream of this seed."},
    {"seed", generator_seed, METH_NOARGS, "Start a stream from the system's randomness; returns the seed."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "The seed the stream started from."},
    {"get_state", generator_get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O, "Continue from a state given by get_state."},
    {"graphsafe_get_state", generator_clone, METH_NOARGS, "Another generator that stands where this one does."},
    {"graphsafe_set_state", generator_take_state, METH_O, "Continue from where another generator stands."},
    {"clone_state", generator_clone, METH_NOARGS, "Another generator that stands where this one does."},
    {"get_offset", generator_get_offset, METH_NOARGS, "How many numbers of 32 bits were drawn; of CUDA generators."},
    {"set_offset", generator_set_offset, METH_O,
     "Continue after so many numbers, a multiple of 4; of CUDA generators."},
    {}};
PyGetSetDef generator_getset[] = {
    {"device", generator_device, nullptr, "where the generator's numbers are made", nullptr}, {}};

}  // namespace

PyObject* wrap(Generator& g) {
  if (g.wrapper) return Py_NewRef(static_cast<PyObject*>(g.wrapper));
  return Py_NewRef(make_object(generator_type, &g, false));  // a default one: the first reference is never given up
}

void add_generators(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(generator_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
                         {Py_tp_methods, generator_methods},
                         {Py_tp_getset, generator_getset},
                         {Py_tp_doc, const_cast<char*>("A stream of random numbers. Generator(device='cpu')")},
                         {0, nullptr}};
  PyType_Spec spec{"torch.Generator", sizeof(PyGenerator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  generator_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type));
  PyModule_AddObject(module, "default_generator", wrap(default_generator()));
}

}  // namespace cresset
