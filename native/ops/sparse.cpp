// Products with sparse matrices. A matrix is given by its rows: those of row r have the places crow[r] to crow[r + 1]
// in `col` (their columns) and `values`. cresset/sparse brings every other layout into this form; what it is to
// autograd is in cresset/ops/sparse.py.
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

// out[0..n) = sum over e of values[e] * dense[col[e]][0..n). All terms of one element are added in the order of e, each
// rounded by itself, so that every machine gives the same bits. Strips of columns are summed in registers: 1.5 to 6
// times as fast as sums that g++ keeps in an array.
template <class T>
struct ProductRow {
  typedef T Lanes __attribute__((vector_size(64)));
  static constexpr int64_t kLanes = 64 / sizeof(T);

  template <int kRegisters>
  CRESSET_INLINE void strip(const int64_t* col, const T* values, int64_t count, const T* dense, int64_t stride,
                            T* out) {
    Lanes sums[kRegisters] = {};
    for (int64_t e = 0; e < count; ++e) {
      const T v = values[e];
      const T* from = dense + col[e] * stride;
#pragma GCC unroll 8
      for (int k = 0; k < kRegisters; ++k) {
        Lanes x;
        __builtin_memcpy(&x, from + k * kLanes, sizeof(x));
        sums[k] += v * x;
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < kRegisters; ++k) __builtin_memcpy(out + k * kLanes, &sums[k], sizeof(Lanes));
  }

  template <class Fma>
  CRESSET_INLINE void run(const int64_t* col, const T* values, int64_t count, const T* dense, int64_t stride, T* out,
                          int64_t n) {
    int64_t j = 0;
    for (; j + 8 * kLanes <= n; j += 8 * kLanes) strip<8>(col, values, count, dense + j, stride, out + j);
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) strip<4>(col, values, count, dense + j, stride, out + j);
    for (; j + kLanes <= n; j += kLanes) strip<1>(col, values, count, dense + j, stride, out + j);
    if (j == n) return;
    for (int64_t k = j; k < n; ++k) out[k] = 0;
    for (int64_t e = 0; e < count; ++e) {
      const T v = values[e];
      const T* from = dense + col[e] * stride;
      for (int64_t k = j; k < n; ++k) out[k] += v * from[k];
    }
  }
};

// With one column the terms of a row are what is summed, in four chains.
template <class T>
T product_with_vector(const int64_t* col, const T* values, int64_t count, const T* dense, int64_t stride) {
  T sums[4] = {};
  int64_t e = 0;
  for (; e + 4 <= count; e += 4)
    for (int k = 0; k < 4; ++k) sums[k] += values[e + k] * dense[col[e + k] * stride];
  for (; e < count; ++e) sums[0] += values[e] * dense[col[e] * stride];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void check_columns(const char* who, const Tensor& col, int64_t columns) {
  const int64_t* c = col.data<int64_t>();
  uint64_t greatest = 0;
  for (int64_t e = 0; e < col.numel(); ++e) greatest = std::max(greatest, static_cast<uint64_t>(c[e]));
  check(col.numel() == 0 || greatest < static_cast<uint64_t>(columns), who,
        ": a column index is out of bounds for a matrix of ", columns, " columns");
}
void check_rows(const char* who, const Tensor& crow, const Tensor& col) {
  const int64_t* r = crow.data<int64_t>();
  const int64_t rows = crow.numel() - 1;
  check(rows >= 0 && r[0] == 0 && r[rows] == col.numel(), who,
        ": the compressed rows must begin with 0 and end with the number of elements, ", col.numel());
  for (int64_t i = 0; i < rows; ++i)
    check(r[i] <= r[i + 1], who, ": the compressed rows must not decrease, but entry ", i + 1, " does");
}
Tensor indices_of(const Tensor& t) { return contiguous(convert(t, Dtype::i64)); }
int64_t grain_of(int64_t rows, int64_t work) { return std::max<int64_t>(1, kParallelGrain * rows / (work + 1)); }

// ---------------------------------------------------------------- rows times dense

void infer_product(Call& c) {
  const Tensor crow = c.tensor(0), col = c.tensor(1), values = c.tensor(2), dense = c.tensor(3);
  check(crow.dim() == 1 && col.dim() == 1 && values.dim() == 1 && dense.dim() == 2 && crow.numel() >= 1 &&
            col.numel() == values.numel(),
        "sparse_product: expected rows, columns and values as vectors and a dense matrix");
  check(values.dtype() == dense.dtype(), "sparse_product: expected one dtype, got ", name_of(values.dtype()), " and ",
        name_of(dense.dtype()));
  c.promise({{crow.numel() - 1, dense.size(1)}}, dense.dtype(), dense.device());
}

template <class T>
void product(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense, const Tensor& out) {
  const int64_t *r = crow.data<int64_t>(), *c = col.data<int64_t>(), n = dense.size(1), rows = crow.numel() - 1;
  const T *v = values.data<T>(), *d = dense.data<T>();
  T* to = out.data<T>();
  parallel_for(rows, grain_of(rows, col.numel() * n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = r[i], count = r[i + 1] - first;
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        if (n > 1) {
          run_vectorized<ProductRow<T>>(c + first, v + first, count, d, n, to + i * n, n);
          continue;
        }
      }
      if constexpr (std::is_same_v<opmath<T>, T>) {
        if (n == 1) {
          to[i] = product_with_vector<T>(c + first, v + first, count, d, 1);
          continue;
        }
        for (int64_t k = 0; k < n; ++k) to[i * n + k] = T(0);
        for (int64_t e = first; e < first + count; ++e)
          for (int64_t k = 0; k < n; ++k) to[i * n + k] += v[e] * d[c[e] * n + k];
      } else {  // halves are summed in float and rounded once
        for (int64_t k = 0; k < n; ++k) {
          opmath<T> sum = 0;
          for (int64_t e = first; e < first + count; ++e)
            sum += static_cast<opmath<T>>(v[e]) * static_cast<opmath<T>>(d[c[e] * n + k]);
          to[i * n + k] = static_cast<T>(sum);
        }
      }
    }
  });
}

template <class F>
void visit_element(Dtype d, const char* who, F&& f) {
  if (is_integral(d)) return visit_integer(d, who, f);
  visit_floating_or_complex(d, who, f);
}

void run_product(Call& c) {
  const Tensor crow = indices_of(c.tensor(0)), col = indices_of(c.tensor(1)), values = contiguous(c.tensor(2)),
               dense = contiguous(c.tensor(3));
  check_rows("sparse_product", crow, col);
  check_columns("sparse_product", col, dense.size(0));
  visit_element(dense.dtype(), "sparse_product", [&]<class T>() { product<T>(crow, col, values, dense, c.out()); });
}

// ---------------------------------------------------------------- the product of two dense matrices at some places:
// out[e] = <left[row of e], right[col[e]]>

void infer_sampled(Call& c) {
  const Tensor crow = c.tensor(0), col = c.tensor(1), left = c.tensor(2), right = c.tensor(3);
  check(crow.dim() == 1 && col.dim() == 1 && left.dim() == 2 && right.dim() == 2 && left.size(1) == right.size(1) &&
            crow.numel() == left.size(0) + 1,
        "sparse_sampled_product: shapes ", list(left.sizes()), " and ", list(right.sizes()), " do not fit");
  check(left.dtype() == right.dtype(), "sparse_sampled_product: expected one dtype, got ", name_of(left.dtype()),
        " and ", name_of(right.dtype()));
  c.promise({{col.numel()}}, left.dtype(), left.device());
}

template <class T>
struct Dot {
  template <class Fma>
  CRESSET_INLINE void run(const T* a, const T* b, int64_t n, T* out) {
    constexpr int64_t kLanes = 16;
    T sums[kLanes] = {};
    int64_t k = 0;
    for (; k + kLanes <= n; k += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) sums[l] = Fma::fma(a[k + l], b[k + l], sums[l]);
    for (int64_t l = 0; k < n; ++k, ++l) sums[l] = Fma::fma(a[k], b[k], sums[l]);
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    *out = sums[0];
  }
};

void run_sampled(Call& c) {
  const Tensor crow = indices_of(c.tensor(0)), col = indices_of(c.tensor(1)), left = contiguous(c.tensor(2)),
               right = contiguous(c.tensor(3)), out = c.out();
  check_rows("sparse_sampled_product", crow, col);
  check_columns("sparse_sampled_product", col, right.size(0));
  const int64_t *r = crow.data<int64_t>(), *cols = col.data<int64_t>(), n = left.size(1), rows = crow.numel() - 1;
  visit_element(left.dtype(), "sparse_sampled_product", [&]<class T>() {
    const T *a = left.data<T>(), *b = right.data<T>();
    T* to = out.data<T>();
    parallel_for(rows, grain_of(rows, col.numel() * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t e = r[i]; e < r[i + 1]; ++e) {
          const T *x = a + i * n, *y = b + cols[e] * n;
          if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
            run_vectorized<Dot<T>>(x, y, n, to + e);
          } else {
            opmath<T> sum = opmath<T>(0);
            for (int64_t k = 0; k < n; ++k) sum += static_cast<opmath<T>>(x[k]) * static_cast<opmath<T>>(y[k]);
            to[e] = static_cast<T>(sum);
          }
        }
    });
  });
}

// ---------------------------------------------------------------- putting elements in the order of their rows

// (where each row begins, the elements in the order of their rows): a counting sort that keeps the order within a row.
void run_sort_rows(Call& c) {
  const Tensor given = indices_of(c.tensor(0));
  const int64_t n = given.numel(), count = c.integer(1);
  check_value(count >= 0, "sparse_sort_rows: the number of rows must not be negative, got ", count);
  const int64_t* row = given.data<int64_t>();
  Tensor begin = full({{count + 1}}, Scalar(0), Dtype::i64), order = empty({{n}}, Dtype::i64);
  int64_t* b = begin.data<int64_t>();
  for (int64_t e = 0; e < n; ++e) {
    check_index(row[e] >= 0 && row[e] < count, "index ", row[e], " is out of bounds for dimension 0 with size ", count);
    ++b[row[e] + 1];
  }
  for (int64_t i = 0; i < count; ++i) b[i + 1] += b[i];
  std::vector<int64_t> next(b, b + count);
  for (int64_t e = 0; e < n; ++e) order.data<int64_t>()[next[static_cast<size_t>(row[e])]++] = e;
  c.give(begin);
  c.give(order);
}

}  // namespace

REGISTER(sparse) {
  constexpr uint32_t kInternal = kFunctionOnly | kMethodOnly;  // for cresset.sparse, under no public name
  r.add("sparse_product(Tensor crow, Tensor col, Tensor values, Tensor dense) -> Tensor", infer_product, run_product,
        kInternal);
  r.add("sparse_sampled_product(Tensor crow, Tensor col, Tensor left, Tensor right) -> Tensor", infer_sampled,
        run_sampled, kInternal);
  r.add("sparse_sort_rows(Tensor rows, int count) -> (Tensor, Tensor)", nullptr, run_sort_rows,
        kNotDifferentiable | kInternal);
}

}  // namespace cresset
