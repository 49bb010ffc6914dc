// What functions of flex_attention that were traced read (cresset/graph/traced_functions.py): the tensors that
// they have from outside, each as its address, its sizes and its steps.
#pragma once
#include "fault.cuh"
#include "slots.cuh"

struct FlexWords {
  Fault* fault;
  int64_t operation;
  int64_t words[96];
};

template <int N>
struct Attributes {
  Attribute all[N];
};

__device__ __forceinline__ int abs_of_int(int x) { return x < 0 ? -x : x; }

// An element of memory that nobody writes while the kernel runs: asked for once, however often it is read.
template <class Stored>
__device__ __forceinline__ Stored load_once(const Stored* p) {
#ifndef CRESSET_EMULATED
  if constexpr (sizeof(Stored) == 8)
    return __builtin_bit_cast(Stored, __ldg(reinterpret_cast<const unsigned long long*>(p)));
  else if constexpr (sizeof(Stored) == 4)
    return __builtin_bit_cast(Stored, __ldg(reinterpret_cast<const unsigned*>(p)));
  else if constexpr (sizeof(Stored) == 2)
    return __builtin_bit_cast(Stored, __ldg(reinterpret_cast<const unsigned short*>(p)));
  else
    return __builtin_bit_cast(Stored, __ldg(reinterpret_cast<const unsigned char*>(p)));
#else
  return *p;
#endif
}

// How far an index leads, along a dimension whose size and step stand there. Negative ones count from the end; a bad
// one is reported, and 0 used instead.
template <class Index>
__device__ __forceinline__ int64_t element_of(const FlexWords& words, Index index, int size, int step) {
  int64_t at = index;
  if (at < 0) at += words.words[size];
  if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(words.words[size])) {
    report(words.fault, static_cast<int32_t>(words.operation), index, 0, words.words[size]);
    at = 0;
  }
  return at * words.words[step];
}
