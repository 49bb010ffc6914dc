// div(rounding_mode=...): picks the pointwise division that rounds as asked.
#include "ops/register.h"

namespace cresset {
namespace {

bool gives_halves(const Call& c) {
  ResultType r;
  for (int i = 0; i < 2; ++i) {
    if (c.args[i].is_tensor()) r.add(*c.tensor(i).get());
    else r.add(c.scalar(i));
  }
  return r.result() == Dtype::f16 || r.result() == Dtype::bf16;
}

template <bool kInPlace>
void run_div(Call& c) {
  const char* name = kInPlace ? "div_" : "div";
  bool cuts = false;  // a quotient that is a half first
  if (c.has(2)) {
    const std::string_view mode = c.text(2);
    check(mode == "floor" || mode == "trunc", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
    cuts = mode == "trunc" && c.args[1].is_tensor() && gives_halves(c);
    if (!cuts) name = mode == "floor" ? (kInPlace ? "div_floor_" : "div_floor") : (kInPlace ? "div_trunc_" : "div_trunc");
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
  if (!cuts) return;
  Call cut(*Registry::instance().find(kInPlace || c.given_out ? "trunc_" : "trunc"));
  cut.args[0] = Value(c.outputs[0]);
  call(cut);
  c.outputs = cut.outputs;
}

}  // namespace

void register_arithmetic(Registry& r) {
  r.add("div.rounding(Operand input, Operand other, *, str? rounding_mode) -> Tensor", nullptr, run_div<false>, kComposite);
  r.add("div_.rounding(Tensor input, Operand other, *, str? rounding_mode) -> Tensor", nullptr, run_div<true>, kComposite | kMethodOnly);
}

}  // namespace cresset
