// One formula over all elements. The text before this file defines
//   formula(...)            the values of the inputs, then the attributes
//   RESULT                  the dtype that is stored
//   OPERANDS                the result and the inputs
//   EACH_INPUT(P, N)        P(place, dtype) for an input in memory, N(place, dtype) for one number; place 1 is the
//   first input ARGUMENTS(P, N)         the same with a comma after each, without the dtype
// and -D options BLOCK, VECTOR and UNROLL, or RANK, BIG (places beyond 31 bits), INNER (neighbors along the innermost
// dimension that a thread has) and ALIKE (bit i: along it operand i is one element).
#pragma once
#include "slots.cuh"

struct Plan {
  int64_t count;
  Slot slots[OPERANDS];
  Attribute attributes[4];
};

#define POINTER(place, type) const type* const p##place = plan.slots[place].template as<const type*>();
#define NUMBER(place, type) const type n##place = plan.slots[place].template as<type>();
#define NUMBER_ARGUMENT(place) as_argument(n##place),
#define NOTHING(place, type)

#ifdef VECTOR
#define VECTORS(place, type) Vector<type, VECTOR> v##place[UNROLL];
#define LOAD_VECTOR(place, type) v##place[u] = load_vector<VECTOR>(p##place + at + u * kStep);
#define VECTOR_ARGUMENT(place) as_argument(v##place[u].values[k]),
#define ELEMENT_ARGUMENT(place) as_argument(p##place[i]),

// All operands lie densely in the same order.
extern "C" __global__ void __launch_bounds__(BLOCK) pointwise(const Plan plan) {
  after_earlier_work();
  constexpr int64_t kStep = BLOCK * VECTOR;
  RESULT* const result = plan.slots[0].template as<RESULT*>();
  EACH_INPUT(POINTER, NUMBER)
  const int64_t at = static_cast<int64_t>(blockIdx.x) * (kStep * UNROLL) + threadIdx.x * VECTOR;
  if (at + kStep * (UNROLL - 1) + VECTOR <= plan.count) {
    EACH_INPUT(VECTORS, NOTHING)
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      EACH_INPUT(LOAD_VECTOR, NOTHING)
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      Vector<RESULT, VECTOR> out;
#pragma unroll
      for (int k = 0; k < VECTOR; ++k)
        out.values[k] = convert<RESULT>(formula(ARGUMENTS(VECTOR_ARGUMENT, NUMBER_ARGUMENT) plan.attributes));
      store_vector(result + at + u * kStep, out);
    }
    return;
  }
#pragma unroll 1
  for (int u = 0; u < UNROLL; ++u)
#pragma unroll 1
    for (int64_t i = at + u * kStep; i < at + u * kStep + VECTOR && i < plan.count; ++i)
      result[i] = convert<RESULT>(formula(ARGUMENTS(ELEMENT_ARGUMENT, NUMBER_ARGUMENT) plan.attributes));
}
#endif

#ifdef RANK
#if BIG
using Index = uint64_t;
using Offset = int64_t;
#else
using Index = uint32_t;
using Offset = int32_t;
#endif

struct StridedPlan {
  Plan plan;
  Divider sizes[RANK];  // from the outermost dimension to the innermost
  int64_t strides[OPERANDS][RANK];
};

#define STRIDED_VECTORS(place, type) Vector<type, INNER> v##place[UNROLL];
#define LOAD_STRIDED(place, type)                                \
  if constexpr ((ALIKE >> place & 1) != 0) {                     \
    const type one = p##place[offsets[place]];                   \
    for (int k = 0; k < INNER; ++k) v##place[u].values[k] = one; \
  } else {                                                       \
    v##place[u] = load_vector<INNER>(p##place + offsets[place]); \
  }
#define STRIDED_ARGUMENT(place) as_argument(v##place[u].values[k]),

extern "C" __global__ void __launch_bounds__(BLOCK) pointwise_strided(const StridedPlan strided) {
  after_earlier_work();
  const Plan& plan = strided.plan;
  RESULT* const result = plan.slots[0].template as<RESULT*>();
  EACH_INPUT(POINTER, NUMBER)
  EACH_INPUT(STRIDED_VECTORS, NOTHING)
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (BLOCK * UNROLL) + threadIdx.x;
  Offset to[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {  // all are read before one is written: what is beyond the end reads the last
    const int64_t i = first + u * BLOCK;
    Offset offsets[OPERANDS] = {};
    Index rest = static_cast<Index>(i < plan.count ? i : plan.count - 1);
#pragma unroll
    for (int d = RANK - 1; d >= 0; --d) {
      Index index = rest;
      if (d > 0) {
        const Divider& size = strided.sizes[d];
        const Index quotient = divided(rest, size);
        index = rest - quotient * size.divisor;
        rest = quotient;
      }
#pragma unroll
      for (int o = 0; o < OPERANDS; ++o)
        offsets[o] += static_cast<Offset>(strided.strides[o][d]) * static_cast<Offset>(index);
    }
    EACH_INPUT(LOAD_STRIDED, NOTHING)
    to[u] = offsets[0];
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    if (first + u * BLOCK >= plan.count) return;
    Vector<RESULT, INNER> out;
#pragma unroll
    for (int k = 0; k < INNER; ++k)
      out.values[k] = convert<RESULT>(formula(ARGUMENTS(STRIDED_ARGUMENT, NUMBER_ARGUMENT) plan.attributes));
    store_vector(result + to[u], out);
  }
}
#endif
