#include "dispatch/autocast.h"

#include <unordered_map>
#include <vector>

namespace cresset {

namespace {

// Note [Casts that are kept]
// A parameter is used several times in one forward pass, so its low-precision copy is kept until the outermost autocast
// region ends. A copy serves again only if the parameter has not been written to since, and if it is recorded exactly
// when the new call would record it.
struct KeptCast {
  Tensor source, result;
  Dtype to;
  uint32_t version;
};
using KeptCasts = std::unordered_map<const TensorImpl*, KeptCast>;
KeptCasts& kept_casts() {
  static thread_local auto* casts =
      new KeptCasts;  // never destroyed: at the end of the process Python is gone before the tensors would be
  return *casts;
}

Tensor cast(const Tensor& t, Dtype to) {
  static const Operator* op = Registry::instance().find("to_dtype");
  return call_operator(*op, t, to);
}

bool is_eligible(const Tensor& t, DeviceType device) {
  return t.defined() && t.device().type == device && is_floating(t.dtype()) && t.dtype() != Dtype::f64;
}

// Visits every tensor argument: f(const Tensor&).
template <class F>
void each_tensor(const Call& c, F&& f) {
  for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    if (c.args[i].kind == Kind::tensor)
      f(c.tensor(i));
    else if (c.args[i].kind == Kind::tensors)
      for (const Tensor& t : c.tensors(i)) f(t);
  }
}

DeviceType device_of(const Call& c) {
  DeviceType device = DeviceType::cpu;
  each_tensor(c, [&](const Tensor& t) {
    if (t.defined() && !t.device().is_cpu()) device = t.device().type;
  });
  return device;
}

Dtype widest(const Call& c, Dtype lower, DeviceType device) {
  Dtype to = lower;
  each_tensor(c, [&](const Tensor& t) {
    if (is_eligible(t, device) && t.dtype() == Dtype::f32) to = Dtype::f32;
  });
  return to;
}

}  // namespace

Tensor autocast_argument(const Tensor& t, Dtype to, DeviceType device) {
  if (!is_eligible(t, device) || t.dtype() == to) return t;
  const bool keep = modes.autocast_keeps_casts && to != Dtype::f32 && t.dtype() == Dtype::f32 && t->requires_grad &&
                    !t->base && autograd_steps.is_leaf(t);
  if (!keep) return cast(t, to);
  KeptCast& kept = kept_casts()[t.get()];
  if (!kept.result.defined() || kept.to != to || kept.version != t.version() ||
      kept.result->requires_grad != modes.grad_enabled)
    kept = {t, cast(t, to), to, t.version()};
  return kept.result;
}

void clear_autocast_cache() {
  KeptCasts gone;
  gone.swap(kept_casts());  // releasing a tensor may run Python code, which must not meet a half-cleared map
}

bool autocast(Call& c) {
  const Operator& op = c.op;
  if (c.given_out || op.inplace || op.mutates) return false;
  const DeviceType device = device_of(c);
  const int number = static_cast<int>(device);
  if (number >= kAutocastDevices || !(modes.autocast & (1 << number))) return false;
  const Autocast policy = policy_of(op, device);
  if (policy == Autocast::none) return false;
  const int count = static_cast<int>(op.signature.parameters.size());
  std::vector<Tensor> kept;  // what the call borrows
  kept.reserve(static_cast<size_t>(count));
  std::vector<std::vector<Tensor>> lists;
  lists.reserve(static_cast<size_t>(count));
  if (policy == Autocast::accumulate) {
    const int dtype = op.signature.index_of("dtype");
    bool any = false;
    each_tensor(c, [&](const Tensor& t) { any |= is_eligible(t, device); });
    if (!any || dtype < 0 || c.has(dtype)) return false;
    c.args[dtype] = Value(Dtype::f32);
  } else {
    const Dtype lower = modes.autocast_dtype[number];
    const Dtype to = policy == Autocast::lower     ? lower
                     : policy == Autocast::float32 ? Dtype::f32
                                                   : widest(c, lower, device);
    for (int i = 0; i < count; ++i) {
      if (c.args[i].kind == Kind::tensor) {
        kept.push_back(autocast_argument(c.tensor(i), to, device));
        c.args[i].tensor_ = kept.back().get();
      } else if (c.args[i].kind == Kind::tensors) {
        std::vector<Tensor>& list = lists.emplace_back();
        for (const Tensor& t : c.tensors(i)) list.push_back(autocast_argument(t, to, device));
        c.args[i].tensors_ = list.data();
      }
    }
  }
  AutocastOffGuard off;
  call(c);
  return true;
}

}  // namespace cresset
