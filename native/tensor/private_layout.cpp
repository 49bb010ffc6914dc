#include "tensor/private_layout.h"

#include <mutex>

#include "base/fork_lock.h"
#include "base/parallel.h"
#include "tensor/backend.h"
#include "tensor/on_cpu.h"
#include "tensor/transpose.h"

namespace cresset {
namespace {

ForkLock& layout_lock() {
  static auto* the = new ForkLock;
  return *the;
}

}  // namespace

void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width,
                        Device device) {
  backend_of(device).transpose_matrices(to, from, count, rows, columns, width, device.index);
}

void transpose_on_cpu(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width) {
  const int64_t size = rows * columns;
  visit_width(width, [&]<class T>() {
    parallel_for(count, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(size, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     transpose_matrix(static_cast<T*>(to) + i * size, rows, static_cast<const T*>(from) + i * size,
                                      columns, rows, columns);
                 });
  });
}

std::atomic<int> pending_count = 0, lazy_count = 0;
void (*settle_readers)(const Storage&) = nullptr;

void settle_before_write(Storage& storage) {
  if (storage.is_lazy()) storage.own_memory();
  if (!pending_count.load(std::memory_order_relaxed)) return;
  if (RefPtr<Pending> values = pending_of(storage)) values->settle();
  settle_readers(storage);
}

RefPtr<Pending> pending_of(const Storage& storage) {
  if (!storage.layout.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard guard(layout_lock());
  const PrivateLayout* l = storage.layout.load(std::memory_order_relaxed);
  return l ? l->pending : nullptr;
}

void make_pending(Storage& storage, RefPtr<Pending> values) {
  values->seen = &storage;
  storage.layout.store(new PrivateLayout{.pending = std::move(values)}, std::memory_order_release);
}

void end_pending(Storage& storage, Memory memory, PrivateLayout* layout) {
  std::unique_lock guard(layout_lock());
  const std::unique_ptr<PrivateLayout> before(storage.layout.load(std::memory_order_relaxed));
  storage.data = memory.data;
  storage.block = memory.block;
  storage.layout.store(layout, std::memory_order_release);
  guard.unlock();
}

void Storage::make_plain() {
  if (RefPtr<Pending> values = pending_of(*this)) values->settle();
  std::unique_lock guard(layout_lock());
  PrivateLayout* const l = layout.load(std::memory_order_relaxed);
  if (!l || !l->width) return;  // another thread was first, or there is nothing to do
  const Memory plain = allocate_memory(bytes, device);
  transpose_matrices(plain.data, data, l->images, l->points, l->channels, l->width, device);
  if (l->pins) {
    l->retired = {data, block};  // freed with the last pin
  } else {
    free_memory({data, block}, bytes, device);
    delete l;
  }
  data = plain.data;
  block = plain.block;
  layout.store(nullptr, std::memory_order_release);
}

bool Storage::was_cut() const {
  if (!layout.load(std::memory_order_acquire)) return false;
  std::lock_guard guard(layout_lock());
  const PrivateLayout* l = layout.load(std::memory_order_relaxed);
  return l && l->whole;
}

bool Storage::has_foreign_bools() const {
  if (!layout.load(std::memory_order_acquire)) return false;
  std::lock_guard guard(layout_lock());
  const PrivateLayout* l = layout.load(std::memory_order_relaxed);
  return l && l->foreign_bools;
}

bool Storage::is_lazy() const {
  if (!layout.load(std::memory_order_acquire)) return false;
  std::lock_guard guard(layout_lock());
  const PrivateLayout* l = layout.load(std::memory_order_relaxed);
  return l && l->lazy;
}

void Storage::mark_lazy(bool lazy) {
  std::lock_guard guard(layout_lock());
  PrivateLayout* l = layout.load(std::memory_order_relaxed);
  if (lazy == (l && l->lazy)) return;
  lazy_count.fetch_add(lazy ? 1 : -1, std::memory_order_relaxed);
  if (l) {
    l->lazy = lazy;
    if (lazy || l->whole || l->foreign_bools) return;
    delete l;
    layout.store(nullptr, std::memory_order_release);
  } else {
    layout.store(new PrivateLayout{.lazy = true}, std::memory_order_release);
  }
}

void Storage::mark_foreign_bools() {
  std::lock_guard guard(layout_lock());
  PrivateLayout* const l = layout.load(std::memory_order_relaxed);
  if (l)
    l->foreign_bools = true;
  else
    layout.store(new PrivateLayout{.foreign_bools = true}, std::memory_order_release);
}

// Notes that there were `whole` bytes once.
void Storage::mark_cut(int64_t whole) {
  std::lock_guard guard(layout_lock());
  PrivateLayout* const l = layout.load(std::memory_order_relaxed);
  if (l) whole = std::max(whole, l->whole);
  if (bytes >= whole) {
    if (l && (l->foreign_bools || l->lazy)) {
      l->whole = 0;
      return;
    }
    delete l;
    layout.store(nullptr, std::memory_order_release);
  } else if (l) {
    l->whole = whole;
  } else {
    layout.store(new PrivateLayout{.whole = whole}, std::memory_order_release);
  }
}

bool is_private(const TensorImpl& t) {
  if (!t.storage->layout.load(std::memory_order_acquire)) return false;
  std::lock_guard guard(layout_lock());
  const PrivateLayout* l = t.storage->layout.load(std::memory_order_relaxed);
  return l && t.contiguous && t.offset == 0 && t.dim() >= 3 && size_of(t.dtype) == l->width &&
         t.sizes[0] == l->images && t.sizes[1] == l->channels && t.numel == l->images * l->channels * l->points;
}

Tensor physical(const Tensor& t) {
  if (!is_private(*t)) return {};
  RefPtr<Storage> owner = t.storage();
  PrivateLayout* l;
  char* data;
  {
    std::lock_guard guard(layout_lock());
    l = owner->layout.load(std::memory_order_relaxed);
    if (!l) return {};
    ++l->pins;
    data = owner->data;
  }
  const auto unpin = [owner, l] {
    std::lock_guard guard(layout_lock());
    if (--l->pins || !l->retired.data) return;
    free_memory(l->retired, owner->bytes, owner->device);
    delete l;
  };
  RefPtr<Storage> storage = Storage::borrow(data, owner->bytes, owner->device, unpin);
  Tensor p(RefPtr<TensorImpl>(new TensorImpl));
  p->storage = std::move(storage);
  p->sizes = t.sizes();
  p->strides = channels_last_strides(t.sizes());
  p->dtype = t.dtype();
  p->update_numel_and_contiguity();
  return p;
}

void keep_private(const Tensor& t) {
  const int64_t images = t.size(0), channels = t.size(1), points = t.numel() / std::max<int64_t>(images * channels, 1);
  t->strides = contiguous_strides(t.sizes());
  t->update_numel_and_contiguity();
  if (channels <= 1 || points <= 1) return;  // both layouts are one
  t->storage->layout.store(new PrivateLayout{images, channels, points, size_of(t.dtype())}, std::memory_order_release);
}

}  // namespace cresset
