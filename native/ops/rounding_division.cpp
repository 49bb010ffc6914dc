// div(rounding_mode=...): picks the pointwise division that rounds as asked.
#include "ops/register.h"

namespace cresset {
namespace {

template <bool kInPlace>
void run_div(Call& c) {
  const char* name = kInPlace ? "div_" : "div";
  if (c.has(2)) {
    const std::string_view mode = c.text(2);
    check(mode == "floor" || mode == "trunc", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
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
}

}  // namespace

void register_rounding_division(Registry& r) {
  r.add("div.rounding(Operand input, Operand other, *, str? rounding_mode) -> Tensor", nullptr, run_div<false>, kComposite);
  r.add("div_.rounding(Tensor input, Operand other, *, str? rounding_mode) -> Tensor", nullptr, run_div<true>, kComposite | kMethodOnly);
}

}  // namespace cresset
