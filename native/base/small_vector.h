// A vector that keeps its first N elements inside itself, so that shapes cost no allocation.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <ostream>
#include <span>
#include <utility>

namespace cresset {

template <class T, int N>
class SmallVector {
 public:
  SmallVector() {}
  SmallVector(int64_t n, const T& value) { assign(n, value); }
  SmallVector(std::initializer_list<T> items) { append(items.begin(), items.end()); }
  SmallVector(std::span<const T> items) { append(items.data(), items.data() + items.size()); }
  template <class It>
  SmallVector(It first, It last) {
    append(first, last);
  }
  SmallVector(const SmallVector& o) { append(o.begin(), o.end()); }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) {
      clear();
      append(o.begin(), o.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      destroy();
      take(o);
    }
    return *this;
  }
  ~SmallVector() { destroy(); }

  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, static_cast<size_t>(size_)}; }

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    new (data_ + size_) T(std::move(value));
    ++size_;
  }
  template <class It>
  void append(It first, It last) {
    reserve(size_ + (last - first));
    for (; first != last; ++first, ++size_) new (data_ + size_) T(*first);
  }
  void assign(int64_t n, const T& value) {
    clear();
    reserve(n);
    for (; size_ < n; ++size_) new (data_ + size_) T(value);
  }
  void resize(int64_t n, const T& value = T()) {
    reserve(n);
    while (size_ < n) new (data_ + size_++) T(value);
    while (size_ > n) data_[--size_].~T();
  }
  void pop_back() { data_[--size_].~T(); }
  void insert(int64_t at, const T& value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int64_t at) {
    std::move(begin() + at + 1, end(), begin() + at);
    pop_back();
  }
  void clear() {
    for (int64_t i = 0; i < size_; ++i) data_[i].~T();
    size_ = 0;
  }
  void reserve(int64_t n) {
    if (n > capacity_) grow(n);
  }
  bool operator==(const SmallVector& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

 private:
  bool is_inline() const { return data_ == reinterpret_cast<const T*>(inline_); }
  void grow(int64_t n) {
    if (n > std::numeric_limits<int32_t>::max() / 2) throw std::bad_alloc();
    int64_t capacity = std::max<int64_t>(n, 2 * capacity_);
    T* bigger = std::allocator<T>().allocate(capacity);
    for (int64_t i = 0; i < size_; ++i) {
      new (bigger + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = bigger;
    capacity_ = static_cast<int32_t>(capacity);
  }
  void destroy() {
    clear();
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = reinterpret_cast<T*>(inline_);
    capacity_ = N;
  }
  void take(SmallVector& o) {
    if (o.is_inline()) {
      data_ = reinterpret_cast<T*>(inline_);
      capacity_ = N;
      size_ = 0;
      for (int64_t i = 0; i < o.size_; ++i, ++size_) new (data_ + i) T(std::move(o.data_[i]));
      o.clear();
    } else {
      data_ = std::exchange(o.data_, reinterpret_cast<T*>(o.inline_));
      size_ = std::exchange(o.size_, 0);
      capacity_ = std::exchange(o.capacity_, N);
    }
  }

  T* data_ = reinterpret_cast<T*>(inline_);
  int32_t size_ = 0, capacity_ = N;
  alignas(T) char inline_[N * sizeof(T)];
};

// Sizes or strides of a tensor.
using Dims = SmallVector<int64_t, 5>;
using DimsView = std::span<const int64_t>;

// Prints as Python prints a tuple: (3,), (2, 3).
struct AsTuple {
  DimsView dims;
};
inline AsTuple tuple(DimsView dims) { return {dims}; }
inline std::ostream& operator<<(std::ostream& out, AsTuple t) {
  out << '(';
  for (size_t i = 0; i < t.dims.size(); ++i) out << (i ? ", " : "") << t.dims[i];
  return out << (t.dims.size() == 1 ? ",)" : ")");
}
struct AsList {
  DimsView dims;
};
inline AsList list(DimsView dims) { return {dims}; }
inline std::ostream& operator<<(std::ostream& out, AsList t) {
  out << '[';
  for (size_t i = 0; i < t.dims.size(); ++i) out << (i ? ", " : "") << t.dims[i];
  return out << ']';
}

}  // namespace cresset
