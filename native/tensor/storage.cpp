#include "tensor/storage.h"

#include <cstring>

#include "base/error.h"
#include "tensor/allocator.h"
#include "tensor/private_layout.h"

namespace cresset {

void (*release_code)(void*) = nullptr;

void* Storage::operator new(size_t bytes) { return allocate_cell(bytes); }
void Storage::operator delete(void* p, size_t bytes) { free_cell(p, bytes); }

Storage::~Storage() {
  if (changed_at.code && release_code) release_code(changed_at.code);
  if (PrivateLayout* l = layout.load(std::memory_order_relaxed)) [[unlikely]] delete l;
  if (release_) {
    (*release_)();
    delete release_;
  } else if (!parent_ && data) {
    free_host(data, static_cast<size_t>(bytes));
  }
}

RefPtr<Storage> Storage::allocate(int64_t bytes, Device device) {
  RefPtr<Storage> s(new Storage);
  s->device = device;
  s->bytes = bytes;
  if (bytes > 0 && !device.is_meta()) {
    CRESSET_CHECK_KIND(ErrorKind::assertion, device.type != DeviceType::cuda, "Torch not compiled with CUDA enabled (asked for memory on ", device, ")");
    check(device.is_cpu(), "PyTorch is not linked with support for ", name_of(device.type), " devices (asked for memory on ", device, ")");
    s->data = static_cast<char*>(allocate_host(static_cast<size_t>(bytes)));
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
    free_host(data, static_cast<size_t>(bytes));
  }
  data = other->plain();
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
  char* bigger = wanted ? static_cast<char*>(allocate_host(static_cast<size_t>(wanted))) : nullptr;
  if (data) {
    std::memcpy(bigger, data, static_cast<size_t>(std::min(bytes, wanted)));
    free_host(data, static_cast<size_t>(bytes));
  }
  data = bigger;
  bytes = wanted;
}

}  // namespace cresset
