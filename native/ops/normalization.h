// What the normalizations share: the dtypes of their parameters and statistics, and how operands are read and results
// stored. They are computed in float or double; half precision is converted.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "dispatch/call.h"
#include "ops/computed.h"

namespace cresset::normalization {

// A result in T: the promised tensor itself, or another from which store() converts.
template <class T>
Tensor made(const Tensor& out) {
  return out.dtype() == dtype_of<T> ? out : empty(TensorInfo{out.sizes(), out.strides(), dtype_of<T>, out.device()});
}
inline void store(const Tensor& out, const Tensor& made) {
  if (made.get() != out.get()) copy_into(out, made);
}
template <class T>
std::vector<T> vector_of(const Tensor& t) {
  const Tensor x = ready<T>(t);
  return std::vector<T>(x.data<T>(), x.data<T>() + x.numel());
}
// An optional vector: its elements in T, or `count` times the value that leaves the formula as it is.
template <class T>
std::vector<T> vector_or(const Call& c, int i, int64_t count, T neutral) {
  if (!c.has(i)) return std::vector<T>(static_cast<size_t>(count), neutral);
  return vector_of<T>(c.tensor(i));
}
inline int64_t grain(int64_t work) { return std::max<int64_t>(1, kParallelGrain / 2 / std::max<int64_t>(work, 1)); }

// Statistics are kept in the parameters' dtype where a half input comes with float parameters.
Dtype statistics_dtype(const Call& c, const Tensor& input, std::initializer_list<int> parameters);
// Weights, biases and running statistics have the input's dtype, or all are float32 beside halves.
void check_parameter_dtypes(const Call& c, const Tensor& input, std::initializer_list<int> parameters);
// Promises a result like the images, with channels innermost or not.
void promise_in_order(Call& c, const Tensor& t, bool channels_last);
// Arguments of a backward that are there have so many elements.
void check_sizes(const Call& c, const char* who, std::initializer_list<std::pair<int, int64_t>> sizes);

}  // namespace cresset::normalization
