// Operators of one's own in C++: what torch.utils.cpp_extension compiles. Needs C++17 and nothing else;
// docs/extensions.md tells the rest.
//
//   #include <cresset/extension.h>
//   static const cresset::Register scaled = cresset::Operator("scaled(Tensor x, float by) -> Tensor")
//       .shape([](const cresset::Arguments& a) { return cresset::Shapes{cresset::like(a.tensor(0))}; })
//       .cpu([](const cresset::Arguments& a, cresset::Results& out) { ... });
#pragma once
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace cresset {

// PyTorch's numbers of the dtypes.
enum class DType : int32_t {
  uint8 = 0,
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  float16 = 5,
  float32 = 6,
  float64 = 7,
  complex32 = 8,
  complex64 = 9,
  complex128 = 10,
  boolean = 11,
  bfloat16 = 15,
  uint16 = 27,
  uint32 = 28,
  uint64 = 29
};

template <class T>
struct dtype_of;
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <>
struct dtype_of<int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct dtype_of<int16_t> {
  static constexpr DType value = DType::int16;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};

[[noreturn]] inline void fail(const std::string& text) { throw std::runtime_error(text); }
inline void check(bool holds, const std::string& text) {
  if (!holds) fail(text);
}

// A tensor, seen: it belongs to whoever called, and lives as long as the call. The layout of this struct is part of the
// binary interface.
struct Tensor {
  void* data;
  const int64_t* sizes;
  const int64_t* strides;  // in elements
  int64_t dim;
  DType dtype;
  int32_t device_type;  // 0: CPU, 1: CUDA
  int64_t device_index;

  int64_t size(int64_t d) const { return sizes[d < 0 ? d + dim : d]; }
  int64_t stride(int64_t d) const { return strides[d < 0 ? d + dim : d]; }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t d = 0; d < dim; ++d) count *= sizes[d];
    return count;
  }
  bool is_contiguous() const {
    int64_t expected = 1;
    for (int64_t d = dim - 1; d >= 0; --d) {
      if (sizes[d] != 1 && strides[d] != expected) return false;
      expected *= sizes[d];
    }
    return true;
  }
  bool is_cuda() const { return device_type == 1; }
  // The elements, after a look at the dtype.
  template <class T>
  T* as() const {
    check(dtype == dtype_of<T>::value,
          "expected another dtype than number " + std::to_string(static_cast<int32_t>(dtype)));
    return static_cast<T*>(data);
  }
};

// One argument of a call, by the type that the schema gives it. Part of the binary interface.
struct Argument {
  int32_t kind;    // 0 None, 1 Tensor, 2 int, 3 float, 4 bool, 5 str, 6 Tensor[], 7 int[], 8 float[]
  int32_t length;  // of the lists
  int64_t integer;
  double number;
  const char* text;
  const Tensor* tensors;
  const int64_t* integers;
  const double* numbers;
};

class Arguments {
 public:
  Arguments(const Argument* first, int count, void* stream) : first_(first), count_(count), stream_(stream) {}
  int size() const { return count_; }
  bool has(int k) const { return at(k).kind != 0; }
  const Tensor& tensor(int k) const { return *of_kind(k, 1, "Tensor").tensors; }
  int64_t integer(int k) const { return of_kind(k, 2, "int").integer; }
  double number(int k) const { return of_kind(k, 3, "float").number; }
  bool flag(int k) const { return of_kind(k, 4, "bool").integer != 0; }
  std::string text(int k) const { return of_kind(k, 5, "str").text; }
  std::vector<Tensor> tensors(int k) const { return {of_kind(k, 6, "Tensor[]").tensors, at(k).tensors + at(k).length}; }
  std::vector<int64_t> integers(int k) const {
    return {of_kind(k, 7, "int[]").integers, at(k).integers + at(k).length};
  }
  std::vector<double> numbers(int k) const { return {of_kind(k, 8, "float[]").numbers, at(k).numbers + at(k).length}; }
  void* stream() const { return stream_; }  // a cudaStream_t in a CUDA kernel

 private:
  const Argument& at(int k) const {
    if (k < 0 || k >= count_)
      fail("there is no argument " + std::to_string(k) + "; there are " + std::to_string(count_));
    return first_[k];
  }
  const Argument& of_kind(int k, int32_t kind, const char* name) const {
    if (at(k).kind != kind) fail("argument " + std::to_string(k) + " is no " + name);
    return first_[k];
  }
  const Argument* first_;
  int count_;
  void* stream_;
};

// What a result will be: made before the kernel runs, contiguous, on the device of the first tensor.
struct Shape {
  std::vector<int64_t> sizes;
  DType dtype;
};
using Shapes = std::vector<Shape>;
inline Shape like(const Tensor& t) { return {{t.sizes, t.sizes + t.dim}, t.dtype}; }

// The results, for the kernel to fill.
class Results {
 public:
  Results(Tensor* first, int count) : first_(first), count_(count) {}
  int size() const { return count_; }
  Tensor& operator[](int k) {
    if (k < 0 || k >= count_) fail("there is no result " + std::to_string(k) + "; there are " + std::to_string(count_));
    return first_[k];
  }

 private:
  Tensor* first_;
  int count_;
};

using ShapeRule = Shapes (*)(const Arguments&);
using Kernel = void (*)(const Arguments&, Results&);

// An operator: its schema, as torch.library has it, the shapes of its results, and its kernels. Derivatives are written
// in Python.
struct Operator {
  explicit Operator(const char* schema) : schema(schema) {}
  Operator& shape(ShapeRule rule) { return shape_ = rule, *this; }
  Operator& cpu(Kernel kernel) { return cpu_ = kernel, *this; }
  Operator& cuda(Kernel kernel) { return cuda_ = kernel, *this; }
  const char* schema;
  ShapeRule shape_ = nullptr;
  Kernel cpu_ = nullptr, cuda_ = nullptr;
};

namespace detail {

// Hidden, so that each library has its own.
__attribute__((visibility("hidden"))) inline std::vector<Operator>& operators() {
  static std::vector<Operator> all;
  return all;
}

struct ResultShape {
  int64_t sizes[64];
  int64_t dim;
  int64_t dtype;
};

// No exception leaves the library: its words go into `error`.
template <class F>
int guarded(char* error, int room, F&& run) {
  try {
    return run();
  } catch (const std::exception& e) {
    std::snprintf(error, static_cast<size_t>(room), "%s", e.what());
  } catch (...) {
    std::snprintf(error, static_cast<size_t>(room), "an exception that is no std::exception");
  }
  return -1;
}

}  // namespace detail

struct Register {
  Register(const Operator& op) { detail::operators().push_back(op); }
};

}  // namespace cresset

// What cresset calls. Weak: every file of an extension has them, and one stays.
#define CRESSET_EXPORT extern "C" __attribute__((weak, used, visibility("default")))
CRESSET_EXPORT int cresset_extension_v1_count() { return static_cast<int>(cresset::detail::operators().size()); }
CRESSET_EXPORT const char* cresset_extension_v1_schema(int k) {
  return cresset::detail::operators()[static_cast<size_t>(k)].schema;
}
CRESSET_EXPORT int cresset_extension_v1_parts(int k) {
  const cresset::Operator& op = cresset::detail::operators()[static_cast<size_t>(k)];
  return (op.shape_ ? 1 : 0) | (op.cpu_ ? 2 : 0) | (op.cuda_ ? 4 : 0);
}
CRESSET_EXPORT int cresset_extension_v1_shape(int k, const cresset::Argument* arguments, int count,
                                              cresset::detail::ResultShape* out, int capacity, char* error, int room) {
  return cresset::detail::guarded(error, room, [&] {
    const cresset::Shapes shapes =
        cresset::detail::operators()[static_cast<size_t>(k)].shape_({arguments, count, nullptr});
    cresset::check(static_cast<int>(shapes.size()) == capacity,
                   "the shape rule gives " + std::to_string(shapes.size()) + " shapes, the schema has " +
                       std::to_string(capacity) + " results");
    for (size_t i = 0; i < shapes.size(); ++i) {
      cresset::check(shapes[i].sizes.size() <= 64, "a result may have 64 dimensions");
      out[i].dim = static_cast<int64_t>(shapes[i].sizes.size());
      out[i].dtype = static_cast<int64_t>(shapes[i].dtype);
      for (size_t d = 0; d < shapes[i].sizes.size(); ++d) out[i].sizes[d] = shapes[i].sizes[d];
    }
    return static_cast<int>(shapes.size());
  });
}
CRESSET_EXPORT int cresset_extension_v1_run(int k, int device, const cresset::Argument* arguments, int count,
                                            cresset::Tensor* results, int capacity, void* stream, char* error,
                                            int room) {
  return cresset::detail::guarded(error, room, [&] {
    const cresset::Operator& op = cresset::detail::operators()[static_cast<size_t>(k)];
    cresset::Results out(results, capacity);
    (device == 1 ? op.cuda_ : op.cpu_)({arguments, count, stream}, out);
    return 0;
  });
}
#undef CRESSET_EXPORT
