// How history is attached to tensors: leaves, results, views and in-place changes.
//
// Note [Views and in-place writes]
// A view knows its base (TensorImpl::base, never itself a view). When a view is changed in place, the base's history is
// rewritten: a CopySlices node stands for "the base with this part replaced", and the base's history number goes up.
// Every view compares that number when its grad_fn is asked for, and makes a new one (a strided view of the new base)
// when it has fallen behind.
#include "autograd/node.h"

namespace cresset {
namespace {

struct Geometry {
  Dims sizes, strides;
  int64_t offset;
  Dtype dtype;
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.offset()), dtype(t.dtype()) {}
};

const Operator& op(const char* name) {
  const Operator* found = Registry::instance().find(name);
  invariant(found, std::string("operator missing: ") + name);
  return *found;
}

void check_apart(const Geometry& base) {
  check(is_dense(base.sizes, base.strides) || !may_overlap(base.sizes, base.strides),
        "backward: a view of a tensor whose elements share memory was changed in place; clone it before the change");
}

// How many elements lie between the first and the last one, both included: with gaps more than there are.
int64_t extent(const Geometry& base) {
  int64_t last = 0;
  for (int64_t d = 0; d < base.sizes.size(); ++d) {
    if (base.sizes[d] == 0) return 0;
    last += (base.sizes[d] - 1) * base.strides[d];
  }
  return last + 1;
}

// A zero (or copied) tensor with the base's layout, gaps and all, and the part of it that the view covers.
Tensor fresh_base(const Geometry& base, const Tensor& like, bool zero) {
  check_apart(base);
  const bool dense = is_dense(base.sizes, base.strides);
  if (dense && !like->level && !modes.dispatching) {
    Tensor t = empty(TensorInfo{base.sizes, base.strides, base.dtype, like.device()});
    if (zero) fill(t, Scalar(0));
    return t;
  }
  Tensor t =
      dense ? call_operator(op("new_empty_strided"), like, DimsView(base.sizes), DimsView(base.strides), base.dtype)
            : call_operator(op("new_empty"), like, DimsView(Dims{extent(base)}), base.dtype);
  if (zero) t = call_operator(op("zero_"), t);
  return dense ? t
               : call_operator(op("as_strided"), t, DimsView(base.sizes), DimsView(base.strides), Scalar(int64_t{0}));
}

Tensor part_of(const Tensor& whole, const Geometry& view, const Geometry& base) {
  if (view.dtype == base.dtype)
    return call_operator(op("as_strided"), whole, DimsView(view.sizes), DimsView(view.strides),
                         Scalar(view.offset - base.offset));
  // A view of complex numbers as real ones or the other way round: sizes, strides and offset count its own elements.
  const int64_t count = extent(base);
  Tensor line;
  int64_t offset;
  if (is_complex(base.dtype)) {
    line = call_operator(op("view_as_real"), call_operator(op("as_strided"), whole, DimsView(Dims{count}),
                                                           DimsView(Dims{1}), Scalar(int64_t{0})));
    offset = view.offset - 2 * base.offset;
  } else {
    const int64_t start = 2 * view.offset - base.offset, odd = start % 2;
    line =
        call_operator(op("as_strided"), whole, DimsView(Dims{(count - odd) / 2, 2}), DimsView(Dims{2, 1}), Scalar(odd));
    line = call_operator(op("view_as_complex"), line);
    offset = (start - odd) / 2;
  }
  return call_operator(op("as_strided"), line, DimsView(view.sizes), DimsView(view.strides), Scalar(offset));
}

class AsStridedView : public Node {
 public:
  AsStridedView(const Geometry& base, const Geometry& view, Edge of, Device device) : base_(base), view_(view) {
    edges.push_back(std::move(of));
    results.push_back({view.sizes, view.dtype, device});
  }
  const char* own_name() const override { return "AsStridedBackward0"; }
  void backward(Grads& grads, Grads& out) override {
    if (may_overlap(view_.sizes, view_.strides)) {
      out[0] = added_up(grads[0]);
      return;
    }
    Tensor whole = fresh_base(base_, grads[0], true);
    call_operator(op("copy_"), part_of(whole, view_, base_), grads[0]);
    out[0] = whole;
  }

 private:
  // The base's gradient where elements of the view share memory: each adds its own. Where one of the two is a view of
  // complex numbers as real ones, places are counted in real numbers.
  Tensor added_up(Tensor grad) const {
    check_apart(base_);
    Dims sizes = view_.sizes, strides = view_.strides;
    const bool parts = is_complex(base_.dtype) && !is_complex(view_.dtype);
    const bool pairs = is_complex(view_.dtype) && !is_complex(base_.dtype);
    int64_t start = view_.offset - base_.offset, count = extent(base_);
    if (parts) {
      start -= base_.offset;
      count *= 2;
    } else if (pairs) {
      start += view_.offset;
      for (int64_t& stride : strides) stride *= 2;
      sizes.push_back(2);
      strides.push_back(1);
      grad = call_operator(op("view_as_real"), grad);
    }
    const Dims all{-1};
    Tensor places = call_operator(op("arange"), Scalar(count), Dtype::i64, Value(), grad.device());
    places = call_operator(op("as_strided"), places, DimsView(sizes), DimsView(strides), Scalar(start));
    Tensor line = call_operator(op("new_zeros"), grad, DimsView(Dims{count}));
    line = call_operator(op("index_add"), line, Scalar(int64_t{0}), call_operator(op("reshape"), places, DimsView(all)),
                         call_operator(op("reshape"), grad, DimsView(all)));
    if (parts)
      line = call_operator(op("view_as_complex"), call_operator(op("reshape"), line, DimsView(Dims{count / 2, 2})));
    return call_operator(op("as_strided"), line, DimsView(base_.sizes), DimsView(base_.strides), Scalar(int64_t{0}));
  }

  Geometry base_, view_;
};

// Of something that depends on its second edge by a slope of zero; of a gradient that is constant in pieces, say.
class Flat : public Node {
 public:
  const char* own_name() const override { return "FlatBackward0"; }
  void backward(Grads& grads, Grads& out) override {
    out[0] = grads[0];
    const ResultInfo& to = edges[1].node->results[edges[1].index];
    out[1] = call_operator(op("new_zeros"), grads[0], DimsView(to.sizes), to.dtype);
  }
};

class CopySlices : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, RefPtr<Node> change)
      : base_(base), view_(view), change_(std::move(change)) {
    edges.push_back(gradient_edge(base));
    for (int64_t i = 1; i < change_->edges.size(); ++i) edges.push_back(change_->edges[i]);
  }
  const char* own_name() const override { return "torch::autograd::CopySlices"; }
  void backward(Grads& grads, Grads& out) override {
    check(change_,
          "Trying to backward through the graph a second time (or directly access saved tensors after they have "
          "already been freed). Specify retain_graph=True if you need to.");
    Tensor whole = grads[0];
    // Where nobody asks for the gradient of what was there before, that of the part is read in place.
    if (edges[0].node || whole->level || whole.offset() != 0 || whole.dtype() != base_.dtype ||
        !(whole.strides() == base_.strides) || !is_dense(base_.sizes, base_.strides)) {
      whole = fresh_base(base_, grads[0], false);
      call_operator(op("copy_"), whole, grads[0]);
    }
    Tensor part = part_of(whole, view_, base_);
    Grads part_grads, changed;
    part_grads.push_back(call_operator(op("clone"), part));
    changed.resize(change_->edges.size());
    run_change(part_grads, changed);
    if (!edges[0].node) {
    } else if (!change_->edges.empty() && changed[0].defined()) {
      call_operator(op("copy_"), part, changed[0]);
    } else {
      call_operator(op("zero_"), part);
    }
    out[0] = edges[0].node ? whole : Tensor();
    for (int64_t i = 1; i < changed.size(); ++i) out[i] = changed[i];
  }
  void release_saved() override {
    if (change_) change_->release_saved();
    change_.reset();
  }

 private:
  void run_change(Grads& grads, Grads& out) {
    ChangedPart part{change_.get(), {}};
    if (modes.grad_enabled)
      part.history.node = RefPtr<Node>(new AsStridedView(base_, view_, {RefPtr<Node>(this), 0}, results[0].device));
    const ChangedPart* const before = std::exchange(changed_part, &part);
    try {
      change_->backward(grads, out);
    } catch (...) {
      changed_part = before;
      throw;
    }
    changed_part = before;
  }

  Geometry base_, view_;
  RefPtr<Node> change_;
};

}  // namespace

AutogradState::~AutogradState() {
  if (weak) weak->tensor = nullptr;
  if (python_hooks) python_steps.release_object(python_hooks);
}

AutogradState& state_for_writing(TensorImpl* t) {
  if (!t->grad_state) t->grad_state = new AutogradState;
  return *static_cast<AutogradState*>(t->grad_state);
}

static uint32_t history_of(const Tensor& base) {
  const AutogradState* s = state_of(base.get());
  return s ? s->history : 0;
}

// Recording a change of a view, or of what it shows (`indirect`), is refused where its own history would then be wrong.
static void check_origin(const Tensor& t, bool indirect) {
  const ViewOrigin origin = static_cast<ViewOrigin>(t->view_origin);
  if (origin == ViewOrigin::ordinary) return;
  const char* what =
      indirect ? "its base or another view of its base has been modified inplace" : "is being modified inplace";
  const AutogradState* const state = state_of(t.get());
  const std::string name = state && state->grad_fn
                               ? join("Output ", state->output_index, " of ", operation_name(*state->grad_fn))
                               : "A result";
  check(origin != ViewOrigin::several_views, name, " is a view and ", what,
        ". This view is the output of a function that returns multiple views. "
        "Such functions do not allow the output views to be modified inplace. You should replace the inplace operation "
        "by an out-of-place one.");
  check(origin != ViewOrigin::function, name, " is a view and ", what,
        ". This view was created inside a custom Function (or because an input was returned as-is): "
        "recording the change would pass by the function's own backward. Clone the result first.");
  const bool inference = origin == ViewOrigin::inference;
  const char* mode = inference ? "inference_mode" : "no_grad";
  const std::string viewed = state && state->grad_fn ? name + " is a view of a view which" : "A view";
  check(
      false, viewed, " was created in ", inference ? "inference" : mode, " mode and ", what,
      inference ? " in normal mode" : " with grad mode enabled",
      ". Given that this use case is ambiguous and error-prone, it is forbidden. "
      "You can clarify your code by moving both the view and the inplace either both inside the ",
      mode,
      " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).");
}

// The retained gradient of a tensor that is changed in place is that of its new value.
static void move_retained(const Tensor& t, AutogradState& state, Node& node) {
  if (!state.retains_grad) return;
  if (state.grad_fn && state.grad_fn->hooks)
    std::erase_if(state.grad_fn->hooks->retain, [&](auto& r) { return r.tensor->tensor == t.get(); });
  node.hooks_for_writing().retain.push_back({0, state.weak});
}

RefPtr<Node> grad_fn(const Tensor& t) {
  if (t->base) {
    const Tensor base(t->base);
    const uint32_t now = history_of(base);
    if (now != t->seen_history) {
      if (base->requires_grad) check_origin(t, true);
      AutogradState& state = state_for_writing(t.get());
      t->seen_history = now;
      if (base->requires_grad) {
        RefPtr<Node> node(new AsStridedView(Geometry(base), Geometry(t), gradient_edge(base), t.device()));
        move_retained(t, state, *node);
        state.grad_fn = node;
        state.output_index = 0;
        t->requires_grad = true;
      } else {
        state.grad_fn.reset();
      }
      return state.grad_fn;
    }
  }
  const AutogradState* s = state_of(t.get());
  return s ? s->grad_fn : nullptr;
}

void renew_view(const TensorImpl& view) {
  const Tensor t(const_cast<TensorImpl*>(&view)), base(t->base);
  const AutogradState& of_base = *state_of(base.get());
  for (const AutogradState::Tangent& of : std::vector(of_base.tangents)) {
    if (t.dtype() != base.dtype()) continue;  // other elements than those that the tangent has
    Tensor whole = of.tensor;
    if (!(whole.strides() == base.strides())) {  // the same strides show the same elements
      GradModeGuard off(false);
      whole = call_operator(op("new_empty_strided"), of.tensor, DimsView(base.sizes()), DimsView(base.strides()));
      call_operator(op("copy_"), whole, of.tensor);
    }
    const Tensor tangent = call_operator(op("as_strided"), whole, DimsView(t.sizes()), DimsView(t.strides()),
                                         Scalar(t.offset() - base.offset() + whole.offset()));
    state_for_writing(t.get()).tangents.push_back({of.level, tangent});
    t->has_tangent = true;
  }
}

bool is_leaf(const Tensor& t) { return !requires_grad(t) || !grad_fn(t); }

ResultInfo gradient_info(const Tensor& leaf) {
  const AutogradState* const state = state_of(leaf.get());
  const Dtype dtype = state && state->grad_dtype ? *state->grad_dtype : leaf.dtype();
  return {leaf.sizes(), dtype, leaf.device(), state && state->any_grad_dtype};
}

void forget_accumulator(const Tensor& t) {
  if (AutogradState* state = state_of(t.get())) state->accumulator = nullptr;
}

Edge gradient_edge(const Tensor& t) {
  if (RefPtr<Node> node = grad_fn(t)) return {node, state_of(t.get())->output_index};
  if (!t->requires_grad) return {};
  AutogradState& state = state_for_writing(t.get());
  if (state.accumulator) return {RefPtr<Node>(state.accumulator), 0};
  auto* accumulator = new AccumulateGrad(t);
  state.accumulator = accumulator;
  return {RefPtr<Node>(accumulator), 0};
}

void set_history(const Tensor& t, RefPtr<Node> node) {
  node->results.push_back({t.sizes(), t.dtype(), t.device()});
  if (!is_differentiable(t.dtype())) return;
  AutogradState& state = state_for_writing(t.get());
  state.output_index = static_cast<uint32_t>(node->results.size() - 1);
  state.grad_fn = std::move(node);
  t->requires_grad = true;
}

void name_node(const Tensor& t, const char* name) {
  const AutogradState* state = state_of(t.get());
  if (state && state->grad_fn && !state->grad_fn->wrapper) state->grad_fn->given_name = name;
}

void lead_flatly(const Tensor& t, const Edge& to) {
  RefPtr<Node> node(new Flat);
  node->edges.push_back(gradient_edge(t));
  node->edges.push_back(to);
  set_history(t, std::move(node));
}

void rebase_history(const Tensor& t, RefPtr<Node> node) {
  if (t->base) {
    const Tensor base(t->base);
    node->results.push_back({t.sizes(), t.dtype(), t.device()});
    RefPtr<Node> copy(new CopySlices(base, t, std::move(node)));
    AutogradState& base_state = state_for_writing(base.get());
    copy->results.push_back({base.sizes(), base.dtype(), base.device()});
    move_retained(base, base_state, *copy);
    base_state.grad_fn = copy;
    base_state.output_index = 0;
    base->requires_grad = true;
    ++base_state.history;
    grad_fn(t);
    return;
  }
  AutogradState& state = state_for_writing(t.get());
  ++state.history;
  move_retained(t, state, *node);
  set_history(t, std::move(node));
}

void become_view(const Tensor& t, const Tensor& view) {
  if (view->requires_grad) {
    RefPtr<Node> node = grad_fn(view);
    AutogradState& state = state_for_writing(t.get());
    if (!t->base) ++state.history;
    state.output_index = state_of(view.get())->output_index;
    state.grad_fn = std::move(node);
    t->requires_grad = true;
  }
  if (t->has_tangent) state_for_writing(t.get()).tangents = state_of(view.get())->tangents;  // the same views of them
  t->sizes = view.sizes();
  t->strides = view.strides();
  t->offset = view.offset();
  if (t->batch_level()) {  // a sample: of what it is one has other dimensions now, too
    t->batch = view->batch;
    t->batch_dim = view->batch_dim;
  }
  t->update_numel_and_contiguity();
  ++t->storage->version;
}

Tensor detach(const Tensor& t) {
  if (t->level == kDispatched) {
    GradModeGuard off(false);
    return call_operator(op("detach"), t);
  }
  if (t->level) return sample_of(Tensor(t->batch), t->batch_dim, t->level);
  Tensor d = view_of(t, t.sizes(), t.strides(), t.offset());
  d->wrapped_number = t->wrapped_number;
  return d;
}

void set_requires_grad(const Tensor& t, bool on, const char* only) {
  if (on == t->requires_grad && (on || !grad_fn(t))) return;
  check(on || is_leaf(t),
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  if (on) {
    check(is_differentiable(t.dtype()), only, " dtype can require gradients, got ", name_of(t.dtype()));
    check(!t->inference || modes.inference,
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  }
  t->requires_grad = on;
  if (on) state_for_writing(t.get());
}

void check_inplace(const char* who, const Tensor& t, bool record) {
  check(!t.storage()->read_only || t.numel() == 0, who, ": the tensor's memory is read-only; clone it first");
  check(!t->inference || modes.inference,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
  if (!modes.grad_enabled) return;
  if (t->base) {
    const Tensor base(t->base);
    if (record || requires_grad(t)) check_origin(t, false);
    check(!(requires_grad(t) && is_leaf(base)), who,
          ": a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  check(!(t->requires_grad && is_leaf(t)), who,
        ": a leaf Variable that requires grad is being used in an in-place operation.");
}

}  // namespace cresset
