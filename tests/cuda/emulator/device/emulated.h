// CUDA's device language for g++: included before every kernel that the emulator compiles. System headers stay out, as
// with NVRTC; of the standard ones there is what lies in standard/. `__global__`, `__shared__` and `__launch_bounds__`
// are left to program_text.cpp.
#pragma once
#include "interface.h"

#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))

using size_t = decltype(sizeof 0);
using ptrdiff_t = decltype((char*)0 - (char*)0);
extern "C" int printf(const char*, ...);
extern "C" void* memcpy(void*, const void*, size_t);
extern "C" void* memset(void*, int, size_t);

#include "vectors.h"

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

#include "threads.h"

#include "checking.h"

#include "atomics.h"
#include "bits.h"
#include "math.h"
#include "special.h"

#include "launching.h"
