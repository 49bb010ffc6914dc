// Pointwise operators: promotion, broadcasting and the choice of loop. Note [Blocks] is in tensor/blocks.h.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/in_layout.h"
#include "tensor/blocks.h"

namespace cresset {

void (*launch_pointwise)(const PointwiseLaunch&) = nullptr;
void (*launch_dense)(const DenseLaunch&) = nullptr;

static double largest(Dtype d) {
  switch (to_real(d)) {
    case Dtype::f16: return 65504;
    case Dtype::bf16: return 0x1.fep127;
    case Dtype::f64: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();
  }
}

void read_attributes(const Call& c, Dtype dtype, ScalarAttribute* to) {
  const PointwiseDefinition& def = *c.op.pointwise;
  for (int k = 0; k < def.scalar_count; ++k) {
    const Value& v = c.args[def.input_count + k];
    if (!v.is_none()) to[k] = {v.scalar_.real, v.scalar_.imag, v.scalar_.integer};
    else to[k] = {std::isinf(def.missing[k]) ? std::copysign(largest(dtype), def.missing[k]) : std::nan(""), 0, 0};
  }
}

Scalar missing_bound(char letter) {
  Scalar s(letter == 'l' ? -INFINITY : INFINITY);
  s.integer = letter == 'l' ? INT64_MIN : INT64_MAX;
  return s;
}

// A number among halves is a half: bfloat16(0.1) == 0.1. Only what multiplies or divides from the right, and the weight of lerp, keeps its precision.
bool is_rounded(const PointwiseDefinition& def, int input, Dtype common) {
  if (common != Dtype::f16 && common != Dtype::bf16) return false;
  const std::string_view name = def.name;
  return !(input == 1 && (name == "mul" || name == "div" || name == "div_trunc" || name == "div_floor" || name == "floor_divide")) && name != "lerp";
}
Scalar rounded(const Scalar& number, Dtype half) {
  const auto value = static_cast<float>(number.real);
  return Scalar(static_cast<double>(half == Dtype::f16 ? static_cast<float>(Half(value)) : static_cast<float>(BFloat16(value))));
}

Compute compute_of(Dtype d) {
  switch (d) {
    case Dtype::f64: return Compute::f64;
    case Dtype::u64: return Compute::u64;
    case Dtype::b8: return Compute::b8;
    case Dtype::c32: case Dtype::c64: return Compute::c64;
    case Dtype::c128: return Compute::c128;
    default: return is_floating(d) ? Compute::f32 : Compute::i64;
  }
}

Dtype dtype_of_compute(Compute c) {
  static constexpr Dtype table[kComputes] = {Dtype::f32, Dtype::f64, Dtype::i64, Dtype::u64, Dtype::b8, Dtype::c64, Dtype::c128};
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
      if (swap > 0) std::swap(perm[j], perm[current]), current = j;
      else if (swap < 0) break;
    }
  }
  Dims out(rank, 0);
  int64_t step = 1;
  for (int64_t d : perm) {
    out[d] = step;
    step = wrapped_product(step, std::max<int64_t>(sizes[d], 1));
  }
  return out;
}

namespace {

// Whether a call of an operator on the CPU may read t: a tensor there, or one whose single element was brought along.
bool is_here(const Tensor& t) { return !has_backend(t.device()); }

struct LoopContext {
  Loop loop;
  const ScalarAttribute* attributes;
  int divisor = 0;  // the operand that must not be zero; 0: none
  std::atomic<bool>* divides_by_zero = nullptr;
};

void run_loop(char* const* p, const void* context, int64_t n) {
  const auto* c = static_cast<const LoopContext*>(context);
  if (c->divisor) {
    const auto* divisor = reinterpret_cast<const int64_t*>(p[c->divisor]);
    if (std::find(divisor, divisor + n, 0) != divisor + n) return c->divides_by_zero->store(true, std::memory_order_relaxed);
  }
  c->loop(p, c->attributes, n);
}

// A number as one element of the compute type.
void store_number(const Scalar& s, Compute c, char* to) {
  const auto put = [&](auto v) { std::memcpy(to, &v, sizeof v); };
  switch (c) {
    case Compute::f32: return put(s.to<float>());
    case Compute::f64: return put(s.to<double>());
    case Compute::i64: case Compute::u64: return put(s.integer);
    case Compute::b8: return put(s.to<bool>());
    case Compute::c64: return put(s.to<complex64>());
    default: return put(s.to<complex128>());
  }
}

// What is left of a whole number in a narrower type.
int64_t wrapped(int64_t v, Dtype d) {
  switch (d) {
    case Dtype::i8: return static_cast<int8_t>(v);
    case Dtype::u8: return static_cast<uint8_t>(v);
    case Dtype::i16: return static_cast<int16_t>(v);
    case Dtype::u16: return static_cast<uint16_t>(v);
    case Dtype::i32: return static_cast<int32_t>(v);
    case Dtype::u32: return static_cast<uint32_t>(v);
    default: return v;
  }
}

[[noreturn]] void unsupported(const Operator& op, Dtype d) {
  fail(ErrorKind::not_implemented, op.name(), ": \"", op.name(), "_cpu\" not implemented for '", name_of(d), "'");
}

Loop pick_loop(const Operator& op, const Loop* loops, Dtype common, Compute& compute) {
  compute = compute_of(common);
  Loop loop = loops[static_cast<int>(compute)];
  if (!loop && compute == Compute::u64) loop = loops[static_cast<int>(compute = Compute::i64)];
  if (!loop) unsupported(op, common);
  return loop;
}

Dtype result_dtype(Promotion promotion, Dtype common) {
  switch (promotion) {
    case Promotion::to_bool: return Dtype::b8;
    case Promotion::to_real: return to_real(common);
    default: return common;
  }
}
// What the loop writes: bool, the real part's type, or the compute type.
Dtype loop_output(Promotion promotion, Compute compute) {
  const Dtype d = dtype_of_compute(compute);
  return promotion == Promotion::to_bool ? Dtype::b8 : promotion == Promotion::to_real ? to_real(d) : d;
}

// ---- what single operators refuse

bool is_bool(const Value& v) { return v.kind == Kind::tensor ? v.tensor_->dtype == Dtype::b8 : v.kind == Kind::scalar && v.scalar_.kind == Scalar::Kind::boolean; }

void refuse_bool_subtraction(const Call& c, Dtype) {
  check(!is_bool(c.args[0]) && !is_bool(c.args[1]), "sub: Subtraction, the `-` operator, with a bool tensor is not supported. Use the `^` or `logical_xor()` operator instead, or `~` to invert a mask");
}
void refuse_bool_negation(const Call& c, Dtype) {
  check(!is_bool(c.args[0]), "neg: Negation, the `-` operator, on a bool tensor is not supported. Use the `~` or `logical_not()` operator to invert a mask");
}
void check_alpha(const Call& c, Dtype common) {
  const Scalar::Kind kind = c.args[2].scalar_.kind;
  check(common == Dtype::b8 || kind != Scalar::Kind::boolean, c.op.name(), ": Boolean alpha only supported for Boolean results; these are ", name_of(common));
  check(is_differentiable(common) || (kind != Scalar::Kind::real && kind != Scalar::Kind::complex), c.op.name(), ": For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(common) || kind != Scalar::Kind::complex, c.op.name(), ": For non-complex input tensors, argument alpha must not be a complex number.");
}
void check_sub(const Call& c, Dtype common) {
  refuse_bool_subtraction(c, common);
  check_alpha(c, common);
}
void refuse_negative_exponent(const Call& c, Dtype) {
  const Value &base = c.args[0], &exponent = c.args[1];
  if (base.kind != Kind::tensor || exponent.kind != Kind::scalar || !is_integral(base.tensor_->dtype)) return;
  check(!exponent.scalar_.is_integral() || exponent.scalar_.integer >= 0, "pow: Integers to negative integer powers are not allowed, the exponent is ", exponent.scalar_.integer);
}
void require_bound(const Call& c, Dtype) {
  check(!c.args[1].is_none() || !c.args[2].is_none(), c.op.name(), ": At least one of 'min' or 'max' must not be None");
}
// All tensors have one dtype, the first one's.
void require_one_dtype(const Call& c, Dtype) {
  const TensorImpl* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    const Value& v = c.args[i];
    if (v.kind != Kind::tensor) continue;
    if (!first) first = v.tensor_;
    check(v.tensor_->dtype == first->dtype, c.op.name(), ": expected dtype ", name_of(first->dtype), " for all operands but got dtype ", name_of(v.tensor_->dtype), "; it is not implemented for tensors with different dtypes");
  }
}
void check_lerp(const Call& c, Dtype common) {
  require_one_dtype(c, common);
  const Value& start = c.args[0];
  check_implemented(start.kind != Kind::tensor || is_differentiable(start.tensor_->dtype), c.op.name(), ": \"lerp_kernel\" not implemented for '", name_of(start.kind == Kind::tensor ? start.tensor_->dtype : common), "'");
}
void refuse_complex_in_place(const Call& c, Dtype common) {
  check(!c.op.inplace || !is_complex(common), "abs_: In-place abs is not supported for complex tensors.");
}
void refuse_integer_division(const Call& c, Dtype) {
  const auto whole = [&](int i) { return c.args[i].kind == Kind::tensor ? !is_differentiable(c.args[i].tensor_->dtype) : c.args[i].scalar_.is_integral(); };
  check(!whole(1) || !whole(2), c.op.name(), ": Integer division with addcdiv is no longer supported; convert tensor1 or tensor2 to a floating-point dtype");
}
void refuse_decimals_of_integers(const Call& c, Dtype common) {
  check_implemented(is_floating(common) || c.args[1].scalar_.integer == 0, c.op.name(), ": \"round_cpu\" not implemented for '", name_of(common), "' with decimals=", c.args[1].scalar_.integer);
}
void require_condition(const Call& c, Dtype) {
  const Value& v = c.args[0];
  check(v.kind != Kind::tensor || v.tensor_->dtype == Dtype::b8 || v.tensor_->dtype == Dtype::u8, c.op.name(), ": where expected condition to be a boolean tensor, but got a tensor with dtype ", name_of(v.tensor_->dtype));
}

using Refusal = void (*)(const Call&, Dtype common);
Refusal refusal_of(const PointwiseDefinition* definition) {
  static const auto* table = [] {
    static const std::pair<std::string_view, Refusal> named[] = {
        {"add", check_alpha}, {"sub", check_sub}, {"neg", refuse_bool_negation}, {"lerp", check_lerp}, {"heaviside", require_one_dtype}, {"abs", refuse_complex_in_place},
        {"pow", refuse_negative_exponent}, {"clamp", require_bound}, {"where", require_condition}, {"addcdiv", refuse_integer_division}, {"round", refuse_decimals_of_integers}};
    auto* found = new std::vector<std::pair<const PointwiseDefinition*, Refusal>>;
    for (int i = 0; i < kPointwiseCount; ++i)
      for (const auto& [name, refusal] : named)
        if (name == kPointwiseDefinitions[i].name) found->push_back({&kPointwiseDefinitions[i], refusal});
    return found;
  }();
  for (const auto& [of, refusal] : *table)
    if (of == definition) return refusal;
  return nullptr;
}

// The common call: float tensors of one shape, all contiguous, perhaps with a number. Returns false when the call is not that.
bool execute_plain(Call& c, const PointwiseDefinition& def, const ScalarAttribute* attributes) {
  const TensorImpl* first = nullptr;
  int missing = 0;
  for (int i = 0; i < def.scalar_count; ++i)
    if (const Scalar::Kind kind = c.args[def.input_count + i].scalar_.kind; kind == Scalar::Kind::complex || kind == Scalar::Kind::boolean) return false;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (def.inputs[i] == 'b') return false;
    if (v.kind != Kind::tensor) {
      if (v.kind == Kind::none && ++missing == 2) return false;
      if (v.kind == Kind::scalar && (v.scalar_.kind == Scalar::Kind::complex || v.scalar_.kind == Scalar::Kind::boolean)) return false;
      continue;
    }
    const TensorImpl* t = v.tensor_;
    if (t->dtype != Dtype::f32 || !t->contiguous || t->wrapped_number || !t->storage->device.is_cpu()) return false;
    if (!first) first = t;
    else if (!(t->sizes == first->sizes)) return false;
  }
  if (!first) return false;
  const Loop loop = c.op.loops->forward[static_cast<int>(Compute::f32)];
  if (!loop) return false;
  const int64_t n = first->numel;
  const Dtype out_dtype = def.promotion == Promotion::to_bool ? Dtype::b8 : Dtype::f32;
  if (c.op.inplace) {
    if (out_dtype != Dtype::f32) return false;
    c.outputs.clear();
    Tensor target = c.tensor(0);
    if (target.get() != first) return false;
    for (int i = 1; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::tensor && c.args[i].tensor_ != first && c.args[i].tensor_->storage->meets(*first->storage)) return false;
    c.give(std::move(target));
  } else if (c.given_out) {
    const Tensor& o = c.outputs[0];
    if (o.dtype() != out_dtype || !o.is_contiguous() || !(o.sizes() == first->sizes) || !o.device().is_cpu()) return false;
    for (int i = 0; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::tensor && c.args[i].tensor_->storage->meets(*o.storage())) return false;
  } else {
    c.give(empty(first->sizes, out_dtype));
  }
  char* p[1 + kMaxPointwiseInputs];
  p[0] = c.outputs[0].bytes();
  alignas(64) float numbers[3][kBlock];
  int used = 0;
  for (int i = 0; i < def.input_count; ++i) {
    if (c.args[i].kind == Kind::tensor) {
      p[1 + i] = c.args[i].tensor_->data();
    } else {
      std::fill(numbers[used], numbers[used] + std::min(n, kBlock), static_cast<float>((c.args[i].is_none() ? missing_bound(def.inputs[i]) : c.args[i].scalar_).real));
      p[1 + i] = reinterpret_cast<char*>(numbers[used++]);
    }
  }
  if (n <= kBlock || (used == 0 && n < 2 * kParallelGrain)) {
    loop(p, attributes, n);
    return true;
  }
  const int64_t out_size = size_of(out_dtype);
  LongWork work(n);
  const bool streams = n * out_size >= kStreamedBytes && !c.op.inplace;
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    char* q[1 + kMaxPointwiseInputs];
    alignas(64) char buffer[kStreamedBlock * 4];
    const int64_t block = streams ? kStreamedBlock : used > 0 ? kBlock : end - begin;
    for (int64_t at = begin, m; at < end; at += m) {
      m = std::min(block, end - at);
      if (const int64_t first = streams ? until_line(p[0] + at * out_size, out_size) : 0; first > 0) m = std::min(m, first);
      q[0] = streams ? buffer : p[0] + at * out_size;
      for (int i = 0; i < def.input_count; ++i) q[1 + i] = p[1 + i] + (c.args[i].kind == Kind::tensor ? at * 4 : 0);
      loop(q, attributes, m);
      if (streams) stream(p[0] + at * out_size, buffer, m * out_size);
    }
    if (streams) end_stream();
  });
  return true;
}

// The common call on a device: floating-point tensors of one dtype and shape, all contiguous, perhaps with a number.
bool execute_plain_on_device(Call& c, const PointwiseDefinition& def, const TensorImpl* first) {
  const Dtype dtype = first->dtype;
  const Device device = first->storage->device;
  const Compute compute = compute_of(dtype);
  if (!is_floating(dtype) || !c.op.loops->forward[static_cast<int>(compute)]) return false;
  DenseLaunch launch{c.op, -1, compute, first->numel, 1 + def.input_count, 0, {}, {}, nullptr, device};
  alignas(16) char numbers[kMaxPointwiseInputs][16];
  int missing = 0;
  for (int i = 0; i < def.scalar_count; ++i)
    if (const Scalar::Kind kind = c.args[def.input_count + i].scalar_.kind; kind == Scalar::Kind::complex || kind == Scalar::Kind::boolean) return false;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (def.inputs[i] == 'b') return false;
    launch.dtypes[1 + i] = dtype;
    if (v.kind == Kind::tensor) {
      const TensorImpl* t = v.tensor_;
      if (t->dtype != dtype || !t->contiguous || !(t->storage->device == device) || (t != first && !(t->sizes == first->sizes))) return false;
      launch.data[1 + i] = t->data();
      continue;
    }
    if (v.kind == Kind::none && ++missing == 2) return false;
    if (v.kind == Kind::scalar && (v.scalar_.kind == Scalar::Kind::complex || v.scalar_.kind == Scalar::Kind::boolean)) return false;
    const Scalar number = v.is_none() ? missing_bound(def.inputs[i]) : v.scalar_;
    store_number(is_rounded(def, i, dtype) ? rounded(number, dtype) : number, compute, numbers[i]);
    launch.data[1 + i] = numbers[i];
    launch.dtypes[1 + i] = dtype_of_compute(compute);
    launch.on_host |= 2u << i;
  }
  const Dtype out_dtype = def.promotion == Promotion::to_bool ? Dtype::b8 : dtype;
  if (c.op.inplace) {
    if (out_dtype != dtype || c.args[0].tensor_ != first) return false;
    for (int i = 1; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::tensor && c.args[i].tensor_ != first && c.args[i].tensor_->storage->meets(*first->storage)) return false;
    c.outputs.clear();
    c.give(c.tensor(0));
  } else if (c.given_out) {
    const Tensor& o = c.outputs[0];
    if (o.dtype() != out_dtype || !o.is_contiguous() || !(o.sizes() == first->sizes) || !(o.device() == device)) return false;
    for (int i = 0; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::tensor && c.args[i].tensor_->storage->meets(*o.storage())) return false;
  } else {
    c.give(empty(first->sizes, out_dtype, device));
  }
  ScalarAttribute attributes[kMaxArguments];
  read_attributes(c, dtype, attributes);
  launch.attributes = attributes;
  launch.data[0] = c.outputs[0].bytes();
  launch.dtypes[0] = out_dtype;
  launch_dense(launch);
  return true;
}

}  // namespace

void execute_pointwise(Call& c) {
  const PointwiseDefinition& def = *c.op.pointwise;
  const char* who = c.op.name().c_str();
  for (int i = 0; i < def.input_count; ++i) {
    if (c.args[i].kind != Kind::tensor) continue;
    if (has_backend(c.args[i].tensor_->storage->device) && execute_plain_on_device(c, def, c.args[i].tensor_)) return;
    break;
  }
  ScalarAttribute attributes[kMaxArguments];
  read_attributes(c, Dtype::f32, attributes);
  if (execute_plain(c, def, attributes)) return;

  ResultType type;
  Dims sizes;
  bool sized = false, placed = false;
  Device device;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (v.kind == Kind::tensor) {
      if (def.inputs[i] != 'b') type.add(*v.tensor_);
      sizes = sized ? broadcast(who, sizes, v.tensor_->sizes) : v.tensor_->sizes;
      sized = true;
      const Device here = v.tensor_->storage->device;
      if (v.tensor_->dim() > 0 || !here.is_cpu()) {
        check(!placed || device == here, who, ": Expected all tensors to be on the same device, but found at least two devices, ", device, " and ", here, "!");
        device = here;
        placed = true;
      }
    } else if (def.inputs[i] != 'b' && !v.is_none()) {
      type.add(v.scalar_);
    }
  }
  Dtype common = type.result();
  const bool has_integers = c.op.loops->forward[static_cast<int>(Compute::i64)];
  if (!is_differentiable(common) && (def.promotion == Promotion::to_float || (def.promotion == Promotion::to_real && !has_integers))) common = default_dtype();
  if (common == Dtype::b8 && def.inputs[0] == 'n') common = Dtype::i64;
  if (common != Dtype::f32) read_attributes(c, common, attributes);
  if (const Refusal refusal = refusal_of(&def)) refusal(c, common);
  Compute compute;
  const Loop loop = pick_loop(c.op, c.op.loops->forward, common, compute);
  const Dtype loop_dtype = dtype_of_compute(compute), out_dtype = result_dtype(def.promotion, common);

  // Loops over narrow integers compute in int64, but their operands are numbers of the common dtype: -4 is 252 in uint8. Comparisons and bounds
  // take a number for what it is.
  const bool wraps = compute == Compute::i64 && size_of(common) < 8 && def.promotion != Promotion::to_bool;
  Operand operands[1 + kMaxPointwiseInputs];
  alignas(16) char numbers[kMaxPointwiseInputs][16];
  Tensor converted[kMaxPointwiseInputs];
  Dims strides[kMaxPointwiseInputs];
  int tensors = 0;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    const Dtype wanted = def.inputs[i] == 'b' ? Dtype::b8 : loop_dtype;
    const bool wraps_this = wraps && wanted == loop_dtype && def.inputs[i] != 'l' && def.inputs[i] != 'h';
    const bool rounds_this = wanted == loop_dtype && is_rounded(def, i, common);
    if (v.kind == Kind::tensor) {
      Tensor t(v.tensor_);
      const bool is_number = t.dim() == 0 && t.dtype() != common && (wraps_this || rounds_this);
      if ((is_number && has_backend(t.device())) || (t.dim() > 0 && is_integral(t.dtype()) && size_of(t.dtype()) > 1 && (common == Dtype::f16 || common == Dtype::bf16))) {
        converted[i] = empty_like_layout(t, common);  // its value is not known here, or it has many
        copy_into(converted[i], t);
        t = converted[i];
      }
      if (rounds_this && t.dim() == 0 && t.dtype() != common && t.device().is_cpu()) {
        store_number(rounded(item(t), common), compute, numbers[i]);
        operands[1 + i] = {numbers[i], wanted, wanted, Dims(sizes.size(), 0)};
        strides[tensors++] = operands[1 + i].strides;
        continue;
      }
      if (wraps_this && t.dim() == 0 && t.dtype() != common && t.device().is_cpu()) {
        const int64_t number = wrapped(item(t).integer, common);
        std::memcpy(numbers[i], &number, sizeof number);
        operands[1 + i] = {numbers[i], wanted, wanted, Dims(sizes.size(), 0)};
        strides[tensors++] = operands[1 + i].strides;
        continue;
      }
      operands[1 + i] = {t->data(), t.dtype(), wanted, expanded_strides(who, t, sizes)};
      strides[tensors++] = operands[1 + i].strides;
    } else {
      Scalar number = v.is_none() ? missing_bound(def.inputs[i]) : v.scalar_;
      if (wraps_this) number.integer = wrapped(number.integer, common);
      if (rounds_this) number = rounded(number, common);
      store_number(number, compute_of(wanted), numbers[i]);
      operands[1 + i] = {numbers[i], wanted, wanted, Dims(sizes.size(), 0)};
    }
  }
  TensorInfo info{sizes, {}, out_dtype, device};
  const auto& p = c.op;
  if (p.inplace) {
    Tensor target = c.tensor(0);
    check(target.sizes() == sizes, who, ": output with shape ", list(target.sizes()), " doesn't match the broadcast shape ", list(sizes));
    check(can_cast(out_dtype, target.dtype()), who, ": result type ", name_of(out_dtype), " can't be cast to the desired output type ", name_of(target.dtype()));
    c.outputs.clear();
    c.give(std::move(target));
  } else {
    info.strides = result_strides(sizes, {strides, static_cast<size_t>(tensors)});
    if (!c.given_out) c.give(empty(info));
  }
  const Tensor out = c.outputs[0];
  Tensor target = out;  // where to compute: aside, if the memory is walked in another order or has to be resized. Note [Writing what is read]
  if (p.inplace || c.given_out) {
    if (c.given_out) check_out(who, out, info);
    check_no_internal_overlap(who, out);
    // A result is a number of its own dtype first: 1 - 2 is 255 in uint8, whatever it is written to.
    if (c.given_out && out.dtype() != out_dtype) target = empty(TensorInfo{sizes, info.strides, out_dtype, out.device()});
    for (int i = 0; i < def.input_count; ++i) {
      if (!c.args[i].is_tensor()) continue;
      const Tensor t(c.args[i].tensor_);
      check_aliasing(who, out, t, Aliasing::whole);
      if (shares_memory(out, t) && (out.sizes() != sizes || overlap_of(out, t) == Overlap::unknown) && target.get() == out.get()) target = empty(TensorInfo{sizes, info.strides, out.dtype(), out.device()});
    }
    if (target.get() == out.get()) resize_out(who, out, info);
  }
  const auto finish = [&] {
    if (target.get() == out.get()) return;
    resize_out(who, out, info);
    copy_into(out, target);
  };
  if (device.is_meta() || out.is_meta()) return finish();
  check(out.device() == device, who, ": Expected all tensors to be on the same device, but found at least two devices, ", device, " and ", out.device(), "!");
  if (has_backend(device)) {
    operands[0] = {target->data(), target.dtype(), loop_output(def.promotion, compute), target.strides()};
    uint32_t on_host = 0;
    for (int i = 0; i < def.input_count; ++i)
      if (!c.args[i].is_tensor() || is_here(c.tensor(i))) on_host |= 1u << (1 + i);
    launch_pointwise({c.op, -1, compute, sizes, operands, 1 + def.input_count, on_host, attributes, device});
    return finish();
  }
  LoopContext context{loop, attributes};
  std::atomic<bool> divides_by_zero = false;
  if (compute == Compute::i64 || compute == Compute::u64) {
    const std::string_view letters(def.inputs);
    if (const size_t at = letters.find('d'); at != letters.npos) {
      context.divisor = 1 + static_cast<int>(at), context.divides_by_zero = &divides_by_zero;
      if (p.inplace) target = empty(out.sizes(), out.dtype());  // an error leaves the operand as it was
    }
  }
  operands[0] = {target->data(), target.dtype(), loop_output(def.promotion, compute), target.strides()};
  {
    LongWork work(out.numel());
    run_blocks(sizes, operands, 1 + def.input_count, run_loop, &context, true);
  }
  check(!divides_by_zero, who, ": ZeroDivisionError: an element of the divisor is zero");
  finish();
}

// The common case on a device: everything floating-point, of one dtype and shape, contiguous. Undefined when it is not that.
static Tensor backward_on_device(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved, const ScalarAttribute* attributes) {
  const Dtype dtype = grad.dtype();
  const Compute compute = compute_of(dtype);
  if (!is_floating(dtype) || !grad.is_contiguous() || op.pointwise->promotion == Promotion::to_bool || !op.loops->backward[which][static_cast<int>(compute)]) return {};
  DenseLaunch launch{op, which, compute, grad.numel(), 2 + static_cast<int>(saved.size()), 0, {}, {}, attributes, grad.device()};
  launch.data[1] = grad.bytes();
  launch.dtypes[0] = launch.dtypes[1] = dtype;
  for (size_t i = 0; i < saved.size(); ++i) {
    const Tensor& t = saved[i];
    if ((t.dtype() != dtype && t.dtype() != Dtype::b8) || !t.is_contiguous() || !(t.device() == grad.device()) || !(t.sizes() == grad.sizes())) return {};
    launch.data[2 + i] = t.bytes();
    launch.dtypes[2 + i] = t.dtype();
  }
  Tensor out = empty(grad.sizes(), dtype, grad.device());
  launch.data[0] = out.bytes();
  launch_dense(launch);
  return out;
}

static Tensor backward_loop(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved, const ScalarAttribute* attributes) {
  if (has_backend(grad.device()))
    if (Tensor out = backward_on_device(op, which, grad, saved, attributes); out.defined()) return out;
  const char* who = op.node_name.c_str();
  Dims sizes = grad.sizes();
  // 0-d operands follow the others, as in the forward pass.
  ResultType type;
  type.add(*grad);
  for (const Tensor& t : saved) {
    sizes = broadcast(who, sizes, t.sizes());
    if (t.dtype() != Dtype::b8) type.add(*t);
  }
  const Dtype common = type.result();
  Compute compute;
  const Loop loop = pick_loop(op, op.loops->backward[which], common, compute);
  const Dtype loop_dtype = dtype_of_compute(compute);
  TensorInfo info{sizes, {}, common, grad.device()};
  for (const Tensor& t : saved)
    if (has_backend(t.device())) info.device = t.device();
  Operand operands[kMaxOperands];
  Dims strides[kMaxOperands];
  int count = 1;
  const auto add = [&](const Tensor& t, Dtype wanted) {
    check(t.device() == info.device || (t.dim() == 0 && t.device().is_cpu()), who, ": Expected all tensors to be on the same device, but found at least two devices, ", info.device, " and ", t.device(), "!");
    operands[count] = {t->data(), t.dtype(), wanted, expanded_strides(who, t, sizes)};
    strides[count - 1] = operands[count].strides;
    ++count;
  };
  const Dtype output_dtype = loop_output(op.pointwise->promotion, compute);  // of the result, and so of its gradient
  add(grad, output_dtype);
  const uint8_t uses = op.pointwise->uses[which];
  int input = 0;
  for (const Tensor& t : saved) {
    while (input < op.pointwise->input_count && !(uses & (1 << input))) ++input;
    add(t, input == op.pointwise->input_count ? output_dtype : op.pointwise->inputs[input] == 'b' ? Dtype::b8 : loop_dtype);
    ++input;
  }
  info.strides = result_strides(sizes, {strides, static_cast<size_t>(count - 1)});
  Tensor out = empty(info);
  if (out.is_meta()) return out;
  operands[0] = {out->data(), common, loop_dtype, out.strides()};
  if (has_backend(info.device)) {
    uint32_t on_host = is_here(grad) ? 2 : 0;
    for (size_t i = 0; i < saved.size(); ++i)
      if (is_here(saved[i])) on_host |= 4u << i;
    launch_pointwise({op, which, compute, sizes, operands, count, on_host, attributes, info.device});
    return out;
  }
  LoopContext context{loop, attributes};
  LongWork work(out.numel());
  run_blocks(sizes, operands, count, run_loop, &context, true);
  return out;
}

Tensor pointwise_backward(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved, const ScalarAttribute* attributes) {
  bool laid_out = grad.storage()->layout.load(std::memory_order_relaxed);
  for (const Tensor& t : saved) laid_out |= t.storage()->layout.load(std::memory_order_relaxed) != nullptr;
  if (!laid_out) return backward_loop(op, which, grad, saved, attributes);
  Tensor operands[kMaxOperands] = {grad};
  for (size_t i = 0; i < saved.size(); ++i) operands[1 + i] = readable_bools(saved[i]);
  if (!lay_out({operands, saved.size() + 1}, true)) return backward_loop(op, which, grad, {operands + 1, saved.size()}, attributes);
  Tensor out = backward_loop(op, which, operands[0], {operands + 1, saved.size()}, attributes);
  hide_layout(out);
  return out;
}

}  // namespace cresset
