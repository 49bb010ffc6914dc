// Whether the processor takes numbers too small for a whole mantissa for zero, in the thread that asks.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cresset {

#if defined(__x86_64__)
inline constexpr bool kCanFlushDenormals = true;
inline constexpr unsigned kFlushed = 0x8040;  // of results, and of operands
inline bool flushes_denormals() { return (_mm_getcsr() & kFlushed) == kFlushed; }
inline void flush_denormals(bool on) { _mm_setcsr(on ? _mm_getcsr() | kFlushed : _mm_getcsr() & ~kFlushed); }
#elif defined(__aarch64__)
inline constexpr bool kCanFlushDenormals = true;
inline constexpr uint64_t kFlushed = uint64_t{1} << 24;
inline uint64_t float_control() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline bool flushes_denormals() { return (float_control() & kFlushed) != 0; }
inline void flush_denormals(bool on) {
  const uint64_t control = on ? float_control() | kFlushed : float_control() & ~kFlushed;
  asm volatile("msr fpcr, %0" : : "r"(control));
}
#else
inline constexpr bool kCanFlushDenormals = false;
inline bool flushes_denormals() { return false; }
inline void flush_denormals(bool) {}
#endif

}  // namespace cresset
