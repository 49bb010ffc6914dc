#include "autograd/node.h"

#include <cstring>

#include "autograd/engine.h"
#include "dispatch/pointwise_call.h"
#include "dispatch/profile_memory.h"
#include "tensor/allocator.h"

namespace cresset {

PythonSteps python_steps;
thread_local bool packs_saved_tensors = false;

namespace {
thread_local uint64_t next_sequence = 0;

// Note [Deep graphs]: a chain of a million nodes must not be freed by recursion. Nodes that die while another dies wait
// in a list.
thread_local std::vector<Node*>* dying = nullptr;
}  // namespace

Node::Node() : sequence(next_sequence++) {}

Node::~Node() {
  delete hooks;
  if (position.code && release_code) release_code(position.code);
  if (metadata) python_steps.release_object(metadata);
}

const NodeName* name_by_numbers(const Operator& op, uint8_t numbers) {
  if (op.pointwise && numbers)
    for (const NodeName& other : op.pointwise->other_node_names)
      if (other.name && (numbers & other.numbers) == other.numbers) return &other;
  return nullptr;
}

const char* OperatorNode::own_name() const {
  const NodeName* const other = name_by_numbers(op, is_number);
  return other ? other->name : op.node_name.c_str();
}

int64_t OperatorNode::edge_of_input(int input) const {
  if (edges.size() == edge_counts.size()) return input;
  int64_t edge = 0;
  for (int i = 0; i < input; ++i) edge += edge_counts[i];
  return edge_counts[input] ? edge : -1;
}

std::string operation_name(const Node& node) {
  std::string name = node.name();
  if (const size_t scope = name.rfind(':'); scope != std::string::npos) name.erase(0, scope + 1);
  const size_t at = name.rfind("Backward");
  if (at == std::string::npos) return name;
  const std::string variant = name.substr(at + 8);
  return name.substr(0, at) + (variant == "0" ? "" : variant);
}

void* Node::operator new(size_t bytes) { return bytes <= 1024 ? allocate_cell(bytes) : ::operator new(bytes); }
void Node::operator delete(void* p, size_t bytes) { bytes <= 1024 ? free_cell(p, bytes) : ::operator delete(p); }

void Node::last_reference_gone() {
  if (dying) {
    dying->push_back(this);
    return;
  }
  std::vector<Node*> waiting;
  dying = &waiting;
  delete this;
  while (!waiting.empty()) {
    Node* next = waiting.back();
    waiting.pop_back();
    delete next;
  }
  dying = nullptr;
}

// ---------------------------------------------------------------- saved tensors

void check_may_be_kept(bool is_so) {
  check(is_so,
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd. "
        "To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`.");
}

SavedTensor::SavedTensor(const Tensor& t, bool is_output, uint32_t output_index)
    : version_(t.version()), output_index_(output_index), is_output_(is_output) {
  // Without recording it is forward mode that keeps it, during the call.
  check_may_be_kept(!t->inference || t->wrapped_number || !modes.grad_enabled || modes.keeps_inference);
  if (packs_saved_tensors && !t->wrapped_number) {
    packed_ = python_steps.pack(is_output ? detach(t) : t);
    if (packed_) {
      if (!is_output && requires_grad(t)) packed_->edge = gradient_edge(t);
      return;
    }
  }
  if (profiling_memory.load(std::memory_order_relaxed)) [[unlikely]]
    note_memory_use(t, MemoryUse::activation);
  tensor_ = is_output ? detach(t) : t;
  had_history_ = !is_output && t->requires_grad && state_of(t.get()) && state_of(t.get())->grad_fn;
  if (t->level == kDispatched) version_ = tensor_.version();  // its class may give memory of its own
}

void SavedTensor::replace(RefPtr<PackedTensor> packed) {
  if (!is_output_ && requires_grad(tensor_)) packed->edge = gradient_edge(tensor_);
  tensor_.reset();
  packed_ = std::move(packed);
}

thread_local const ChangedPart* changed_part = nullptr;

Edge edge_of_output(const Node& owner, uint32_t index) {
  if (changed_part && changed_part->change == &owner) return changed_part->history;
  return {RefPtr<Node>(const_cast<Node*>(&owner)), index};
}

Tensor SavedTensor::unpack(const Node& owner) const {
  if (packed_) {
    const Edge edge = is_output_ ? edge_of_output(owner, output_index_) : packed_->edge;
    Tensor t = packed_->unpack();
    if (edge.node && !t->requires_grad && is_differentiable(t.dtype())) {
      t = detach(t);
      AutogradState& state = state_for_writing(t.get());
      state.grad_fn = edge.node;
      state.output_index = edge.index;
      t->requires_grad = true;
    }
    return t;
  }
  if (!tensor_.defined()) return tensor_;
  if (tensor_.version() != version_) {
    const CodePosition saved = owner.position, changed = tensor_.storage()->changed_at;
    std::string where;
    if (saved.code) where += join("\n  saved for backward at ", python_steps.describe(saved));
    if (changed.code) where += join("\n  changed in place at   ", python_steps.describe(changed));
    const RefPtr<Node> maker = is_output_ ? RefPtr<Node>(const_cast<Node*>(&owner)) : grad_fn(tensor_);
    const uint32_t place = is_output_ || !maker ? output_index_ : state_of(tensor_.get())->output_index;
    fail(
        "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor of "
        "shape ",
        tuple(tensor_.sizes()), maker ? join(", which is output ", place, " of ", operation_name(*maker), ",") : "",
        " that ", owner.own_name(), " needs is at version ", tensor_.version(), "; expected version ", version_,
        " instead. Clone it before the change.", where);
  }
  const auto of_function = [&] { return !dynamic_cast<const OperatorNode*>(&owner); };
  // Values are all that a Function of the user's asks for, unless its derivative is recorded.
  check(!had_history_ || tensor_->requires_grad || (!modes.grad_enabled && of_function()), owner.name(),
        ": Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, "
        "please use out-of-place `.detach()` instead");
  if (is_output_ && modes.grad_enabled && is_differentiable(tensor_.dtype())) {
    Tensor t = detach(tensor_);
    AutogradState& state = state_for_writing(t.get());
    const Edge edge = edge_of_output(owner, output_index_);
    state.grad_fn = edge.node;
    state.output_index = edge.index;
    t->requires_grad = true;
    if (tensor_->has_tangent) {
      state.tangents = state_of(tensor_.get())->tangents;
      t->has_tangent = true;
    }
    return t;
  }
  return tensor_;
}

// ---------------------------------------------------------------- operator nodes

void OperatorNode::release_saved() {
  // A node that kept no tensor can run again.
  const auto free = [&](SavedTensor& t) {
    released |= t.defined();
    t.reset();
  };
  for (OwnedValue& v : saved) {
    free(v.tensor);
    if (v.rest)
      for (SavedTensor& t : v.rest->tensors) free(t);
  }
  for (SavedTensor& t : pointwise_inputs) free(t);
  free(pointwise_output);
}

// A formula that has no derivative by an input must not pass for one that does not depend on it.
static void check_has_gradients(const OperatorNode& node) {
  const PointwiseDefinition& def = *node.op.pointwise;
  const bool partial = backward_is_partial() && will_run(&node);
  for (int i = 0; i < def.input_count; ++i) {
    if (!node.needs_input(i) || def.has_gradient[i]) continue;
    if (partial && !will_run(node.edges[node.edge_of_input(i)].node.get())) continue;
    fail(ErrorKind::not_implemented, "the derivative for '", node.op.name(), ": ",
         node.op.signature.parameters[static_cast<size_t>(i)].name, "' is not implemented.");
  }
}

// Whether the gradient of an input is that of the result, as of a sum: then there is nothing to compute. A derivative
// that reads no tensor is a number times the gradient, so one number tells.
static bool passes_gradient_on(const OperatorNode& node, int input, const Tensor& grad) {
  const PointwiseDefinition& def = *node.op.pointwise;
  const Compute compute = compute_of(grad.dtype());  // half precision is computed in float
  if (def.uses[input] || (compute != Compute::f32 && compute != Compute::f64)) return false;
  const Loop loop = node.op.loops->backward[input][static_cast<int>(compute)];
  alignas(8) char number[8] = {}, product[8] = {};
  if (compute == Compute::f32)
    *reinterpret_cast<float*>(number) = 1.25f;
  else
    *reinterpret_cast<double*>(number) = 1.25;
  char* const p[2] = {product, number};
  if (!loop) return false;
  loop(p, node.attributes, 1);
  return !std::memcmp(number, product, sizeof number);
}

// What a formula's backward reads for input k. A number among those of half precision is rounded as it was for the
// result (is_rounded), so that both find it on the same side of another number.
static Tensor operand_of(const OperatorNode& node, int k, Dtype common) {
  const PointwiseDefinition& def = *node.op.pointwise;
  const bool rounds = is_rounded(def, k, common) && def.inputs[k] != 'b';
  if (node.is_number & (1 << k)) {
    const Scalar& number = node.pointwise_numbers[k];
    return wrapped_number(rounds ? rounded(number, common) : number);
  }
  const Tensor saved = node.pointwise_inputs[k].unpack(node);
  if (!rounds || saved.dim() > 0 || saved.dtype() == common) return saved;
  const Tensor converted = empty_like_layout(saved, common);
  copy_into(converted, saved);
  return converted;
}

void OperatorNode::backward(Grads& grads, Grads& out) {
  check(!released,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). "
        "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward "
        "through the graph a second time or if you need to access saved tensors after calling backward.");
  check_implemented(op.pointwise || op.derivative, "the derivative for '", op.name(), "' is not implemented.");
  for (Tensor& grad : grads)  // derivatives are written for elements
    if (grad.defined() && is_interpreted(grad)) grad = python_steps.interpret("to_dense", grad, {});
  if (op.pointwise) check_has_gradients(*this);
  // The loops are for plain numbers: what is recorded, interpreted or has a tangent goes through operators.
  const auto watched = [](const Tensor& t) { return t.defined() && (t->level || t->has_tangent); };
  bool by_operators =
      !op.pointwise || modes.grad_enabled || modes.dispatching || watched(grads[0]) || watched(pointwise_output.raw());
  for (const SavedTensor& t : pointwise_inputs) by_operators |= watched(t.raw());
  if (by_operators) return python_steps.derivative(*this, grads, out);
  const PointwiseDefinition& def = *op.pointwise;
  // What was saved is asked for once, whatever number of gradients read it: a hook may have to compute it.
  Tensor operands[kMaxPointwiseInputs], result;
  for (int i = 0; i < def.input_count; ++i) {
    if (!needs_input(i) || !def.has_gradient[i]) continue;
    const int64_t edge = edge_of_input(i);
    if (passes_gradient_on(*this, i, grads[0])) {
      out[edge] = grads[0];
      continue;
    }
    // The gradient of a complex number's part is real, and nothing else is read that would tell the loop's dtype.
    if (!def.uses[i] && !op.loops->backward[i][static_cast<int>(compute_of(grads[0].dtype()))])
      return python_steps.derivative(*this, grads, out);
    Tensor saved_tensors[kMaxPointwiseInputs + 1];
    int count = 0;
    for (int k = 0; k < def.input_count; ++k) {
      if (!(def.uses[i] & (1 << k))) continue;
      if (!operands[k].defined()) operands[k] = operand_of(*this, k, grads[0].dtype());
      saved_tensors[count++] = operands[k];
    }
    if (def.uses[i] & kUsesOutput) {
      if (!result.defined()) result = pointwise_output.unpack(*this);
      saved_tensors[count++] = result;
    }
    out[edge] = pointwise_backward(op, i, grads[0], {saved_tensors, static_cast<size_t>(count)}, attributes);
  }
}

// ---------------------------------------------------------------- leaves

thread_local bool keeps_grad_layout = true;

AccumulateGrad::AccumulateGrad(const Tensor& t) : variable(t) {
  sequence = UINT64_MAX;  // leaves are served as soon as their gradient is complete
  results.push_back(gradient_info(t));
}

AccumulateGrad::~AccumulateGrad() {
  if (AutogradState* s = state_of(variable.get()); s && s->accumulator == this) s->accumulator = nullptr;
}

// The hooks after accumulation are called also where there is nothing to add, or the leaf requires no gradient any
// more.
void AccumulateGrad::backward(Grads& grads, Grads&) {
  if (variable->requires_grad && grads[0].defined()) accumulate(grads);
  if (AutogradState* state = state_of(variable.get()))
    for (auto& hook : std::vector(state->post_accumulate)) hook->call(variable);
}

Tensor AccumulateGrad::empty_like_variable(Dtype dtype) const {
  return empty(TensorInfo{variable.sizes(), variable.strides(), dtype, variable.device()});
}

void AccumulateGrad::accumulate(Grads& grads) {
  static const Operator& add = *Registry::instance().find("add");
  static const Operator& add_ = *Registry::instance().find("add_");
  AutogradState& state = state_for_writing(variable.get());
  Tensor grad = grads[0];
  check(grad->batch_level() == variable->batch_level(),
        "backward: inside vmap the gradient of a leaf from outside has a value for every sample, which .grad cannot "
        "hold; use torch.func.grad or torch.autograd.grad");
  if (is_interpreted(grad) || (state.grad.defined() && is_interpreted(state.grad))) {
    // A sparse gradient is kept as it is, and added in place as a dense one would be. A dense one makes a sum dense.
    const bool in_place =
        state.grad.defined() && !modes.grad_enabled && (is_interpreted(grad) || !is_interpreted(state.grad));
    state.grad = state.grad.defined() ? python_steps.interpret(in_place ? "add_" : "add", state.grad, grad) : grad;
  } else if (!state.grad.defined()) {
    if (modes.grad_enabled || grad->level) {
      static const Operator &clone_op = *Registry::instance().find("clone"),
                            &copy_op = *Registry::instance().find("copy_");
      const bool in_its_layout = !grad->level && keeps_grad_layout && is_dense(variable.sizes(), variable.strides());
      state.grad = in_its_layout ? call_operator(copy_op, empty_like_variable(grad.dtype()), grad)
                                 : call_operator(clone_op, grad);
    } else {
      // The gradient may be kept as it is when nobody else holds it, but for the hooks after this node, and its
      // layout is the variable's.
      const bool fits = grad.strides() == variable.strides() || !keeps_grad_layout;
      const int64_t holders = hooks && !hooks->node.empty() ? 3 : 2;
      const bool ours = grad->use_count() <= holders && !grad->base && grad.storage()->use_count() == 1 && fits &&
                        !grad->requires_grad && !grad->wrapper;
      grads[0] = Tensor();
      if (ours) {
        state.grad = grad;
      } else if (!keeps_grad_layout) {
        state.grad = clone(grad, MemoryFormat::preserve);
      } else {
        Tensor copy = is_dense(variable.sizes(), variable.strides())
                          ? empty_like_variable(grad.dtype())
                          : empty(variable.sizes(), grad.dtype(), variable.device());
        copy_into(copy, grad);
        state.grad = copy;
      }
    }
  } else if (modes.grad_enabled || grad->level) {
    state.grad = call_operator(add, state.grad, grad);
  } else {
    call_operator(add_, state.grad, grad);
  }
  if (profiling_memory.load(std::memory_order_relaxed)) [[unlikely]] {
    note_memory_use(variable, MemoryUse::parameter);
    note_memory_use(state.grad, MemoryUse::gradient);
  }
}

}  // namespace cresset
