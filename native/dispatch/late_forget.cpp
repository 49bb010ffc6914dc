// What is computed again in backward instead of being kept.
//
// Note [Forgetting]
// An operator inside a region may save what a cheap group made for it: the matrix product behind a gelu saves gelu's
// result, though gelu has saved its input, from which that can be made again. So when such a call asks for its
// argument, the group's values are copied before they run: the copy is the recipe. When nobody but the recorded graph
// refers to the tensor any more, its memory is freed and its storage waits for the recipe (Note [Pending storages]).
// Whoever asks for it, mostly backward, has it computed again, by the same formulas: the same bits. The storage is the
// same one, so versions and errors are, too. The recipe reads memory like any value that waits: who writes there has it
// computed before.
//
// A recipe reads only what is kept anyway: inputs that the derivatives of its operators name, and small ones; and no
// more bytes than it saves. A normalization that reads float32 and is saved in half precision reads twice as many: that
// is kept.
#include <algorithm>

#include "dispatch/late.h"
#include "tensor/requires_grad.h"

namespace cresset {
namespace {

constexpr int64_t kWorthForgetting = 1 << 20;  // bytes
constexpr int kMostSteps = 6;

struct Candidate {
  Tensor tensor;
  RefPtr<LateValue> recipe;
  uint32_t version;
};
thread_local std::vector<Candidate>* candidates = nullptr;

// Whether a gradient of the operator reads input i, or its own result where i is negative.
bool is_saved(const PointwiseDefinition& def, int i) {
  const uint8_t bit = i < 0 ? kUsesOutput : static_cast<uint8_t>(1 << i);
  for (int k = 0; k < def.input_count; ++k)
    if (def.has_gradient[k] && def.uses[k] & bit) return true;
  return false;
}

// Whether an input is made by the recipe itself: a value that will not be kept. (The result of a normalization that is
// cast is none, though a program's frame may still refer to it: see is_left in late_run.cpp.)
bool is_made_again(const LateValue& v, const LateValue::Input& in) {
  return in.kind == LateValue::Input::value && in.from->state == LateValue::waiting &&
         (!in.from->seen || (in.from->rows && !v.loop && !v.rows));
}

// Whether the value can be made again from what is kept anyway.
bool can_be_made_again(const LateValue& v, int& steps, int64_t& bytes_read) {
  if (++steps > kMostSteps || v.state != LateValue::waiting || v.which >= 0) return false;
  if (v.loop && is_saved(*v.op->pointwise, -1)) return false;
  for (int i = 0; i < v.count; ++i) {
    const LateValue::Input& in = v.inputs[i];
    if (in.kind == LateValue::Input::number || !in.linear) continue;
    if (is_made_again(v, in)) {
      if (!can_be_made_again(*in.from, steps, bytes_read)) return false;
    } else if (v.rows || (v.loop && is_saved(*v.op->pointwise, i))) {
      bytes_read += v.numel * size_of(in.dtype);
    } else {
      return false;
    }
  }
  return true;
}

RefPtr<LateValue> copy_of(const LateValue& v) {
  RefPtr<LateValue> copy(new LateValue);
  copy->op = v.op;
  copy->which = v.which;
  copy->compute = v.compute;
  copy->loop = v.loop;
  copy->rows = v.rows;
  std::copy(std::begin(v.attributes), std::end(v.attributes), copy->attributes);
  copy->count = v.count;
  for (int i = 0; i < v.count; ++i) {
    LateValue::Input& in = copy->inputs[i] = v.inputs[i];
    if (is_made_again(v, in)) in.from = copy_of(*in.from);
  }
  copy->device = v.device;
  copy->sizes = v.sizes;
  copy->numel = v.numel;
  copy->dtype = v.dtype;
  copy->made = v.made;
  copy->images = v.images, copy->channels = v.channels, copy->points = v.points;
  copy->deferred = true;
  enlist(*copy);
  return copy;
}

}  // namespace

void consider_forgetting(const Tensor& t, const LateValue& v) {
  if (v.device.is_cpu() || v.images || v.numel * size_of(v.dtype) < kWorthForgetting || !modes.grad_enabled ||
      !requires_grad(*t))
    return;
  forget_candidates(false);
  int steps = 0;
  int64_t bytes_read = 0;
  if (!can_be_made_again(v, steps, bytes_read) || bytes_read > v.numel * size_of(v.dtype)) return;
  if (!candidates) candidates = new std::vector<Candidate>;
  candidates->push_back({t, copy_of(v), t.version()});
}

void forget_candidates(bool last) {
  if (!candidates || candidates->empty()) return;
  const auto is_over = [](Candidate& c) {
    Storage& s = *c.tensor.storage();
    if (c.recipe->state != LateValue::waiting || s.version != c.version || s.layout.load() || !s.data ||
        !s.is_resizable() || s.shared)
      return true;
    // The tensor is held here and by the node that saved it; or that has another of the same storage.
    const uint32_t tensor = c.tensor->use_count(), storage = s.use_count();
    if (tensor == 1 && storage == 1) return true;
    if (!((tensor == 2 && storage == 1) || (tensor == 1 && storage == 2))) return false;
    free_memory({s.data, s.block}, s.bytes, s.device);
    s.data = nullptr, s.block = nullptr;
    make_pending(s, RefPtr<Pending>(c.recipe.get()));
    ++late_statistics.forgotten;
    return true;
  };
  std::vector<Candidate> all = std::exchange(*candidates, {});
  std::erase_if(all, is_over);
  if (!last) *candidates = std::move(all);
}

}  // namespace cresset
