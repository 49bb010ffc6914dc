#include "ops/older_overload.h"

namespace cresset {
namespace {

// An argument goes to the parameter of its name; what the old form does not have takes its default.
void run_older(Call& c) {
  const Signature& old = c.op.signature;
  const Operator& today = *Registry::instance().find(old.name);
  if (warn) {
    const std::string listed = old.text.substr(old.text.find('('), old.text.rfind(" ->") - old.text.find('('));
    warn(join("This overload of ", old.name, " is deprecated:\n\t", old.name, listed,
              "\nConsider using one of the following signatures instead:\n\t", today.signature.text));
  }
  Call inner(today);
  for (size_t i = 0; i < today.signature.parameters.size(); ++i) {
    const Parameter& p = today.signature.parameters[i];
    const int at = old.index_of(p.name);
    inner.args[i] = at < 0 ? p.default_value : c.args[at];
  }
  // Of two numbers either may be meant as the factor: torch.add(x, alpha, other), torch.subtract(x, other, alpha). That
  // of an integer tensor is whole.
  if (inner.args[1].kind == Kind::scalar && inner.args[1].scalar_.is_integral() && !c.scalar(1).is_integral())
    std::swap(inner.args[1], inner.args[2]);
  const Tensor number =
      inner.args[0].is_tensor() || inner.args[1].is_tensor() ? Tensor() : wrapped_number(inner.args[0].scalar_);
  if (number.defined()) inner.args[0] = Value(number);
  inner.given_out = c.given_out;
  inner.outputs = std::move(c.outputs);
  call(inner);
  c.outputs = std::move(inner.outputs);
}

}  // namespace

void add_older_overload(Registry& r, const std::string& name, const std::string& overload,
                        const std::string& parameters, uint32_t flags) {
  r.add((name + "." + overload + "(" + parameters + ") -> Tensor").c_str(), nullptr, run_older, kComposite | flags);
}

}  // namespace cresset
