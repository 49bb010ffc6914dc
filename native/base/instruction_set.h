// Run a loop with the widest vectors that the processor has. The loop is a struct with an always-inlined
// `template <class Fma> static void run(...)`; the compiler vectorizes it anew for each instruction set below.
// Results are the same bits everywhere: contraction is off, and what is to be fused is written Fma::fma. Loops with
// square roots or choices need -fno-math-errno -fno-trapping-math to be vectorized.
#pragma once

#include <cstdlib>
#include <string_view>

#include "base/fused_multiply_add.h"

namespace cresset {

const char* instruction_set();  // the level in use: "baseline", "avx2" or "avx512"

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

// For processors from before 2013. Cold: compiled to be small.
template <class Loop, class... Args>
[[gnu::cold, gnu::noinline]] void run_baseline(Args... args) {
  Loop::template run<SoftwareFma>(args...);
}

template <class Loop, class... Args>
void run_vectorized(Args... args) {
  static const InstructionSet best = detect_instruction_set();
  if (best == InstructionSet::avx512) return run_avx512<Loop>(args...);
  if (best == InstructionSet::avx2) return run_avx2<Loop>(args...);
  run_baseline<Loop>(args...);
}

// The same without the widest level, for loops that wait for memory anyway: a third less code.
template <class Loop, class... Args>
void run_vectorized_256(Args... args) {
  static const InstructionSet best = detect_instruction_set();
  if (best != InstructionSet::baseline) return run_avx2<Loop>(args...);
  run_baseline<Loop>(args...);
}

#else

template <class Loop, class... Args>
void run_vectorized(Args... args) {
  Loop::template run<HardwareFma>(args...);
}
template <class Loop, class... Args>
void run_vectorized_256(Args... args) {
  Loop::template run<HardwareFma>(args...);
}

#endif

}  // namespace cresset
