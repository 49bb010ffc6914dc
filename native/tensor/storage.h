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

// How many functions derivatives of `func` have been taken of; see Note [Captured tensors] in dispatch/call.h.
inline std::atomic<uint32_t> functions_differentiated{0};

class Storage : public RefCounted {
 public:
  char* data = nullptr;   // as the bytes lie; who reads them as a tensor asks for plain()
  void* block = nullptr;  // the device allocator's record of the memory
  int64_t bytes = 0;
  uint32_t version = 0;
  Device device;
  bool pinned = false, shared = false, read_only = false;
  uint32_t born = functions_differentiated.load(std::memory_order_relaxed);
  CodePosition changed_at;  // the last in-place change
  std::atomic<PrivateLayout*> layout =
      nullptr;  // owned; null: the bytes lie as the tensors' strides say, and there are as many as ever

  char* plain() {
    if (layout.load(std::memory_order_acquire)) [[unlikely]]
      make_plain();
    return data;
  }

  // Note [Objects of storages]
  // A Storage has at most one Python object, which holds it. As long as anybody else holds it too, it holds the object
  // in turn, so that what a program put there (an attribute, a class of its own, a weak reference) is there when the
  // storage is asked for again. The count has a bit for storages with an object: only they tell when the first of the
  // others comes and when the last goes.
  void retain() const {
    if (count_.fetch_add(1, std::memory_order_relaxed) == kHasObject + 1) [[unlikely]]
      hold_object(this, true);
  }
  void release() const {
    const uint32_t before = count_.fetch_sub(1, std::memory_order_acq_rel);
    if (before == 1)
      const_cast<Storage*>(this)->last_reference_gone();
    else if (before == kHasObject + 2) [[unlikely]]
      hold_object(this, false);
  }
  uint32_t use_count() const { return RefCounted::use_count() & ~kHasObject; }
  void* object() const { return object_; }
  // Both are called by who holds a reference for the object; whether others hold the storage.
  bool set_object(void* object);
  bool forget_object();
  static void (*hold_object)(const Storage* storage, bool held);  // set by the bindings

  // The one whose memory it is: `.data` has a storage with a version of its own, but is no other memory.
  Storage& root() { return is_alias_ ? *parent_ : *this; }
  const Storage& root() const { return is_alias_ ? *parent_ : *this; }

  ~Storage() override;
  static RefPtr<Storage> allocate(int64_t bytes, Device device);
  // Memory that belongs to somebody else; `release` is called when nobody needs it any more.
  static RefPtr<Storage> borrow(void* data, int64_t bytes, Device device, std::function<void()> release);
  // No memory, though there were `whole` bytes to it: Note [Storages that were cut].
  static RefPtr<Storage> without_memory(int64_t whole, Device device);
  // The same memory under a version of its own: what `.data` gives. It follows when the other is resized or moved, and
  // the other way round.
  static RefPtr<Storage> alias(RefPtr<Storage> of);
  // Note [Lazy clones]
  // A storage of its own with the same contents. Both use one memory until somebody is about to write to one of them
  // (before_write in tensor/pending.h): that one gets its own then; the last of them takes the memory over. Like a
  // storage that was cut, one that shares its memory so has a PrivateLayout of no width, which keeps it off the short
  // ways. Memory that is in other hands, who write without asking, is copied at once.
  static RefPtr<Storage> lazy_clone(const RefPtr<Storage>& of);
  bool is_lazy() const;
  void own_memory();                    // ends that, for this storage
  void swap_memory(Storage& other);     // each gets the other's memory; views stay what they are
  void resize(int64_t bytes);           // keeps the contents
  void move_to(RefPtr<Storage> other);  // from now on use the other's memory; the contents are the caller's business

  // Note [Memory in other hands]
  // NumPy, a memoryview, DLPack keep the address they were given. Memory that was lent so stays where it is, as long as
  // it lives: it is not resized (an error), and one that moves leaves its old place to the borrower. What was seen as a
  // NumPy array can never be resized again, like in PyTorch.
  void lend();
  void give_back();
  bool is_resizable() const;
  void forbid_resizing();

  bool meets(const Storage& o) const { return data < o.data + o.bytes && o.data < data + bytes; }
  bool was_cut() const;  // Note [Storages that were cut] in tensor/private_layout.h
  // Note [Bytes that are bools]
  // A bool is one byte, and kernels trust that it is 0 or 1. Memory that is also seen as something else, or that others
  // write, can hold any byte, and then every byte but 0 is true. Who makes bools of such memory says so here, and the
  // call path reads them as they are meant (readable_bools).
  void note_foreign_bools();
  bool has_foreign_bools() const;

  [[gnu::cold]] void make_plain();

  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes);

 private:
  static constexpr uint32_t kHasObject = uint32_t{1} << 31;

  void mark_cut(int64_t whole);
  void mark_foreign_bools();
  void mark_lazy(bool lazy);
  void follow_root();
  void free_data();

  RefPtr<Storage> parent_;  // whose memory it is, if it is not its own
  std::function<void()>* release_ = nullptr;
  Storage *first_alias_ = nullptr, *next_alias_ = nullptr;  // of a root: those that follow it
  void* object_ = nullptr;
  int32_t lent_ = 0;
  bool resizable_ = true, is_alias_ = false;
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
