#include "ops/ordered_items.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace cresset {
namespace {

template <class T>
auto key_of(T v) {
  using Key = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
  constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return key_of(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<Key>(v + T(0));  // -0 + 0 is 0
    const Key key = bits ^ ((bits & sign) ? ~Key(0) : sign);
    return v != v ? ~Key(0) : key;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(static_cast<std::make_signed_t<Key>>(v)) ^ sign;
  } else {
    return static_cast<Key>(v);
  }
}

template <class T, class Item>
void make_items(const char* elements, int64_t step, int64_t n, bool descending, int64_t first, Item* to) {
  const T* from = reinterpret_cast<const T*>(elements);
  using Key = typename Item::Key;
  // A key of 32 bits in a wide item stays below all ones, so that it is spread to the top.
  const auto key = [](T v) {
    const auto k = key_of(v);
    return static_cast<Key>(sizeof k < sizeof(Key) && k == static_cast<decltype(k)>(~decltype(k)(0)) ? ~Key(0)
                                                                                                     : Key(k));
  };
  const Key flip = descending ? ~Key(0) : 0;
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = Item::make(key(from[i]) ^ flip, first + i);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = Item::make(key(from[i * step]) ^ flip, first + i);
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

}  // namespace

template <class Item>
MakeItems<Item> item_maker(Dtype dtype, const char* who) {
  return visit_real(dtype, who, [&]<class T>() -> MakeItems<Item> {
    if constexpr (sizeof(T) > sizeof(typename Item::Key))
      invariant(false, "items too narrow for their elements");
    else
      return make_items<T, Item>;
  });
}
template MakeItems<NarrowItem> item_maker<NarrowItem>(Dtype, const char*);
template MakeItems<WideItem> item_maker<WideItem>(Dtype, const char*);

void sort_items(NarrowItem* items, NarrowItem* scratch, int64_t n) { sort_any(items, scratch, n); }
void sort_items(WideItem* items, WideItem* scratch, int64_t n) { sort_any(items, scratch, n); }

template <class Item>
void take_items(const Item* items, int64_t n, const char* in, int64_t in_step, char* out, int64_t out_step,
                int64_t* positions, int64_t positions_step, int64_t width) {
  visit_width(width, [&]<class T>() {
    const T* from = reinterpret_cast<const T*>(in);
    T* to = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) to[i * out_step] = from[items[i].position() * in_step];
  });
  if (positions)
    for (int64_t i = 0; i < n; ++i) positions[i * positions_step] = items[i].position();
}
template void take_items(const NarrowItem*, int64_t, const char*, int64_t, char*, int64_t, int64_t*, int64_t, int64_t);
template void take_items(const WideItem*, int64_t, const char*, int64_t, char*, int64_t, int64_t*, int64_t, int64_t);

}  // namespace cresset
