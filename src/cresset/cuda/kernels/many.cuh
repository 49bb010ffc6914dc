// One step over all elements of many tensors: of an optimizer, or one operation on lists of tensors. The text before
// this file includes many_table.cuh and defines
//   struct Constants, prepare(Constants&, const double* numbers), update(const Constants&, COMPUTE& first, ...)    see
//   update_source in printing.py EACH_TENSOR(X)     X(place, dtype, read, written) for each list UPDATE
//   update(constants, x0, x1, ...)
// More -D options: COMPUTE, BLOCK, VECTOR, UNROLL; SINGLE, the dtype of singles on the device;
//   SKIPS      do nothing when *found is not zero        UNSCALES   divide the second list, the gradients, by *scale
//   first, and keep that
#pragma once

#define IS_ALIGNED(place, type, read, written) &&reinterpret_cast<uint64_t>(p##place) % (VECTOR * sizeof(type)) == 0
#define POINTER(place, type, read, written) \
  type* const p##place = reinterpret_cast<type*>(table.tensors[place][share.target]) + share.begin;
#define VECTORS(place, type, read, written) Vector<type, VECTOR> v##place[UNROLL];
#define LOAD(place, type, read, written) \
  if constexpr (read) v##place[u] = load_vector<VECTOR>(p##place + at + u * kStep);
#define WIDEN(place, type, read, written) \
  COMPUTE x##place = COMPUTE(0);          \
  if constexpr (read) x##place = convert<COMPUTE>(v##place[u].values[k]);
#define NARROW(place, type, read, written) \
  if constexpr (written) v##place[u].values[k] = convert<type>(x##place);
#define STORE(place, type, read, written) \
  if constexpr (written) store_vector(p##place + at + u * kStep, v##place[u]);
#define WIDEN_ONE(place, type, read, written) \
  COMPUTE x##place = COMPUTE(0);              \
  if constexpr (read) x##place = convert<COMPUTE>(p##place[i]);
#define STORE_ONE(place, type, read, written) \
  if constexpr (written) p##place[i] = convert<type>(x##place);
#ifdef UNSCALES
#define UNSCALE x1 = x1 / scale;
#else
#define UNSCALE
#endif

#if SINGLES
__device__ __forceinline__ double read_single(const Table& table, int which, int target) {
  return convert<double>(*reinterpret_cast<const SINGLE*>(table.singles[which][target]));
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK) many(const Table table) {
  after_earlier_work();
#ifdef SKIPS
  if (*table.found != 0.0f) return;
#endif
  __shared__ double numbers[NUMBERS];
  __shared__ Constants constants;
  const Share share = find_share(table);
  if (threadIdx.x < NUMBERS - SINGLES) numbers[threadIdx.x] = table.numbers[table.rows[share.target]][threadIdx.x];
#if SINGLES
  if (threadIdx.x < SINGLES)
    numbers[NUMBERS - SINGLES + threadIdx.x] = read_single(table, static_cast<int>(threadIdx.x), share.target);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
#ifdef PREPARES_FROM_TABLE
    prepare(constants, numbers, table.scale, table.found);
#else
    prepare(constants, numbers);
#endif
  }
  __syncthreads();
#ifdef UNSCALES
  const COMPUTE scale = static_cast<COMPUTE>(*table.scale);
#endif
  EACH_TENSOR(POINTER)
  constexpr int kStep = BLOCK * VECTOR;
  const bool aligned = true EACH_TENSOR(IS_ALIGNED);
  int rest = 0;
  if (aligned) {
    rest = share.count - share.count % VECTOR;
#pragma unroll 1
    for (int at = static_cast<int>(threadIdx.x) * VECTOR; at < rest; at += kStep * UNROLL) {
      EACH_TENSOR(VECTORS)
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (at + u * kStep < rest) {
          EACH_TENSOR(LOAD)
        }
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (at + u * kStep < rest) {
#pragma unroll
          for (int k = 0; k < VECTOR; ++k) {
            EACH_TENSOR(WIDEN)
            UNSCALE
            UPDATE;
            EACH_TENSOR(NARROW)
          }
          EACH_TENSOR(STORE)
        }
    }
  }
#pragma unroll 1
  for (int i = rest + static_cast<int>(threadIdx.x); i < share.count; i += BLOCK) {
    EACH_TENSOR(WIDEN_ONE)
    UNSCALE
    UPDATE;
    EACH_TENSOR(STORE_ONE)
  }
}

#if SINGLES
// The singles of all targets, after their step.
extern "C" __global__ void __launch_bounds__(BLOCK) advance_singles(const Table table) {
  after_earlier_work();
#ifdef SKIPS
  if (*table.found != 0.0f) return;
#endif
  const int target = static_cast<int>(blockIdx.x * BLOCK + threadIdx.x);
  if (target >= table.targets) return;
  const int row = table.rows[target];
  double numbers[NUMBERS], singles[SINGLES];
#pragma unroll
  for (int i = 0; i < NUMBERS - SINGLES; ++i) numbers[i] = table.numbers[row][i];
#pragma unroll
  for (int i = 0; i < SINGLES; ++i) singles[i] = numbers[NUMBERS - SINGLES + i] = read_single(table, i, target);
  advance(numbers, singles);
#pragma unroll
  for (int i = 0; i < SINGLES; ++i) *reinterpret_cast<SINGLE*>(table.singles[i][target]) = convert<SINGLE>(singles[i]);
}
#endif
