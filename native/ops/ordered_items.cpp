#include "ops/ordered_items.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/instruction_set.h"

namespace cresset {
namespace {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
using KeyOf = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
template <class T>
inline constexpr KeyOf<T> kSign = KeyOf<T>(1) << (8 * sizeof(KeyOf<T>) - 1);

template <class T>
CRESSET_INLINE KeyOf<T> key_of(T v) {
  if constexpr (is_half<T>) {
    return key_of(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<KeyOf<T>>(v + T(0));  // -0 + 0 is 0
    const KeyOf<T> key = bits ^ ((bits & kSign<T>) ? ~KeyOf<T>(0) : kSign<T>);
    return v != v ? ~KeyOf<T>(0) : key;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<KeyOf<T>>(static_cast<std::make_signed_t<KeyOf<T>>>(v)) ^ kSign<T>;
  } else {
    return static_cast<KeyOf<T>>(v);
  }
}

template <class T>
T element_of(KeyOf<T> key) {
  if constexpr (is_half<T>) {
    return T(element_of<float>(key));
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(key ^ ((key & kSign<T>) ? kSign<T> : ~KeyOf<T>(0)));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(key ^ kSign<T>);
  } else {
    return static_cast<T>(key);
  }
}

// A key of 32 bits in a wide item: all ones stay all ones.
template <class Item, class Key>
typename Item::Key widened(Key key) {
  return sizeof(Key) < sizeof(typename Item::Key) && key == static_cast<Key>(~Key(0)) ? ~typename Item::Key(0)
                                                                                      : typename Item::Key(key);
}

template <class T, class Item>
bool make_items(const char* elements, int64_t step, int64_t n, bool descending, int64_t first, Item* to) {
  const T* from = reinterpret_cast<const T*>(elements);
  using Key = typename Item::Key;
  const Key flip = descending ? ~Key(0) : 0;
  uint8_t lossy = sizeof(KeyOf<T>) < sizeof(Key);
  for (int64_t i = 0; i < n; ++i) {
    const T v = from[i * step];
    const auto key = key_of(v);
    if constexpr (std::is_floating_point_v<T>)
      lossy |= std::bit_cast<KeyOf<T>>(element_of<T>(key)) != std::bit_cast<KeyOf<T>>(v);
    if constexpr (is_half<T>) lossy |= element_of<T>(key).bits != v.bits;
    to[i] = Item::make(widened<Item>(key) ^ flip, first + i);
  }
  return !lossy;
}

template <class T>
struct FindBefore {
  template <class Fma>
  CRESSET_INLINE void run(const T* from, int64_t n, KeyOf<T> flip, KeyOf<T> bound, bool* found) {
    KeyOf<T> any = 0;
    for (int64_t i = 0; i < n; ++i) any |= (key_of(from[i]) ^ flip) < bound;
    *found = any != 0;
  }
};
template <class T, class Item>
bool any_before(const char* elements, int64_t n, bool descending, typename Item::Key bound) {
  if constexpr (sizeof(KeyOf<T>) != sizeof(bound)) return true;  // wide items of narrow elements: who knows
  bool found;
  run_vectorized<FindBefore<T>>(reinterpret_cast<const T*>(elements), n,
                                static_cast<KeyOf<T>>(descending ? ~KeyOf<T>(0) : 0), static_cast<KeyOf<T>>(bound),
                                &found);
  return found;
}

template <class T, class Item>
void restore_elements(const Item* items, int64_t n, bool descending, char* elements, int64_t step) {
  T* to = reinterpret_cast<T*>(elements);
  const typename Item::Key flip = descending ? ~typename Item::Key(0) : 0;
  for (int64_t i = 0; i < n; ++i) to[i * step] = element_of<T>(static_cast<KeyOf<T>>(items[i].key() ^ flip));
}

// Digits from the lowest to the highest, each a stable counting sort. A digit that all keys share needs no pass.
template <class Item>
void radix_sort(Item* items, Item* scratch, int64_t n) {
  constexpr int kKeyBits = 8 * sizeof(typename Item::Key),
                kFirst = std::is_same_v<Item, NarrowItem> ? 32 : 0;  // the key's place in the word
  const int bits = n < 8192 ? 8 : 11, digits = (kKeyBits + bits - 1) / bits;
  const uint64_t mask = (uint64_t(1) << bits) - 1;
  const size_t buckets = size_t(1) << bits;
  uint32_t counts[6 * 2048];
  std::memset(counts, 0, sizeof(uint32_t) * buckets * static_cast<size_t>(digits));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = items[i].word >> kFirst;
    for (int d = 0; d < digits; ++d) ++counts[static_cast<size_t>(d) * buckets + (key >> (d * bits) & mask)];
  }
  Item *from = items, *to = scratch;
  for (int d = 0; d < digits; ++d) {
    uint32_t* count = counts + static_cast<size_t>(d) * buckets;
    const int shift = kFirst + d * bits;
    if (count[from[0].word >> shift & mask] == n) continue;
    uint32_t sum = 0;
    for (size_t b = 0; b < buckets; ++b) sum += std::exchange(count[b], sum);
    for (int64_t i = 0; i < n; ++i) to[count[from[i].word >> shift & mask]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::memcpy(items, from, static_cast<size_t>(n) * sizeof(Item));
}

template <class Item>
void sort_any(Item* items, Item* scratch, int64_t n) {
  constexpr int64_t kSmall = 200, kHuge = int64_t(1) << 32;
  if (n < kSmall || n >= kHuge)
    std::sort(items, items + n);
  else
    radix_sort(items, scratch, n);
}

// Find the highest digit of the item at place k by counting, and look only among those that share it.
template <class Item>
Item nth_any(Item* items, int64_t n, int64_t k) {
  constexpr int kBits = 11, kShift = 64 - kBits;
  if (n < 4096) {
    std::nth_element(items, items + k, items + n);
    return items[k];
  }
  int64_t counts[1 << kBits] = {};
  for (int64_t i = 0; i < n; ++i) ++counts[items[i].word >> kShift];
  uint64_t digit = 0;
  while (k >= counts[digit]) k -= counts[digit++];
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Item item = items[i];
    items[kept] = item;
    kept += item.word >> kShift == digit;
  }
  std::nth_element(items, items + k, items + kept);
  return items[k];
}

}  // namespace

template <class Item>
MakeItems<Item> item_maker(Dtype dtype, const char* who) {
  return visit_real(dtype, who, []<class T>() -> MakeItems<Item> {
    if constexpr (sizeof(T) > sizeof(typename Item::Key))
      invariant(false, "items too narrow for their elements");
    else
      return make_items<T, Item>;
  });
}
template MakeItems<NarrowItem> item_maker<NarrowItem>(Dtype, const char*);
template MakeItems<WideItem> item_maker<WideItem>(Dtype, const char*);

template <class Item>
AnyBefore<Item> before_finder(Dtype dtype, const char* who) {
  return visit_real(dtype, who, []<class T>() -> AnyBefore<Item> {
    if constexpr (sizeof(T) > sizeof(typename Item::Key))
      invariant(false, "items too narrow for their elements");
    else
      return any_before<T, Item>;
  });
}
template AnyBefore<NarrowItem> before_finder<NarrowItem>(Dtype, const char*);
template AnyBefore<WideItem> before_finder<WideItem>(Dtype, const char*);

template <class Item>
RestoreElements<Item> element_restorer(Dtype dtype, const char* who) {
  return visit_real(dtype, who, []<class T>() -> RestoreElements<Item> {
    if constexpr (sizeof(T) > sizeof(typename Item::Key))
      invariant(false, "items too narrow for their elements");
    else
      return restore_elements<T, Item>;
  });
}
template RestoreElements<NarrowItem> element_restorer<NarrowItem>(Dtype, const char*);
template RestoreElements<WideItem> element_restorer<WideItem>(Dtype, const char*);

NarrowItem nth_item(NarrowItem* items, int64_t n, int64_t k) { return nth_any(items, n, k); }
WideItem nth_item(WideItem* items, int64_t n, int64_t k) { return nth_any(items, n, k); }

void sort_items(NarrowItem* items, NarrowItem* scratch, int64_t n) { sort_any(items, scratch, n); }
void sort_items(WideItem* items, WideItem* scratch, int64_t n) { sort_any(items, scratch, n); }

template <class Item>
void take_items(const Item* items, int64_t n, const char* in, int64_t in_step, char* out, int64_t out_step,
                int64_t width) {
  visit_width(width, [&]<class T>() {
    const T* from = reinterpret_cast<const T*>(in);
    T* to = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) to[i * out_step] = from[items[i].position() * in_step];
  });
}
template void take_items(const NarrowItem*, int64_t, const char*, int64_t, char*, int64_t, int64_t);
template void take_items(const WideItem*, int64_t, const char*, int64_t, char*, int64_t, int64_t);

}  // namespace cresset
