// What a pointwise call computes in and what it gives: promotion, broadcasting, strides, and what is refused. No data
// is touched.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "dispatch/casting.h"
#include "dispatch/overlap.h"
#include "dispatch/pointwise_call.h"

namespace cresset {
namespace {

double largest(Dtype d) {
  switch (to_real(d)) {
    case Dtype::f16: return 65504;
    case Dtype::bf16: return 0x1.fep127;
    case Dtype::f64: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();
  }
}

[[noreturn]] void unsupported(const Operator& op, Dtype d) {
  fail(ErrorKind::not_implemented, op.name(), ": \"", op.name(), "_cpu\" not implemented for '", name_of(d), "'");
}

// Memory that is written and read in parts is refused before a dtype is.
void check_memory_in_place(const Call& c, const PointwiseDefinition& def) {
  const char* who = c.op.name().c_str();
  check_no_internal_overlap(who, c.tensor(0));
  for (int i = 1; i < def.input_count; ++i)
    if (c.args[i].is_tensor()) check_aliasing(who, c.tensor(0), c.tensor(i), Aliasing::whole);
}

Dtype result_dtype(Promotion promotion, Dtype common) {
  switch (promotion) {
    case Promotion::to_bool: return Dtype::b8;
    case Promotion::to_real: return to_real(common);
    default: return common;
  }
}
// ---- what is refused

bool is_bool(const Value& v) {
  return v.kind == Kind::tensor ? v.tensor_->dtype == Dtype::b8
                                : v.kind == Kind::scalar && v.scalar_.kind == Scalar::Kind::boolean;
}

const std::string& name_of_argument(const Call& c, int i) {
  return c.op.signature.parameters[static_cast<size_t>(i)].name;
}

// A factor is whole where the result is, and bool only where that is.
void check_factor(const Call& c, int i, Dtype common) {
  const Scalar::Kind kind = c.args[i].scalar_.kind;
  const std::string& name = name_of_argument(c, i);
  check(common == Dtype::b8 || kind != Scalar::Kind::boolean, c.op.name(), ": Boolean ", name,
        " only supported for Boolean results. These are ", name_of(common));
  check(is_differentiable(common) || (kind != Scalar::Kind::real && kind != Scalar::Kind::complex), c.op.name(),
        ": For integral input tensors, argument ", name, " must not be a floating point number.");
  check(is_complex(common) || kind != Scalar::Kind::complex, c.op.name(), ": For non-complex input tensors, argument ",
        name, " must not be a complex number.");
}

void check_one_dtype(const Call& c, const PointwiseDefinition& def) {
  const TensorImpl* first = nullptr;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (v.kind != Kind::tensor || (i == 2 && v.tensor_->sizes.empty())) continue;  // a 0-d weight counts as a number
    if (!first) first = v.tensor_;
    check(v.tensor_->dtype == first->dtype, c.op.name(), ": expected dtype ", name_of(first->dtype),
          " for all operands but got dtype ", name_of(v.tensor_->dtype), "; ", def.name,
          " is not yet implemented for tensors with different dtypes.");
  }
}

void check_bound(const Call& c, const PointwiseDefinition& def) {
  for (int i = 0; i < def.input_count; ++i)
    if ((def.inputs[i] == 'l' || def.inputs[i] == 'h') && c.has(i)) return;
  fail(c.op.name(), ": At least one of 'min' or 'max' must not be None");
}

// Among integers: bounds, what is chosen, powers and factors are numbers that the dtype holds; others wrap round.
void check_numbers_fit(const Call& c, const PointwiseDefinition& def, Dtype common) {
  if (def.requirements & (kBound | kCondition | kNaturalPower))
    for (int i = 0; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::scalar) check_fits(c.args[i].scalar_, common);
  for (int i = def.input_count; i < def.input_count + def.scalar_count; ++i)
    if (c.args[i].kind == Kind::scalar && (def.requirements & kFittingFactor || name_of_argument(c, i) == "value"))
      check_fits(c.args[i].scalar_, common);
}

// An attribute of a formula that computes with real numbers has no imaginary part.
void check_real_attributes(const Call& c, const PointwiseDefinition& def, Dtype common) {
  if (is_complex(common)) return;
  for (int i = def.input_count; i < def.input_count + def.scalar_count; ++i)
    if (const Value& v = c.args[i]; v.kind == Kind::scalar && v.scalar_.kind == Scalar::Kind::complex)
      check(v.scalar_.imag == 0, c.op.name(), ": ", name_of_argument(c, i), " has an imaginary part, ", v.scalar_.imag,
            "j, but ", name_of(common), " is real: the value cannot be converted to type float without overflow");
}

// What the operator's file says that it requires and refuses.
void check_requirements(const Call& c, const PointwiseDefinition& def, Dtype common) {
  if (def.refuses_bool)
    for (int i = 0; i < def.input_count; ++i) check(!is_bool(c.args[i]), def.name, ": ", def.refuses_bool);
  if (!is_differentiable(common) && common != Dtype::b8) check_numbers_fit(c, def, common);
  if (!def.requirements) return;
  const Value& first = c.args[0];
  const Dtype dtype = first.kind == Kind::tensor ? first.tensor_->dtype : common;
  if (def.requirements & kFittingFactor) check_factor(c, def.input_count, common);
  if (def.requirements & kOneDtype) check_one_dtype(c, def);
  if (def.requirements & kFloating)
    check_implemented(first.kind != Kind::tensor || is_differentiable(dtype), c.op.name(), ": \"", def.name,
                      "_kernel\" not implemented for '", name_of(dtype), "'");
  if (def.requirements & kOneDtype)  // numbers, too
    check(common == dtype, c.op.name(), ": expected numbers that dtype ", name_of(dtype),
          " holds; with these the result would be of dtype ", name_of(common));
  if (def.requirements & kBound) check_bound(c, def);
  if (def.requirements & kCondition)
    check(first.kind != Kind::tensor || dtype == Dtype::b8 || dtype == Dtype::u8, c.op.name(), ": ", def.name,
          " expected ", name_of_argument(c, 0), " to be a boolean tensor, but got a tensor with dtype ",
          name_of(dtype));
  if (const Value& power = c.args[1]; def.requirements & kNaturalPower && first.kind == Kind::tensor &&
                                      power.kind == Kind::scalar && (is_integral(dtype) || dtype == Dtype::b8))
    check(!power.scalar_.is_integral() || power.scalar_.integer >= 0, def.name,
          ": Integers to negative integer powers are not allowed. The ", name_of_argument(c, 1), " is ",
          power.scalar_.integer);
  if (def.requirements & kFraction) {
    const auto is_whole = [&](int i) {
      return c.args[i].kind == Kind::tensor ? !is_differentiable(c.args[i].tensor_->dtype)
                                            : c.args[i].scalar_.is_integral();
    };
    check(!is_whole(1) || !is_whole(2), "Integer division with ", def.name, " is no longer supported; convert ",
          name_of_argument(c, 1), " or ", name_of_argument(c, 2), " to a floating-point dtype");
  }
  if (def.requirements & kRealInPlace)
    check(!c.op.inplace || !is_complex(common), c.op.name(), ": In-place ", def.name,
          " is not supported for complex tensors.");
}

}  // namespace

void read_attributes(const Call& c, Dtype dtype, ScalarAttribute* to) {
  const PointwiseDefinition& def = *c.op.pointwise;
  for (int k = 0; k < def.scalar_count; ++k) {
    const Value& v = c.args[def.input_count + k];
    if (!v.is_none())
      to[k] = {v.scalar_.real, v.scalar_.imag, v.scalar_.integer};
    else
      to[k] = {std::isinf(def.missing[k]) ? std::copysign(largest(dtype), def.missing[k]) : std::nan(""), 0, 0};
  }
}

Scalar missing_bound(char letter) {
  Scalar s(letter == 'l' ? -INFINITY : INFINITY);
  s.integer = letter == 'l' ? INT64_MIN : INT64_MAX;
  return s;
}

Scalar rounded(const Scalar& number, Dtype half) {
  const auto value = static_cast<float>(number.real);
  return Scalar(
      static_cast<double>(half == Dtype::f16 ? static_cast<float>(Half(value)) : static_cast<float>(BFloat16(value))));
}

Compute compute_of(Dtype d) {
  switch (d) {
    case Dtype::f64: return Compute::f64;
    case Dtype::u64: return Compute::u64;
    case Dtype::b8: return Compute::b8;
    case Dtype::c32:
    case Dtype::c64: return Compute::c64;
    case Dtype::c128: return Compute::c128;
    default: return is_floating(d) ? Compute::f32 : Compute::i64;
  }
}

Dtype dtype_of_compute(Compute c) {
  static constexpr Dtype table[kComputes] = {Dtype::f32, Dtype::f64, Dtype::i64, Dtype::u64,
                                             Dtype::b8,  Dtype::c64, Dtype::c128};
  return table[static_cast<int>(c)];
}

Dims result_strides(DimsView sizes, std::span<const Dims> operands) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  const auto order = [&](int64_t a, int64_t b) {
    for (const Dims& strides : operands) {
      if (strides[a] == 0 || strides[b] == 0) continue;
      if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  Dims perm(rank, 0);  // innermost first
  for (int64_t d = 0; d < rank; ++d) perm[d] = rank - 1 - d;
  for (int64_t i = 1; i < rank; ++i) {
    int64_t current = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int swap = order(perm[j], perm[current]);
      if (swap > 0)
        std::swap(perm[j], perm[current]), current = j;
      else if (swap < 0)
        break;
    }
  }
  bool reversed = true;
  for (int64_t d = 0; d < rank; ++d) reversed &= perm[d] == rank - 1 - d;
  if (reversed) return contiguous_strides(sizes);
  Dims out(rank, 0);
  int64_t step = 1;
  for (int64_t d : perm) {
    out[d] = step;
    step = wrapped_product(step, sizes[d]);  // by zero, too, where there is nothing
  }
  return out;
}

void store_number(const Scalar& s, Compute c, char* to) {
  const auto put = [&](auto v) { std::memcpy(to, &v, sizeof v); };
  switch (c) {
    case Compute::f32: return put(s.to<float>());
    case Compute::f64: return put(s.to<double>());
    case Compute::i64:
    case Compute::u64: return put(s.integer);
    case Compute::b8: return put(s.to<bool>());
    case Compute::c64: return put(s.to<complex64>());
    default: return put(s.to<complex128>());
  }
}

Loop pick_loop(const Operator& op, const Loop* loops, Dtype common, Compute& compute) {
  compute = compute_of(common);
  Loop loop = loops[static_cast<int>(compute)];
  if (!loop && compute == Compute::u64) loop = loops[static_cast<int>(compute = Compute::i64)];
  if (!loop) unsupported(op, common);
  return loop;
}

Dtype loop_output(Promotion promotion, Compute compute) {
  const Dtype d = dtype_of_compute(compute);
  return promotion == Promotion::to_bool ? Dtype::b8 : promotion == Promotion::to_real ? to_real(d) : d;
}

// Whether a bound is a 0-d tensor beside one that is a number: then both are numbers, and the input decides the dtype.
bool serves_as_number(const Call& c, const PointwiseDefinition& def, int i) {
  if (!(def.requirements & kBound) || i == 0 || c.args[i].tensor_->dim()) return false;
  const Value& other = c.args[3 - i];
  return other.kind != Kind::tensor && !other.is_none();
}
Scalar number_of_kind(Dtype dtype) {
  if (is_complex(dtype)) return Scalar(std::complex<double>());
  return dtype == Dtype::b8 ? Scalar(false) : is_floating(dtype) ? Scalar(0.0) : Scalar(int64_t{0});
}

// The operands' strides as PyTorch has them on the CPU, where it first converts an operand of another dtype: one with
// gaps, or whose elements share memory, is dense then, and has a say in the order of the dimensions. False: nothing
// changes.
bool strides_when_converted(const Call& c, const PointwisePlan& plan, Dims* converted) {
  const PointwiseDefinition& def = *c.op.pointwise;
  bool some = false;
  for (int i = 0; i < def.input_count; ++i) {
    if (c.args[i].kind != Kind::tensor || def.inputs[i] == 'b') continue;
    const TensorImpl& given = *c.args[i].tensor_;
    if (given.dtype == plan.common || given.dim() == 0 || is_dense(given.sizes, given.strides)) continue;
    if (!some) std::copy_n(plan.strides, def.input_count, converted);
    some = true;
    const Dims dense = dense_strides_like(given.sizes, given.strides);
    const int64_t lead = plan.result.sizes.size() - given.dim();
    for (int64_t d = 0; d < given.dim(); ++d)
      if (given.sizes[d] == plan.result.sizes[lead + d]) converted[i][lead + d] = dense[d];
  }
  return some;
}

bool lies_as(DimsView sizes, DimsView strides, const Dims& wanted) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && strides[d] != wanted[d]) return false;
  return true;
}

// The strides of a result whose operands are all of its shape: contiguous or channels_last where all of them are, and
// so of nothing always; else theirs where these are the same and dense. Elsewhere the order of theirs decides. It is
// seen in dimensions of length one, whose strides lead nowhere. A number is an operand without a shape, but for a
// bound, a power, or the weight of lerp.
Dims strides_like(const Call& c, DimsView sizes, std::span<const Dims> operands) {
  const PointwiseDefinition& def = *c.op.pointwise;
  const Dims* first = nullptr;
  bool contiguous = true, channels_last = sizes.size() == 4, dense = true;
  const Dims images = channels_last ? channels_last_strides(sizes) : Dims();
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (v.kind == Kind::tensor ? !(v.tensor_->sizes == sizes)
                               : !v.is_none() && !(def.requirements & (kBound | kNaturalPower | kFloating)))
      return result_strides(sizes, operands);
    if (v.kind != Kind::tensor) continue;
    const Dims& own = operands[i];
    first = first ? first : &own;
    contiguous &= is_contiguous(sizes, own);
    channels_last = channels_last && lies_as(sizes, own, images);
    dense &= own == *first && is_dense(sizes, own);
  }
  if (contiguous) return contiguous_strides(sizes);
  return channels_last ? images : dense ? *first : result_strides(sizes, operands);
}

void plan_pointwise(const Call& c, PointwisePlan& plan) {
  const PointwiseDefinition& def = *c.op.pointwise;
  const char* who = c.op.name().c_str();
  ResultType type;
  Dims& sizes = plan.result.sizes;
  Device& device = plan.result.device;
  bool sized = false, placed = false;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (v.kind == Kind::tensor) {
      if (def.inputs[i] != 'b')
        serves_as_number(c, def, i) ? type.add(number_of_kind(v.tensor_->dtype)) : type.add(*v.tensor_);
      sizes = sized ? broadcast(who, sizes, v.tensor_->sizes) : v.tensor_->sizes;
      sized = true;
      const Device here = v.tensor_->storage->device;
      if (v.tensor_->dim() > 0 || !here.is_cpu()) {
        check(!placed || device == here, who,
              ": Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
              here, "!");
        device = here;
        placed = true;
      }
    } else if (def.inputs[i] != 'b' && !v.is_none()) {
      type.add(v.scalar_);
    }
  }
  Dtype common = type.result();
  const bool has_integers = c.op.loops->forward[static_cast<int>(Compute::i64)];
  if (!is_differentiable(common) &&
      (def.promotion == Promotion::to_float || (def.promotion == Promotion::to_real && !has_integers)))
    common = default_dtype();
  if (common == Dtype::b8 && def.inputs[0] == 'n') common = Dtype::i64;
  check_requirements(c, def, common);
  check_real_attributes(c, def, common);
  if (c.op.inplace && !c.op.loops->forward[static_cast<int>(compute_of(common))]) check_memory_in_place(c, def);
  pick_loop(c.op, c.op.loops->forward, common, plan.compute);
  plan.common = common;
  plan.result.dtype = result_dtype(def.promotion, common);
  for (int i = 0; i < def.input_count; ++i)
    plan.strides[i] = c.args[i].kind == Kind::tensor ? expanded_strides(who, Tensor(c.args[i].tensor_), sizes)
                                                     : Dims(sizes.size(), 0);
  if (!c.op.inplace) {
    Dims converted[kMaxPointwiseInputs];
    const bool some = device.is_cpu() && strides_when_converted(c, plan, converted);
    const bool plain = def.requirements & kNaturalPower && c.args[0].kind != Kind::tensor;  // number ** tensor
    plan.result.strides =
        plain ? contiguous_strides(sizes) : strides_like(c, sizes, {some ? converted : plan.strides, def.input_count});
    return;
  }
  const TensorImpl& target = *c.args[0].tensor_;
  check(target.sizes == sizes, who, ": output with shape ", list(target.sizes), " doesn't match the broadcast shape ",
        list(sizes));
  check_cast(who, plan.result.dtype, target.dtype);
}

bool counts_beside_numbers(const TensorImpl& t, const PointwiseDefinition& def) {
  if (def.requirements & (kBound | kNaturalPower | kFloating)) return false;
  int64_t step = 1;
  for (int64_t d = t.dim(); --d >= 0; step *= t.sizes[d])
    if (t.strides[d] != step) return true;
  return false;
}

void infer_pointwise(Call& c) {
  PointwisePlan plan;
  plan_pointwise(c, plan);
  c.promise(std::move(plan.result));
}

}  // namespace cresset
