// What all bindings share: the Python objects of the core and conversions to and from them.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>

#include "autograd/engine.h"
#include "autograd/node.h"
#include "base/generator.h"
#include "dispatch/call.h"

namespace cresset {

// A Python exception is set; carries it through C++ frames.
struct PythonError {};

[[noreturn]] inline void raise_python() { throw PythonError{}; }
inline PyObject* require(PyObject* p) {
  if (!p) raise_python();
  return p;
}

// Owns one reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* stolen) : p_(stolen) {}
  static Ref borrow(PyObject* p) {
    Py_XINCREF(p);
    return Ref(p);
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(p_); }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_; }

 private:
  PyObject* p_ = nullptr;
};

// Element i of a list or tuple; null beyond its end. Asking an element for its number runs a program, which may shorten
// the list: so each is held, and the end looked for anew.
inline Ref item_of(PyObject* list, Py_ssize_t i) {
  return i < PySequence_Fast_GET_SIZE(list) ? Ref::borrow(PySequence_Fast_GET_ITEM(list, i)) : Ref();
}

// Turns the C++ exception in flight into a Python one.
void set_python_error();

// Runs f; on a C++ exception sets the Python error and gives `failed`.
template <class F, class R = std::invoke_result_t<F>>
R guarded(F&& f, R failed) {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return failed;
  }
}
template <class F>
PyObject* guarded(F&& f) {
  return guarded(std::forward<F>(f), static_cast<PyObject*>(nullptr));
}

// ---- tensors (tensor_type.cpp)
struct PyTensor {
  PyObject_HEAD TensorImpl* impl;
  bool owns;  // holds a reference to impl; see Note [Who owns whom]
  PyObject* weakrefs;
  PyObject* dict;
};
extern PyTypeObject* tensor_type;
extern PyTypeObject* parameter_type;  // set by cresset.nn; null before
inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyObject_TypeCheck(o, tensor_type); }
inline bool is_plain_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || Py_TYPE(o) == parameter_type; }
// A tensor whose elements lie in other tensors (sparse, nested, quantized); its class, a subclass of this one,
// interprets every call.
extern PyTypeObject* interpreted_type;  // set by cresset.tensors.interpreted; null before
inline bool is_interpreted(PyObject* o) { return interpreted_type && PyObject_TypeCheck(o, interpreted_type); }
inline TensorImpl* impl_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->impl; }
inline Tensor unwrap(PyObject* o) { return Tensor(impl_of(o)); }
// For those who read memory without asking an operator.
inline Tensor unwrap_elements(const char* who, PyObject* o) {
  check_implemented(!is_interpreted(o), who,
                    ": a sparse, nested or quantized tensor has no elements in memory; call to_dense(), "
                    "to_padded_tensor() or dequantize() first");
  return unwrap(o);
}
PyObject* wrap(const Tensor& t);                         // None when undefined
PyObject* wrap_as(const Tensor& t, PyTypeObject* type);  // a new object of a subclass, for a tensor without one
bool has_torch_dispatch(PyTypeObject* type);             // whether its tensors answer for themselves (dispatching.cpp)

// ---- storages (storage_type.cpp)
RefPtr<Storage> unwrap_storage(PyObject* o);  // TypeError when it is none

// ---- small types (types.cpp)
struct PyDtype {
  PyObject_HEAD Dtype value;
  const char* quantized;  // the name of a quantized type, whose elements `value` holds; else null
};
struct PyDevice {
  PyObject_HEAD Device value;
};
struct PyLayout {
  PyObject_HEAD LayoutKind value;
};
struct PyMemoryFormat {
  PyObject_HEAD MemoryFormat value;
};
struct PyGenerator {
  PyObject_HEAD Generator* value;
  bool owned;  // the default ones live as long as the process
};
PyObject* wrap(Generator& g);  // the one object of a generator
extern PyTypeObject *dtype_type, *device_type, *layout_type, *memory_format_type, *size_type, *generator_type,
    *info_type;
PyObject* wrap(Dtype d);
PyObject* wrap(Device d);
PyObject* wrap(LayoutKind k);
PyObject* wrap(MemoryFormat f);
PyObject* wrap_size(DimsView sizes);
PyObject* wrap_info(const TensorInfo& info, int64_t offset = 0);
PyObject* wrap_tuple(DimsView values);
PyObject* wrap(const Scalar& s);
Device parse_device(PyObject* o);  // device, "cuda:1" or 1

// ---- numbers
bool is_number(PyObject* o);                 // Python or NumPy number
bool to_scalar(PyObject* o, Scalar& out);    // false: not a number
bool to_integer(PyObject* o, int64_t& out);  // through __index__; false: not an integer
bool to_integers(PyObject* o, Dims& out);    // a tuple or list of integers

// ---- operators (operator_type.cpp)
extern PyTypeObject* operator_type;
PyObject* call_python_operator(Call& c);      // runs and wraps the results
PyObject* wrap_value(const Call& c, int i);   // an argument of a call (autograd.cpp)
PyObject* operator_object(const char* name);  // borrowed
struct Method {                               // what Tensor.<name> is, looked up when it is first called
  const char* name;
  PyObject* object = nullptr;
  PyObject* call(PyObject* const* args, size_t count);
};

// ---- nodes (node_type.cpp)
PyObject* wrap(const RefPtr<Node>& node);  // None when null
RefPtr<Node> unwrap_node(PyObject* o);     // TypeError when it is none
int visit_node(const Node& node, visitproc visit,
               void* arg);  // the Python objects that a node held by one owner keeps alive
void clear_node(Node& node);

// ---- each file adds its part to the module
void add_types(PyObject* module);
void add_generators(PyObject* module);
void add_tensor_type(PyObject* module);
void add_storage_type(PyObject* module);
void add_operator_type(PyObject* module);
void add_node_type(PyObject* module);
void add_autograd(PyObject* module);
void add_autocast(PyObject* module);
void add_dlpack(PyObject* module);
void add_data(PyObject* module);
void add_derivatives(PyObject* module);
void add_runtime(PyObject* module);
void add_updates(PyObject* module);
void add_foreach(PyObject* module);
void add_module_type(PyObject* module);
void add_batching(PyObject* module);
void add_dispatching(PyObject* module);
void add_function_type(PyObject* module);
void add_cuda(PyObject* module);
void add_cuda_libraries(PyObject* module);
void add_lapack(PyObject* module);

// The dotted path of the module whose call the thread is in; empty: in none (module_type.cpp).
std::string running_module_path();

PyObject* tensor_getitem(PyObject* self, PyObject* index);
int tensor_setitem(PyObject* self, PyObject* index, PyObject* value);

// The __torch_function__ protocol and modes (operator_type.cpp).
// compile(fullgraph=True) and onnx.export: a Python function that is told what a program wants to know of a tensor's
// elements, and may refuse; else null.
extern thread_local PyObject* value_watcher;
inline void tell_value_watcher(const char* what, PyObject* tensor) {
  if (value_watcher) Ref(require(PyObject_CallFunction(value_watcher, "sO", what, tensor)));
}
enum class Answering : int { nobody, modes, modes_and_classes };
Answering set_answering(Answering who);       // in this thread; gives what it was
extern thread_local bool classes_answer;      // subclasses, and other objects with a __torch_function__
extern thread_local bool has_function_mode;   // somebody watches every call
extern thread_local bool has_attribute_mode;  // and attributes
extern std::atomic<int> attribute_modes;      // how many modes of all threads do: the quick question
bool wants_torch_function(PyObject* o);

}  // namespace cresset
