// What threads of a block and lanes of a warp do together: barriers, shuffles, votes. The driver decides when all have
// come.
#pragma once

namespace emulated {

static EmulatedHost host;

inline unsigned lane() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31; }

template <class T>
inline unsigned long long to_bits(T value) {
  static_assert(sizeof(T) <= 8);
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
inline T from_bits(unsigned long long bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, const char* file, int line) {
  return from_bits<T>(host.warp(kWarpShuffle, mask, to_bits(value), source, file, line));
}

}  // namespace emulated

#define EMULATED_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMULATED_PLACE) { emulated::host.barrier(false, file, line); }
inline int __syncthreads_count(int predicate, EMULATED_PLACE) {
  return int(emulated::host.barrier(predicate != 0, file, line));
}
inline int __syncthreads_or(int predicate, EMULATED_PLACE) {
  return emulated::host.barrier(predicate != 0, file, line) > 0;
}
inline int __syncthreads_and(int predicate, EMULATED_PLACE) {
  return emulated::host.barrier(predicate == 0, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATED_PLACE) {
  emulated::host.warp(kWarpSync, mask, 0, 0, file, line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
inline void __trap(EMULATED_PLACE) { emulated::host.trap("__trap", file, line); }
inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
inline long clock() { return (long)clock64(); }

// A lane whose source lies outside its segment of `width` lanes gets its own value.
#define EMULATED_SHUFFLES(T)                                                                                         \
  inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATED_PLACE) {                         \
    const unsigned first = emulated::lane() & ~unsigned(width - 1);                                                  \
    return emulated::shuffle(mask, value, first + (unsigned(source) & unsigned(width - 1)), file, line);             \
  }                                                                                                                  \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATED_PLACE) {                  \
    const unsigned lane = emulated::lane(), first = lane & ~unsigned(width - 1);                                     \
    return emulated::shuffle(mask, value, lane - first >= delta ? lane - delta : lane, file, line);                  \
  }                                                                                                                  \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATED_PLACE) {                \
    const unsigned lane = emulated::lane(), first = lane & ~unsigned(width - 1);                                     \
    return emulated::shuffle(mask, value, lane - first + delta < unsigned(width) ? lane + delta : lane, file, line); \
  }                                                                                                                  \
  inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, EMULATED_PLACE) {                      \
    const unsigned lane = emulated::lane(), first = lane & ~unsigned(width - 1), other = lane ^ unsigned(lanes);     \
    return emulated::shuffle(mask, value, other < first + unsigned(width) ? other : lane, file, line);               \
  }
EMULATED_SHUFFLES(int)
EMULATED_SHUFFLES(unsigned)
EMULATED_SHUFFLES(long)
EMULATED_SHUFFLES(unsigned long)
EMULATED_SHUFFLES(long long)
EMULATED_SHUFFLES(unsigned long long)
EMULATED_SHUFFLES(float)
EMULATED_SHUFFLES(double)
#undef EMULATED_SHUFFLES

inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATED_PLACE) {
  return unsigned(emulated::host.warp(kWarpBallot, mask, predicate != 0, 0, file, line));
}
inline int __any_sync(unsigned mask, int predicate, EMULATED_PLACE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMULATED_PLACE) {
  return int(emulated::host.warp(kWarpAll, mask, predicate != 0, 0, file, line));
}
// Lanes never run in lockstep here, so a lane that asks who runs with it is alone. That is a legal answer.
inline unsigned __activemask() { return 1u << emulated::lane(); }
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, EMULATED_PLACE) {
  return unsigned(emulated::host.warp(kWarpMatchAny, mask, emulated::to_bits(value), 0, file, line));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, EMULATED_PLACE) {
  const auto lanes = unsigned(emulated::host.warp(kWarpMatchAll, mask, emulated::to_bits(value), 0, file, line));
  *all = lanes != 0;
  return lanes;
}

#define EMULATED_WARP_REDUCTION(T, name, operation)                                          \
  inline T name(unsigned mask, T value, EMULATED_PLACE) {                                    \
    return T(emulated::host.warp(operation, mask, emulated::to_bits(value), 0, file, line)); \
  }
EMULATED_WARP_REDUCTION(unsigned, __reduce_add_sync, kWarpAddition)
EMULATED_WARP_REDUCTION(int, __reduce_add_sync, kWarpAddition)
EMULATED_WARP_REDUCTION(unsigned, __reduce_min_sync, kWarpMinimum)
EMULATED_WARP_REDUCTION(int, __reduce_min_sync, kWarpSignedMinimum)
EMULATED_WARP_REDUCTION(unsigned, __reduce_max_sync, kWarpMaximum)
EMULATED_WARP_REDUCTION(int, __reduce_max_sync, kWarpSignedMaximum)
EMULATED_WARP_REDUCTION(unsigned, __reduce_and_sync, kWarpAnd)
EMULATED_WARP_REDUCTION(unsigned, __reduce_or_sync, kWarpOr)
EMULATED_WARP_REDUCTION(unsigned, __reduce_xor_sync, kWarpXor)
#undef EMULATED_WARP_REDUCTION
