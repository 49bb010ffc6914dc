// Kernels that compute in float or double: half precision is computed in float.
#pragma once
#include <array>
#include <memory>

#include "ops/reduction.h"
#include "tensor/blocks.h"
#include "tensor/convert.h"

namespace cresset {

inline Dtype computed_dtype(Dtype d) { return d == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

// f.operator()<T>() with the type that elements of this dtype are computed in.
template <class F>
void visit_computed(Dtype d, const char* who, F&& f) {
  check_implemented(is_floating(d) && size_of(d) > 1, '"', who, "\" not implemented for '", legacy_name(d), "'");
  if (d == Dtype::f64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

// The elements as T, one after the other.
template <class T>
Tensor ready(const Tensor& t) {
  return contiguous(convert(t, dtype_of<T>));
}

// Contiguous rows of n elements as T: where they lie, or converted a few at a time, which stay in the cache. (A softmax
// of 4 M bfloat16 whose tensors are converted whole takes half as long again.)
template <class T>
struct ConvertedRows {
  const Tensor tensor;
  const int64_t n;

  bool converts() const { return tensor.dtype() != dtype_of<T>; }
  // Rows from `first` on; in `space` where they are converted.
  const T* read(int64_t first, int64_t rows, T* space) const {
    if (!converts()) return tensor.data<T>() + first * n;
    converter(tensor.dtype(), dtype_of<T>)(at(first), reinterpret_cast<char*>(space), rows * n);
    if ((first + 2 * rows) * n <= tensor.numel()) read_ahead(at(first + rows), rows * n * size_of(tensor.dtype()));
    return space;
  }
  // Where rows are to be made, and how they get from there to the tensor.
  T* place(int64_t first, T* space) const { return converts() ? space : tensor.data<T>() + first * n; }
  void write(int64_t first, int64_t rows, const T* space) const {
    if (converts()) converter(dtype_of<T>, tensor.dtype())(reinterpret_cast<const char*>(space), at(first), rows * n);
  }

 private:
  char* at(int64_t row) const { return tensor.bytes() + row * n * size_of(tensor.dtype()); }
};

// f(first row, how many, spaces for the rows of each tensor): all rows at once, or with `few` those that fit the cache.
template <class T, int kTensors, class F>
void for_converted_rows(int64_t begin, int64_t end, int64_t n, bool few, F&& f) {
  // Elements of each tensor at a time: together they leave a third of a first-level cache of 32 KiB to the rows they
  // come from. (A softmax's gradient took .2 ns more for an element with four times as many.)
  constexpr int64_t kAtOnce = 20480 / sizeof(T) / kTensors;
  if (!few) return f(begin, end - begin, std::array<T*, kTensors>{});
  const int64_t step = std::clamp<int64_t>(kAtOnce / std::max<int64_t>(n, 1), 1, std::max<int64_t>(end - begin, 1));
  const std::unique_ptr<T[]> memory(new T[static_cast<size_t>(kTensors * step * n)]);
  std::array<T*, kTensors> spaces;
  for (int k = 0; k < kTensors; ++k) spaces[static_cast<size_t>(k)] = memory.get() + k * step * n;
  for (int64_t first = begin; first < end; first += step) f(first, std::min(step, end - first), spaces);
}

}  // namespace cresset
