#include "dispatch/in_layout.h"

#include "tensor/private_layout.h"

namespace cresset {
namespace {

bool has_layout(const Tensor& t) { return t.defined() && t.storage()->layout.load(std::memory_order_acquire); }

// Every element is the same one: it lies in any order.
bool is_uniform(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) != 1 && t.stride(d) != 0) return false;
  return true;
}

bool fits(const Tensor& t, int64_t rank) {
  return t.dim() <= rank && (t.dim() < 2 || t.is_contiguous() || is_uniform(t));
}

}  // namespace

bool lay_out(std::span<Tensor> operands, bool together) {
  // First whatever cannot stay as it is: afterwards no storage is wanted both plain and as it lies.
  for (const Tensor& t : operands)
    if (has_layout(t) && !is_private(*t)) t.storage()->plain();
  Tensor leader;
  for (const Tensor& t : operands)
    if (!leader.defined() && t.defined() && is_private(*t)) leader = t;
  if (!leader.defined()) return false;
  bool all_fit = true;
  for (const Tensor& t : operands) all_fit = all_fit && (!t.defined() || fits(t, leader.dim()));
  if (!all_fit) {
    for (const Tensor& t : operands)
      if (t.defined()) t.storage()->plain();
    return false;
  }
  for (Tensor& t : operands) {
    if (!t.defined()) continue;
    if (Tensor p = physical(t); p.defined()) {
      t = p;
    } else if (together && t.sizes() == leader.sizes() && t.is_contiguous()) {
      Tensor copy = empty(TensorInfo{t.sizes(), channels_last_strides(t.sizes()), t.dtype(), t.device()});
      const int64_t images = t.size(0), channels = t.size(1);
      transpose_matrices(copy.bytes(), t.bytes(), images, channels, t.numel() / std::max<int64_t>(images * channels, 1),
                         size_of(t.dtype()), t.device());
      t = copy;
    }
  }
  return true;
}

void hide_layout(Tensor& result) {
  // Also where it lies in the plain order as well: then it is told as such.
  if (result.dim() >= 3 && result.strides() == channels_last_strides(result.sizes())) return keep_private(result);
  result = contiguous(result);
}

InLayout::InLayout(Call& c) : call_(c) {
  const int count = static_cast<int>(c.op.signature.parameters.size());
  const auto make_plain = [&] {
    for (int i = 0; i < count; ++i) {
      if (c.args[i].kind == Kind::tensor) c.args[i].tensor_->storage->plain();
      if (c.args[i].kind == Kind::tensors)
        for (const Tensor& t : c.tensors(i))
          if (t.defined()) t.storage()->plain();
    }
    for (const Tensor& t : c.outputs)
      if (t.defined()) t.storage()->plain();
  };
  // Views look at nothing, and what makes its own results may give back its argument (contiguous, to): it is made plain
  // when it is read.
  if (c.op.view || (!c.op.infer && !c.op.knows_layout)) return;
  if (!c.op.knows_layout || c.given_out || c.op.mutates || (c.op.inplace && !is_private(*c.args[0].tensor_))) {
    make_plain();
    return;
  }
  Tensor operands[kMaxArguments];
  for (int i = 0; i < count; ++i)
    if (c.args[i].kind == Kind::tensor) operands[i] = c.tensor(i);
  if (!lay_out({operands, static_cast<size_t>(count)}, c.op.pointwise)) return;
  for (int i = 0; i < count; ++i) {
    if (c.args[i].kind != Kind::tensor) continue;
    originals_[i] = c.args[i].tensor_;
    stand_ins_[i] = operands[i];
    c.args[i].tensor_ = operands[i].get();
  }
  count_ = count;
}

void InLayout::finish() {
  if (!count_) return;
  for (Tensor& t : call_.outputs) {
    if (call_.op.inplace && t.get() == stand_ins_[0].get())
      t = Tensor(originals_[0]);
    else
      hide_layout(t);
  }
}

void InLayout::restore() {
  for (int i = 0; i < count_; ++i)
    if (originals_[i]) call_.args[i].tensor_ = originals_[i];
}

}  // namespace cresset
