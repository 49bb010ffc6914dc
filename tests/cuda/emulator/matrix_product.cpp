#include "matrix_product.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace emulator {
namespace {

constexpr int compute_tensor_float = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

// TensorFloat-32 keeps ten bits of the mantissa.
float as_tensor_float(float x) {
  const uint32_t bits = bits_of(x);
  return x != x ? x : float_of((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

template <class T>
inline constexpr bool is_float8 = std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;

template <class To, class From>
To number(const From& x) {
  static_assert(!is_float8<To> || std::is_same_v<To, From>);
  if constexpr (is_complex<To> || std::is_same_v<To, From>)
    return To(x);
  else if constexpr (is_complex<From>)
    return To(x.real());
  else if constexpr (is_float8<From> || std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>)
    return To(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>)
    return To(static_cast<float>(x));
  else
    return static_cast<To>(x);
}
template <class To>
To scalar(std::complex<double> x) {
  if constexpr (is_complex<To>)
    return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
  else
    return static_cast<To>(x.real());
}

// op(M) of one batch as numbers to compute with, column after column.
template <class T>
std::vector<T> load(const Layout& layout, const void* data, int batch, int32_t transpose, int compute) {
  const uint64_t rows = transpose ? layout.columns : layout.rows, columns = transpose ? layout.rows : layout.columns;
  std::vector<T> all(rows * columns);
  with_type(int(layout.type), [&]<class S>(S) {
    const S* from = static_cast<const S*>(data) + batch * layout.stride;
    for (uint64_t j = 0; j < columns; ++j)
      for (uint64_t i = 0; i < rows; ++i) {
        if constexpr (is_complex<S> == is_complex<T>) {
          T value =
              number<T>(transpose ? from[i * uint64_t(layout.leading) + j] : from[j * uint64_t(layout.leading) + i]);
          if constexpr (is_complex<T>)
            if (transpose == 2) value = std::conj(value);
          if constexpr (std::is_same_v<T, float>)
            if (compute == compute_tensor_float) value = as_tensor_float(value);
          all[j * rows + i] = value;
        }
      }
  });
  return all;
}

// Gelu by its tanh formula, as cuBLASLt has it.
template <class T>
T gelu(T x) {
  return x / 2 * (1 + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
}

template <class T>
void multiply_batch(const Product& p, int batch) {
  const uint64_t m = p.d.rows, n = p.d.columns, k = p.inner();
  const std::vector<T> a = load<T>(p.a, p.a_data, batch, p.transpose_a, p.compute),
                       b = load<T>(p.b, p.b_data, batch, p.transpose_b, p.compute);
  const T alpha = scalar<T>(p.alpha * double(p.a_scale ? *p.a_scale : 1) * double(p.b_scale ? *p.b_scale : 1)),
          beta = scalar<T>(p.beta);
  std::vector<T> bias(std::max(m, n));
  if (p.epilogue & kBias)
    with_type(int(p.d.type), [&]<class S>(S) {
      if constexpr (is_complex<S> == is_complex<T> && !is_float8<S>)
        for (uint64_t i = 0; i < m; ++i)
          bias[i] = number<T>((static_cast<const S*>(p.bias) + batch * p.bias_stride)[i]);
    });
  std::vector<T> column(m);
  for (uint64_t j = 0; j < n; ++j) {
    std::fill(column.begin(), column.end(), T(0));
    for (uint64_t l = 0; l < k; ++l) {
      const T factor = b[j * k + l];
      const T* from = a.data() + l * m;
      for (uint64_t i = 0; i < m; ++i) column[i] += from[i] * factor;
    }
    with_type(int(p.d.type), [&]<class S>(S) {
      if constexpr (is_complex<S> == is_complex<T> && !is_float8<S>) {
        S* to = static_cast<S*>(p.d_data) + batch * p.d.stride + j * uint64_t(p.d.leading);
        const S* old = static_cast<const S*>(p.c_data) + batch * p.c.stride + j * uint64_t(p.c.leading);
        for (uint64_t i = 0; i < m; ++i) {
          T value = alpha == T(0) ? T(0) : alpha * column[i];  // what alpha hides is not read
          if (beta != T(0)) value += beta * number<T>(old[i]);
          if (p.epilogue & kBias) value += bias[i];
          if constexpr (std::is_floating_point_v<T>) {
            if (p.epilogue & kRelu) value = value > 0 || value != value ? value : T(0);
            if (p.epilogue & kGelu) value = gelu(value);
          }
          to[i] = number<S>(value);
        }
      }
    });
  }
  // The gradient of a bias: op(A)'s or op(B)'s sums over the inner dimension, stored where the bias is.
  if (p.epilogue & (kBiasGradientA | kBiasGradientB)) {
    const bool of_a = p.epilogue & kBiasGradientA;
    std::fill(bias.begin(), bias.end(), T(0));
    for (uint64_t l = 0; l < k; ++l)
      for (uint64_t i = 0; i < (of_a ? m : n); ++i) bias[i] += of_a ? a[l * m + i] : b[i * k + l];
    with_type(int(p.d.type), [&]<class S>(S) {
      if constexpr (is_complex<S> == is_complex<T> && !is_float8<S>)
        for (uint64_t i = 0; i < (of_a ? m : n); ++i)
          (static_cast<S*>(p.bias) + batch * p.bias_stride)[i] = number<S>(bias[i]);
    });
  }
}

}  // namespace

void multiply(const Product& p) {
  for (int batch = 0; batch < p.d.batches; ++batch) {
    switch (p.scale) {
      case CUDA_R_64F: multiply_batch<double>(p, batch); break;
      case CUDA_C_32F: multiply_batch<std::complex<float>>(p, batch); break;
      case CUDA_C_64F: multiply_batch<std::complex<double>>(p, batch); break;
      case CUDA_R_32I: multiply_batch<int32_t>(p, batch); break;
      default: multiply_batch<float>(p, batch); break;
    }
  }
}

}  // namespace emulator
