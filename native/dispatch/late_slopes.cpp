// Derivatives that are made along with a function.
//
// Note [Slopes]
// gelu and its derivative both take an error function of the same numbers. Where the two are computed in one group it
// is taken once (cresset/compiler/printing.py), and the derivative at x, the slope, is what backward multiplies the
// gradient with: by the bits it is the loop of the gradient, run for a gradient of one. So where gelu's argument x is
// itself late, and was saved for backward, the slope is made and kept in its place: x goes on waiting, is computed only
// if somebody asks for it after all (a second derivative, a hook), and nothing more is written than without. It is made
// again from memory that others hold as well.
//
// A program that never runs backward has no use for slopes: where many are made and none is read, it is tried only now
// and then. And they are for groups that are printed: a list of loops takes the function twice.
#include <cstring>

#include "dispatch/late.h"
#include "dispatch/printed_groups.h"
#include "dispatch/slopes.h"
#include "tensor/requires_grad.h"

namespace cresset {
namespace {

bool shares_functions(const Operator& op) {
  const PointwiseDefinition* const def = op.pointwise;
  return def >= kPointwiseDefinitions && def < kPointwiseDefinitions + kPointwiseCount &&
         kSharesFunctions[def - kPointwiseDefinitions];
}

// Whether slopes are worth making: since one was last read, few were made.
class Balance {
 public:
  bool allows() {
    if (printed_statistics.refused && !printed_statistics.ready) return false;  // there is no compiler
    if (unread_ >= kMany && ++passed_over_ % kRetrial) return false;
    ++unread_;
    return true;
  }
  void note_read() { unread_ = 0; }

 private:
  static constexpr int64_t kMany = 256, kRetrial = 16;  // more than the forward pass of a deep model makes
  int64_t unread_ = 0, passed_over_ = 0;
};
Balance balance;

// Whether the value can be made again from memory that stays: others hold it, too.
bool lasts(const LateValue& x) {
  if (!x.loop || x.which >= 0) return false;
  for (int i = 0; i < x.count; ++i) {
    const LateValue::Input& in = x.inputs[i];
    if (in.kind == LateValue::Input::value || (in.storage && in.storage->use_count() < 2)) return false;
  }
  return true;
}

}  // namespace

void consider_slope(const LateValue& v, const TensorImpl& x) {
  const LateValue::Input& in = v.inputs[0];
  if (in.kind != LateValue::Input::value || !v.device.is_cpu() || v.images || v.compute != Compute::f32 ||
      v.dtype != Dtype::f32 || in.dtype != Dtype::f32 || !shares_functions(*v.op) || !requires_grad(x))
    return;
  if (!in.from->sloped && lasts(*in.from)) in.from->sloped = v.op;
}

RefPtr<LateValue> slope_with(const LateValue& v) {
  if (!lasts(*v.inputs[0].from) || !balance.allows()) return {};
  RefPtr<LateValue> slope(new LateValue);
  slope->op = v.op;
  slope->which = 0;
  slope->compute = v.compute;
  slope->loop = v.op->loops->backward[0][static_cast<int>(v.compute)];
  slope->count = 2;
  const float one = 1;
  std::memcpy(slope->inputs[0].bytes, &one, sizeof one);
  slope->inputs[1] = v.inputs[0];
  slope->device = v.device;
  slope->sizes = v.sizes;
  slope->numel = v.numel;
  slope->dtype = slope->made = v.dtype;
  slope->deferred = true;
  enlist(*slope);
  return slope;
}

Tensor made_slope(const Operator& op, int which, std::span<const Tensor> saved) {
  if (which != 0 || saved.size() != 1 || !shares_functions(op)) return {};
  const Tensor& t = saved[0];
  const RefPtr<Pending> holder = pending_of(*t.storage());
  const LateValue* const x = dynamic_cast<LateValue*>(holder.get());
  if (!x || !x->slope || x->slope->op != &op || !x->slope->kept || t->level || !t.is_contiguous() || t.offset() != 0 ||
      t.numel() != x->numel || t.dtype() != x->dtype)
    return {};
  balance.note_read();
  Tensor slope(RefPtr<TensorImpl>(new TensorImpl));
  slope->storage = x->slope->kept;
  slope->sizes = t.sizes();
  slope->strides = contiguous_strides(slope->sizes);
  slope->dtype = x->slope->dtype;
  slope->update_numel_and_contiguity();
  return slope;
}

}  // namespace cresset
