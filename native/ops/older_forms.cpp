// Further orders of arguments. The old one has factors as numbers in front of what they multiply: add(input, alpha, other), addcmul(input, value,
// tensor1, tensor2), addmm(beta, input, alpha, mat1, mat2); published optimizers still call x.add_(1 - beta, grad). It warns and calls the form of today.
#include "ops/register.h"

namespace cresset {
namespace {

// An argument goes to the parameter of its name; what the old form does not have takes its default.
void run_older(Call& c) {
  const Signature& old = c.op.signature;
  const Operator& today = *Registry::instance().find(old.name);
  if (warn) {
    const std::string listed = old.text.substr(old.text.find('('), old.text.rfind(" ->") - old.text.find('('));
    warn(join("This overload of ", old.name, " is deprecated:\n\t", old.name, listed, "\nConsider using one of the following signatures instead:\n\t", today.signature.text));
  }
  Call inner(today);
  for (size_t i = 0; i < today.signature.parameters.size(); ++i) {
    const Parameter& p = today.signature.parameters[i];
    const int at = old.index_of(p.name);
    inner.args[i] = at < 0 ? p.default_value : c.args[at];
  }
  // Of two numbers either may be meant as the factor: torch.add(x, alpha, other), torch.subtract(x, other, alpha). That of an integer tensor is whole.
  if (inner.args[1].kind == Kind::scalar && inner.args[1].scalar_.is_integral() && !c.scalar(1).is_integral()) std::swap(inner.args[1], inner.args[2]);
  const Tensor number = inner.args[0].is_tensor() || inner.args[1].is_tensor() ? Tensor() : wrapped_number(inner.args[0].scalar_);
  if (number.defined()) inner.args[0] = Value(number);
  inner.given_out = c.given_out;
  inner.outputs = std::move(c.outputs);
  call(inner);
  c.outputs = std::move(inner.outputs);
}

}  // namespace

void register_older_forms(Registry& r) {
  const auto add = [&](const std::string& name, const std::string& arguments, uint32_t flags = 0) {
    r.add((name + "(" + arguments + ") -> Tensor").c_str(), nullptr, run_older, kComposite | flags);
  };
  for (const std::string name : {"add", "sub"}) {
    add(name + ".older", "Operand input, Scalar alpha, Operand other");
    add(name + "_.older", "Tensor input, Scalar alpha, Operand other", kMethodOnly);
  }
  for (const std::string name : {"addcmul", "addcdiv"}) {
    add(name + ".older", "Tensor input, Scalar value, Tensor tensor1, Tensor tensor2");
    add(name + "_.older", "Tensor input, Scalar value, Tensor tensor1, Tensor tensor2", kMethodOnly);
  }
  // As functions these take beta first, as methods behind the tensor.
  for (const auto& [name, factors] : {std::pair<std::string, std::string>{"addmm", "Tensor mat1, Tensor mat2"}, {"baddbmm", "Tensor batch1, Tensor batch2"}}) {
    add(name + ".older_function", "Scalar beta, Tensor input, Scalar alpha, " + factors);
    add(name + ".older_function_beta", "Scalar beta, Tensor input, " + factors);
    for (const std::string& form : {name, name + "_"}) {
      add(form + ".older_method", "Tensor input, Scalar beta, Scalar alpha, " + factors, kMethodOnly);
      add(form + ".older_method_beta", "Tensor input, Scalar beta, " + factors, kMethodOnly);
    }
  }
}

}  // namespace cresset
