#include "dispatch/operator.h"

#include <cctype>
#include <unordered_map>

#include "dispatch/pointwise_call.h"

namespace cresset {
namespace {

std::unordered_map<std::string, Operator*>& index() {
  static auto* the = new std::unordered_map<std::string, Operator*>;
  return *the;
}
std::string key(std::string_view name, std::string_view overload) {
  return std::string(name) + "." + std::string(overload);
}

// index_select -> IndexSelectBackward0, log1p -> Log1PBackward0
std::string default_node_name(const std::string& name) {
  std::string out;
  bool upper = true;
  for (char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = std::isdigit(static_cast<unsigned char>(c));
  }
  return out + "Backward0";
}

}  // namespace

Registry& Registry::instance() {
  static auto* the = new Registry;
  return *the;
}

Operator& Registry::add(const char* text, Infer infer, Run run, uint32_t flags, const char* node_name) {
  Operator& op = operators_.emplace_back();
  op.signature = Signature::parse(text);
  op.infer = infer;
  op.run[static_cast<int>(DeviceType::cpu)] = run;
  if ((flags & kView) || !infer) op.run[static_cast<int>(DeviceType::meta)] = run;
  for (int d = 0; d < kDeviceTypes && flags & (kView | kAnyDevice); ++d)
    if (is_accelerator({static_cast<DeviceType>(d)})) op.run[d] = run;
  op.view = flags & kView;
  op.differentiable = !(flags & kNotDifferentiable);
  op.mutates = flags & kMutates;
  op.aliasing = flags & kWritesApart    ? Aliasing::apart
                : flags & kWritesWhole  ? Aliasing::whole
                : flags & kReadsNothing ? Aliasing::unread
                                        : Aliasing::any;
  op.shares_results = flags & kSharesResults;
  op.constant_results = flags & kFirstResultOnly ? ~1u : 0;
  op.composite = flags & kComposite;
  op.random = op.signature.index_of("generator") >= 0 || flags & kRandom;
  op.gives_layout = flags & kGivesLayout;
  op.knows_layout = flags & kKnowsLayout;
  const auto& parameters = op.signature.parameters;
  const bool takes_input =
      !parameters.empty() && parameters[0].type == ArgType::tensor && parameters[0].name == "input";
  op.is_method = takes_input && !(flags & kFunctionOnly);
  op.is_function = !(flags & kMethodOnly);
  op.node_name = node_name ? node_name : default_node_name(op.signature.name);
  index()[key(op.signature.name, op.signature.overload)] = &op;
  if (flags & kInplace) add_inplace_form(op);
  return op;
}

Operator& Registry::add_inplace_form(Operator& of) {
  of.has_inplace = true;
  Operator& op = operators_.emplace_back();
  const size_t open = of.signature.text.find('(');
  op.signature =
      Signature::parse(of.signature.name + "_" + (of.signature.overload.empty() ? "" : "." + of.signature.overload) +
                       of.signature.text.substr(open));
  op.infer = of.infer;
  for (int d = 0; d < kDeviceTypes; ++d) op.run[d] = of.run[d];
  for (size_t i = 0; i < op.signature.parameters.size(); ++i)
    op.signature.parameters[i].type = of.signature.parameters[i].type;
  op.pointwise = of.pointwise;
  op.loops = of.loops;
  op.inplace = true;
  op.knows_layout = of.knows_layout;
  op.differentiable = of.differentiable;
  op.is_method = of.is_method || !of.pointwise;
  op.is_function = of.is_function;
  op.node_name = of.node_name;
  op.doc = "In-place form of `" + of.signature.name + "`.";
  op.functional = &of;
  index()[key(op.signature.name, op.signature.overload)] = &op;
  return op;
}

Operator& Registry::add_pointwise(const PointwiseDefinition& definition, const PointwiseLoops& loops) {
  Operator& op = operators_.emplace_back();
  op.signature = Signature::parse(definition.signature);
  // With several inputs, any of them may be a Python number.
  for (int i = 0; definition.input_count > 1 && i < definition.input_count; ++i)
    if (definition.inputs[i] != 'b') op.signature.parameters[static_cast<size_t>(i)].type = ArgType::tensor_or_scalar;
  op.pointwise = &definition;
  op.infer = infer_pointwise;
  op.loops = &loops;
  op.knows_layout = true;
  op.differentiable = definition.differentiable;
  op.is_method = definition.method;
  op.doc = definition.doc;
  op.node_name = definition.node_name ? definition.node_name : default_node_name(op.signature.name);
  index()[key(op.signature.name, op.signature.overload)] = &op;
  if (definition.inplace) add_inplace_form(op);
  return op;
}

void Registry::set_kernel(const char* name, DeviceType device, Run run) {
  const std::string_view text(name);
  const size_t dot = text.find('.');
  const std::string_view overload = dot == text.npos ? std::string_view() : text.substr(dot + 1);
  const std::string plain(text.substr(0, dot));
  Operator* op = find(plain, overload);
  invariant(op, std::string("no operator ") + name);
  op->run[static_cast<int>(device)] = run;
  if (Operator* inplace = find(plain + "_", overload); inplace && inplace->functional == op)
    inplace->run[static_cast<int>(device)] = run;
}

Operator* Registry::find(std::string_view name, std::string_view overload) const {
  auto it = index().find(key(name, overload));
  return it == index().end() ? nullptr : it->second;
}

}  // namespace cresset
