// What a block leaves for the blocks after it, which wait for it while all of them run. The number of a block is a
// ticket that it draws as it begins: whoever is waited for has begun, and waits for nobody after it.
//
// What is left says by itself whether it is there: a word of it that was not left is zero. So nothing has to be ordered
// in memory, which would empty the caches of the multiprocessor each time somebody looks.
#pragma once
#include "types.cuh"

// All threads take part. `tickets` was zero before the kernel.
__device__ __forceinline__ uint32_t draw_ticket(uint32_t* tickets) {
  __shared__ uint32_t drawn;
  if (threadIdx.x == 0) drawn = atomicAdd(tickets, 1u);
  __syncthreads();
  return drawn;
}

// A value of any size: each four bytes of it in a word of eight, beside a mark.
template <class Value>
struct Left {
  static constexpr int kWords = sizeof(Value) / 4;
  uint64_t words[kWords];
};
template <class Value>
struct LeftParts {
  uint32_t parts[Left<Value>::kWords];
};
template <class Value>
__device__ __forceinline__ void leave_value(Left<Value>* place, const Value& value) {
  const auto parts = __builtin_bit_cast(LeftParts<Value>, value);
#pragma unroll
  for (int i = 0; i < Left<Value>::kWords; i += 2) {
    const uint64_t first = uint64_t{1} << 32 | parts.parts[i], second = uint64_t{1} << 32 | parts.parts[i + 1];
#ifndef CRESSET_EMULATED
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(place->words + i), "l"(first), "l"(second)
                 : "memory");
#else
    place->words[i] = first, place->words[i + 1] = second;
#endif
  }
}
template <class Value>
__device__ __forceinline__ Value wait_for_value(const Left<Value>* place) {
  LeftParts<Value> parts;
  for (;;) {
    bool there = true;
#pragma unroll
    for (int i = 0; i < Left<Value>::kWords; i += 2) {
      uint64_t first, second;
#ifndef CRESSET_EMULATED
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(first), "=l"(second)
                   : "l"(place->words + i)
                   : "memory");
#else
      first = place->words[i], second = place->words[i + 1];
#endif
      there = there && (first >> 32 & second >> 32) != 0;
      parts.parts[i] = static_cast<uint32_t>(first), parts.parts[i + 1] = static_cast<uint32_t>(second);
    }
    if (there) return __builtin_bit_cast(Value, parts);
#ifndef CRESSET_EMULATED
    __nanosleep(20);
#endif
  }
}
