#include "dispatch/expendable.h"

namespace cresset {

constinit thread_local Expendable* Expendable::current_ = nullptr;

void Expendable::offer(const Tensor& t) {
  constexpr int64_t kWorthIt = 1 << 20;  // bytes
  if (!t.defined() || count_ == kMost || t->use_count() != 1) return;
  const Storage& s = *t.storage();
  const TensorImpl* const base = t->base.get();  // of a view, which may be all that is left of it
  if (s.use_count() != (base ? 2u : 1u) || (base && base->use_count() != 1) || s.bytes < kWorthIt || s.shared ||
      s.pinned || s.read_only || s.layout.load() || !s.data || !s.is_resizable())
    return;
  offered_[count_++] = &s;
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
