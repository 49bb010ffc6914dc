// What arithmetic has beside its formulas (cresset/ops/pointwise/arithmetic.py): division that rounds as asked, powers
// that are simpler operations, and the older orders of arguments.
#include <cmath>

#include "autograd/node.h"
#include "ops/older_overload.h"
#include "tensor/requires_grad.h"

namespace cresset {
namespace {

bool gives_halves(const Call& c) {
  ResultType r;
  for (int i = 0; i < 2; ++i) {
    if (c.args[i].is_tensor())
      r.add(*c.tensor(i).get());
    else
      r.add(c.scalar(i));
  }
  return r.result() == Dtype::f16 || r.result() == Dtype::bf16;
}

bool is_recorded(const Call& c) {
  if (!modes.grad_enabled || c.given_out) return false;
  const auto may_be = [&c](int i) {
    return c.args[i].is_tensor() && (requires_grad(c.tensor(i)) || c.tensor(i)->batch_level() > 0);
  };
  return may_be(0) || may_be(1);
}

// A quotient in half precision that is cut has a derivative of zero, whatever that of the quotient is (of 0 / 0 it is
// nan): the division that cuts is recorded, and its result written over with the rounded one, as one write.
template <bool kInPlace>
void record_cut(Call& c) {
  const auto of_both = [&c](const char* name) {
    Call inner(*Registry::instance().find(name));
    inner.args[0] = c.args[0];
    inner.args[1] = c.args[1];
    call(inner);
    return inner.outputs;
  };
  Tensor rounded;
  {
    const GradModeGuard guard(false);
    rounded = of_both("div")[0];
    Call cut(*Registry::instance().find("trunc_"));
    cut.args[0] = Value(rounded);
    call(cut);
  }
  c.outputs = of_both(kInPlace ? "div_trunc_" : "div_trunc");
  const uint32_t version = c.outputs[0].version();
  const GradModeGuard guard(false);
  Call copy(*Registry::instance().find("copy_"));
  copy.args[0] = Value(c.outputs[0]);
  copy.args[1] = Value(rounded);
  call(copy);
  c.outputs[0]->storage->version = version;
}

template <bool kInPlace>
void run_div(Call& c) {
  const char* name = kInPlace ? "div_" : "div";
  bool cuts = false;  // a quotient that is a half first
  if (c.has(2)) {
    const std::string_view mode = c.text(2);
    check(mode == "floor" || mode == "trunc",
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
    cuts = mode == "trunc" && c.args[1].is_tensor() && gives_halves(c);
    if (cuts && is_recorded(c)) return record_cut<kInPlace>(c);
    if (!cuts)
      name = mode == "floor" ? (kInPlace ? "div_floor_" : "div_floor") : (kInPlace ? "div_trunc_" : "div_trunc");
  }
  Call inner(*Registry::instance().find(name));
  const bool numbers_alone = !c.args[0].is_tensor() && !c.args[1].is_tensor();
  const Tensor number = numbers_alone ? wrapped_number(c.scalar(0)) : Tensor();
  inner.args[0] = numbers_alone ? Value(number) : c.args[0];
  inner.args[1] = c.args[1];
  inner.given_out = c.given_out;
  inner.outputs = c.outputs;
  call(inner);
  c.outputs = inner.outputs;
  name_node(c.outputs[0], "DivBackward2");
  if (!cuts) return;
  Call cut(*Registry::instance().find(kInPlace || c.given_out ? "trunc_" : "trunc"));
  cut.args[0] = Value(c.outputs[0]);
  call(cut);
  c.outputs = cut.outputs;
  name_node(c.outputs[0], "DivBackward2");
}

// x ** 2 is x * x, and x ** 3, x ** 0.5 and a few more have operators of their own too; but bool counts as a whole
// number, and a whole number to a power that is written as a float is a fraction. Bools to a bool, where that is no
// tensor, are x >= y.
const Operator* simple_power(const Call& c) {
  const Value &base = c.args[0], &exponent = c.args[1];
  if (base.kind != Kind::tensor || exponent.kind != Kind::scalar || exponent.scalar_.kind == Scalar::Kind::complex)
    return nullptr;
  const Dtype d = base.tensor_->dtype;
  if (d == Dtype::b8 && exponent.scalar_.kind == Scalar::Kind::boolean) {
    static const Operator *const ge = Registry::instance().find("ge"), *const ge_ = Registry::instance().find("ge_");
    return c.op.inplace ? ge_ : ge;
  }
  if (!is_differentiable(d) && (d == Dtype::b8 || !exponent.scalar_.is_integral())) return nullptr;
  struct Power {
    double exponent;
    bool only_real;
    const Operator *plain, *in_place;
  };
  static const auto power = [](double value, bool only_real, const std::string& name) -> Power {
    return {value, only_real, Registry::instance().find(name), Registry::instance().find(name + "_")};
  };
  static const Power powers[] = {power(2, false, "square"),          power(3, true, "cube"),
                                 power(0.5, true, "power_half"),     power(-0.5, true, "power_minus_half"),
                                 power(-1, true, "power_minus_one"), power(-2, true, "power_minus_two")};
  for (const Power& p : powers) {
    if (p.exponent != exponent.scalar_.real || (p.only_real && !is_floating(d))) continue;
    // As in PyTorch, float16 has no roots here: -0.0 ** -0.5 is inf, the power, and not -inf, the root.
    if (d == Dtype::f16 && std::abs(p.exponent) == 0.5) return nullptr;
    return c.op.inplace ? p.in_place : p.plain;
  }
  return nullptr;
}

// Asked before the call, which they leave as it is.
const Operator* refuse_zero_alpha(const Call& c) {
  check(c.args[1].scalar_.real != 0, c.op.name(), ": ZeroDivisionError: alpha cannot be 0 for CELU");
  return nullptr;
}
const Operator* refuse_decimals_of_integers(const Call& c) {
  const Value &x = c.args[0], &decimals = c.args[1];
  if (x.kind == Kind::tensor && decimals.kind == Kind::scalar)
    check_implemented(is_floating(x.tensor_->dtype) || decimals.scalar_.integer == 0, c.op.name(),
                      ": \"round_cpu\" not implemented for '", name_of(x.tensor_->dtype),
                      "' with decimals=", decimals.scalar_.integer);
  return nullptr;
}

}  // namespace

REGISTER(arithmetic) {
  r.add("div.rounding(Operand input, Operand other, *, str? rounding_mode) -> Tensor", nullptr, run_div<false>,
        kComposite);
  r.add("div_.rounding(Tensor input, Operand other, *, str? rounding_mode) -> Tensor", nullptr, run_div<true>,
        kComposite | kMethodOnly);
  r.find("pow")->instead = r.find("pow_")->instead = simple_power;
  r.find("celu")->instead = r.find("celu_")->instead = refuse_zero_alpha;
  r.find("round")->instead = r.find("round_")->instead = refuse_decimals_of_integers;
  r.find("round")->node_name_of = [](const Call& c) {
    return c.args[1].scalar_.integer == 0 ? "RoundBackward0" : "RoundBackward1";
  };
  for (const std::string name : {"add", "sub"}) {
    add_older_overload(r, name, "older", "Operand input, Scalar alpha, Operand other");
    add_older_overload(r, name + "_", "older", "Tensor input, Scalar alpha, Operand other", kMethodOnly);
  }
  for (const std::string name : {"addcmul", "addcdiv"}) {
    add_older_overload(r, name, "older", "Tensor input, Scalar value, Tensor tensor1, Tensor tensor2");
    add_older_overload(r, name + "_", "older", "Tensor input, Scalar value, Tensor tensor1, Tensor tensor2",
                       kMethodOnly);
  }
}

}  // namespace cresset
