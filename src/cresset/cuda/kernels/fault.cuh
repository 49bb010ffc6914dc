// Reporting a bad index to the host, which raises IndexError when it next waits for the device. The same struct as in
// native/cuda/fault.h.
#pragma once
#include "types.cuh"

struct Fault {
  int32_t state;
  int32_t operation;
  int64_t value, position, bound;
};

// The first one is kept. The host sees `state` change last.
__device__ __forceinline__ void report(Fault* fault, int32_t operation, int64_t value, int64_t position,
                                       int64_t bound) {
  if (atomicCAS(&fault->state, 0, 1) != 0) return;
  fault->operation = operation;
  fault->value = value;
  fault->position = position;
  fault->bound = bound;
  __threadfence_system();
  atomicExch(&fault->state, 2);
}

// An index as PyTorch means it: negative ones count from the end. A bad one is reported, and 0 used instead.
__device__ __forceinline__ int64_t checked_index(int64_t index, int64_t bound, int64_t position, Fault* fault,
                                                 int32_t operation) {
  if (index >= -bound && index < bound) return index < 0 ? index + bound : index;
  report(fault, operation, index, position, bound);
  return 0;
}
