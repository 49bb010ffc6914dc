// Products of matrices and vectors: shape rules, and how each dtype reaches `multiply` in gemm.h.
#include <algorithm>

#include "base/parallel.h"
#include "dispatch/call.h"
#include "ops/gemm.h"
#include "ops/older_overload.h"
#include "ops/product_lines.h"

namespace cresset {
namespace {

// ---------------------------------------------------------------- computing

template <class T, auto kMultiply = multiply<T>>
void multiply_batch(const Batch& g, const void* a, const void* b, const void* start, void* out) {
  int64_t count = 1;
  for (int64_t s : g.sizes) count *= s;
  Product<T> p;
  p.m = g.a.lines, p.n = g.b.lines, p.k = g.a.k;
  p.a.data = static_cast<const T*>(a), p.a.line_step = g.a.line_step, p.a.k_step = g.a.k_step;
  p.b.data = static_cast<const T*>(b), p.b.line_step = g.b.line_step, p.b.k_step = g.b.k_step;
  p.c = static_cast<T*>(out), p.c_row = p.n;
  p.start = static_cast<const T*>(start), p.start_row = g.start_row;
  p.alpha = g.alpha.to<T>(), p.beta = g.beta.to<T>();
  if (count == 0) return;
  if (count == 1) return kMultiply(p);
  const auto one = [&](int64_t i) {
    Product<T> q = p;
    q.a.data = p.a.data + offset_of(i, g.sizes, g.a.batch_steps);
    q.b.data = p.b.data + offset_of(i, g.sizes, g.b.batch_steps);
    q.c = p.c + i * p.m * p.n;
    if (p.start) q.start = p.start + offset_of(i, g.sizes, g.start_steps);
    return q;
  };
  const auto some = [&](int64_t begin, int64_t end) {
    Product<T> q = one(begin);
    for (int64_t i = begin + 1; i < end; ++i) {
      const Product<T> next = one(i);
      q.next = &next;
      kMultiply(q);
      q = next;
    }
    kMultiply(q);
  };
  constexpr int64_t kGrainWork = 1 << 19;
  const int64_t work = std::max<int64_t>(p.m * p.n * p.k, 1);
  // Few large products share the threads one after the other; many are shared out.
  if (count < thread_count() && work > kGrainWork)
    some(0, count);
  else
    parallel_for(count, std::max<int64_t>(kGrainWork / work, 1), some);
}

// A complex product as four real ones, on the real and imaginary parts where they lie.
template <class C>
void multiply_complex(Batch g, const Tensor& a, const Tensor& b, const Tensor& start, const Tensor& out) {
  using R = typename C::value_type;
  const C alpha = g.alpha.to<C>(), beta = g.beta.to<C>();
  const Tensor real = empty(out.sizes(), dtype_of<R>), imag = empty(out.sizes(), dtype_of<R>);
  for (Lines* f : {&g.a, &g.b}) {
    f->line_step *= 2, f->k_step *= 2;
    for (int64_t& step : f->batch_steps) step *= 2;
  }
  Dims sizes = g.sizes;
  sizes.push_back(g.a.lines), sizes.push_back(g.b.lines);
  g.start_steps = contiguous_strides(sizes);
  g.start_row = g.b.lines;
  g.alpha = g.beta = 1;
  const R *pa = reinterpret_cast<const R*>(a.bytes()), *pb = reinterpret_cast<const R*>(b.bytes());
  R *re = real.data<R>(), *im = imag.data<R>();
  multiply_batch<R>(g, pa, pb, nullptr, re);
  multiply_batch<R>(g, pa, pb + 1, nullptr, im);
  multiply_batch<R>(g, pa + 1, pb, im, im);
  g.alpha = -1;
  multiply_batch<R>(g, pa + 1, pb + 1, re, re);
  C* to = out.data<C>();
  if (start.defined()) copy_into(out, start);
  parallel_for(out.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C product = alpha == C(1) ? C(re[i], im[i]) : alpha * C(re[i], im[i]);
      to[i] = start.defined() ? product + beta * to[i] : product;
    }
  });
}

Dtype computed_in(Dtype d, const char* who) {
  switch (d) {
    case Dtype::f16:
    case Dtype::bf16: return Dtype::f32;
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i16: return Dtype::i32;
    case Dtype::i32:
    case Dtype::i64:
    case Dtype::f32:
    case Dtype::f64:
    case Dtype::c64:
    case Dtype::c128: return d;
    default: fail(ErrorKind::not_implemented, '"', who, "\" not implemented for '", facts(d).legacy, "'");
  }
}

// Where there is nothing to multiply, PyTorch refuses no dtype: the result is empty, or zero, or a multiple of `start`,
// which bool has none of.
Dtype computed_of_nothing(Dtype d, bool starts, const char* who) {
  if (d == Dtype::c32) return Dtype::c64;
  return d == Dtype::b8 && !starts ? Dtype::i32 : computed_in(d, who);
}

// bfloat16 numbers that follow each other along a dimension, the last or the one before it, two and two as a float: see
// multiply_pairs. The dimension is even.
Tensor pairs_along(const Tensor& t, bool last) {
  const int64_t d = t.dim() - (last ? 1 : 2), n = t.size(-1);
  Dims sizes = t.sizes(), strides = t.strides();
  sizes[d] /= 2;
  bool as_they_lie = t.stride(d) == 1 && t.offset() % 2 == 0 && reinterpret_cast<uintptr_t>(t->data()) % 4 == 0;
  for (int64_t i = 0; i < t.dim(); ++i) as_they_lie &= i == d || t.size(i) == 1 || t.stride(i) % 2 == 0;
  if (!as_they_lie && last) return pairs_along(clone(t, MemoryFormat::contiguous), true);
  if (as_they_lie) {
    for (int64_t i = 0; i < t.dim(); ++i) strides[i] = i == d ? 1 : strides[i] / 2;
    return view_as_dtype(t, Dtype::f32, sizes, strides, t.offset() / 2);
  }
  const Tensor from = contiguous(t), pairs = empty(sizes, Dtype::f32);
  parallel_for(pairs.numel() / std::max<int64_t>(n, 1), std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const uint16_t *a = reinterpret_cast<const uint16_t*>(from.bytes()) + 2 * row * n, *b = a + n;
                   uint32_t* to = reinterpret_cast<uint32_t*>(pairs.bytes()) + row * n;
                   for (int64_t i = 0; i < n; ++i)
                     to[i] = static_cast<uint32_t>(a[i]) | static_cast<uint32_t>(b[i]) << 16;
                 }
               });
  return pairs;
}

// The rows of a times the columns of b (or its rows, as linear has them); start is broadcast to out, or undefined. With
// `pairs`, a and b are what pairs_along gives.
void product(const char* who, const Tensor& a, const Tensor& b, bool rows_of_b, Tensor start, Scalar alpha, Scalar beta,
             const Tensor& out, bool pairs = false) {
  const bool of_nothing = out.dim() > 0 && (out.numel() == 0 || a.size(-1) == 0);
  const Dtype compute = of_nothing ? computed_of_nothing(out.dtype(), start.defined() && out.numel() > 0, who)
                                   : computed_in(out.dtype(), who);
  if (compute != out.dtype()) {
    const Tensor wide = empty(out.sizes(), compute);
    if (start.defined()) start = convert(start, compute);
    const bool halves = a.dtype() == Dtype::bf16 && b.dtype() == Dtype::bf16 && out.dtype() == Dtype::bf16;
    // Columns times one vector: putting two and two of their elements side by side takes longer than the product.
    const bool columns = b.dim() == 1 && a.dim() > 1 && a.stride(-1) != 1;
    if (halves && !columns && multiplies_pairs() && a.size(-1) % 2 == 0 && a.numel() > 0 && b.numel() > 0)
      product(who, pairs_along(a, true), pairs_along(b, rows_of_b || b.dim() == 1), rows_of_b, start, alpha, beta, wide,
              true);
    else
      product(who, convert(a, compute), convert(b, compute), rows_of_b, start, alpha, beta, wide);
    return copy_into(out, wide);
  }
  if (out.numel() == 0) return;
  Batch g;
  g.a = rows_of(a);
  g.b = rows_of_b ? rows_of(b) : columns_of(b);
  g.alpha = alpha, g.beta = beta;
  if (g.a.batch.size() + g.b.batch.size() > 0) {
    g.sizes = broadcast(who, g.a.batch, g.b.batch);
    g.a.batch_steps = broadcast_steps(g.a, g.sizes);
    g.b.batch_steps = broadcast_steps(g.b, g.sizes);
  }
  if (start.defined() && !is_complex(compute)) {
    Dims steps = expanded_strides(who, start, out.sizes());
    if (out.dim() > 0 && steps.back() != 1 && out.size(-1) != 1) {  // rows of start must be contiguous
      const Tensor dense = empty(out.sizes(), compute);
      copy_into(dense, start);
      start = dense;
      steps = start.strides();
    }
    if (out.dim() > 0) steps.pop_back();
    if (g.a.lines != 1 || out.dim() >= 2) {
      g.start_row = steps.empty() ? 0 : steps.back();
      if (!steps.empty()) steps.pop_back();
    }
    g.start_steps = steps;
  }
  fold(g, start.defined() && !is_complex(compute));
  const void* from = start.defined() ? start.bytes() : nullptr;
  switch (compute) {
    case Dtype::f32:
      if (pairs) return multiply_batch<float, multiply_pairs>(g, a.bytes(), b.bytes(), from, out.bytes());
      return multiply_batch<float>(g, a.bytes(), b.bytes(), from, out.bytes());
    case Dtype::f64: return multiply_batch<double>(g, a.bytes(), b.bytes(), from, out.bytes());
    case Dtype::i32: return multiply_batch<uint32_t>(g, a.bytes(), b.bytes(), from, out.bytes());
    case Dtype::i64: return multiply_batch<uint64_t>(g, a.bytes(), b.bytes(), from, out.bytes());
    case Dtype::c64: return multiply_complex<complex64>(g, a, b, start, out);
    default: return multiply_complex<complex128>(g, a, b, start, out);
  }
}

// ---------------------------------------------------------------- shape rules and errors

// The names of C++, which PyTorch uses in some messages.
const char* cpp_name(Dtype d) {
  switch (d) {
    case Dtype::f16: return "c10::Half";
    case Dtype::bf16: return "c10::BFloat16";
    case Dtype::f32: return "float";
    case Dtype::f64: return "double";
    case Dtype::c64: return "c10::complex<float>";
    case Dtype::c128: return "c10::complex<double>";
    case Dtype::u8: return "unsigned char";
    case Dtype::i8: return "signed char";
    case Dtype::i16: return "short int";
    case Dtype::i32: return "int";
    case Dtype::i64: return "long int";
    case Dtype::b8: return "bool";
    default: return name_of(d);
  }
}

void check_devices(const char* who, const Tensor& a, const Tensor& b) {
  check(a.device() == b.device(), who,
        ": Expected all tensors to be on the same device, but found at least two devices, ", a.device(), " and ",
        b.device(), "!");
}
void check_matrices(const char* who, int64_t m, int64_t k, int64_t k2, int64_t n) {
  check(k == k2, who, ": mat1 and mat2 shapes cannot be multiplied (", m, "x", k, " and ", k2, "x", n, ")");
}
// `added`: to a third operand. PyTorch then has other words, which people look for.
void check_same_matrix_dtype(const char* who, const Tensor& a, const Tensor& b, bool added = false) {
  check(a.dtype() == b.dtype() || !added, who, ": mat1 and mat2 must have the same dtype, but got ",
        facts(a.dtype()).legacy, " and ", facts(b.dtype()).legacy);
  check(a.dtype() == b.dtype(), who, ": expected m1 and m2 to have the same dtype, but got: ", cpp_name(a.dtype()),
        " != ", cpp_name(b.dtype()));
}
void check_expands(const Tensor& t, DimsView sizes) {
  check(t.dim() <= static_cast<int64_t>(sizes.size()), "expand: the number of sizes provided (", sizes.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", t.dim(), ")");
  for (int64_t d = 1; d <= t.dim(); ++d)
    check(t.size(-d) == 1 || t.size(-d) == sizes[sizes.size() - static_cast<size_t>(d)],
          "The expanded size of the tensor (", sizes[sizes.size() - static_cast<size_t>(d)],
          ") must match the existing size (", t.size(-d), ") at non-singleton dimension ",
          static_cast<int64_t>(sizes.size()) - d, ".  Target sizes: ", list(sizes),
          ".  Tensor sizes: ", list(t.sizes()));
}

void infer_mm(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check(a.dim() == 2, "mm: self must be a matrix, got ", a.dim(), "-D tensor");
  check(b.dim() == 2, "mm: mat2 must be a matrix, got ", b.dim(), "-D tensor");
  check_devices("mm", a, b);
  check_matrices("mm", a.size(0), a.size(1), b.size(0), b.size(1));
  check_same_matrix_dtype("mm", a, b);
  c.promise({{a.size(0), b.size(1)}}, a.dtype(), a.device());
}
void run_mm(Call& c) { product("addmm_impl_cpu_", c.tensor(0), c.tensor(1), false, {}, 1, 1, c.out()); }

void check_batches(const char* who, const Tensor& a, const Tensor& b) {
  check(a.dim() == 3, who, ": batch1 must be a 3D tensor, got ", a.dim(), "D");
  check(b.dim() == 3, who, ": batch2 must be a 3D tensor, got ", b.dim(), "D");
  check_devices(who, a, b);
  check(b.size(0) == a.size(0) && b.size(1) == a.size(2), who,
        ": Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2),
        "] but got: [", b.size(0), ", ", b.size(1), "].");
}
void infer_bmm(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check_batches("bmm", a, b);
  check(a.dtype() == b.dtype(), "bmm: expected scalar type ", facts(a.dtype()).legacy, " but found ",
        facts(b.dtype()).legacy);
  c.promise({{a.size(0), a.size(1), b.size(2)}}, a.dtype(), a.device());
}
void run_bmm(Call& c) { product("bmm", c.tensor(0), c.tensor(1), false, {}, 1, 1, c.out()); }

void check_mv(const char* who, const Tensor& a, const Tensor& x) {
  check(a.dtype() == x.dtype(), who, ": addmv input tensors must have the same dtype, but got ",
        facts(x.dtype()).legacy, ", ", facts(a.dtype()).legacy, ", and ", facts(x.dtype()).legacy);
  check(a.size(1) == x.size(0), who, ": size mismatch, got input (", a.size(0), "), mat (", a.size(0), "x", a.size(1),
        "), vec (", x.size(0), ")");
}
void infer_mv(Call& c) {
  const Tensor a = c.tensor(0), x = c.tensor(1);
  check(a.dim() == 2 && x.dim() == 1, "mv: vector + matrix @ vector expected, got 1, ", a.dim(), ", ", x.dim());
  check_devices("mv", a, x);
  check_mv("mv", a, x);
  c.promise({{a.size(0)}}, a.dtype(), a.device());
}
void run_mv(Call& c) { product("addmv_impl_cpu", c.tensor(0), c.tensor(1), false, {}, 1, 1, c.out()); }

void check_dot(const char* who, const Tensor& a, const Tensor& b) {
  check(a.dim() == 1 && b.dim() == 1, who, ": 1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
  check_devices(who, a, b);
  check(a.dtype() == b.dtype(), who, ": dot : expected both vectors to have same dtype, but found ",
        facts(a.dtype()).legacy, " and ", facts(b.dtype()).legacy);
  check(a.numel() == b.numel(), who, ": inconsistent tensor size, expected tensor ", list(a.sizes()), " and src ",
        list(b.sizes()), " to have the same number of elements, but got ", a.numel(), " and ", b.numel(),
        " elements respectively");
}
void infer_dot(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check_dot("dot", a, b);
  c.promise({}, a.dtype(), a.device());
}
void run_dot(Call& c) { product("dot", c.tensor(0), c.tensor(1), false, {}, 1, 1, c.out()); }

void infer_matmul(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  const int64_t da = a.dim(), db = b.dim();
  check(da >= 1 && db >= 1, "both arguments to matmul need to be at least 1D, but they are ", da, "D and ", db, "D");
  check_devices("matmul", a, b);
  if (da == 2 && db == 2) {
    check_matrices("matmul", a.size(0), a.size(1), b.size(0), b.size(1));
    check_same_matrix_dtype("matmul", a, b);
    return c.promise({{a.size(0), b.size(1)}}, a.dtype(), a.device());
  }
  if (da == 1 && db == 1) {
    check_dot("matmul", a, b);
    return c.promise({}, a.dtype(), a.device());
  }
  if (da == 2 && db == 1) {
    check_mv("matmul", a, b);
    return c.promise({{a.size(0)}}, a.dtype(), a.device());
  }
  const bool batched = da > 2 && db > 2;
  Dims sizes;
  if (da > 2 || db > 2) {
    const auto batch = [](const Tensor& t) {
      return t.dim() > 2 ? DimsView(t.sizes()).first(static_cast<size_t>(t.dim() - 2)) : DimsView{};
    };
    sizes = broadcast("matmul", batch(a), batch(b));
  }
  const int64_t k = a.size(-1), k2 = db == 1 ? b.size(0) : b.size(-2);
  if (batched) {
    int64_t count = 1;
    for (int64_t s : sizes) count *= s;
    check(k == k2, "matmul: Expected size for first two dimensions of batch2 tensor to be: [", count, ", ", k,
          "] but got: [", count, ", ", k2, "].");
    check(a.dtype() == b.dtype(), "matmul: expected scalar type ", facts(a.dtype()).legacy, " but found ",
          facts(b.dtype()).legacy);
  } else {
    const int64_t rows = da == 1 ? 1 : db <= 2 ? a.numel() / std::max<int64_t>(k, 1) : a.size(-2);
    check_matrices("matmul", rows, k, k2, db == 1 ? 1 : b.size(-1));
    check_same_matrix_dtype("matmul", a, b);
  }
  if (da > 1) sizes.push_back(a.size(-2));
  if (db > 1) sizes.push_back(b.size(-1));
  c.promise(sizes, a.dtype(), a.device());
}
void run_matmul(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  product(a.dim() == 1 && b.dim() == 1 ? "dot"
          : a.dim() > 2 && b.dim() > 2 ? "bmm"
                                       : "addmm_impl_cpu_",
          a, b, false, {}, 1, 1, c.out());
}

// Numbers that the dtype cannot hold.
void check_numbers(const char* who, Dtype dtype, const Scalar& alpha, const Scalar& beta) {
  for (const Scalar* s : {&alpha, &beta})
    check(s->kind != Scalar::Kind::complex || is_complex(dtype) || s->imag == 0, who,
          ": value cannot be converted to type ", cpp_name(dtype), " without overflow");
}
bool is_zero(const Scalar& s) { return s.real == 0 && s.imag == 0 && s.integer == 0; }

// out = beta input + alpha mat1 mat2. A beta of zero means that input is not read.
void infer_addmm(Call& c) {
  const Tensor input = c.tensor(0), a = c.tensor(1), b = c.tensor(2);
  check(a.dim() == 2, "addmm: mat1 must be a matrix, got ", a.dim(), "-D tensor");
  check(b.dim() == 2, "addmm: mat2 must be a matrix, got ", b.dim(), "-D tensor");
  check_devices("addmm", a, b);
  check_devices("addmm", input, a);
  check(input.dtype() == b.dtype(), "addmm: self and mat2 must have the same dtype, but got ",
        facts(input.dtype()).legacy, " and ", facts(b.dtype()).legacy);
  check_same_matrix_dtype("addmm", a, b, true);
  check_matrices("addmm", a.size(0), a.size(1), b.size(0), b.size(1));
  const Dims sizes = {a.size(0), b.size(1)};
  if (c.op.inplace)
    check(input.sizes() == sizes, "addmm_: Bad in-place call: input tensor size ", list(input.sizes()),
          " and output tensor size ", list(sizes), " should match");
  check_expands(input, sizes);
  check_numbers("addmm", a.dtype(), c.scalar(3), c.scalar(4));
  c.promise(sizes, a.dtype(), a.device());
}
void run_addmm(Call& c) {
  const bool reads = !is_zero(c.scalar(3));
  Tensor a = c.tensor(1), b = c.tensor(2);
  if (is_zero(c.scalar(4)) &&
      size_of(a.dtype()) >=
          4) {  // as in a BLAS, a product that does not count is not computed: infinities in it leave no nan
    a = empty(Dims{a.size(0), 0}, a.dtype(), a.device());
    b = empty(Dims{0, b.size(1)}, b.dtype(), b.device());
  }
  product("addmm_impl_cpu_", a, b, false, reads ? c.tensor(0) : Tensor(), c.scalar(4), c.scalar(3), c.out());
}

void infer_baddbmm(Call& c) {
  const Tensor input = c.tensor(0), a = c.tensor(1), b = c.tensor(2);
  check_batches("baddbmm", a, b);
  check_devices("baddbmm", input, a);
  check(input.dtype() == a.dtype() && a.dtype() == b.dtype(), "baddbmm: Input dtypes must be the same, got: input ",
        cpp_name(input.dtype()), ", batch1: ", cpp_name(a.dtype()), ", batch2: ", cpp_name(b.dtype()));
  const Dims sizes = {a.size(0), a.size(1), b.size(2)};
  if (c.op.inplace)
    check(input.sizes() == sizes, "baddbmm_: Bad in-place call: input tensor size ", list(input.sizes()),
          " and output tensor size ", list(sizes), " should match");
  check_expands(input, sizes);
  check_numbers("baddbmm", a.dtype(), c.scalar(3), c.scalar(4));
  c.promise(sizes, a.dtype(), a.device());
}
void run_baddbmm(Call& c) {
  const bool reads = !is_zero(c.scalar(3));
  product("baddbmm", c.tensor(1), c.tensor(2), false, reads ? c.tensor(0) : Tensor(), c.scalar(4), c.scalar(3),
          c.out());
}

void infer_linear(Call& c) {
  const Tensor input = c.tensor(0), weight = c.tensor(1);
  check(input.dim() >= 1 && weight.dim() >= 1, "both arguments to linear need to be at least 1D, but they are ",
        input.dim(), "D and ", weight.dim(), "D");
  check(weight.dim() <= 2,
        "linear: weight must have at most 2 dimensions: t() expects a tensor with <= 2 dimensions, but self is ",
        weight.dim(), "D");
  check_devices("linear", input, weight);
  const int64_t k = input.size(-1), n = weight.dim() == 2 ? weight.size(0) : 1;
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) rows *= input.size(d);
  check_matrices("linear", rows, k, weight.size(-1), n);
  check_same_matrix_dtype("linear", input, weight, c.has(2));
  Dims sizes = input.sizes();
  sizes.pop_back();
  if (weight.dim() == 2) sizes.push_back(n);
  if (c.has(2)) {
    const Tensor bias = c.tensor(2);
    check(weight.dim() == 2, "linear: mat2 must be a matrix, got 1-D tensor");
    check_devices("linear", input, bias);
    check(bias.dtype() == weight.dtype(), "linear: self and mat2 must have the same dtype, but got ",
          facts(bias.dtype()).legacy, " and ", facts(weight.dtype()).legacy);
    check_expands(bias, sizes);
  }
  c.promise(sizes, input.dtype(), input.device());
}
void run_linear(Call& c) {
  Tensor input = c.tensor(0);
  // Rows that cannot be walked in one step are brought together, so that there is one product.
  Dims rows;
  if (input.dim() > 2 && !view_strides(input.sizes(), input.strides(),
                                       {{input.numel() / std::max<int64_t>(input.size(-1), 1), input.size(-1)}}, rows))
    input = contiguous(input);
  product("addmm_impl_cpu_", input, c.tensor(1), c.tensor(1).dim() == 2, c.has(2) ? c.tensor(2) : Tensor(), 1, 1,
          c.out());
}

// ---------------------------------------------------------------- what autograd calls them

// PyTorch makes other products of them, and records those.
const char* name_of_matmul(const Call& c) {
  const int64_t left = c.args[0].tensor_->dim(), right = c.args[1].tensor_->dim();
  if (left == 1 && right == 1) return "DotBackward0";
  if (left == 2 && right == 1) return "MvBackward0";
  if (left == 1 && right == 2) return "SqueezeBackward4";
  if (left == 2 && right == 2) return "MmBackward0";
  return left == 2 ? "CloneBackward0" : "UnsafeViewBackward0";
}
const char* name_of_linear(const Call& c) {
  const TensorImpl& input = *c.args[0].tensor_;
  if (input.dim() == 2)
    return c.has(2) ? "AddmmBackward0" : c.args[1].tensor_->dim() == 1 ? "MvBackward0" : "MmBackward0";
  if (!c.has(2)) return input.dim() == 1 ? "SqueezeBackward4" : "UnsafeViewBackward0";
  return input.contiguous ? "ViewBackward0" : "AddBackward0";
}

}  // namespace

REGISTER(matmul) {
  r.add("matmul(Tensor input, Tensor other) -> Tensor", infer_matmul, run_matmul).node_name_of = name_of_matmul;
  r.add("mm(Tensor input, Tensor mat2) -> Tensor", infer_mm, run_mm);
  r.add("bmm(Tensor input, Tensor mat2) -> Tensor", infer_bmm, run_bmm);
  r.add("mv(Tensor input, Tensor vec) -> Tensor", infer_mv, run_mv);
  r.add("dot(Tensor input, Tensor tensor) -> Tensor", infer_dot, run_dot);
  r.add("addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", infer_addmm,
        run_addmm, kInplace | kWritesWhole);
  r.add("baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        infer_baddbmm, run_baddbmm, kInplace | kWritesWhole);
  r.add("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", infer_linear, run_linear, kFunctionOnly)
      .node_name_of = name_of_linear;
  // As functions the older forms take beta first, as methods behind the tensor.
  for (const auto& [name, factors] : {std::pair<std::string, std::string>{"addmm", "Tensor mat1, Tensor mat2"},
                                      {"baddbmm", "Tensor batch1, Tensor batch2"}}) {
    add_older_overload(r, name, "older_function", "Scalar beta, Tensor input, Scalar alpha, " + factors);
    add_older_overload(r, name, "older_function_beta", "Scalar beta, Tensor input, " + factors);
    for (const std::string& form : {name, name + "_"}) {
      add_older_overload(r, form, "older_method", "Tensor input, Scalar beta, Scalar alpha, " + factors, kMethodOnly);
      add_older_overload(r, form, "older_method_beta", "Tensor input, Scalar beta, " + factors, kMethodOnly);
    }
  }
}

}  // namespace cresset
