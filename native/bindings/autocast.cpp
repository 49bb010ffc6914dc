// Autocast as cresset.amp sees it: which device types it is on for in this thread, in which precision, and what each
// operator does about it.
#include "dispatch/autocast.h"

#include "bindings/python.h"

namespace cresset {

namespace {

int nesting_of_thread(int change) {
  static thread_local int nesting = 0;
  return nesting += change;
}

int device_argument(int device) {
  check(device >= 0 && device < kAutocastDevices, "autocast: no device type number ", device);
  return device;
}

// autocast_mask() -> int: bit i is device type i (0: cpu, 1: cuda).
PyObject* autocast_mask(PyObject*, PyObject*) { return PyLong_FromLong(modes.autocast); }
// set_autocast_mask(int) -> the mask before
PyObject* set_autocast_mask(PyObject*, PyObject* mask) {
  return guarded([&]() -> PyObject* {
    const long bits = PyLong_AsLong(mask);
    if (bits == -1 && PyErr_Occurred()) raise_python();
    check(bits >= 0 && bits < (1 << kAutocastDevices), "set_autocast_mask: expected a mask of ", kAutocastDevices,
          " bits, got ", bits);
    const uint8_t before = modes.autocast;
    modes.autocast = static_cast<uint8_t>(bits);
    return PyLong_FromLong(before);
  });
}
PyObject* autocast_dtype(PyObject*, PyObject* device) {
  return guarded([&]() -> PyObject* {
    return wrap(modes.autocast_dtype[device_argument(static_cast<int>(PyLong_AsLong(device)))]);
  });
}
// set_autocast_dtype(device type, dtype)
PyObject* set_autocast_dtype(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int device;
    PyObject* dtype;
    if (!PyArg_ParseTuple(args, "iO!", &device, dtype_type, &dtype)) raise_python();
    modes.autocast_dtype[device_argument(device)] = reinterpret_cast<PyDtype*>(dtype)->value;
    Py_RETURN_NONE;
  });
}
PyObject* keeps_casts(PyObject*, PyObject*) { return PyBool_FromLong(modes.autocast_keeps_casts); }
PyObject* set_keeps_casts(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  modes.autocast_keeps_casts = value;
  Py_RETURN_NONE;
}
template <int change>
PyObject* change_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(nesting_of_thread(change));
}
PyObject* clear_cache(PyObject*, PyObject*) {
  clear_autocast_cache();
  Py_RETURN_NONE;
}
// set_autocast_policy(name of the operator, device type, policy as a number): for all its overloads.
PyObject* set_autocast_policy(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    int device, policy;
    if (!PyArg_ParseTuple(args, "sii", &name, &device, &policy)) raise_python();
    check(policy >= 0 && policy <= static_cast<int>(Autocast::accumulate), "set_autocast_policy: no policy number ",
          policy);
    const int shift = 4 * device_argument(device);
    bool found = false;
    for (const Operator& op : Registry::instance().all())
      if (op.name() == name) {
        Operator& changed = const_cast<Operator&>(op);
        changed.autocast = static_cast<uint8_t>((op.autocast & ~(15 << shift)) | (policy << shift));
        found = true;
      }
    return PyBool_FromLong(found);
  });
}
// autocast_argument(tensor, dtype, device type): the tensor as autocast passes it on.
PyObject* autocast_argument_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *dtype;
    int device;
    if (!PyArg_ParseTuple(args, "O!O!i", tensor_type, &tensor, dtype_type, &dtype, &device)) raise_python();
    const Tensor given = unwrap(tensor), result = autocast_argument(given, reinterpret_cast<PyDtype*>(dtype)->value,
                                                                    static_cast<DeviceType>(device_argument(device)));
    return result.get() == given.get() ? Py_NewRef(tensor) : wrap(result);
  });
}

PyMethodDef functions[] = {
    {"autocast_mask", autocast_mask, METH_NOARGS, nullptr},
    {"set_autocast_mask", set_autocast_mask, METH_O, nullptr},
    {"autocast_dtype", autocast_dtype, METH_O, nullptr},
    {"set_autocast_dtype", set_autocast_dtype, METH_VARARGS, nullptr},
    {"autocast_keeps_casts", keeps_casts, METH_NOARGS,
     "is_autocast_cache_enabled() -> bool\n\nWhether autocast keeps the weights that it has cast."},
    {"set_autocast_keeps_casts", set_keeps_casts, METH_O,
     "set_autocast_cache_enabled(enabled)\n\nLet autocast keep the weights that it has cast, or not."},
    {"autocast_increment_nesting", change_nesting<1>, METH_NOARGS,
     "autocast_increment_nesting() -> int\n\nSay that an autocast begins inside those of this thread; how many there "
     "are then."},
    {"autocast_decrement_nesting", change_nesting<-1>, METH_NOARGS,
     "autocast_decrement_nesting() -> int\n\nSay that the innermost autocast of this thread ends; how many are left."},
    {"clear_autocast_cache", clear_cache, METH_NOARGS,
     "clear_autocast_cache()\n\nForget the weights that autocast has cast."},
    {"set_autocast_policy", set_autocast_policy, METH_VARARGS, nullptr},
    {"autocast_argument", autocast_argument_py, METH_VARARGS, nullptr},
    {}};

}  // namespace

void add_autocast(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace cresset
