#include "dispatch/call.h"

#include "dispatch/autocast.h"

#include <algorithm>
#include <unordered_set>

#include "dispatch/casting.h"
#include "dispatch/in_layout.h"
#include "dispatch/late.h"
#include "dispatch/on_host.h"
#include "dispatch/placement.h"
#include "dispatch/profile.h"
#include "tensor/requires_grad.h"

namespace cresset {

thread_local Modes modes;
AutogradSteps autograd_steps;
void (*warn)(const std::string&) = nullptr;
void (*tracer)(Call&) = nullptr;
void (*dispatcher)(Call&) = nullptr;
void* (*leave_interpreter)() = nullptr;
void (*enter_interpreter)(void*) = nullptr;

// ---------------------------------------------------------------- promotion

static int promote_seen(int a, Dtype b) {
  return a < 0 ? static_cast<int>(b) : static_cast<int>(promote(static_cast<Dtype>(a), b));
}

void ResultType::add(const TensorImpl& t) {
  if (t.dim() > 0) {
    dim = promote_seen(dim, t.dtype);
  } else if (t.wrapped_number) {
    const Dtype d = is_complex(t.dtype)    ? to_complex(default_dtype())
                    : is_floating(t.dtype) ? default_dtype()
                                           : t.dtype;
    number = promote_seen(number, d);
  } else {
    zero_dim = promote_seen(zero_dim, t.dtype);
  }
}

void ResultType::add(const Scalar& s) { number = promote_seen(number, s.dtype()); }

// A tensor with dimensions outranks a 0-d tensor, which outranks a number, within a category (bool, integral, floating,
// complex).
static int combine(int higher, int lower) {
  if (higher < 0) return lower;
  if (lower < 0) return higher;
  const Dtype h = static_cast<Dtype>(higher), l = static_cast<Dtype>(lower);
  if (is_complex(h)) return higher;
  if (is_floating(h)) return is_complex(l) ? static_cast<int>(to_complex(h)) : higher;
  if (h == Dtype::b8 || is_floating(l) || is_complex(l)) return static_cast<int>(promote(h, l));
  return higher;
}

Dtype ResultType::result() const {
  const int r = combine(dim, combine(zero_dim, number));
  return r < 0 ? default_dtype() : static_cast<Dtype>(r);
}

// ---------------------------------------------------------------- results

void check_out(const char* who, const Tensor& out, const TensorInfo& info) {
  check(out.device() == info.device || out.is_meta() == info.device.is_meta(), who, ": expected out tensor to be on ",
        info.device, " but it is on ", out.device());
  check_cast(who, info.dtype, out.dtype());
  if (out.sizes() == info.sizes) check_no_internal_overlap(who, out);
}

static std::unordered_set<const Operator*>& casting_operators() {
  static std::unordered_set<const Operator*> operators;
  return operators;
}
bool casts_out(const Operator& op) {
  return op.pointwise || op.aliasing == Aliasing::unread || casting_operators().contains(&op);
}
void let_cast_out(const Operator& op) { casting_operators().insert(&op); }

void check_kept_shape(const char* who, const Tensor& out, const Tensor& read, const Dims& sizes) {
  check(out.get() != read.get() || out.sizes() == sizes, "output with shape ", list(out.sizes()),
        " doesn't match the broadcast shape ", list(sizes), ": what ", who,
        " reads cannot get another shape as its out=");
}

void resize_out(const char* who, const Tensor& out, const TensorInfo& info, bool quiet) {
  if (out.sizes() == info.sizes) return;
  if (out.numel() != 0 && warn && !quiet)
    // It begins with PyTorch's words: programs filter warnings by how they begin.
    warn(join("An output with one or more elements was resized since it had shape ", list(out.sizes()),
              ", which does not match the required output shape ", list(info.sizes), " of ", who,
              ". This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
              "have zero elements: give an out= of the right shape, or an empty one"));
  // Nothing needs no memory, wherever it begins.
  const int64_t bytes = checked_numel(info.sizes) ? bytes_needed(info.sizes, out.offset(), out.dtype()) : 0;
  if (out.storage()->bytes < bytes) out.storage()->resize(bytes);
  out->sizes = info.sizes;
  out->strides = info.strides.empty() || static_cast<int64_t>(info.strides.size()) != info.sizes.size()
                     ? contiguous_strides(info.sizes)
                     : info.strides;
  out->update_numel_and_contiguity();
}

// ---------------------------------------------------------------- the path

namespace {

int64_t work_of(const Call& c) {
  int64_t n = 0;
  for (size_t i = 0; i < c.op.signature.parameters.size(); ++i)
    if (c.args[i].kind == Kind::tensor) n += c.args[i].tensor_->numel;
  for (const Tensor& t : c.outputs) n += t.numel();
  return n;
}

struct Survey {
  bool requires_grad = false, tangent = false, dispatched = false;
  bool laid_out = modes.dispatching;  // or there is another reason to look closer
  int level = 0;
  Device device;
  bool found = false;
};

void look_at(const TensorImpl& t, Survey& s) {
  if (t.base && t.base->has_tangent && !t.has_tangent) autograd_steps.renew_view(t);
  if (t.level > s.level) [[unlikely]] {
    if (t.level == kDispatched) {
      s.laid_out = s.dispatched = true;
      s.requires_grad |= requires_grad(t) && s.level == 0;
      s.tangent |= t.has_tangent && s.level == 0;
    } else {
      s.level = t.level;
      s.requires_grad = s.tangent = false;
    }
  }
  s.requires_grad |= requires_grad(t) && t.level == s.level;
  s.tangent |= t.has_tangent && t.level == s.level;
  s.laid_out |= t.storage->layout.load(std::memory_order_relaxed) != nullptr;
  const Device d = t.storage->device;
  if (!s.found || (s.device.is_cpu() && !d.is_cpu())) {
    s.device = d;
    s.found = true;
  }
}

Survey survey(const Call& c) {
  Survey s;
  const int n = static_cast<int>(c.op.signature.parameters.size());
  for (int i = 0; i < n; ++i) {
    const Value& v = c.args[i];
    if (v.kind == Kind::tensor) {
      look_at(*v.tensor_, s);
    } else if (v.kind == Kind::tensors) {
      for (const Tensor& t : c.tensors(i))
        if (t.defined()) look_at(*t, s);
    } else if (v.kind == Kind::device && !s.found && !modes.dispatching) {
      s.device = resolve(v.device_);
      s.found = true;
    }
  }
  return s;
}

template <class F>
void for_each_tensor(const Call& c, int first, F&& f) {
  for (int i = first; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    if (c.args[i].kind == Kind::tensor) f(c.tensor(i));
    if (c.args[i].kind == Kind::tensors)
      for (const Tensor& t : c.tensors(i))
        if (t.defined()) f(t);
  }
}

// Before anything runs that could meet the error in a thread of its own. Note [Storages that were cut] in
// tensor/private_layout.h
void check_in_bounds(const Tensor& t) {
  if (t.storage()->layout.load(std::memory_order_relaxed) && t.storage()->was_cut() && t->level != kDispatched)
    t->check_in_bounds();
}

// Note [Writing what is read]
// A target (out=, or that of an in-place form) may share memory with an input, or with another target, as a view of it
// or by being it. Kernels know nothing of this: they write to memory that nobody else sees. So such a target is not
// touched, not even resized, before the result is complete somewhere else. An operator's `aliasing` says what is an
// error instead.
bool is_shared(const Call& c, const SmallVector<Tensor, 2>& targets, int64_t i) {
  bool shared = false;
  for_each_tensor(c, 0, [&](const Tensor& t) { shared |= shares_memory(targets[i], t); });
  for (int64_t k = 0; k < targets.size(); ++k) shared |= k != i && shares_memory(targets[i], targets[k]);
  return shared;
}

bool is_argument(const Call& c, const Tensor& t) {
  bool found = false;
  for_each_tensor(c, 0, [&](const Tensor& argument) { found |= argument.get() == t.get(); });
  return found;
}

const char* name_of_result(const Operator& op, int64_t i) {
  const auto& names = op.signature.results;
  const auto at = static_cast<size_t>(i);
  return at < names.size() && !names[at].empty() ? names[at].c_str() : "out";
}

void check_aliasing(const Call& c, const Tensor& out, const Dims& sizes) {
  const char* who = c.op.name().c_str();
  for_each_tensor(c, 0, [&](const Tensor& t) {
    check_aliasing(who, out, t, c.op.aliasing);
    if (c.op.aliasing == Aliasing::whole) check_kept_shape(who, out, t, sizes);
  });
}

// Tensors that a call is given instead of its own, while this lives.
class StandIns {
 public:
  explicit StandIns(Call& c) : call_(c) {}
  ~StandIns() {
    for (int i = 0; i < kMaxArguments; ++i)
      if (before_[i].kind != Kind::none) call_.args[i] = before_[i];
  }
  StandIns(const StandIns&) = delete;

  // What gives back its argument gives back the true one, unless the layout was asked for that only the other one has.
  void finish() {
    for (int i = 0; i < kMaxArguments; ++i)
      for (Tensor& t : call_.outputs)
        if (before_[i].kind == Kind::tensor && t.get() == others_[i][0].get() &&
            (t.strides() == before_[i].tensor_->strides || !call_.op.gives_layout))
          t = Tensor(before_[i].tensor_);
  }

  // f(tensor) for arguments from `first` on: what to give instead, or the tensor itself.
  template <class F>
  void replace(int first, F&& f) {
    for (int i = first; i < static_cast<int>(call_.op.signature.parameters.size()); ++i) {
      if (call_.args[i].kind != Kind::tensor && call_.args[i].kind != Kind::tensors) continue;
      const bool single = call_.args[i].kind == Kind::tensor;
      for (int64_t k = 0; k < (single ? 1 : call_.args[i].count); ++k) {
        const Tensor t = single ? call_.tensor(i) : call_.tensors(i)[static_cast<size_t>(k)];
        if (!t.defined()) continue;
        if (Tensor other = f(t); other.get() != t.get()) put(i, k, std::move(other));
      }
    }
  }

 private:
  void put(int i, int64_t k, Tensor other) {
    if (before_[i].kind == Kind::none) {
      before_[i] = call_.args[i];
      if (before_[i].kind == Kind::tensors)
        others_[i].append(before_[i].tensors_, before_[i].tensors_ + before_[i].count);
      else
        others_[i].push_back({});
    }
    others_[i][k] = std::move(other);
    if (before_[i].kind == Kind::tensors)
      call_.args[i].tensors_ = others_[i].data();
    else
      call_.args[i].tensor_ = others_[i][0].get();
  }

  Call& call_;
  Value before_[kMaxArguments];
  SmallVector<Tensor, 1> others_[kMaxArguments];
};

// What an operator that mutates its first argument reads beside it.
Tensor read_apart(const Operator& op, const Tensor& target, const Tensor& t) {
  check_aliasing(op.name().c_str(), target, t, op.aliasing);
  const Overlap overlap = overlap_of(target, t);
  return overlap == Overlap::none || (overlap == Overlap::whole && op.aliasing == Aliasing::whole) ? t : clone(t);
}

bool needs_reading_apart(const Call& c) {
  if (c.op.aliasing == Aliasing::unread) return false;
  const Tensor target = c.tensor(0);
  bool shared = false;
  for_each_tensor(c, 1, [&](const Tensor& t) { shared |= shares_memory(target, t); });
  return shared;
}

// A kernel of one device must not be given memory of another.
void check_one_device(const Call& c) {
  Tensor first;
  for_each_tensor(c, 0, [&](const Tensor& t) {
    if (!first.defined()) first = t;
    check(first.device() == t.device(), c.op.name(),
          ": Expected all tensors to be on the same device, but found at least two devices, ", first.device(), " and ",
          t.device(), "!");
  });
}

void run_mutation(Call& c, Run run, Device device) {
  check_implemented(run, c.op.name(), ": not implemented on '", device, "'");
  LongWork work(device.is_cpu() ? work_of(c) : 0);
  run(c);
}

void execute_on(Call& c, Device device) {
  const Operator& op = c.op;
  Run run = op.run_on(device);
  if (op.mutates) {
    if (op.infer) op.infer(c);
    if (c.outputs.empty()) c.give(c.tensor(0));
    if (!run && is_accelerator(device)) {
      c.outputs.clear();
      return execute_on_host(c, device);
    }
    // What reads nothing and has no shape rule (resize_, set_) changes what a tensor shows, also of no data.
    if (device.is_meta() && op.aliasing != Aliasing::unread) return;
    if (needs_reading_apart(c)) [[unlikely]] {
      const Tensor target = c.tensor(0);
      StandIns apart(c);
      apart.replace(1, [&](const Tensor& t) { return read_apart(op, target, t); });
      return run_mutation(c, run, device);
    }
    return run_mutation(c, run, device);
  }
  if (!run && is_accelerator(device)) return execute_on_host(c, device);
  SmallVector<Tensor, 2> targets;
  if (c.given_out)
    targets = std::move(c.outputs);
  else if (op.inplace)
    targets.push_back(c.tensor(0));
  c.outputs.clear();
  if (!targets.empty()) c.target = targets.data();
  if (op.infer) {
    op.infer(c);
    // The results' device decides: zeros_like(x, device="meta").
    if (!c.promised.empty() && !(device == c.promised[0].device)) {
      check_one_device(c);
      device = c.promised[0].device;
    }
    run = op.run_on(device);
    if (!run && is_accelerator(device)) {
      c.promised.clear();
      c.outputs = std::move(targets);
      return execute_on_host(c, device);
    }
    for (int64_t i = 0; i < c.promised.size(); ++i) {
      const TensorInfo& info = c.promised[i];
      if (i < targets.size()) {
        if (op.inplace) {
          check(targets[i].sizes() == info.sizes, op.name(), ": output with shape ", list(targets[i].sizes()),
                " doesn't match the broadcast shape ", list(info.sizes));
          check_cast(op.name(), info.dtype, targets[i].dtype());
          check_no_internal_overlap(op.name().c_str(), targets[i]);
        } else {
          if (!casts_out(op)) check_own_dtype(op.name().c_str(), targets[i], info.dtype, name_of_result(op, i));
          check_out(op.name().c_str(), targets[i], info);
          check_aliasing(c, targets[i], info.sizes);
        }
        // Kernels write to fresh contiguous memory; see Note [Writing what is read]. An out= of other sizes gets its
        // new ones when the kernel is done: it may still refuse a dtype, or an index.
        if (!op.inplace && targets[i].sizes() == info.sizes && targets[i].dtype() == info.dtype &&
            targets[i].is_contiguous() && info.strides.empty() && !is_shared(c, targets, i)) {
          c.give(targets[i]);
          continue;
        }
      }
      c.give(empty(info));
    }
    if (!device.is_meta()) {
      check_implemented(run, op.name(), ": not implemented on '", device, "'");
      LongWork work(device.is_cpu() ? work_of(c) : 0);
      run(c);
    }
  } else {
    check_implemented(run, op.name(), ": not implemented on '", device, "'");
    run(c);
    for (int64_t i = 0; i < targets.size() && i < c.outputs.size() && !op.inplace; ++i) {
      c.promise(TensorInfo{c.outputs[i].sizes(), {}, c.outputs[i].dtype(), c.outputs[i].device()});
      check_out(op.name().c_str(), targets[i], c.promised[i]);
      if (!casts_out(op)) check_own_dtype(op.name().c_str(), targets[i], c.promised[i].dtype, name_of_result(op, i));
      check_aliasing(c, targets[i], c.promised[i].sizes);
    }
  }
  for (int64_t i = 0; i < targets.size() && i < c.outputs.size(); ++i) {
    if (c.outputs[i].get() == targets[i].get()) continue;
    if (!op.infer && shares_memory(targets[i], c.outputs[i])) c.outputs[i] = clone(c.outputs[i]);
    // zeros, rand and their like give any out= the size that was asked for.
    const bool is_asked_for = op.signature.index_of("pin_memory") >= 0;
    if (!op.inplace) resize_out(op.name().c_str(), targets[i], c.promised[i], is_asked_for);
    copy_into(targets[i], c.outputs[i]);
    c.outputs[i] = targets[i];
  }
}

}  // namespace

// On a device with a backend everything must lie there; operators that know all devices see to it themselves.
static void execute_on_device(Call& c, Device device) {
  const Run run = c.op.run_on(device);
  if (c.op.pointwise || c.op.view || (run && run == c.op.run[0]))
    return c.op.pointwise ? execute_pointwise(c) : execute_on(c, device);
  if (lies_on(c, device)) [[likely]]
    return execute_on(c, device);
  const Placement placement(c, device);
  execute_on(c, device);
}

static void execute_by_survey(Call& c, const Survey& s) {
  if (is_accelerator(s.device)) return execute_on_device(c, s.device);
  c.op.pointwise ? execute_pointwise(c) : execute_on(c, s.device);
}

static void execute_surveyed(Call& c, const Survey& s) {
  if (computes_late && (c.op.pointwise ? compute_late(c) : compute_rows_late(c))) [[unlikely]]
    return;
  if (!s.laid_out) [[likely]]
    return execute_by_survey(c, s);
  if ((s.dispatched && !modes.dispatch_disabled) || modes.dispatching) return dispatcher(c);
  if (computes_late && reduce_late(c)) return;
  const bool reads = !c.op.view && c.op.aliasing != Aliasing::unread;
  // What makes its own results may give back its argument: it asks for the memory itself.
  if (reads && (c.op.infer || c.op.mutates || c.op.inplace || c.given_out)) settle_arguments(c);
  if (reads) for_each_tensor(c, 0, check_in_bounds);
  StandIns bools(c);
  Tensor target, before;  // bytes, as they were
  if (reads) {
    // A target in place is written wholly: its own memory may be put right.
    if (c.op.inplace)
      if (const Tensor given = c.tensor(0), bytes = readable_bools(given); bytes.get() != given.get()) {
        target = view_as_dtype(given, Dtype::u8, given.sizes(), given.strides(), given.offset());
        before = clone(target);
        copy_into(given, bytes);
      }
    const bool writes = c.op.inplace || c.op.mutates;
    bools.replace(writes ? 1 : 0, [&](const Tensor& t) {
      // What lies where the target does was put right with it; copy_ leaves it as it is.
      const bool is_target = writes && c.op.aliasing == Aliasing::whole && t.dtype() == Dtype::b8 &&
                             overlap_of(c.tensor(0), t) == Overlap::whole;
      return is_target ? t : readable_bools(t);
    });
  }
  try {
    InLayout layout(c);
    execute_by_survey(c, s);
    layout.finish();
  } catch (...) {
    if (before.defined()) copy_into(target, before);
    throw;
  }
  bools.finish();
}

static void call_instead(Call& c, const Operator& other) {
  Call inner(other);
  for (size_t i = 0; i < other.signature.parameters.size(); ++i) inner.args[i] = c.args[i];
  inner.given_out = c.given_out;
  inner.outputs = std::move(c.outputs);
  call(inner);
  c.outputs = std::move(inner.outputs);
}

void execute(Call& c) { execute_surveyed(c, survey(c)); }

// Under inference_mode new tensors are inference tensors; views of others are not, and an argument that is given back,
// as by contiguous(), stays what it was.
static void mark_inference(Call& c) {
  if (c.op.view && c.args[0].is_tensor() && !c.args[0].tensor_->inference) return;
  for (const Tensor& made : c.outputs) made->inference |= !is_argument(c, made);
}

void call(Call& c) {
  const Operator& op = c.op;
  if (op.autocast && modes.autocast && autocast(c)) return;
  const Profiled profiled(c);
  if (op.composite) return op.run[0](c);
  if (op.instead)
    if (const Operator* other = op.instead(c)) return call_instead(c, *other);
  const Survey s = survey(c);
  c.level = s.level;
  const bool record = s.requires_grad && modes.grad_enabled && !modes.inference && op.differentiable;
  const bool writes = op.inplace || op.mutates || c.given_out;
  if (writes) {
    if (c.given_out) {
      for (const Tensor& t : c.outputs) {
        before_write(*t.storage());
        check_in_bounds(t);
        check(!record && !(requires_grad(t) && modes.grad_enabled), op.name(),
              "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
        check_implemented(!s.tangent && !t->has_tangent, "Trying to use forward AD with ", op.name(),
                          " that does not support it because it is an out= function");
        autograd_steps.before_write(c, t, false);
      }
    } else {
      before_write(*c.args[0].tensor_->storage);
      autograd_steps.before_write(c, c.tensor(0), record);
      if (record || s.tangent) autograd_steps.save_before(c);
    }
  }
  if (s.level || (op.random && modes.vmap_depth)) [[unlikely]]
    tracer(c);
  else
    execute_surveyed(c, s);
  if (writes) {
    for (const Tensor& t : c.outputs) ++t->storage->version;
  } else if (op.view && op.differentiable) {
    autograd_steps.after_view(c);
  }
  if (record) autograd_steps.record(c);
  if (s.tangent && !modes.inference) autograd_steps.forward_mode(c);
  if (modes.inference && !writes) mark_inference(c);
}

}  // namespace cresset
