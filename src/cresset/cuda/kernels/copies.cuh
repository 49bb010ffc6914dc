// Copies on their way: into shared memory while the threads go on, and into the cache before a kernel may read.
#pragma once
#include "types.cuh"

#ifndef CRESSET_EMULATED
// Sixteen bytes on their way to shared memory; zeros when `there` is false. They have come after wait_for_copies and a
// barrier.
__device__ __forceinline__ void copy_16_bytes(void* to, const void* from, bool there = true) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
__device__ void copy_16_bytes(void* to, const void* from, bool there = true) {
  for (int i = 0; i < 4; ++i) static_cast<uint32_t*>(to)[i] = there ? static_cast<const uint32_t*>(from)[i] : 0u;
}
__device__ void wait_for_copies() {}
#endif
