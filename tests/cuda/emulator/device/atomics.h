// Atomic operations. All threads run on one thread of the host and change places only at barriers, so plain reads and
// writes are atomic.
#pragma once

namespace emulated {
template <class T, class F>
inline T update(T* place, F next) {
  const T before = *place;
  *place = next(before);
  return before;
}
}  // namespace emulated

#define EMULATED_ATOMIC(T, name, expression)                                    \
  inline T name(T* place, T value) {                                            \
    return emulated::update(place, [value](T old) -> T { return expression; }); \
  }
#define EMULATED_SCOPES(T, name, expression)   \
  EMULATED_ATOMIC(T, name, expression)         \
  EMULATED_ATOMIC(T, name##_block, expression) \
  EMULATED_ATOMIC(T, name##_system, expression)
#define EMULATED_FOR_INTEGERS(name, expression) \
  EMULATED_SCOPES(int, name, expression)        \
  EMULATED_SCOPES(unsigned, name, expression)   \
  EMULATED_SCOPES(unsigned long long, name, expression)
EMULATED_FOR_INTEGERS(atomicAdd, old + value)
EMULATED_SCOPES(float, atomicAdd, old + value)
EMULATED_SCOPES(double, atomicAdd, old + value)
EMULATED_SCOPES(int, atomicSub, old - value)
EMULATED_SCOPES(unsigned, atomicSub, old - value)
EMULATED_FOR_INTEGERS(atomicExch, ((void)old, value))
EMULATED_SCOPES(float, atomicExch, ((void)old, value))
EMULATED_FOR_INTEGERS(atomicMin, value < old ? value : old)
EMULATED_SCOPES(long long, atomicMin, value < old ? value : old)
EMULATED_FOR_INTEGERS(atomicMax, value > old ? value : old)
EMULATED_SCOPES(long long, atomicMax, value > old ? value : old)
EMULATED_FOR_INTEGERS(atomicAnd, old& value)
EMULATED_FOR_INTEGERS(atomicOr, old | value)
EMULATED_FOR_INTEGERS(atomicXor, old ^ value)
EMULATED_SCOPES(unsigned, atomicInc, old >= value ? 0 : old + 1)
EMULATED_SCOPES(unsigned, atomicDec, old == 0 || old > value ? value : old - 1)
#undef EMULATED_FOR_INTEGERS
#undef EMULATED_SCOPES
#undef EMULATED_ATOMIC

#define EMULATED_COMPARE_AND_SWAP(T, name)                                                \
  inline T name(T* place, T expected, T value) {                                          \
    return emulated::update(place, [=](T old) { return old == expected ? value : old; }); \
  }
EMULATED_COMPARE_AND_SWAP(int, atomicCAS)
EMULATED_COMPARE_AND_SWAP(unsigned, atomicCAS)
EMULATED_COMPARE_AND_SWAP(unsigned long long, atomicCAS)
EMULATED_COMPARE_AND_SWAP(unsigned short, atomicCAS)
EMULATED_COMPARE_AND_SWAP(int, atomicCAS_block)
EMULATED_COMPARE_AND_SWAP(unsigned, atomicCAS_block)
EMULATED_COMPARE_AND_SWAP(unsigned long long, atomicCAS_block)
EMULATED_COMPARE_AND_SWAP(int, atomicCAS_system)
EMULATED_COMPARE_AND_SWAP(unsigned, atomicCAS_system)
EMULATED_COMPARE_AND_SWAP(unsigned long long, atomicCAS_system)
#undef EMULATED_COMPARE_AND_SWAP
