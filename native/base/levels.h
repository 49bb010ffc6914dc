// What is compiled once for each level of instruction_set.h has names that end with the level's.
#pragma once

#include <string_view>

#include "base/instruction_set.h"

// The one of the level in use: BY_LEVEL(kernels, <T>()) is kernels_avx2<T>() where that is "avx2". Processors that are
// not x86 have the first level alone, whose vectors are the compiler's. BY_LEVEL_256 is for what has no variant for the
// widest level.
#ifdef __x86_64__
#define BY_LEVEL(name, ...)                                                               \
  (std::string_view(::cresset::instruction_set()) == "avx512" ? name##_avx512 __VA_ARGS__ \
                                                              : BY_LEVEL_256(name __VA_OPT__(, ) __VA_ARGS__))
#define BY_LEVEL_256(name, ...) \
  (std::string_view(::cresset::instruction_set()) == "baseline" ? name##_baseline __VA_ARGS__ : name##_avx2 __VA_ARGS__)
#else
#define BY_LEVEL(name, ...) (name##_baseline __VA_ARGS__)
#define BY_LEVEL_256(name, ...) (name##_baseline __VA_ARGS__)
#endif
