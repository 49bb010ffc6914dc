#include "autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "dispatch/autocast.h"
#include "dispatch/expendable.h"
#include "dispatch/late.h"
#include "dispatch/profile.h"

namespace cresset {
namespace {

const Operator& op(const char* name, const char* overload = "") {
  const Operator* found = Registry::instance().find(name, overload);
  invariant(found, std::string("operator missing: ") + name);
  return *found;
}

Tensor add(const Tensor& a, const Tensor& b) {
  if (is_interpreted(a)) return python_steps.interpret("add", b, a);  // dense before sparse, the later before
  if (is_interpreted(b)) return python_steps.interpret("add", a, b);
  static const Operator& add_op = op("add");
  return call_operator(add_op, a, b);
}

// What the engine knows of a node during one run.
struct Task {
  Node* node = nullptr;
  uint32_t waiting_for = 0;  // edges that still have to bring their gradient
  bool needed = true;        // something wanted lies behind it
  bool ready = false;
  int32_t wanted_at = -1;  // first entry of `wanted` that asks for this node, linked through next_wanted
  Grads grads;
};

// Node -> task, open addressing.
class Tasks {
 public:
  Tasks() : slots_(16, -1) {}
  int32_t find(const Node* n) const {
    for (size_t i = hash(n);; ++i) {
      const int32_t k = slots_[i & (slots_.size() - 1)];
      if (k < 0 || tasks_[static_cast<size_t>(k)].node == n) return k;
    }
  }
  int32_t add(Node* n) {
    if (2 * (tasks_.size() + 1) > slots_.size()) grow();
    const int32_t k = static_cast<int32_t>(tasks_.size());
    tasks_.emplace_back().node = n;
    place(n, k);
    return k;
  }
  Task& operator[](int32_t k) { return tasks_[static_cast<size_t>(k)]; }

 private:
  static size_t hash(const Node* n) { return (reinterpret_cast<size_t>(n) >> 6) * 0x9E3779B97F4A7C15ull >> 20; }
  void place(const Node* n, int32_t k) {
    size_t i = hash(n);
    while (slots_[i & (slots_.size() - 1)] >= 0) ++i;
    slots_[i & (slots_.size() - 1)] = k;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, -1);
    for (size_t k = 0; k < tasks_.size(); ++k) place(tasks_[k].node, static_cast<int32_t>(k));
  }
  std::vector<Task> tasks_;
  std::vector<int32_t> slots_;
};

void check_nan(const Node& node, const Grads& out) {
  for (int64_t i = 0; i < out.size(); ++i) {
    Tensor grad = out[i];
    while (grad.defined() && grad->batch_level()) grad = Tensor(grad->batch);  // of all samples
    if (!grad.defined() || !is_differentiable(grad.dtype()) || is_interpreted(grad) || grad->level) continue;
    static const Operator &isnan = op("isnan"), &any = op("any");
    GradModeGuard off(false);
    check(!item(call_operator(any, call_operator(isnan, grad))).integer, "Function '", node.name(),
          "' returned nan values in its ", i, "th output.");
  }
}

// The backward of what was called in a compiled region computes late.
class ComputingLate {
 public:
  explicit ComputingLate(bool late) { computes_late |= late; }
  ~ComputingLate() { computes_late = before_; }
  ComputingLate(const ComputingLate&) = delete;

 private:
  const bool before_ = computes_late;
};

// Note [Expendable memory]
void offer_saved(const Node& node, Expendable& expendable) {
  if (const auto* operation = dynamic_cast<const OperatorNode*>(&node); operation && !operation->op.pointwise)
    for (const OwnedValue& value : operation->saved)
      if (!value.tensor.is_output()) expendable.offer(value.tensor.raw());
}

class BackwardRun {
 public:
  explicit BackwardRun(const BackwardRequest& request)
      : request_(request), captured_(request.wanted.size()), around_(current) {
    current = this;
  }
  ~BackwardRun() { current = around_; }
  BackwardRun(const BackwardRun&) = delete;

  static thread_local BackwardRun* current;
  static int64_t started() { return next_number; }
  const int64_t number = next_number++;
  Node* running = nullptr;
  std::vector<std::function<void()>> at_end;
  bool is_partial() const { return !request_.wanted.empty(); }
  bool will_run(const Node* node) {
    const int32_t k = tasks_.find(node);
    return k >= 0 && (tasks_[k].needed || tasks_[k].wanted_at >= 0);
  }

  std::vector<Tensor> go() {
    discover();
    if (!request_.wanted.empty()) mark_needed();
    for (size_t i = 0; i < request_.roots.size(); ++i) {
      const auto& [node, index] = request_.roots[i];
      Tensor grad = request_.root_grads[i];
      // A root may have got other sizes since it was recorded (out= without recording); its node knows the old ones.
      if (grad.defined() && !node->is_accumulate() && index < node->results.size() &&
          !(grad.sizes() == node->results[index].sizes))
        grad = fit(node->name(), index, grad, node->results[index]);
      receive(tasks_[tasks_.find(node.get())], index, grad);
    }
    for (auto& root : request_.roots) {
      const int32_t k = tasks_.find(root.node.get());
      if (tasks_[k].waiting_for == 0 && !tasks_[k].ready) make_ready(k);
    }
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end());
      const int32_t k = ready_.back().task;
      ready_.pop_back();
      serve(k);
    }
    for (size_t i = 0; i < at_end.size(); ++i) at_end[i]();  // a step may add further ones
    return std::move(captured_);
  }

 private:
  struct Ready {
    uint64_t sequence;
    int32_t task;
    bool operator<(const Ready& o) const { return sequence < o.sequence; }
  };

  void make_ready(int32_t k) {
    tasks_[k].ready = true;
    ready_.push_back({tasks_[k].node->sequence, k});
    std::push_heap(ready_.begin(), ready_.end());
  }

  // Finds every node behind the roots and how many edges lead to each.
  void discover() {
    std::vector<int32_t> open;
    for (auto& root : request_.roots)
      if (tasks_.find(root.node.get()) < 0) open.push_back(tasks_.add(root.node.get()));
    while (!open.empty()) {
      Node* node = tasks_[open.back()].node;
      open.pop_back();
      for (const Edge& e : node->edges) {
        if (!e.node) continue;
        int32_t k = tasks_.find(e.node.get());
        if (k < 0) open.push_back(k = tasks_.add(e.node.get()));
        ++tasks_[k].waiting_for;
      }
      order_.push_back(node);
    }
    next_wanted_.assign(request_.wanted.size(), -1);
    for (size_t i = request_.wanted.size(); i-- > 0;) {
      if (!request_.wanted[i].node) continue;
      const int32_t k = tasks_.find(request_.wanted[i].node.get());
      if (k < 0) continue;
      next_wanted_[i] = tasks_[k].wanted_at;
      tasks_[k].wanted_at = static_cast<int32_t>(i);
    }
  }

  // With `wanted`, a node runs only if something wanted lies behind it. Children before parents, without recursion.
  void mark_needed() {
    struct Step {
      Node* node;
      int64_t next;
    };
    for (Node* n : order_) tasks_[tasks_.find(n)].needed = false;
    std::vector<uint8_t> done;  // by task: visited
    done.assign(order_.size(), 0);
    for (auto& root : request_.roots) {
      std::vector<Step> stack{{root.node.get(), 0}};
      while (!stack.empty()) {
        Step& s = stack.back();
        const int32_t k = tasks_.find(s.node);
        if (s.next == 0 && done[static_cast<size_t>(k)]) {
          stack.pop_back();
          continue;
        }
        if (s.next == 0) done[static_cast<size_t>(k)] = 1;
        if (s.next < s.node->edges.size()) {
          Node* child = s.node->edges[s.next++].node.get();
          if (child) stack.push_back({child, 0});
          continue;
        }
        for (const Edge& e : s.node->edges)
          if (e.node) {
            Task& child = tasks_[tasks_.find(e.node.get())];
            tasks_[k].needed |= child.needed || child.wanted_at >= 0;
          }
        if (s.node->is_accumulate()) tasks_[k].needed = request_.accumulate && tasks_[k].wanted_at >= 0;
        // Nothing wanted lies behind a result whose .grad is wanted; it is for the hooks of its node that it runs.
        if (request_.accumulate && tasks_[k].wanted_at >= 0 && s.node->hooks && !s.node->hooks->node.empty())
          tasks_[k].needed = true;
        stack.pop_back();
      }
    }
  }

  void receive(Task& t, uint32_t index, Tensor grad) {
    if (t.grads.size() < static_cast<int64_t>(t.node->results.size()))
      t.grads.resize(static_cast<int64_t>(t.node->results.size()));
    if (t.grads.size() <= index) t.grads.resize(index + 1);
    Tensor& slot = t.grads[index];
    slot = slot.defined() ? add(slot, grad) : std::move(grad);
  }

  void serve(int32_t k) {
    Node& node = *tasks_[k].node;
    const ComputingLate late(node.late);
    RefPtr<Node> keep(&node);
    running = &node;
    Grads grads = std::move(tasks_[k].grads);
    grads.resize(std::max<int64_t>(grads.size(), node.results.size()));
    if (node.hooks && (tasks_[k].needed || tasks_[k].wanted_at >= 0)) run_result_hooks(node, grads);
    // A leaf's hooks come before those of its node, as another tensor's do.
    if (node.is_accumulate() && (tasks_[k].needed || tasks_[k].wanted_at >= 0))
      run_leaf_hooks(static_cast<AccumulateGrad&>(node), grads);
    if (tasks_[k].wanted_at >= 0) {
      for (int32_t w = tasks_[k].wanted_at; w >= 0; w = next_wanted_[static_cast<size_t>(w)]) {
        const uint32_t index = request_.wanted[static_cast<size_t>(w)].index;
        if (index < grads.size()) captured_[static_cast<size_t>(w)] = grads[index];
      }
    }
    Grads out;
    out.resize(node.edges.size());
    const bool hooked = node.hooks && !node.hooks->node.empty();
    if (tasks_[k].needed && (hooked || has_work(node, grads))) {
      const Profiled whole("autograd::engine::evaluate_function: ", node.name(), ProfileKind::node);
      GradModeGuard mode(request_.create_graph);
      if (hooked)
        for (auto& hook : std::vector(node.hooks->node)) hook->before(grads);
      Grads before;
      if (hooked) before = grads;
      if (!hooked || has_work(node, grads)) run(node, grads, out, hooked);
      for (int64_t i = 0; i < out.size(); ++i)
        if (out[i].defined() && node.edges[i].node) out[i] = fit(node.name(), i, out[i], target_of(node.edges[i]));
      if (node.hooks && !node.hooks->node.empty()) {
        before.resize(grads.size());  // hooks that came while it ran see no gradients
        for (auto& hook : std::vector(node.hooks->node)) hook->after(out, before);
      }
    }
    if (tasks_[k].needed && !request_.keep_graph) node.release_saved();
    for (int64_t i = 0; i < node.edges.size(); ++i) {
      const Edge& e = node.edges[i];
      if (!e.node) continue;
      const int32_t child = tasks_.find(e.node.get());
      if (i < out.size() && out[i].defined()) receive(tasks_[child], e.index, std::move(out[i]));
      if (--tasks_[child].waiting_for == 0) make_ready(child);
    }
    running = nullptr;  // what runs at the end of the run belongs to no node
  }

  // Whether a node computes something: most do nothing where no gradient has come.
  static bool has_work(const Node& node, const Grads& grads) {
    for (const Tensor& g : grads)
      if (g.defined()) return true;
    return node.results.empty() || node.runs_without_gradient();
  }

  void run(Node& node, Grads& grads, Grads& out, bool hooked) {
    try {
      const Profiled derivative("", node.name(), ProfileKind::node);
      Expendable expendable;
      if (computes_late && !request_.keep_graph && !request_.create_graph) {
        offer_saved(node, expendable);
        if (!hooked) expendable.offer_gradients({grads.begin(), grads.end()});
      }
      node.backward(grads, out);
      if (modes.anomaly && modes.anomaly_checks_nan) check_nan(node, out);
    } catch (...) {
      if (modes.anomaly) python_steps.explain_anomaly(node);
      throw;
    }
  }

  static ResultInfo target_of(const Edge& e) {
    return e.index < e.node->results.size() ? e.node->results[e.index] : ResultInfo{};
  }

  // What a hook gives instead of a gradient; nothing: it stays.
  static void replace(Tensor& grad, Tensor by) {
    if (!by.defined()) return;
    check_replaced(grad);
    grad = std::move(by);
  }

  void run_result_hooks(Node& node, Grads& grads) {
    for (auto& h : std::vector(node.hooks->on_results)) {
      if (h.index >= grads.size()) continue;  // a gradient that did not come is None to the hook
      GradModeGuard mode(request_.create_graph);
      replace(grads[h.index], h.hook->call(grads[h.index]));
    }
    for (auto& r : std::vector(node.hooks->retain)) {
      if (!r.tensor->tensor || r.index >= grads.size() || !grads[r.index].defined()) continue;
      if (grads[r.index]->batch_level() != r.tensor->tensor->batch_level())
        continue;  // a batch of gradients inside vmap, which is over before .grad is read
      AutogradState& state = state_for_writing(r.tensor->tensor);
      GradModeGuard mode(request_.create_graph);
      // A copy: what flows on, or is given to the caller, may be changed in place. Contiguous, as in PyTorch.
      static const Operator &copy = *Registry::instance().find("clone"),
                            &plain = *Registry::instance().find("contiguous");
      const Tensor& grad = grads[r.index];
      if (state.grad.defined())
        state.grad = add(state.grad, grad);
      else
        state.grad = is_interpreted(grad) || grad->level ? grad
                     : request_.create_graph             ? call_operator(plain, call_operator(copy, grad))
                                                         : clone(grad, MemoryFormat::contiguous);
    }
  }

  void run_leaf_hooks(AccumulateGrad& leaf, Grads& grads) {
    AutogradState* state = state_of(leaf.variable.get());
    if (!state) return;
    GradModeGuard mode(request_.create_graph);
    for (auto& hook : std::vector(state->leaf_hooks)) replace(grads[0], hook->call(grads[0]));
  }

  const BackwardRequest& request_;
  Tasks tasks_;
  std::vector<Node*> order_;
  std::vector<int32_t> next_wanted_;
  std::vector<Ready> ready_;
  std::vector<Tensor> captured_;
  BackwardRun* around_;  // the run in whose backward this one was started
  static std::atomic<int64_t> next_number;
};
thread_local BackwardRun* BackwardRun::current = nullptr;
std::atomic<int64_t> BackwardRun::next_number = 0;

}  // namespace

Tensor fit(const char* who, size_t index, const Tensor& grad, const ResultInfo& to) {
  Tensor g = grad;
  if (!(g.sizes() == to.sizes)) {
    // Broadcast dimensions are summed; the sizes must agree otherwise.
    const int64_t lead = g.dim() - to.sizes.size();
    bool fits = lead >= 0;
    Dims dims;
    for (int64_t d = 0; fits && d < g.dim(); ++d) {
      const int64_t want = d < lead ? 1 : to.sizes[d - lead];
      if (d < lead || (want == 1 && g.size(d) != 1))
        dims.push_back(d);
      else
        fits = want == g.size(d);
    }
    check(fits, "Function ", who, " returned an invalid gradient at index ", index, " - got ", list(grad.sizes()),
          " but expected shape compatible with ", list(to.sizes));
    if (!dims.empty()) {
      static const Operator& sum = op("sum");
      g = call_operator(sum, g, DimsView(dims), Scalar(true));
    }
    if (lead > 0) {
      static const Operator& view = op("reshape");
      g = call_operator(view, g, DimsView(to.sizes));
    }
  }
  if (g.dtype() != to.dtype && !to.any_dtype) {
    if (is_complex(g.dtype()) && !is_complex(to.dtype)) {
      static const Operator& real = op("real");
      g = call_operator(real, g);
    }
    if (g.dtype() != to.dtype) {
      static const Operator& to_dtype = op("to_dtype");
      g = call_operator(to_dtype, g, to.dtype);
    }
  }
  return g;
}

int64_t backwards_started() { return BackwardRun::started(); }
int64_t current_backward() { return BackwardRun::current ? BackwardRun::current->number : -1; }
RefPtr<Node> running_node() { return RefPtr<Node>(BackwardRun::current ? BackwardRun::current->running : nullptr); }
bool backward_is_partial() { return BackwardRun::current && BackwardRun::current->is_partial(); }
bool will_run(const Node* node) { return BackwardRun::current && BackwardRun::current->will_run(node); }
void after_backward(std::function<void()> step) {
  check(BackwardRun::current, "Final callbacks can only be installed during backward pass.");
  BackwardRun::current->at_end.push_back(std::move(step));
}

std::vector<Tensor> run_backward(const BackwardRequest& request) {
  const AutocastOffGuard off;  // derivatives run in the precision of their forward pass, wherever backward is called
  std::vector<Tensor> captured = BackwardRun(request).go();
  if (!computes_late && pending_count.load(std::memory_order_relaxed)) settle_all("backward ends");
  return captured;
}

}  // namespace cresset
