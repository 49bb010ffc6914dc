#include "tensor/storage.h"

#include <cstring>

#include "base/error.h"
#include "tensor/allocator.h"
#include "tensor/backend.h"
#include "tensor/pinned.h"
#include "tensor/private_layout.h"

namespace cresset {

void (*release_code)(void*) = nullptr;
PinnedHost pinned_host;

void* Storage::operator new(size_t bytes) { return allocate_cell(bytes); }
void Storage::operator delete(void* p, size_t bytes) { free_cell(p, bytes); }

Storage::~Storage() {
  if (changed_at.code && release_code) release_code(changed_at.code);
  if (PrivateLayout* l = layout.load(std::memory_order_relaxed)) [[unlikely]] delete l;
  if (release_) {
    (*release_)();
    delete release_;
  } else if (!parent_ && data) {
    free_memory({data, block}, bytes, device);
  }
}

Memory allocate_memory(int64_t bytes, Device device) {
  if (device.is_cpu()) return {static_cast<char*>(allocate_host(static_cast<size_t>(bytes))), nullptr};
  check(device.type == DeviceType::cuda, "PyTorch is not linked with support for ", name_of(device.type), " devices (asked for memory on ", device, ")");
  return backend_of(device).allocate(bytes, device.index);
}

void free_memory(Memory memory, int64_t bytes, Device device) {
  if (device.is_cpu()) free_host(memory.data, static_cast<size_t>(bytes));
  else backend_of(device).free(memory, device.index);
}

RefPtr<Storage> Storage::allocate(int64_t bytes, Device device) {
  if (device.index == kPinned && device.is_cpu()) [[unlikely]] return pinned_host.allocate(bytes);
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
  s->resizable = false;
  s->release_ = new std::function<void()>(std::move(release));
  return s;
}

RefPtr<Storage> Storage::alias(RefPtr<Storage> of) {
  RefPtr<Storage> s(new Storage);
  s->data = of->plain();
  s->bytes = of->bytes;
  s->device = of->device;
  s->pinned = of->pinned;
  s->shared = of->shared;
  s->resizable = false;
  s->parent_ = of->parent_ ? of->parent_ : of;
  return s;
}

void Storage::move_to(RefPtr<Storage> other) {
  plain();
  if (release_) {
    (*release_)();
    delete release_;
    release_ = nullptr;
  } else if (!parent_ && data) {
    free_memory({data, block}, bytes, device);
  }
  data = other->plain();
  block = nullptr;
  parent_ = std::move(other);
  resizable = false;
}

void Storage::resize(int64_t wanted) {
  if (wanted == bytes) return;
  check(resizable, "Trying to resize storage that is not resizable");
  if (device.is_meta()) {
    bytes = wanted;
    return;
  }
  plain();
  const Memory bigger = wanted ? allocate_memory(wanted, device) : Memory{};
  if (data) {
    if (device.is_cpu()) std::memcpy(bigger.data, data, static_cast<size_t>(std::min(bytes, wanted)));
    else backend_of(device).copy_bytes(bigger.data, data, std::min(bytes, wanted), device.index);
    free_memory({data, block}, bytes, device);
  }
  data = bigger.data;
  block = bigger.block;
  bytes = wanted;
}

}  // namespace cresset
