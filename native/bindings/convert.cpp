// Python numbers and exceptions to C++ and back.
#include "bindings/python.h"
#include "cuda/memory.h"

#include <nanobind/nanobind.h>

namespace cresset {

// One of the package's own exceptions.
static void set_error_of(const char* module, const char* name, const char* message) {
  const Ref errors(PyImport_ImportModule(module));
  const Ref type(errors ? PyObject_GetAttrString(errors.get(), name) : nullptr);
  if (type) PyErr_SetString(type.get(), message);
}

void set_python_error() {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (nanobind::python_error& e) {
    e.restore();
  } catch (const cuda::OutOfMemory& e) {
    set_error_of("cresset.cuda.errors", "OutOfMemoryError", e.what());
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::linear_algebra) return set_error_of("cresset.linalg.checking", "LinAlgError", e.what());
    PyObject* type = PyExc_RuntimeError;
    switch (e.kind()) {
      case ErrorKind::value: type = PyExc_ValueError; break;
      case ErrorKind::type: type = PyExc_TypeError; break;
      case ErrorKind::index: type = PyExc_IndexError; break;
      case ErrorKind::not_implemented: type = PyExc_NotImplementedError; break;
      case ErrorKind::buffer: type = PyExc_BufferError; break;
      case ErrorKind::assertion: type = PyExc_AssertionError; break;
      default: break;
    }
    PyErr_SetString(type, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_RuntimeError, "out of memory");
  } catch (const std::exception& e) {
    PyErr_Format(PyExc_RuntimeError, "cresset has a bug: %s; please report it", e.what());
  }
}

bool to_scalar(PyObject* o, Scalar& out) {
  if (PyFloat_Check(o)) {
    out = Scalar(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    out = Scalar(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow > 0) {
      const unsigned long long u = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) {
        out = Scalar(static_cast<int64_t>(u));
        out.real = static_cast<double>(u);
        out.beyond_int64 = true;
        return true;
      }
      PyErr_Clear();
    }
    if (overflow) {
      PyErr_SetString(PyExc_OverflowError, "int too big to convert: it does not fit in 64 bits");
      raise_python();
    }
    out = Scalar(static_cast<int64_t>(v));
    return true;
  }
  if (PyComplex_Check(o)) {
    const Py_complex c = PyComplex_AsCComplex(o);
    out = Scalar(std::complex<double>(c.real, c.imag));
    return true;
  }
  if (is_tensor(o)) {
    TensorImpl* t = impl_of(o);
    if (t->dim() != 0) return false;
    out = item(Tensor(t));
    return true;
  }
  // NumPy scalars and others that know what number they are.
  if (PyIndex_Check(o) && !PySequence_Check(o)) {
    Ref index(PyNumber_Index(o));
    if (!index) {
      PyErr_Clear();
      return false;
    }
    return to_scalar(index.get(), out);
  }
  if (PyNumber_Check(o) && !PySequence_Check(o)) {
    const char* type = Py_TYPE(o)->tp_name;
    if (std::string_view(type).find("complex") != std::string_view::npos) {
      const Py_complex c = PyComplex_AsCComplex(o);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
      }
      out = Scalar(std::complex<double>(c.real, c.imag));
      return true;
    }
    Ref number(PyNumber_Float(o));
    if (!number) {
      PyErr_Clear();
      return false;
    }
    out = std::string_view(type) == "numpy.bool_" || std::string_view(type) == "numpy.bool"
              ? Scalar(PyFloat_AS_DOUBLE(number.get()) != 0)
              : Scalar(PyFloat_AS_DOUBLE(number.get()));
    return true;
  }
  const std::string_view type = Py_TYPE(o)->tp_name;
  if (type == "numpy.bool_" || type == "numpy.bool") {
    out = Scalar(PyObject_IsTrue(o) == 1);
    return true;
  }
  return false;
}

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o) || PySequence_Check(o) || PyUnicode_Check(o)) return false;
  const std::string_view type = Py_TYPE(o)->tp_name;
  return (PyIndex_Check(o) || PyNumber_Check(o)) && (type.starts_with("numpy.") || PyIndex_Check(o));
}

bool to_integer(PyObject* o, int64_t& out) {
  if (PyLong_CheckExact(o)) {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    check_value(!overflow, "Overflow when unpacking long long: the integer does not fit in 64 bits");
    out = v;
    return true;
  }
  if (PyFloat_Check(o) || !PyIndex_Check(o)) return false;
  if (is_tensor(o)) {
    TensorImpl* t = impl_of(o);
    if (t->numel != 1 || !(is_integral(t->dtype) || t->dtype == Dtype::b8)) return false;
    out = item(Tensor(t)).integer;
    return true;
  }
  Ref index(PyNumber_Index(o));
  if (!index) {
    PyErr_Clear();
    return false;
  }
  int overflow;
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  check_value(!overflow, "Overflow when unpacking long long: the integer does not fit in 64 bits");
  out = v;
  return true;
}

static bool read_integers(PyObject* o, Dims& out) {
  out.clear();
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; const Ref item = item_of(o, i); ++i) {
      int64_t v;
      if (!to_integer(item.get(), v)) return false;
      out.push_back(v);
    }
    return true;
  }
  if (is_tensor(o)) {
    TensorImpl* t = impl_of(o);
    if (t->dim() != 1 || !is_integral(t->dtype)) return false;
    const Tensor c = contiguous(convert(Tensor(t), Dtype::i64));
    out = Dims(c.data<int64_t>(), c.data<int64_t>() + c.numel());
    return true;
  }
  if (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o)) {
    Ref fast(PySequence_Fast(o, ""));
    if (!fast) {
      PyErr_Clear();
      return false;
    }
    for (Py_ssize_t i = 0; const Ref item = item_of(fast.get(), i); ++i) {
      int64_t v;
      if (!to_integer(item.get(), v)) return false;
      out.push_back(v);
    }
    return true;
  }
  return false;
}

bool to_integers(PyObject* o, Dims& out) {
  try {
    return read_integers(o, out);
  } catch (const Error& e) {  // in a list, PyTorch calls a number that is too large one of the wrong type
    fail(ErrorKind::type, e.what());
  }
}

}  // namespace cresset
