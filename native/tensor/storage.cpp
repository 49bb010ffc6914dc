#include "tensor/storage.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "tensor/allocator.h"
#include "tensor/backend.h"
#include "tensor/memory_watch.h"
#include "tensor/pending.h"
#include "tensor/private_layout.h"

namespace cresset {

void (*release_code)(void*) = nullptr;

void (*Storage::hold_object)(const Storage*, bool) = nullptr;

bool Storage::set_object(void* object) {
  object_ = object;
  return count_.fetch_or(kHasObject, std::memory_order_acq_rel) > 1;
}
bool Storage::forget_object() {
  object_ = nullptr;
  return count_.fetch_and(~kHasObject, std::memory_order_acq_rel) > kHasObject + 1;
}

void* Storage::operator new(size_t bytes) { return allocate_cell(bytes); }
void Storage::operator delete(void* p, size_t bytes) { free_cell(p, bytes); }

static std::mutex& alias_lock() {
  static auto* the = new std::mutex;
  return *the;
}

void Storage::free_data() {
  if (release_) {
    (*release_)();
    delete release_;
    release_ = nullptr;
  } else if (!parent_ && data) {
    free_memory({data, block}, bytes, device);
  }
}

Storage::~Storage() {
  if (is_alias_) {
    std::lock_guard guard(alias_lock());
    Storage** at = &parent_->first_alias_;
    while (*at != this) at = &(*at)->next_alias_;
    *at = next_alias_;
  }
  if (changed_at.code && release_code) release_code(changed_at.code);
  if (PrivateLayout* l = layout.load(std::memory_order_relaxed)) [[unlikely]] {
    if (l->pending) l->pending->seen = nullptr;
    if (l->lazy) lazy_count.fetch_sub(1, std::memory_order_relaxed);
    delete l;
  }
  free_data();
}

static std::atomic<MemoryWatcher> watches_allocation = nullptr, watches_free = nullptr;

void watch_memory(MemoryWatcher allocated, MemoryWatcher freed) {
  watches_allocation = allocated;
  watches_free = freed;
}

Memory allocate_memory(int64_t bytes, Device device) {
  Backend* const backend = find_backend(device);
  check(backend, "PyTorch is not linked with support for ", name_of(device.type), " devices (asked for memory on ",
        device, ")");
  const Memory memory = backend->allocate(bytes, device.index);
  if (const MemoryWatcher watcher = watches_allocation.load(std::memory_order_relaxed)) [[unlikely]]
    watcher(memory.data, bytes, device);
  return memory;
}

void free_memory(Memory memory, int64_t bytes, Device device) {
  if (const MemoryWatcher watcher = watches_free.load(std::memory_order_relaxed)) [[unlikely]]
    watcher(memory.data, bytes, device);
  backend_of(device).free(memory, bytes, device.index);
}

RefPtr<Storage> Storage::without_memory(int64_t whole, Device device) {
  RefPtr<Storage> s(new Storage);
  s->device = device;
  s->mark_cut(whole);
  return s;
}

RefPtr<Storage> Storage::allocate(int64_t bytes, Device device) {
  if (device.index == kPinned && device.is_cpu()) [[unlikely]]
    return pinning_backend()->allocate_pinned(bytes);
  RefPtr<Storage> s(new Storage);
  s->device = resolve(device);
  s->bytes = bytes;
  if (bytes > 0 && !device.is_meta()) {
    const Memory memory = allocate_memory(bytes, s->device);
    s->data = memory.data;
    s->block = memory.block;
  }
  return s;
}

RefPtr<Storage> Storage::borrow(void* data, int64_t bytes, Device device, std::function<void()> release) {
  RefPtr<Storage> s(new Storage);
  s->data = static_cast<char*>(data);
  s->bytes = bytes;
  s->device = device;
  s->resizable_ = false;
  s->release_ = new std::function<void()>(std::move(release));
  return s;
}

RefPtr<Storage> Storage::alias(RefPtr<Storage> of) {
  RefPtr<Storage> s(new Storage);
  RefPtr<Storage> root = of->is_alias_ ? of->parent_ : of;
  root->plain();
  s->device = root->device;
  s->pinned = root->pinned;
  s->shared = root->shared;
  s->read_only = root->read_only;
  s->is_alias_ = true;
  std::lock_guard guard(alias_lock());
  s->next_alias_ = root->first_alias_;
  root->first_alias_ = s.get();
  s->parent_ = std::move(root);
  s->follow_root();
  return s;
}

void Storage::follow_root() {
  data = parent_->data;
  bytes = parent_->bytes;
  shared = parent_->shared;
  const PrivateLayout* l = parent_->layout.load(std::memory_order_relaxed);
  mark_cut(l && l->whole ? l->whole : bytes);
  if (l && l->foreign_bools) mark_foreign_bools();
  mark_lazy(l && l->lazy);
}

RefPtr<Storage> Storage::lazy_clone(const RefPtr<Storage>& of) {
  Storage& from = of->root();
  from.plain();
  RefPtr<Storage> clone = from.device.is_meta() || !from.data ? allocate(from.bytes, from.device) : nullptr;
  if (clone) return clone;
  const bool lazy = from.is_lazy();
  if (!lazy && (from.parent_ || from.release_ || from.lent_ || !from.resizable_ || from.pinned)) {
    clone = allocate(from.bytes, from.device);
    backend_of(from.device).copy_bytes(clone->data, from.data, from.bytes, from.device.index);
    return clone;
  }
  std::lock_guard guard(alias_lock());
  if (!lazy) {
    RefPtr<Storage> owner(new Storage);
    owner->data = from.data;
    owner->block = std::exchange(from.block, nullptr);
    owner->bytes = from.bytes;
    owner->device = from.device;
    from.parent_ = std::move(owner);
    from.mark_lazy(true);
    for (Storage* a = from.first_alias_; a; a = a->next_alias_) a->mark_lazy(true);
  }
  clone = RefPtr<Storage>(new Storage);
  clone->data = from.data;
  clone->bytes = from.bytes;
  clone->device = from.device;
  clone->parent_ = from.parent_;
  clone->mark_lazy(true);
  if (from.has_foreign_bools()) clone->mark_foreign_bools();
  return clone;
}

void Storage::own_memory() {
  if (is_alias_) return parent_->own_memory();
  std::lock_guard guard(alias_lock());
  if (!is_lazy()) return;
  const bool last = parent_->use_count() == 1;
  Memory memory = {parent_->data, parent_->block};
  if (last) {
    parent_->data = nullptr;
  } else {
    memory = allocate_memory(bytes, device);
    backend_of(device).copy_bytes(memory.data, parent_->data, bytes, device.index);
  }
  parent_ = nullptr;
  data = memory.data;
  block = memory.block;
  mark_lazy(false);
  for (Storage* a = first_alias_; a; a = a->next_alias_) a->follow_root();
}

void Storage::swap_memory(Storage& other) {
  Storage &a = root(), &b = other.root();
  if (&a == &b) return;
  check(a.device == b.device, "_swap_data_ptr_: both storages must be on the same device, got ", a.device, " and ",
        b.device);
  check(a.bytes == b.bytes || !a.bytes || !b.bytes,
        "_swap_data_ptr_: both storages must have the same nbytes unless one is empty, got ", a.bytes, " and ",
        b.bytes);
  check(a.is_resizable() && b.is_resizable(), "_swap_data_ptr_: the memory of one of the storages is in other hands");
  before_write(a);
  before_write(b);
  a.plain();
  b.plain();
  const int64_t whole_a = a.bytes, whole_b = b.bytes;
  std::swap(a.data, b.data);
  std::swap(a.block, b.block);
  std::swap(a.bytes, b.bytes);
  a.mark_cut(whole_a);
  b.mark_cut(whole_b);
  std::lock_guard guard(alias_lock());
  for (Storage* s = a.first_alias_; s; s = s->next_alias_) s->follow_root();
  for (Storage* s = b.first_alias_; s; s = s->next_alias_) s->follow_root();
}

void Storage::note_foreign_bools() {
  if (is_alias_) return parent_->note_foreign_bools();
  plain();
  mark_foreign_bools();
  std::lock_guard guard(alias_lock());
  for (Storage* a = first_alias_; a; a = a->next_alias_) a->mark_foreign_bools();
}

void Storage::lend() {
  before_write(root());
  ++root().lent_;
}
void Storage::give_back() { --root().lent_; }
bool Storage::is_resizable() const { return root().resizable_ && !root().lent_; }
void Storage::forbid_resizing() {
  before_write(root());
  root().resizable_ = false;
}

void Storage::move_to(RefPtr<Storage> other) {
  if (is_alias_) return parent_->move_to(std::move(other));
  before_write(*this);
  plain();
  if (lent_) {  // somebody else goes on looking at the memory: it lives as long as the new one
    RefPtr<Storage> old(new Storage);
    old->data = data;
    old->block = block;
    old->bytes = bytes;
    old->device = device;
    old->release_ = std::exchange(release_, nullptr);
    old->parent_ = std::move(parent_);
    other->parent_ = std::move(old);
  } else {
    free_data();
  }
  data = other->plain();
  block = nullptr;
  parent_ = std::move(other);
  resizable_ = false;
  shared = true;
  std::lock_guard guard(alias_lock());
  for (Storage* a = first_alias_; a; a = a->next_alias_) a->follow_root();
}

void Storage::resize(int64_t wanted) {
  if (is_alias_) return parent_->resize(wanted);
  if (wanted == bytes) return;
  before_write(*this);
  check(wanted >= 0, "resize_: a storage cannot have ", wanted, " bytes");
  check(is_resizable(), "Trying to resize storage that is not resizable");
  plain();
  const int64_t before = bytes;
  if (!device.is_meta()) {
    const Memory bigger = wanted ? allocate_memory(wanted, device) : Memory{};
    if (data) {
      const int64_t kept = std::min(bytes, wanted);
      if (kept) backend_of(device).copy_bytes(bigger.data, data, kept, device.index);
      free_memory({data, block}, bytes, device);
    }
    data = bigger.data;
    block = bigger.block;
  }
  bytes = wanted;
  mark_cut(before);
  std::lock_guard guard(alias_lock());
  for (Storage* a = first_alias_; a; a = a->next_alias_) a->follow_root();
}

}  // namespace cresset
