// Node: one recorded call. Edges lead from a node to the nodes of its inputs; gradients flow along them.
#pragma once
#include <optional>
#include <vector>

#include "dispatch/call.h"
#include "tensor/requires_grad.h"

namespace cresset {

class Node;

// What an error calls the operation that a node is of: "Add" for AddBackward0, "Sum1" for SumBackward1.
std::string operation_name(const Node& node);

struct Edge {
  RefPtr<Node> node;
  uint32_t index = 0;  // which of the node's results
};

using Grads = SmallVector<Tensor, 2>;

// A Python callable (or anything else) that sees a gradient pass. An undefined result leaves the gradient as it is.
class TensorHook : public RefCounted {
 public:
  virtual Tensor call(const Tensor& grad) = 0;
  virtual void* object() const { return nullptr; }  // the Python object it holds, for the garbage collector
};
class NodeHook : public RefCounted {
 public:
  virtual void before(Grads& grad_outputs) { (void)grad_outputs; }
  virtual void after(Grads& grad_inputs, const Grads& grad_outputs) { (void)grad_inputs, (void)grad_outputs; }
  virtual void* object() const { return nullptr; }
};

inline void check_replaced(const Tensor& grad) {
  check(grad.defined(), "a hook can't replace a None gradient with a non-None value");
}

// A tensor that may be gone.
class WeakTensor : public RefCounted {
 public:
  TensorImpl* tensor = nullptr;
};

struct NodeHooks {
  struct OnResult {
    uint32_t index;
    RefPtr<TensorHook> hook;
  };
  std::vector<OnResult> on_results;  // tensor hooks, in the order of registration
  struct Retain {
    uint32_t index;
    RefPtr<WeakTensor> tensor;
  };
  std::vector<Retain> retain;          // retain_grad
  std::vector<RefPtr<NodeHook>> node;  // hooks of the node itself
};

struct ResultInfo {
  Dims sizes;
  Dtype dtype = Dtype::f32;
  Device device;
  bool any_dtype = false;  // a gradient of another dtype is taken as it is
};

class Node : public RefCounted {
 public:
  Node();
  ~Node() override;
  const char* name() const { return given_name ? given_name : own_name(); }
  virtual const char* own_name() const = 0;
  virtual void backward(Grads& grads, Grads& out) = 0;
  virtual void release_saved() {}
  virtual bool is_accumulate() const { return false; }
  virtual bool runs_without_gradient() const { return false; }  // also when none has come

  uint64_t sequence;
  bool late = false;  // made in a compiled region: its backward computes late, too
  SmallVector<Edge, 3> edges;
  SmallVector<ResultInfo, 1> results;
  NodeHooks* hooks = nullptr;        // owned
  CodePosition position;             // where the call was made
  void* wrapper = nullptr;           // the Python object, borrowed; see bindings/node_type.cpp
  void* metadata = nullptr;          // a Python dict, owned through release_object
  const char* given_name = nullptr;  // what the call that it ends is called; see name_node
  NodeHooks& hooks_for_writing() { return hooks ? *hooks : *(hooks = new NodeHooks); }

  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes);

 protected:
  void last_reference_gone() override;
};

// ---- saved tensors

class PackedTensor : public RefCounted {  // saved_tensors_hooks
 public:
  virtual Tensor unpack() = 0;
  virtual void* packed() const { return nullptr; }       // the Python object that is kept
  virtual void* unpack_hook() const { return nullptr; }  // and the one that makes a tensor of it
  Edge edge;  // of the tensor that was packed: what comes back gets its history
};

void check_may_be_kept(bool is_so);  // no: it is one of inference mode, and recorded

class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_output`: the tensor is a result of the node itself, so the node must not own it (a cycle): an alias without
  // history is kept.
  SavedTensor(const Tensor& t, bool is_output, uint32_t output_index = 0);
  Tensor unpack(const Node& owner) const;
  bool defined() const { return tensor_.defined() || packed_; }
  bool is_output() const { return is_output_; }
  uint32_t output_index() const { return output_index_; }
  void reset() { tensor_.reset(), packed_.reset(); }
  const Tensor& raw() const { return tensor_; }
  const RefPtr<PackedTensor>& packed() const { return packed_; }
  void replace(RefPtr<PackedTensor> packed);  // hooks that came late have packed it
  void outdate() { --version_; }              // the call that keeps it has written to its memory: it cannot be read

 private:
  Tensor tensor_;
  RefPtr<PackedTensor> packed_;
  uint32_t version_ = 0, output_index_ = 0;
  bool is_output_ = false, had_history_ = false;
};

// A node of an in-place change of a view that CopySlices runs: what it gave is a part of the base as it is after the
// change, and has that history.
struct ChangedPart {
  const Node* change;
  Edge history;
};
extern thread_local const ChangedPart* changed_part;
Edge edge_of_output(const Node& owner, uint32_t index);  // what a result of a node has for its history

// An argument kept for backward, owning what it refers to. Most are tensors and numbers: the rest has a place of its
// own, so that a node stays small.
struct OwnedValue {
  struct Rest {
    std::vector<SavedTensor> tensors;
    Dims integers;
    std::vector<double> reals;
    std::string text;
    TensorInfo info;
    std::vector<TensorInfo> infos;
  };
  Value value;
  SavedTensor tensor;
  std::unique_ptr<Rest> rest;
  Derivative::Saved::What what = Derivative::Saved::argument;
  Rest& more() { return rest ? *rest : *(rest = std::make_unique<Rest>()); }
};

// The node of a registered operator.
class OperatorNode : public Node {
 public:
  explicit OperatorNode(const Operator& op) : op(op) {}
  const Operator& op;                // the functional form
  SmallVector<OwnedValue, 2> saved;  // in the order of op.derivative->saves
  SavedTensor pointwise_inputs[kMaxPointwiseInputs], pointwise_output;
  Scalar pointwise_numbers[kMaxPointwiseInputs];
  uint8_t is_number = 0;  // bit i: input i was a Python number
  ScalarAttribute attributes[kMaxPointwiseInputs];
  // Edges of each tensor parameter: one, or the length of a list. None for what the derivative says is constant, and
  // for a number that PyTorch's node does not list either.
  SmallVector<int, 3> edge_counts;
  bool released = false;

  const char* own_name() const override;
  void backward(Grads& grads, Grads& out) override;
  void release_saved() override;
  bool needs(int64_t edge) const { return static_cast<bool>(edges[edge].node); }
  int64_t edge_of_input(int input) const;  // of a pointwise operator; -1: it has none
  bool needs_input(int input) const {
    const int64_t edge = edge_of_input(input);
    return edge >= 0 && needs(edge);
  }
};

// What a pointwise call in which these inputs are numbers is called, if that has a name of its own; or null.
const NodeName* name_by_numbers(const Operator& op, uint8_t numbers);

extern thread_local bool keeps_grad_layout;  // .grad gets the strides of its leaf

// Leaves: adds the gradient to tensor.grad.
class AccumulateGrad : public Node {
 public:
  explicit AccumulateGrad(const Tensor& t);
  ~AccumulateGrad() override;
  const char* own_name() const override { return "torch::autograd::AccumulateGrad"; }
  bool is_accumulate() const override { return true; }
  bool runs_without_gradient() const override { return true; }
  void backward(Grads& grads, Grads& out) override;
  Tensor variable;

 private:
  void accumulate(Grads& grads);
  Tensor empty_like_variable(Dtype dtype) const;
};

// ---- what autograd keeps with a tensor

enum class ViewOrigin : uint8_t { ordinary, no_grad, several_views, inference, function };

class AutogradState : public GradState {
 public:
  ~AutogradState() override;
  RefPtr<Node> grad_fn;
  uint32_t output_index = 0;
  Tensor grad;
  AccumulateGrad* accumulator = nullptr;  // cleared by it
  RefPtr<WeakTensor> weak;
  std::vector<RefPtr<TensorHook>> leaf_hooks;  // hooks of a leaf
  std::vector<RefPtr<TensorHook>> post_accumulate;
  bool retains_grad = false;
  bool any_grad_dtype = false;      // Tensor.grad_dtype was set to None
  std::optional<Dtype> grad_dtype;  // or to this; else it is the dtype of the tensor
  uint32_t history = 0;             // of a base: how often its history was rewritten through a view
  struct Tangent {
    int64_t level;
    Tensor tensor;
  };
  std::vector<Tangent>
      tangents;  // forward mode, one for each open level that gave it one; TensorImpl::has_tangent: there are some
  void* python_hooks = nullptr;  // the dict behind Tensor._backward_hooks, owned by the bindings
};

inline AutogradState* state_of(const TensorImpl* t) { return static_cast<AutogradState*>(t->grad_state); }
AutogradState& state_for_writing(TensorImpl* t);

RefPtr<Node> grad_fn(const Tensor& t);         // regenerated for a view whose base was changed in place
ResultInfo gradient_info(const Tensor& leaf);  // what its gradient is made to fit
void forget_accumulator(const Tensor& t);  // the leaf becomes another one; graphs made up to now lead to the old one
Edge gradient_edge(const Tensor& t);       // grad_fn or the accumulator; empty when no gradient is wanted
void renew_view(const TensorImpl& view);   // a view whose base got a tangent has one, too
bool is_leaf(const Tensor& t);
void set_history(const Tensor& t, RefPtr<Node> node);  // appends a result to the node
// The node of t, which a call made of other operators has just computed, is called `name`: what PyTorch calls the call.
// `name` is kept as it is, and must live as long as the program. A node that Python has seen keeps the name it had.
void name_node(const Tensor& t, const char* name);
void rebase_history(const Tensor& t, RefPtr<Node> node);  // after an in-place change recorded by `node`
void lead_flatly(const Tensor& t, const Edge& to);        // t depends on `to` as well, with a slope of zero
void become_view(const Tensor& t, const Tensor& view);    // t takes the sizes, strides and history of a view of itself
void set_requires_grad(const Tensor& t, bool on, const char* only = "Only Tensors of floating point and complex");
Tensor detach(const Tensor& t);  // shares memory and version
void check_inplace(const char* who, const Tensor& target, bool record);
// For forward mode: a node that stands for the call just made. `sources` has the tensor of each edge, undefined for a
// number or None; those with a tangent have an edge.
RefPtr<Node> node_for_tangents(Call& c, std::vector<Tensor>& sources);
void install_autograd();  // plugs the steps into dispatch

// The Python side, plugged in by the bindings.
struct PythonSteps {
  void (*derivative)(OperatorNode&, Grads& grads,
                     Grads& out);  // calls op.derivative, or the formula of a pointwise operator
  void (*forward_mode)(Call&);
  CodePosition (*capture)();
  std::string (*describe)(CodePosition);
  RefPtr<PackedTensor> (*pack)(const Tensor&);  // null unless saved_tensors_hooks are active
  void (*release_object)(void*);
  void (*note_anomaly)(Node&);         // keeps the traceback of the call
  void (*explain_anomaly)(Node&);      // adds it to the exception in flight
  bool (*interpreted)(const Tensor&);  // has it no elements of its own, but a Python class that interprets calls?
  Tensor (*interpret)(const char* method, const Tensor& self,
                      const Tensor& other);  // self.method(other); `other` may be undefined
};
extern PythonSteps python_steps;
inline bool is_interpreted(const Tensor& t) { return t->wrapper && python_steps.interpreted(t); }
extern thread_local bool packs_saved_tensors;
class NoPacking {  // a block in which nothing that is saved goes through hooks
 public:
  ~NoPacking() { packs_saved_tensors = before_; }

 private:
  bool before_ = std::exchange(packs_saved_tensors, false);
};

}  // namespace cresset
