// Value: one argument of an operator call. It borrows: whoever makes the call keeps what it points to alive.
#pragma once
#include <string_view>

#include "tensor/tensor.h"

namespace cresset {

class Generator;

enum class Kind : uint8_t {
  none,
  scalar,
  tensor,
  tensors,
  integers,
  reals,
  dtype,
  device,
  layout,
  memory_format,
  text,
  generator,
  object,
};

struct Value {
  Kind kind = Kind::none;
  union {
    TensorImpl* tensor_;
    Dtype dtype_;
    Device device_;
    LayoutKind layout_;
    MemoryFormat memory_format_;
    Generator* generator_;
    void* object_;  // a Python object, passed through
    const int64_t* integers_;
    const double* reals_;
    const char* text_;
    const Tensor* tensors_;  // undefined tensors stand for None
    Scalar scalar_;
  };
  int64_t count = 0;  // of a list or text

  Value() : tensor_(nullptr) {}
  Value(Scalar s) : kind(Kind::scalar), scalar_(s) {}
  Value(const Tensor& t) : kind(t.defined() ? Kind::tensor : Kind::none), tensor_(t.get()) {}
  Value(DimsView v) : kind(Kind::integers), integers_(v.data()), count(static_cast<int64_t>(v.size())) {}
  Value(Dtype d) : kind(Kind::dtype), dtype_(d) {}
  Value(Device d) : kind(Kind::device), device_(d) {}

  bool is_none() const { return kind == Kind::none; }
  bool is_tensor() const { return kind == Kind::tensor; }
};

}  // namespace cresset
