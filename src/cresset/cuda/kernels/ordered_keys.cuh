// Unsigned keys that keep the order of elements: nan after everything else, -0 and 0 the same; as in
// native/ops/ordered_items.h.
#pragma once
#include "types.cuh"

template <class Element>
struct KeyOf {
  using type = uint32_t;
};
template <>
struct KeyOf<double> {
  using type = uint64_t;
};
template <>
struct KeyOf<int64_t> {
  using type = uint64_t;
};
template <>
struct KeyOf<uint64_t> {
  using type = uint64_t;
};
template <class Element>
using key_type = typename KeyOf<Element>::type;

// Only the low bits, as many as the element has, are used.
template <class Element>
constexpr key_type<Element> all_ones = static_cast<key_type<Element>>(~static_cast<key_type<Element>>(0)) >>
                                       (8 * (sizeof(key_type<Element>) - sizeof(Element)));

template <class Element>
__device__ __forceinline__ key_type<Element> key_of(Element v, bool descending) {
  using Key = key_type<Element>;
  constexpr Key kSign = static_cast<Key>(1) << (8 * sizeof(Element) - 1), kAll = all_ones<Element>;
  Key key;
  if constexpr (is_half<Element>) {
    const float f = static_cast<float>(v);
    const Key bits = f == 0 ? 0 : v.bits;
    key = f != f ? kAll : bits & kSign ? ~bits & kAll : bits | kSign;
  } else if constexpr (is_same<Element, float>) {
    const Key bits = v == 0 ? 0 : __builtin_bit_cast(uint32_t, v);
    key = v != v ? kAll : bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (is_same<Element, double>) {
    const Key bits = v == 0 ? 0 : __builtin_bit_cast(uint64_t, v);
    key = v != v ? kAll : bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (is_signed_integer<Element>) {
    key = (static_cast<Key>(v) & kAll) ^ kSign;
  } else {
    key = static_cast<Key>(v);
  }
  return descending ? ~key & kAll : key;
}

// Whether one element alone has this key: not so of zeros, which have a sign, and of nan.
template <class Element>
__device__ __forceinline__ bool is_unique_key(key_type<Element> key, bool descending) {
  using Key = key_type<Element>;
  if constexpr (!is_half<Element> && !is_float<Element>) return true;
  const Key own = descending ? ~key & all_ones<Element> : key;
  return own != all_ones<Element> && own != static_cast<Key>(1) << (8 * sizeof(Element) - 1);
}

// The element that has this key alone.
template <class Element>
__device__ __forceinline__ Element element_of(key_type<Element> key, bool descending) {
  using Key = key_type<Element>;
  constexpr Key kSign = static_cast<Key>(1) << (8 * sizeof(Element) - 1), kAll = all_ones<Element>;
  if (descending) key = ~key & kAll;
  if constexpr (is_half<Element>) {
    Element v;
    v.bits = static_cast<uint16_t>(key & kSign ? key ^ kSign : ~key & kAll);
    return v;
  } else if constexpr (is_float<Element>) {
    return __builtin_bit_cast(Element, static_cast<Key>(key & kSign ? key ^ kSign : ~key));
  } else if constexpr (is_signed_integer<Element>) {
    return static_cast<Element>(key ^ kSign);
  } else {
    return static_cast<Element>(key);
  }
}
