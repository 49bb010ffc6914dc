// Recording: turning a call that just ran into a node.
#include <algorithm>

#include "autograd/node.h"
#include "dispatch/late.h"
#include "dispatch/overlap.h"
#include "dispatch/profile_memory.h"

namespace cresset {
namespace {

bool is_tensor_parameter(const Parameter& p) {
  return p.type == ArgType::tensor || p.type == ArgType::tensor_or_scalar || p.type == ArgType::tensors;
}

// A tensor of a lower level is a constant here: what it needs is recorded when the call is interpreted.
Edge edge_of(const TensorImpl* t, int level) {
  return t && t->batch_level() == level ? gradient_edge(Tensor(const_cast<TensorImpl*>(t))) : Edge{};
}

// Bit k: the k-th tensor parameter has no edge.
uint32_t without_edges(const Call& c, const Operator& op) {
  if (!op.pointwise) return op.derivative ? op.derivative->constants : 0;
  const PointwiseDefinition& def = *op.pointwise;
  uint32_t bits = def.inputs[0] == 'b';  // a condition
  if (!def.other_node_names[0].name) return bits;
  uint8_t numbers = 0;
  for (int i = 0; i < def.input_count; ++i)
    if (c.args[i].kind != Kind::tensor) numbers |= static_cast<uint8_t>(1 << i);
  if (const NodeName* const other = name_by_numbers(op, numbers)) bits |= other->numbers;
  return bits;
}

// `add` is given each tensor that has an edge; an undefined one for what is none.
template <class Add>
void each_operand(Call& c, OperatorNode& node, Add&& add) {
  const auto& parameters = c.op.signature.parameters;
  const uint32_t without = without_edges(c, node.op);
  int k = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!is_tensor_parameter(parameters[i])) continue;
    const bool is_constant = (without >> k++ & 1) || (!node.op.pointwise && c.args[i].kind == Kind::scalar);
    if (is_constant) {
      node.edge_counts.push_back(0);
    } else if (parameters[i].type == ArgType::tensors) {
      for (const Tensor& t : c.tensors(static_cast<int>(i))) add(t.get());
      node.edge_counts.push_back(static_cast<int>(c.args[i].count));
    } else {
      add(c.args[i].kind == Kind::tensor ? c.args[i].tensor_ : nullptr);
      node.edge_counts.push_back(1);
    }
  }
}

void add_edges(Call& c, OperatorNode& node) {
  each_operand(c, node, [&](const TensorImpl* t) { node.edges.push_back(edge_of(t, c.level)); });
}

TensorInfo info_of(const Tensor& t) {
  return t.defined() ? TensorInfo{t.sizes(), t.strides(), t.dtype(), t.device()} : TensorInfo{};
}

// Whether the gradient of one of these arguments (bit i: argument i) is needed.
bool needs_one_of(const OperatorNode& node, uint32_t arguments) {
  const auto& parameters = node.op.signature.parameters;
  int64_t edge = 0, k = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!is_tensor_parameter(parameters[i])) continue;
    for (const int64_t end = edge + node.edge_counts[k++]; edge < end; ++edge)
      if (arguments >> i & 1 && node.needs(edge)) return true;
  }
  return false;
}

// An argument. What a call in place has written over is not what it read any more, and backward says so. `.data` counts
// its writes apart, and a tangent is computed at once: there the copy of the first argument stands for what it was.
SavedTensor keep(const Call& c, const Tensor& t, bool for_tangents) {
  const bool in_place = (c.op.inplace || c.op.mutates) && t->level != kDispatched;
  const Overlap overlap = in_place ? overlap_of(c.outputs[0], t) : Overlap::none;
  if (overlap == Overlap::none) return SavedTensor(t, false);
  const bool copied =
      overlap == Overlap::whole && c.before.defined() && t.sizes() == c.before.sizes() && t.dtype() == c.before.dtype();
  if (copied && (for_tangents || t.storage() != c.outputs[0].storage()))
    return SavedTensor(requires_grad(t) ? c.before : detach(c.before), false);
  const NoPacking unpacked;
  SavedTensor kept(t, false);
  kept.outdate();
  return kept;
}

// `of_node`: the node is that of the results, so it must not own them.
OwnedValue own(const Call& c, const Derivative::Saved& saved, bool of_node) {
  const bool for_tangents = !of_node;
  OwnedValue o;
  o.what = saved.what;
  if (saved.what == Derivative::Saved::output) {
    o.tensor = SavedTensor(c.outputs[saved.index], of_node, static_cast<uint32_t>(saved.index));
    o.value.kind = Kind::tensor;
    return o;
  }
  if (saved.what == Derivative::Saved::all_outputs) {
    o.more();
    for (int64_t i = 0; i < c.outputs.size(); ++i)
      o.more().tensors.emplace_back(c.outputs[i], of_node, static_cast<uint32_t>(i));
    o.value.kind = Kind::tensors;
    return o;
  }
  const Value& v = c.args[saved.index];
  o.value = v;
  switch (v.kind) {
    case Kind::tensor: {
      const Tensor t = saved.index == 0 && c.before.defined() ? c.before : Tensor(v.tensor_);
      o.value.tensor_ = nullptr;
      if (saved.what == Derivative::Saved::information)
        o.more().info = info_of(t), o.more().integers = {t.offset()};
      else
        o.tensor = keep(c, t, for_tangents);
      break;
    }
    case Kind::tensors:
      o.value.tensors_ = nullptr;
      o.more();
      for (const Tensor& t : c.tensors(saved.index)) {
        if (saved.what == Derivative::Saved::information)
          o.rest->infos.push_back(info_of(t));
        else if (t.defined())
          o.rest->tensors.push_back(keep(c, t, for_tangents));
        else
          o.rest->tensors.emplace_back();
      }
      break;
    case Kind::integers: o.more().integers = Dims(c.integers(saved.index)); break;
    case Kind::reals: o.more().reals.assign(c.reals(saved.index).begin(), c.reals(saved.index).end()); break;
    case Kind::text: o.more().text = std::string(c.text(saved.index)); break;
    default: break;
  }
  return o;
}

// What of it is kept for the gradients that are needed.
Derivative::Saved needed(Derivative::Saved saved, const OperatorNode& node) {
  if (saved.only_for && !needs_one_of(node, saved.only_for)) saved.what = Derivative::Saved::information;
  return saved;
}

void save(const Call& c, OperatorNode& node, bool of_node) {
  for (const Derivative::Saved& saved : node.op.derivative->saves)
    node.saved.push_back(own(c, needed(saved, node), of_node));
}

// Which operands (bit i: input i), and whether the result, the gradients that are needed read.
uint8_t used_by_gradients(const OperatorNode& node) {
  const PointwiseDefinition& def = *node.op.pointwise;
  uint8_t uses = 0;
  for (int i = 0; i < def.input_count; ++i)
    if (node.needs_input(i) && def.has_gradient[i]) uses |= def.uses[i];
  return uses;
}

void save_pointwise(const Call& c, OperatorNode& node, bool of_node) {
  const PointwiseDefinition& def = *c.op.pointwise;
  const uint8_t uses = used_by_gradients(node);
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (v.kind != Kind::tensor) {
      node.is_number |= static_cast<uint8_t>(1 << i);
      node.pointwise_numbers[i] = v.is_none() ? missing_bound(def.inputs[i]) : v.scalar_;
    } else if (uses & (1 << i)) {
      node.pointwise_inputs[i] = keep(c, i == 0 && c.before.defined() ? c.before : Tensor(v.tensor_), !of_node);
    }
  }
  if (uses & kUsesOutput) node.pointwise_output = SavedTensor(c.outputs[0], of_node);
  read_attributes(c, c.outputs[0].dtype(), node.attributes);
}

const Operator& functional_of(const Operator& op) { return op.functional ? *op.functional : op; }

// For an in-place call: does backward read the first argument?
bool reads_first(const Operator& op) {
  if (op.pointwise) {
    for (int i = 0; i < op.pointwise->input_count; ++i)
      if (op.pointwise->uses[i] & 1) return true;
    return false;
  }
  if (op.derivative)
    for (const auto& s : op.derivative->saves)
      if (s.what == Derivative::Saved::argument && s.index == 0) return true;
  return false;
}

// For an in-place call: is another argument the memory that is written?
bool reads_what_is_written(const Call& c) {
  if (!functional_of(c.op).pointwise) return false;
  const Tensor target = c.tensor(0);
  for (size_t i = 1; i < c.op.signature.parameters.size(); ++i)
    if (c.args[i].kind == Kind::tensor && shares_memory(target, Tensor(c.args[i].tensor_))) return true;
  return false;
}

// For an in-place call: what backward would keep of the other arguments may be kept. It is asked before the write, so
// that a refusal leaves the target as it was.
void check_kept(Call& c) {
  const auto is_inference = [&](int i) {
    const Value& v = c.args[i];
    if (v.kind == Kind::tensor) return v.tensor_->inference && !v.tensor_->wrapped_number;
    if (v.kind != Kind::tensors) return false;
    return std::ranges::any_of(c.tensors(i), [](const Tensor& t) { return t.defined() && t->inference; });
  };
  const int count = static_cast<int>(c.op.signature.parameters.size());
  uint32_t refused = 0;
  for (int i = 1; i < count; ++i) refused |= static_cast<uint32_t>(is_inference(i)) << i;
  if (!refused || modes.keeps_inference) [[likely]]
    return;
  const Operator& op = functional_of(c.op);
  auto* node = new OperatorNode(op);
  const RefPtr<Node> holder(node);
  add_edges(c, *node);
  if (op.pointwise) {
    check_may_be_kept(!(used_by_gradients(*node) & refused));
  } else if (op.derivative) {
    for (const Derivative::Saved& saved : op.derivative->saves)
      check_may_be_kept(needed(saved, *node).what != Derivative::Saved::argument || !(refused >> saved.index & 1));
  }
}

// Note [Captured tensors]. Only what is written in place counts, as in PyTorch.
void check_not_captured(const Call& c, const Tensor& target) {
  if (c.given_out || target->level == kDispatched) return;
  check(target.storage()->root().born >= modes.function, "During a grad (vjp, jvp, grad, etc) transform, ", c.op.name(),
        " would mutate a captured Tensor: the function changes in place what it has not made. Give it to ",
        "the function as an argument, or change a clone of it.");
}

void before_write(Call& c, const Tensor& target, bool record) {
  if (modes.function) [[unlikely]]
    check_not_captured(c, target);
  record = record && is_differentiable(target.dtype());  // what is written to integers is not recorded
  check_inplace(c.op.name().c_str(), target, record);
  if (record) check_kept(c);
}

void save_before(Call& c) {
  if (!reads_first(functional_of(c.op)) && !reads_what_is_written(c)) return;
  const Tensor t = c.tensor(0);
  static const Operator& clone_op = *Registry::instance().find("clone");
  c.before = t->level ? detach(call_operator(clone_op, t)) : clone(t);
  const Edge edge = gradient_edge(t);  // the copy stands for the old value in derivatives of derivatives
  if (!edge.node) return;
  AutogradState& state = state_for_writing(c.before.get());
  state.grad_fn = edge.node;
  state.output_index = edge.index;
  c.before->requires_grad = true;
}

void note_change(const Tensor& t) {
  Storage& s = *t->storage;
  if (s.changed_at.code) release_code(s.changed_at.code);
  s.changed_at = python_steps.capture();
}

void record(Call& c) {
  const Operator& op = functional_of(c.op);
  const bool inplace = c.op.inplace || c.op.mutates;
  if (c.op.view && c.tensor(0)->inference) return;  // what it shows is never recorded
  if (!inplace)  // an operator that gives its input back (contiguous, to) has done nothing to record
    for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i)
      if (c.args[i].kind == Kind::tensor && !c.outputs.empty() && c.outputs[0].get() == c.args[i].tensor_) return;
  bool any_result = false;
  for (const Tensor& t : c.outputs) any_result |= t.defined() && is_differentiable(t.dtype());
  if (!any_result) return;
  auto* node = new OperatorNode(op);
  RefPtr<Node> holder(node);
  add_edges(c, *node);
  if (profiling_memory.load(std::memory_order_relaxed)) [[unlikely]]
    note_recorded(c);
  node->late = computes_late;
  if (op.node_name_of) node->given_name = op.node_name_of(c);
  node->position = python_steps.capture();
  if (modes.anomaly) python_steps.note_anomaly(*node);
  if (op.pointwise) {
    save_pointwise(c, *node, true);
  } else if (op.derivative) {  // without one, backward refuses
    save(c, *node, true);
  }
  if (inplace) {
    note_change(c.outputs[0]);
    rebase_history(c.outputs[0], holder);
    return;
  }
  // Results behind the last one that has a gradient (places, counts, statistics) are none of the node's.
  const auto is_constant = [&](int64_t i) { return (op.constant_results >> i & 1) != 0; };
  const auto has_gradient = [&](int64_t i) {
    const Tensor& t = c.outputs[i];
    return !is_constant(i) && (!t.defined() || is_differentiable(t.dtype()));
  };
  int64_t count = c.outputs.size();
  while (count > 1 && !has_gradient(count - 1)) --count;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& t = c.outputs[i];
    if (!t.defined())
      node->results.push_back({});
    else if (is_constant(i))
      node->results.push_back({t.sizes(), t.dtype(), t.device()});
    else
      set_history(t, holder);
  }
}

void after_view(Call& c) {
  const Tensor from = c.tensor(0);
  if (from->inference) return;  // it is never recorded, nor are its views
  for (const Tensor& t : c.outputs) {
    // A tensor that answers for itself shows another's elements without sharing its memory.
    if (t.get() == from.get() || (t.storage() != from.storage() && t->level != kDispatched)) continue;
    t->base = from->base ? from->base : RefPtr<TensorImpl>(from.get());
    if (const AutogradState* base = state_of(t->base.get())) t->seen_history = base->history;
    const ViewOrigin origin = modes.inference       ? ViewOrigin::inference
                              : !modes.grad_enabled ? ViewOrigin::no_grad
                              : c.op.shares_results ? ViewOrigin::several_views
                                                    : ViewOrigin::ordinary;
    t->view_origin = origin == ViewOrigin::ordinary ? from->view_origin : static_cast<uint8_t>(origin);
  }
}

void forward_mode(Call& c) { python_steps.forward_mode(c); }

// Where a gradient ends that is asked for by its shape alone.
class Sink : public Node {
 public:
  explicit Sink(const Tensor& t) { results.push_back({t.sizes(), t.dtype(), t.device()}); }
  const char* own_name() const override { return "Sink"; }
  void backward(Grads&, Grads&) override {}
};

}  // namespace

RefPtr<Node> node_for_tangents(Call& c, std::vector<Tensor>& sources) {
  const Operator& op = functional_of(c.op);
  if (!op.differentiable || (op.pointwise && !op.pointwise->differentiable)) return nullptr;
  check_implemented(op.pointwise || op.derivative, "Trying to use forward AD with ", op.name(),
                    " that does not support it: its derivative is not implemented");
  const NoPacking unpacked;  // nothing of this outlives the call
  auto* node = new OperatorNode(op);
  RefPtr<Node> holder(node);
  each_operand(c, *node, [&](TensorImpl* operand) {
    const Tensor t = operand ? Tensor(operand) : Tensor();
    sources.push_back(t);
    node->edges.push_back(
        t.defined() && t->has_tangent && t->batch_level() == c.level ? Edge{RefPtr<Node>(new Sink(t)), 0} : Edge{});
  });
  const auto& parameters = c.op.signature.parameters;
  for (int i = 0; op.pointwise && i < op.pointwise->input_count; ++i)
    check_implemented(!node->needs_input(i) || op.pointwise->has_gradient[i], "Trying to use forward AD with ",
                      op.name(), " that does not support it: the derivative by '",
                      parameters[static_cast<size_t>(i)].name, "' is not implemented");
  for (const Tensor& t : c.outputs)
    node->results.push_back(t.defined() ? ResultInfo{t.sizes(), t.dtype(), t.device()} : ResultInfo{});
  const GradModeGuard unrecorded(false);  // tensors of inference mode may be kept, too
  if (op.pointwise) {
    save_pointwise(c, *node, false);
  } else {
    save(c, *node, false);
  }
  return holder;
}

void install_autograd() {
  autograd_steps = {before_write, save_before, record, after_view, forward_mode, is_leaf, renew_view};
}

}  // namespace cresset
