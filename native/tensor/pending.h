// Pending: what a storage will hold, while nobody has asked for it.
//
// Note [Pending storages]
// Inside a compiled region a pointwise call gives a tensor at once and computes it late (dispatch/late.h). Until then
// its storage has no memory; sizes, strides, dtype, version and history are those of any tensor. Like the private
// layout of images, this hangs on Storage::layout: whoever asks for the memory (TensorImpl::data, Storage::plain) has
// the values computed first, so that nobody can see memory that is not there.
//
// * A storage that nobody refers to any more leaves its Pending (`seen` becomes null): what nobody can see is computed
//   only where something else needs it, and never written.
// * Who writes to memory calls before_write first: what still has to read the old values is computed then.
// * All of this happens under the interpreter's lock. Computing lets go of it, see settle() in dispatch/late.cpp.
#pragma once
#include <atomic>

#include "tensor/storage.h"

namespace cresset {

class Pending : public RefCounted {
 public:
  Storage* seen = nullptr;    // the storage that the values are for; null: it is gone
  virtual void settle() = 0;  // afterwards the storage has its memory
};

// The storage, which has no memory, is to hold what `values` will be.
void make_pending(Storage& storage, RefPtr<Pending> values);
RefPtr<Pending> pending_of(const Storage& storage);  // null: its values are there
// The values have come. `layout` is theirs in memory, null if it is plain.
void end_pending(Storage& storage, Memory memory, PrivateLayout* layout);

extern std::atomic<int> pending_count;               // values that are still to come, in all threads
extern void (*settle_readers)(const Storage& what);  // set by dispatch
extern std::atomic<int> lazy_count;                  // storages that share their memory: Note [Lazy clones]
[[gnu::cold]] void settle_before_write(Storage& storage);
// Somebody is about to write to this memory.
inline void before_write(Storage& storage) {
  if (pending_count.load(std::memory_order_relaxed) | lazy_count.load(std::memory_order_relaxed)) [[unlikely]]
    settle_before_write(storage);
}

}  // namespace cresset
