// Storage: a piece of memory with a version that counts in-place changes. Tensors are views of it.
#pragma once
#include <atomic>
#include <functional>

#include "base/device.h"
#include "base/ref.h"

namespace cresset {

// Where in the user's program something happened; made and read by the bindings (`source_line.h` in autograd).
struct CodePosition {
  void* code = nullptr;
  int32_t instruction = 0;
};

struct PrivateLayout;  // see Note [Private layout] in tensor/private_layout.h

class Storage : public RefCounted {
 public:
  char* data = nullptr;  // as the bytes lie; who reads them as a tensor asks for plain()
  void* block = nullptr;  // the device allocator's record of the memory
  int64_t bytes = 0;
  uint32_t version = 0;
  Device device;
  bool pinned = false, shared = false, resizable = true, read_only = false;
  CodePosition changed_at;  // the last in-place change
  std::atomic<PrivateLayout*> layout = nullptr;  // owned; null: the bytes lie as the tensors' strides say

  char* plain() {
    if (layout.load(std::memory_order_acquire)) [[unlikely]] make_plain();
    return data;
  }

  ~Storage() override;
  static RefPtr<Storage> allocate(int64_t bytes, Device device);
  // Memory that belongs to somebody else; `release` is called when nobody needs it any more.
  static RefPtr<Storage> borrow(void* data, int64_t bytes, Device device, std::function<void()> release);
  // The same memory under a version of its own: what `.data` gives.
  static RefPtr<Storage> alias(RefPtr<Storage> of);
  void resize(int64_t bytes);  // keeps the contents
  void move_to(RefPtr<Storage> other);  // from now on use the other's memory; the contents are the caller's business

  [[gnu::cold]] void make_plain();

  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes);

 private:
  RefPtr<Storage> parent_;
  std::function<void()>* release_ = nullptr;
};

// Memory of a device, and back.
struct Memory {
  char* data = nullptr;
  void* block = nullptr;
};
Memory allocate_memory(int64_t bytes, Device device);
void free_memory(Memory memory, int64_t bytes, Device device);

extern void (*release_code)(void* code);  // set by the bindings

}  // namespace cresset
