// Products of matrices and vectors on CUDA: how tensors of any strides, batches and broadcasting become products of
// cuBLASLt. A matrix whose rows lie well times a single vector has a kernel of its own, which reads faster; so have
// small matrices.
//
// The library's matrices lie column after column. Our result lies row after row, which is the transpose in its eyes: it
// computes out^T = b^T a^T, so that our b is its first factor.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/cublas.h"
#include "cuda/matmul_small.h"
#include "cuda/reduction.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/matmul_scaled.h"
#include "ops/product_lines.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kMostLaunches = 4;   // of one batch; more are worth a copy that makes it one launch
constexpr int64_t kMostBatch = 65535;  // of one launch

bool is_zero(const Scalar& s) { return s.real == 0 && s.imag == 0; }
bool is_one(const Scalar& s) { return s.real == 1 && s.imag == 0; }

// How a factor lies for the library: neighbors along k, or neighbors along the lines, the others `ld` apart.
struct Lie {
  int64_t ld = 0;
  bool along_k = true;
};
bool find_lie(const Lines& f, Lie& lie) {
  if (f.k == 1 && f.line_step == 1 && f.lines > 1) return lie = {f.lines, false}, true;
  if (f.k_step == 1 || f.k == 1) {
    lie = {f.lines == 1 ? f.k : f.line_step, true};
    return lie.ld >= f.k;
  }
  if (f.line_step == 1 || f.lines == 1) {
    lie = {f.k_step, false};
    return lie.ld >= f.lines;
  }
  return false;
}

// The lines of a factor for the whole batch, one after the other.
Tensor gathered(const Tensor& t, const Lines& f, DimsView batch) {
  Dims sizes(batch), steps = broadcast_steps(f, batch);
  sizes.push_back(f.lines), sizes.push_back(f.k);
  steps.push_back(f.line_step), steps.push_back(f.k_step);
  return contiguous_on_device(view_of(t, sizes, steps, t.offset()));
}

// A batch without dimensions of one element, and with dimensions merged where every operand walks through both in one
// step.
struct Walk {
  Dims sizes, a, b, start, out;
};
Walk merged(const Batch& g, bool has_start, int64_t matrix) {
  Walk w;
  Dims out(g.sizes.size(), 0);
  int64_t step = matrix;
  for (int64_t d = g.sizes.size() - 1; d >= 0; --d) {
    out[d] = step;
    step *= g.sizes[d];
  }
  for (int64_t d = 0; d < g.sizes.size(); ++d) {
    const int64_t size = g.sizes[d], a = g.a.batch_steps[d], b = g.b.batch_steps[d],
                  start = has_start ? g.start_steps[d] : 0;
    if (size == 1) continue;
    if (!w.sizes.empty() && w.a.back() == a * size && w.b.back() == b * size && w.start.back() == start * size &&
        w.out.back() == out[d] * size) {
      w.sizes.back() *= size;
      w.a.back() = a, w.b.back() = b, w.start.back() = start, w.out.back() = out[d];
      continue;
    }
    w.sizes.push_back(size), w.a.push_back(a), w.b.push_back(b), w.start.push_back(start), w.out.push_back(out[d]);
  }
  return w;
}

// Whether the library can read start where it lies, as its C.
bool lies_as_result(const Dims& steps, const Dims& sizes, int64_t columns) {
  for (int64_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && (d + 1 == sizes.size() ? steps[d] != 1 : steps[d] < columns)) return false;
  return true;
}
bool is_one_row(const Dims& steps, const Dims& sizes) {
  for (int64_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && steps[d] != (d + 1 == sizes.size() ? 1 : 0)) return false;
  return true;
}

// ---------------------------------------------------------------- a matrix and a vector

const KernelFamily kVector("matmul.cuh", "multiply_vector", {"T", "ROWS"}, {"--fmad=true"});

// Whether it was one. The vector is one of the two factors, and the elements of a row of the other one are neighbors.
bool multiply_vector(const Place& place, const MatrixProduct& p) {
  const bool first = p.n == 1;
  if ((!first && p.m != 1) || p.batch != 1 || p.c.data || !is_one(p.alpha) || (p.bias && !first)) return false;
  if (p.dtype != Dtype::f32 && p.dtype != Dtype::f16 && p.dtype != Dtype::bf16) return false;
  const MatrixProduct::Factor &matrix = first ? p.a : p.b, &vector = first ? p.b : p.a;
  const bool along_k = first ? matrix.transposed : !matrix.transposed,
             vector_along_k = first ? !vector.transposed : vector.transposed;
  const int64_t rows = first ? p.m : p.n, whole = 16 / size_of(p.dtype);
  const auto lies_well = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; };
  constexpr int64_t kMost = 1 << 30;
  if (!along_k || !vector_along_k || rows < 64 || rows > kMost || p.k > kMost || p.k % whole || matrix.ld % whole ||
      !lies_well(matrix.data) || !lies_well(vector.data))
    return false;
  // Where rows are few each wants a warp of its own: measured on an H200.
  const int at_once = rows >= 8192 ? 2 : 1;
  kVector.launch(place, {p.dtype, at_once}, divide_up(rows, 4 * at_once), 128, 0, matrix.data, vector.data, p.bias, p.d,
                 static_cast<int32_t>(rows), static_cast<int32_t>(p.k), matrix.ld);
  return true;
}

// ---------------------------------------------------------------- in general

// out = alpha a b + beta start: the rows of a times the columns of b (or its rows, as linear has them); start is
// broadcast to out, or undefined.
void product(const char* who, const Tensor& a, const Tensor& b, bool rows_of_b, Tensor start, const Scalar& alpha,
             const Scalar& beta, const Tensor& out, bool may_bias = true) {
  const Lines lines_a = rows_of(a), lines_b = rows_of_b ? rows_of(b) : columns_of(b);
  Batch g;
  g.a = lines_a;
  g.b = lines_b;
  if (g.a.batch.size() + g.b.batch.size() > 0) {
    g.sizes = broadcast(who, g.a.batch, g.b.batch);
    g.a.batch_steps = broadcast_steps(g.a, g.sizes);
    g.b.batch_steps = broadcast_steps(g.b, g.sizes);
  }
  const Dims batch = g.sizes;

  MatrixProduct p;
  p.dtype = out.dtype();
  p.alpha = alpha;
  bool has_start = start.defined();
  if (has_start) {
    Dims steps = expanded_strides(who, start, out.sizes());
    if (may_bias && has_bias_epilogue(p.dtype) && is_one(beta) && start.get() != out.get() &&
        is_one_row(steps, out.sizes())) {
      p.bias = start.bytes();
      has_start = false;
    } else {
      if (!lies_as_result(steps, out.sizes(), g.b.lines)) {
        copy_into(out, start);
        start = out;
        steps = out.strides();
      }
      if (out.dim() > 0) steps.pop_back();
      if (!steps.empty()) {
        g.start_row = steps.back();
        steps.pop_back();
      }
      g.start_steps = steps;
    }
  }
  fold(g, has_start);
  Lie lie_a, lie_b;
  if (!find_lie(g.a, lie_a))
    return product(who, gathered(a, lines_a, lines_a.batch), b, rows_of_b, start, alpha, beta, out, may_bias);
  if (!find_lie(g.b, lie_b))
    return product(who, a, gathered(b, lines_b, lines_b.batch), true, start, alpha, beta, out, may_bias);

  p.m = g.b.lines, p.n = g.a.lines, p.k = g.a.k;
  p.a.data = b.bytes(), p.a.ld = lie_b.ld, p.a.transposed = lie_b.along_k;
  p.b.data = a.bytes(), p.b.ld = lie_a.ld, p.b.transposed = !lie_a.along_k;
  p.d = out.bytes(), p.ldd = p.m;
  if (has_start) {
    p.beta = beta;
    p.c.data = start.bytes();
    p.c.ld = p.n == 1 ? p.m : g.start_row;
  }
  const Place place(out.device());
  const Walk w = merged(g, has_start, p.m * p.n);
  // The largest dimension is the batch of one launch; the others are walked.
  int64_t inner = -1, launches = 1;
  for (int64_t d = 0; d < w.sizes.size(); ++d)
    if (inner < 0 || w.sizes[d] > w.sizes[inner]) inner = d;
  for (int64_t d = 0; d < w.sizes.size(); ++d)
    if (d != inner) launches *= w.sizes[d];
  if (launches > kMostLaunches) {
    if (has_start && start.get() != out.get()) {
      copy_into(out, start);
      start = out;
    }
    return product(who, gathered(a, lines_a, batch), gathered(b, lines_b, batch), true, start, alpha, beta, out,
                   may_bias);
  }
  const int64_t width = size_of(p.dtype), many = inner < 0 ? 1 : w.sizes[inner];
  const auto one_launch = [&](int64_t at, int64_t first) {
    MatrixProduct q = p;
    int64_t from_a = 0, from_b = 0, from_start = 0, to = 0;
    if (inner >= 0) {
      q.batch = std::min(kMostBatch, many - first);
      if (q.batch > 1)
        q.b.batch_step = w.a[inner], q.a.batch_step = w.b[inner], q.c.batch_step = w.start[inner],
        q.d_step = w.out[inner];
      from_a = first * w.a[inner], from_b = first * w.b[inner], from_start = first * w.start[inner],
      to = first * w.out[inner];
      for (int64_t d = w.sizes.size() - 1; d >= 0; --d) {
        if (d == inner) continue;
        const int64_t index = at % w.sizes[d];
        at /= w.sizes[d];
        from_a += index * w.a[d], from_b += index * w.b[d], from_start += index * w.start[d], to += index * w.out[d];
      }
      q.a.data = static_cast<const char*>(p.a.data) + from_b * width;
      q.b.data = static_cast<const char*>(p.b.data) + from_a * width;
      if (p.c.data) q.c.data = static_cast<const char*>(p.c.data) + from_start * width;
      q.d = static_cast<char*>(p.d) + to * width;
    }
    return multiply_vector(place, q) || multiply_small(place, q) || multiply(place, q);
  };
  for (int64_t at = 0; at < launches; ++at)
    for (int64_t first = 0; first < many; first += kMostBatch)
      if (!one_launch(at, first)) {
        // Every launch of a batch has the same shape: it is the first that fails, and nothing is written yet.
        if (p.bias) return product(who, a, b, rows_of_b, start, alpha, beta, out, false);
        check_product(false, who, p);
      }
}

void product_or_host(Call& c, const char* who, const Tensor& a, const Tensor& b, bool rows_of_b, const Tensor& start,
                     const Scalar& alpha, const Scalar& beta) {
  const Tensor& out = c.out();
  if (!multiplies(out.dtype())) return execute_on_host(c, out.device());
  if (out.numel() == 0) return;
  if (a.size(-1) == 0) {
    if (start.defined() && !is_zero(beta)) return execute_on_host(c, out.device());
    return fill(out, 0);
  }
  product(who, a, b, rows_of_b, start, alpha, beta, out);
}

void run_product(Call& c) { product_or_host(c, c.op.name().c_str(), c.tensor(0), c.tensor(1), false, {}, 1, 0); }
// Long vectors are a sum that all multiprocessors take part in.
void run_dot(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  const Dtype d = c.out().dtype();
  if (!has_kernel(d) || size_of(d) < 2 || a.numel() < 4096 || a.dtype() != d || b.dtype() != d) return run_product(c);
  const Tensor x = contiguous_on_device(a), y = contiguous_on_device(b);
  Reduction r{Operation::dot, computed_in(d), d, c.out().bytes()};
  r.other = y.bytes();
  reduce(x, 1, r);
}
// input, factors, beta, alpha. A beta of zero means that input is not read.
void run_added_product(Call& c) {
  product_or_host(c, c.op.name().c_str(), c.tensor(1), c.tensor(2), false,
                  is_zero(c.scalar(3)) ? Tensor() : c.tensor(0), c.scalar(4), c.scalar(3));
}
void run_linear(Call& c) {
  Tensor input = c.tensor(0);
  // Rows that cannot be walked in one step are brought together, so that there is one product.
  Dims rows;
  if (input.dim() > 2 && !view_strides(input.sizes(), input.strides(),
                                       {{input.numel() / std::max<int64_t>(input.size(-1), 1), input.size(-1)}}, rows))
    input = contiguous_on_device(input);
  product_or_host(c, "linear", input, c.tensor(1), c.tensor(1).dim() == 2, c.has(2) ? c.tensor(2) : Tensor(), 1, 1);
}

// ---------------------------------------------------------------- 8 bits

// The tensor cores of integers and 8-bit floats take the first factor row by row and the second column by column.
MatrixProduct product_of_bytes(const Tensor& a, const Tensor& b, const Tensor& out) {
  MatrixProduct p;  // as the library has it: out is the transposed product of b and a
  p.dtype = b.dtype(), p.b_dtype = a.dtype(), p.d_dtype = out.dtype();
  p.m = b.size(1), p.n = a.size(0), p.k = a.size(1);
  p.a = {b.bytes(), b.size(1) == 1 ? p.k : b.stride(1), 0, true};
  p.b = {a.bytes(), a.size(0) == 1 ? p.k : a.stride(0), 0, false};
  p.d = out.bytes(), p.ldd = p.m;
  return p;
}
bool lies_in_rows(const Tensor& t) {
  return (t.stride(1) == 1 || t.size(1) == 1) && (t.stride(0) >= t.size(1) || t.size(0) == 1);
}
bool lies_in_columns(const Tensor& t) {
  return (t.stride(0) == 1 || t.size(0) == 1) && (t.stride(1) >= t.size(0) || t.size(1) == 1);
}
Tensor in_columns(const Tensor& t) {
  const Tensor rows = view_of(t, Dims{t.size(1), t.size(0)}, Dims{t.stride(1), t.stride(0)}, t.offset()),
               copy = contiguous_on_device(rows);
  return view_of(copy, t.sizes(), Dims{copy.stride(1), copy.stride(0)}, copy.offset());
}

void run_int_mm(Call& c) {
  const Tensor out = c.out();
  Tensor a = c.tensor(0), b = c.tensor(1);
  if (out.numel() == 0) return;
  if (a.size(1) == 0) return fill(out, 0);
  if (a.dtype() == Dtype::i8 && b.size(1) % 4 == 0 && a.size(1) % 4 == 0) {
    if (!lies_in_rows(a)) a = contiguous_on_device(a);
    if (!lies_in_columns(b)) b = in_columns(b);
    if (multiply(Place(out.device()), product_of_bytes(a, b, out))) return;
  }
  // Sums of products of bytes are exact in float64.
  const Tensor wide = empty(out.sizes(), Dtype::f64, out.device());
  product("_int_mm", convert(a, Dtype::f64), convert(b, Dtype::f64), false, {}, 1, 0, wide);
  copy_into(out, wide);
}

// (input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)
void run_scaled_product(Call& c) {
  const Tensor out = c.out(), a = c.tensor(0), b = c.tensor(1), bias = c.has(4) ? c.tensor(4) : Tensor();
  const auto taken = [](Dtype d) { return d == Dtype::f8e4m3fn || d == Dtype::f8e5m2; };
  const bool fits =
      has_single_scales(c) && taken(a.dtype()) && taken(b.dtype()) &&
      !(a.dtype() == Dtype::f8e5m2 && b.dtype() == Dtype::f8e5m2) && multiplies(out.dtype()) &&
      out.dtype() != Dtype::f64 && lies_in_rows(a) && lies_in_columns(b) && a.size(1) % 16 == 0 &&
      b.size(1) % 16 == 0 && a.numel() && b.numel() &&
      (!bias.defined() || (bias.dtype() == out.dtype() && out.dtype() != Dtype::f32 && bias.is_contiguous()));
  if (fits) {
    MatrixProduct p = product_of_bytes(a, b, out);
    p.a_scale = c.tensor(3).bytes(), p.b_scale = c.tensor(2).bytes(), p.fast_sums = c.boolean(7);
    if (bias.defined()) p.bias = bias.bytes();
    if (multiply(Place(out.device()), p)) return;
  }
  compose_scaled_product(c);
}

}  // namespace

REGISTER_KERNELS(matmul) {
  r.set_kernel("_int_mm", DeviceType::cuda, run_int_mm);
  r.set_kernel("_scaled_mm", DeviceType::cuda, run_scaled_product);
  for (const char* name : {"matmul", "mm", "bmm", "mv"}) r.set_kernel(name, DeviceType::cuda, run_product);
  r.set_kernel("dot", DeviceType::cuda, run_dot);
  for (const char* name : {"addmm", "baddbmm"}) r.set_kernel(name, DeviceType::cuda, run_added_product);
  r.set_kernel("linear", DeviceType::cuda, run_linear);
}

}  // namespace cresset::cuda
