// Products of matrices of 8-bit floats, each with a scale, or one for each row and column: what layers in float8 are
// made of.
#include "ops/matmul_scaled.h"

#include "dispatch/registration.h"

namespace cresset {
namespace {

// input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum
enum Parameter : int { kA, kB, kScaleA, kScaleB, kBias, kScaleResult, kOutDtype };

bool is_float8(Dtype d) {
  return d == Dtype::f8e4m3fn || d == Dtype::f8e5m2 || d == Dtype::f8e4m3fnuz || d == Dtype::f8e5m2fnuz;
}

bool are_rows_and_columns(const Call& c) {
  const Tensor a = c.tensor(kScaleA), b = c.tensor(kScaleB);
  return a.sizes() == Dims{c.tensor(kA).size(0), 1} && b.sizes() == Dims{1, c.tensor(kB).size(1)} &&
         a.is_contiguous() && b.is_contiguous();
}

void infer_scaled_product(Call& c) {
  const Tensor a = c.tensor(kA), b = c.tensor(kB), scale_a = c.tensor(kScaleA), scale_b = c.tensor(kScaleB);
  check(a.dim() == 2 && b.dim() == 2, "_scaled_mm: both factors must be matrices, got ", a.dim(), " and ", b.dim(),
        " dimensions");
  check(a.size(1) == b.size(0), "_scaled_mm: mat_a and mat_b shapes cannot be multiplied (", a.size(0), "x", a.size(1),
        " and ", b.size(0), "x", b.size(1), ")");
  check_value(is_float8(a.dtype()) && is_float8(b.dtype()) && scale_a.dtype() == Dtype::f32 &&
                  scale_b.dtype() == Dtype::f32 && (has_single_scales(c) || are_rows_and_columns(c)),
              "_scaled_mm: Invalid scaling configuration. The factors must have a float8 dtype and the scales float32, "
              "both with one element, or contiguous of the shapes (",
              a.size(0), ", 1) and (1, ", b.size(1), "); got ", a.dtype(), " and ", b.dtype(), " with scales of ",
              scale_a.dtype(), " ", list(scale_a.sizes()), " and ", scale_b.dtype(), " ", list(scale_b.sizes()));
  if (c.has(kBias))
    check(c.tensor(kBias).dim() == 1 && c.tensor(kBias).size(0) == b.size(1), "_scaled_mm: bias must have the shape (",
          b.size(1), ",), got ", list(c.tensor(kBias).sizes()));
  const Dtype out = c.dtype_or(kOutDtype, a.dtype());
  check(is_floating(out), "_scaled_mm: out_dtype must be a floating point dtype, got ", out);
  check(!c.has(kScaleResult) || c.tensor(kScaleResult).numel() == 1,
        "_scaled_mm: scale_result must be a single element");
  c.promise({{a.size(0), b.size(1)}}, out, a.device());
}

Tensor apply(const char* name, const Tensor& x, const Tensor& y) {
  const Operator& op = *Registry::instance().find(name);
  Call inner(op);
  for (size_t i = 0; i < op.signature.parameters.size(); ++i) inner.args[i] = op.signature.parameters[i].default_value;
  inner.args[0] = Value(x), inner.args[1] = Value(y);
  execute(inner);
  return inner.outputs[0];
}

}  // namespace

bool has_single_scales(const Call& c) { return c.tensor(kScaleA).numel() == 1 && c.tensor(kScaleB).numel() == 1; }

void compose_scaled_product(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const bool single = has_single_scales(c);
  const auto scale = [&](int i) {
    return single ? view_of(c.tensor(i), Dims{}, Dims{}, c.tensor(i).offset()) : c.tensor(i);
  };
  Tensor result = apply("mm", convert(c.tensor(kA), Dtype::f32), convert(c.tensor(kB), Dtype::f32));
  result = apply("mul", apply("mul", result, scale(kScaleA)), scale(kScaleB));
  if (c.has(kBias)) result = apply("add", result, convert(c.tensor(kBias), Dtype::f32));
  if (c.has(kScaleResult) && is_float8(out.dtype())) {
    const Tensor factor = c.tensor(kScaleResult);
    result = apply("mul", result, view_of(factor, Dims{}, Dims{}, factor.offset()));
  }
  copy_into(out, result);
}

REGISTER(matmul_scaled) {
  r.add(
      "_scaled_mm(Tensor input, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? "
      "scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
      infer_scaled_product, compose_scaled_product, kNotDifferentiable | kFunctionOnly);
}

}  // namespace cresset
