#include "dispatch/expendable.h"

namespace cresset {

constinit thread_local Expendable* Expendable::current_ = nullptr;

void Expendable::offer_storage(const Storage& s) {
  constexpr int64_t kWorthIt = 1 << 20;  // bytes
  if (count_ == kMost || s.bytes < kWorthIt || s.shared || s.pinned || s.read_only || s.layout.load() || !s.data ||
      !s.is_resizable())
    return;
  offered_[count_++] = &s;
}

// How many references to its storage a tensor has that nobody else refers to; 0: somebody does. A view may be all that
// is left of its base.
static uint32_t references_alone(const Tensor& t) {
  if (!t.defined() || t->use_count() != 1) return 0;
  const TensorImpl* const base = t->base.get();
  return !base ? 1 : base->use_count() == 1 ? 2 : 0;
}

void Expendable::offer(const Tensor& t) {
  const uint32_t references = references_alone(t);
  if (references && t.storage()->use_count() == references) offer_storage(*t.storage());
}

void Expendable::offer_gradients(std::span<const Tensor> grads) {
  if (grads.size() < 2) return;
  uint32_t all = 0;
  for (const Tensor& g : grads) {
    const uint32_t references = references_alone(g);
    if (!references || g.storage().get() != grads[0].storage().get()) return;
    all += references;
  }
  if (grads[0].storage()->use_count() == all) offer_storage(*grads[0].storage());
}

bool Expendable::take(const Storage& storage) {
  if (!current_) return false;
  for (const Storage*& s : current_->offered_)
    if (s == &storage) {
      s = nullptr;
      return true;
    }
  return false;
}

}  // namespace cresset
