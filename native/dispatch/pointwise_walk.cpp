// The general walk: operands of any strides, broadcast and converted, and results that are given. Note [Blocks] is in
// tensor/blocks.h.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "dispatch/casting.h"
#include "dispatch/in_layout.h"
#include "dispatch/late.h"
#include "dispatch/pointwise_call.h"

namespace cresset {
namespace {

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
    if (std::find(divisor, divisor + n, 0) != divisor + n)
      return c->divides_by_zero->store(true, std::memory_order_relaxed);
  }
  c->loop(p, c->attributes, n);
}

// The operand that must not be zero in this computation; 0: none.
int divisor_of(const PointwiseDefinition& def, Compute compute) {
  if (compute != Compute::i64 && compute != Compute::u64) return 0;
  const std::string_view letters(def.inputs);
  const size_t at = letters.find('d');
  return at == letters.npos ? 0 : 1 + static_cast<int>(at);
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

// The inputs of a call as operands of its loop.
class Inputs {
 public:
  Inputs(const Call& c, PointwisePlan& plan)
      : call_(c), def_(*c.op.pointwise), plan_(plan), loop_dtype_(dtype_of_compute(plan.compute)) {
    // Loops over narrow integers compute in int64, but their operands are numbers of the common dtype: -4 is 252 in
    // uint8. Comparisons and bounds take a number for what it is.
    wraps_ = plan.compute == Compute::i64 && size_of(plan.common) < 8 && def_.promotion != Promotion::to_bool;
    for (int i = 0; i < def_.input_count; ++i) {
      if (c.args[i].kind == Kind::tensor)
        add_tensor(i, Tensor(c.args[i].tensor_));
      else
        add_number(i, c.args[i].is_none() ? missing_bound(def_.inputs[i]) : c.args[i].scalar_);
    }
  }
  Operand operands[1 + kMaxPointwiseInputs];  // the first is for the result
  uint32_t on_host = 0;                       // bit i: operand i is one element in host memory

 private:
  const Call& call_;
  const PointwiseDefinition& def_;
  PointwisePlan& plan_;
  const Dtype loop_dtype_;
  bool wraps_;
  Tensor converted_[kMaxPointwiseInputs];
  alignas(16) char numbers_[kMaxPointwiseInputs][16];

  Dtype wanted(int i) const { return def_.inputs[i] == 'b' ? Dtype::b8 : loop_dtype_; }
  bool is_wrapped(int i) const {
    return wraps_ && wanted(i) == loop_dtype_ && def_.inputs[i] != 'l' && def_.inputs[i] != 'h';
  }
  bool is_rounded(int i) const { return wanted(i) == loop_dtype_ && cresset::is_rounded(def_, i, plan_.common); }

  void add_number(int i, Scalar number) {
    if (is_wrapped(i)) number.integer = wrapped(number.integer, plan_.common);
    if (is_rounded(i)) number = rounded(number, plan_.common);
    store_number(number, compute_of(wanted(i)), numbers_[i]);
    operands[1 + i] = {numbers_[i], wanted(i), wanted(i), Dims(plan_.result.sizes.size(), 0)};
    on_host |= 2u << i;
  }

  void add_tensor(int i, Tensor t) {
    const Dtype common = plan_.common;
    const bool is_half = common == Dtype::f16 || common == Dtype::bf16;
    const bool is_number = t.dim() == 0 && t.dtype() != common && (is_wrapped(i) || is_rounded(i));
    if (is_number && t.device().is_cpu()) return add_number(i, item(t));
    if ((is_number && is_accelerator(t.device())) ||
        (t.dim() > 0 && is_integral(t.dtype()) && size_of(t.dtype()) > 1 && is_half)) {
      converted_[i] = empty_like_layout(t, common);  // its value is not known here, or it has many
      copy_into(converted_[i], t);
      t = converted_[i];
      plan_.strides[i] = expanded_strides(call_.op.name().c_str(), t, plan_.result.sizes);
    }
    operands[1 + i] = {t->data(), t.dtype(), wanted(i), std::move(plan_.strides[i])};
    if (!is_accelerator(t.device())) on_host |= 2u << i;
  }
};

// The dtype that an out= has to have: its own where any will do that the result can be cast to.
Dtype dtype_of_out(const Call& c, const PointwisePlan& plan, Dtype own) {
  const PointwiseDefinition& def = *c.op.pointwise;
  const Value* others = c.args + 1;
  if (def.exact & kOwnDtypeOfOne &&
      std::none_of(others, others + (def.input_count - 1), [](const Value& value) { return value.is_tensor(); }))
    return plan.result.dtype;
  if (!(def.exact & kOwnDtype)) return own;
  // The modulus of complex numbers is one of them in an out= that is complex; a real one is cast.
  if (is_complex(plan.common) && !is_complex(plan.result.dtype)) return is_complex(own) ? plan.common : own;
  return plan.result.dtype;
}

// Where to compute: in the result, or aside if its memory is walked in another order or has to be resized (Note
// [Writing what is read]), or if it `may_fail`: an error leaves the result as it was.
Tensor find_target(const Call& c, const PointwisePlan& plan, const Tensor& out, bool may_fail) {
  const TensorInfo& info = plan.result;
  const char* who = c.op.name().c_str();
  Tensor target = out;
  if (c.given_out) check_out(who, out, info);
  if (c.given_out) check_own_dtype(who, out, dtype_of_out(c, plan, out.dtype()));
  check_no_internal_overlap(who, out);
  // A result is a number of its own dtype first: 1 - 2 is 255 in uint8, whatever it is written to.
  if (c.given_out && out.dtype() != info.dtype)
    target = empty(TensorInfo{info.sizes, info.strides, info.dtype, out.device()});
  for (int i = 0; i < c.op.pointwise->input_count; ++i) {
    if (!c.args[i].is_tensor()) continue;
    const Tensor t(c.args[i].tensor_);
    check_aliasing(who, out, t, Aliasing::whole);
    check_kept_shape(who, out, t, info.sizes);
    if (shares_memory(out, t) && (out.sizes() != info.sizes || overlap_of(out, t) == Overlap::unknown) &&
        target.get() == out.get())
      target = empty(TensorInfo{info.sizes, info.strides, out.dtype(), out.device()});
  }
  if (target.get() != out.get()) return target;
  if (may_fail) return empty(TensorInfo{info.sizes, info.strides, out.dtype(), out.device()});
  resize_out(who, out, info);
  return out;
}

}  // namespace

void run_walk(Call& c, PointwisePlan& plan) {
  const PointwiseDefinition& def = *c.op.pointwise;
  const char* who = c.op.name().c_str();
  const TensorInfo& info = plan.result;
  if (c.op.inplace) {
    c.outputs.clear();
    c.give(c.tensor(0));
  } else if (!c.given_out) {
    c.give(empty(info));
  }
  const Tensor out = c.outputs[0];
  const bool computes = !info.device.is_meta() && !out.is_meta();
  const bool divides = computes && divisor_of(def, plan.compute) && backend_of(info.device).finds_zero_divisors();
  const Tensor target = c.op.inplace || c.given_out ? find_target(c, plan, out, divides) : out;
  if (computes) {
    check(out.device() == info.device, who,
          ": Expected all tensors to be on the same device, but found at least two devices, ", info.device, " and ",
          out.device(), "!");
    Inputs inputs(c, plan);
    ScalarAttribute attributes[kMaxArguments];
    read_attributes(c, plan.common, attributes);
    inputs.operands[0] = {target->data(), target.dtype(), loop_output(def.promotion, plan.compute), target.strides()};
    backend_of(info.device)
        .run(PointwiseLaunch{c.op, -1, plan.compute, info.sizes, inputs.operands, 1 + def.input_count, inputs.on_host,
                             attributes, info.device});
  }
  if (target.get() == out.get()) return;
  resize_out(who, out, info);
  copy_into(out, target);
}

// The loop over narrow integers as they lie, of which the operands are told; null where there is none, or where they
// are not all of the result's dtype. Of a number, which is stored in 64 bits, the low ones count.
static Loop narrow_loop(const PointwiseLaunch& l) {
  const Dtype dtype = l.operands[0].dtype;
  if (l.which >= 0 || l.compute != Compute::i64 || !is_integral(dtype) || size_of(dtype) > 4) return nullptr;
  const Loop loop = l.op.loops->narrow[size_of(dtype) / 2];
  for (int k = 1; loop && k < l.count; ++k) {
    const Operand& o = l.operands[k];
    const bool is_number = o.dtype == Dtype::i64 &&
                           std::all_of(o.strides.begin(), o.strides.end(), [](int64_t stride) { return stride == 0; });
    if (o.dtype != dtype && !is_number) return nullptr;
  }
  for (int k = 0; loop && k < l.count; ++k) l.operands[k].dtype = l.operands[k].loop_dtype = dtype;
  return loop;
}

void run_walk_on_cpu(const PointwiseLaunch& l) {
  const Loop narrow = narrow_loop(l);
  LoopContext context{narrow        ? narrow
                      : l.which < 0 ? l.op.loops->forward[static_cast<int>(l.compute)]
                                    : l.op.loops->backward[l.which][static_cast<int>(l.compute)],
                      l.attributes};
  std::atomic<bool> divides_by_zero = false;
  if (l.which < 0) context.divisor = divisor_of(*l.op.pointwise, l.compute), context.divides_by_zero = &divides_by_zero;
  {
    int64_t elements = 1;
    for (const int64_t s : l.sizes) elements *= s;
    LongWork work(elements);
    run_blocks(l.sizes, l.operands, l.count, run_loop, &context, true);
  }
  check(!divides_by_zero, l.op.name(), ": ZeroDivisionError: an element of the divisor is zero");
}

void execute_pointwise(Call& c) {
  if (run_plain(c)) return;
  PointwisePlan plan;
  plan_pointwise(c, plan);
  run_walk(c, plan);
}

// ---------------------------------------------------------------- backward

// The common case on a device: everything floating-point, of one dtype and shape, contiguous. Undefined when it is not
// that.
static Tensor backward_on_device(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                                 const ScalarAttribute* attributes) {
  const Dtype dtype = grad.dtype();
  const Compute compute = compute_of(dtype);
  if (!is_floating(dtype) || !grad.is_contiguous() || op.pointwise->promotion == Promotion::to_bool ||
      !op.loops->backward[which][static_cast<int>(compute)])
    return {};
  DenseLaunch launch{op, which, compute, grad.numel(), 2 + static_cast<int>(saved.size()),
                     0,  {},    {},      attributes,   grad.device()};
  launch.data[1] = grad.bytes();
  launch.dtypes[0] = launch.dtypes[1] = dtype;
  for (size_t i = 0; i < saved.size(); ++i) {
    const Tensor& t = saved[i];
    if ((t.dtype() != dtype && t.dtype() != Dtype::b8) || !t.is_contiguous() || !(t.device() == grad.device()) ||
        !(t.sizes() == grad.sizes()))
      return {};
    launch.data[2 + i] = t.bytes();
    launch.dtypes[2 + i] = t.dtype();
  }
  Tensor out = empty(grad.sizes(), dtype, grad.device());
  launch.data[0] = out.bytes();
  backend_of(grad.device()).run(launch);
  return out;
}

static Tensor backward_loop(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                            const ScalarAttribute* attributes) {
  if (is_accelerator(grad.device()))
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
  pick_loop(op, op.loops->backward[which], common, compute);
  const Dtype loop_dtype = dtype_of_compute(compute);
  TensorInfo info{sizes, {}, common, grad.device()};
  for (const Tensor& t : saved)
    if (is_accelerator(t.device())) info.device = t.device();
  Operand operands[kMaxOperands];
  Dims strides[kMaxOperands];
  int count = 1;
  const auto add = [&](const Tensor& t, Dtype wanted) {
    check(t.device() == info.device || (t.dim() == 0 && t.device().is_cpu()), who,
          ": Expected all tensors to be on the same device, but found at least two devices, ", info.device, " and ",
          t.device(), "!");
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
    add(t, input == op.pointwise->input_count   ? output_dtype
           : op.pointwise->inputs[input] == 'b' ? Dtype::b8
                                                : loop_dtype);
    ++input;
  }
  info.strides = result_strides(sizes, {strides, static_cast<size_t>(count - 1)});
  Tensor out = empty(info);
  if (out.is_meta()) return out;
  operands[0] = {out->data(), common, loop_dtype, out.strides()};
  uint32_t on_host = is_accelerator(grad.device()) ? 0 : 2;
  for (size_t i = 0; i < saved.size(); ++i)
    if (!is_accelerator(saved[i].device())) on_host |= 4u << i;
  backend_of(info.device)
      .run(PointwiseLaunch{op, which, compute, sizes, operands, count, on_host, attributes, info.device});
  return out;
}

Tensor pointwise_backward(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                          const ScalarAttribute* attributes) {
  if (computes_late) [[unlikely]]
    if (Tensor out = backward_late(op, which, grad, saved, attributes); out.defined()) return out;
  bool laid_out = grad.storage()->layout.load(std::memory_order_relaxed);
  for (const Tensor& t : saved) laid_out |= t.storage()->layout.load(std::memory_order_relaxed) != nullptr;
  if (!laid_out) return backward_loop(op, which, grad, saved, attributes);
  const auto settle = [](const Tensor& t) {
    if (RefPtr<Pending> values = pending_of(*t.storage())) values->settle();
  };
  settle(grad);
  for (const Tensor& t : saved) settle(t);
  Tensor operands[kMaxOperands] = {grad};
  for (size_t i = 0; i < saved.size(); ++i) operands[1 + i] = readable_bools(saved[i]);
  if (!lay_out({operands, saved.size() + 1}, true))
    return backward_loop(op, which, grad, {operands + 1, saved.size()}, attributes);
  Tensor out = backward_loop(op, which, operands[0], {operands + 1, saved.size()}, attributes);
  hide_layout(out);
  return out;
}

}  // namespace cresset
