// Intrusive reference counting: RefCounted and RefPtr.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace cresset {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) const_cast<RefCounted*>(this)->last_reference_gone();
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  virtual void last_reference_gone() { delete this; }

  mutable std::atomic<uint32_t> count_{0};
};

template <class T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}
  RefPtr(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  RefPtr(const RefPtr& o) : RefPtr(o.p_) {}
  RefPtr(RefPtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  RefPtr(const RefPtr<U>& o) : RefPtr(o.get()) {}
  ~RefPtr() {
    if (p_) p_->release();
  }
  RefPtr& operator=(RefPtr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const RefPtr& o) const { return p_ == o.p_; }
  void reset() { RefPtr().swap(*this); }
  void swap(RefPtr& o) { std::swap(p_, o.p_); }

 private:
  T* p_ = nullptr;
};

}  // namespace cresset
