// Run one loop with the widest vectors that the processor has. A kernel is a struct with an always-inlined
// `template <class Fma> static void run(...)`; the compiler vectorises it anew for each instruction set below.
// Results are the same bits everywhere (compile with -ffp-contract=off): what is to be fused is written Fma::fma.
#pragma once

#include <bit>
#include <cstdint>

namespace cresset {

#define CRESSET_KERNEL [[gnu::always_inline]] static inline

struct HardwareFma {
  CRESSET_KERNEL float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  CRESSET_KERNEL double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

// For processors without the instruction. A float product is exact in double; the sum with the addend is rounded to
// odd, after which rounding it to float is the same as having rounded once. In double the C library does it.
struct SoftwareFma {
  CRESSET_KERNEL float fma(float a, float b, float c) {
    const double product = double(a) * double(b), addend = c;
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    const auto bits = std::bit_cast<int64_t>(sum);
    const int64_t step = (error > 0) == (sum > 0) ? 1 : -1;
    const bool inexact_and_even = error != 0 && (bits & 1) == 0;
    return static_cast<float>(std::bit_cast<double>(bits + (inexact_and_even ? step : 0)));
  }
  CRESSET_KERNEL double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

#if defined(__x86_64__) && defined(__GNUC__)

enum class InstructionSet { baseline, avx2, avx512 };

inline InstructionSet detect_instruction_set() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return InstructionSet::baseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return avx512 ? InstructionSet::avx512 : InstructionSet::avx2;
}

template <class Kernel, class... Args>
[[gnu::target("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")]] void run_avx512(Args... args) {
  Kernel::template run<HardwareFma>(args...);
}

template <class Kernel, class... Args>
[[gnu::target("avx2,fma")]] void run_avx2(Args... args) {
  Kernel::template run<HardwareFma>(args...);
}

template <class Kernel, class... Args>
void run(Args... args) {
  static const InstructionSet best = detect_instruction_set();
  if (best == InstructionSet::avx512) return run_avx512<Kernel>(args...);
  if (best == InstructionSet::avx2) return run_avx2<Kernel>(args...);
  Kernel::template run<SoftwareFma>(args...);
}

#else

template <class Kernel, class... Args>
void run(Args... args) {
  Kernel::template run<HardwareFma>(args...);
}

#endif

}  // namespace cresset
