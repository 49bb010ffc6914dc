// Run a loop with the widest vectors that the processor has. The loop is a struct with an always-inlined
// `template <class Fma> static void run(...)`; the compiler vectorises it anew for each instruction set below.
// Results are the same bits everywhere: contraction is off, and what is to be fused is written Fma::fma. Loops with
// square roots or choices need -fno-math-errno -fno-trapping-math to be vectorised.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cresset {

#define CRESSET_INLINE static inline __attribute__((always_inline))

struct HardwareFma {
  CRESSET_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  CRESSET_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

// For processors without the instruction. A float product is exact in double; its sum with the addend is rounded to
// odd, after which rounding to float is the same as having rounded once. In double the C library does it.
struct SoftwareFma {
  CRESSET_INLINE float fma(float a, float b, float c) {
    const double product = double(a) * double(b), addend = c;
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    // If the sum is inexact and its last bit even, go one step towards the error. Only with what SSE2 has for 64 bits.
    const auto bits = std::bit_cast<uint64_t>(sum), error_bits = std::bit_cast<uint64_t>(error);
    const uint64_t magnitude = error_bits << 1;
    const uint64_t step = (magnitude | -magnitude) >> 63 & ~bits;
    const uint64_t towards_zero = (bits ^ error_bits) >> 63;
    return static_cast<float>(std::bit_cast<double>(bits + step - 2 * (step & towards_zero)));
  }
  CRESSET_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

#if defined(__x86_64__) && defined(__GNUC__)

enum class InstructionSet { baseline, avx2, avx512 };

inline InstructionSet detect_instruction_set() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return InstructionSet::baseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  const char* wish = std::getenv("CRESSET_ISA");  // a lower level than the machine's, for tests
  const std::string_view level = wish ? wish : "";
  if (level == "baseline") return InstructionSet::baseline;
  return avx512 && level != "avx2" ? InstructionSet::avx512 : InstructionSet::avx2;
}

template <class Loop, class... Args>
[[gnu::target("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")]] void run_avx512(Args... args) {
  Loop::template run<HardwareFma>(args...);
}

template <class Loop, class... Args>
[[gnu::target("avx2,fma")]] void run_avx2(Args... args) {
  Loop::template run<HardwareFma>(args...);
}

template <class Loop, class... Args>
void run_vectorised(Args... args) {
  static const InstructionSet best = detect_instruction_set();
  if (best == InstructionSet::avx512) return run_avx512<Loop>(args...);
  if (best == InstructionSet::avx2) return run_avx2<Loop>(args...);
  Loop::template run<SoftwareFma>(args...);
}

// The same without the widest level, for loops that wait for memory anyway: a third less code.
template <class Loop, class... Args>
void run_vectorised_256(Args... args) {
  static const InstructionSet best = detect_instruction_set();
  if (best != InstructionSet::baseline) return run_avx2<Loop>(args...);
  Loop::template run<SoftwareFma>(args...);
}

#else

template <class Loop, class... Args>
void run_vectorised(Args... args) {
  Loop::template run<HardwareFma>(args...);
}
template <class Loop, class... Args>
void run_vectorised_256(Args... args) {
  Loop::template run<HardwareFma>(args...);
}

#endif

}  // namespace cresset
