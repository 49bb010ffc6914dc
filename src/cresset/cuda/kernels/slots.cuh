// What printed formulas are given: stored elements and numbers, which they convert to what they compute in.
#pragma once
#include "divider.cuh"
#include "math.cuh"

// A stored element on its way into a formula, which converts it to what it computes in.
template <class Stored>
struct Loaded {
  Stored value;
  template <class To>
  __device__ __forceinline__ operator To() const {
    return convert<To>(value);
  }
};
template <class Stored>
__device__ __forceinline__ Loaded<Stored> as_argument(const Stored& value) {
  return {value};
}

// A pointer, or the bytes of one number.
struct Slot {
  uint64_t low, high;
  template <class T>
  __device__ __forceinline__ T as() const {
    if constexpr (sizeof(T) == 16)
      return __builtin_bit_cast(T, *this);
    else if constexpr (sizeof(T) == 8)
      return __builtin_bit_cast(T, low);
    else if constexpr (sizeof(T) == 4)
      return __builtin_bit_cast(T, static_cast<uint32_t>(low));
    else if constexpr (sizeof(T) == 2)
      return __builtin_bit_cast(T, static_cast<uint16_t>(low));
    else
      return convert<T>(static_cast<uint8_t>(low));
  }
};
