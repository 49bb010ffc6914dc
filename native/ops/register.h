// The table of contents of the CPU's operators: one function a topic.
#pragma once
#include "dispatch/call.h"

namespace cresset {

void register_pointwise(Registry& r) __attribute__((weak));
void register_rounding_division(Registry& r) __attribute__((weak));
void register_views(Registry& r) __attribute__((weak));
void register_copying(Registry& r) __attribute__((weak));
void register_creation(Registry& r) __attribute__((weak));
void register_random(Registry& r) __attribute__((weak));
void register_reduction(Registry& r) __attribute__((weak));
void register_scan(Registry& r) __attribute__((weak));
void register_softmax(Registry& r) __attribute__((weak));
void register_indexing(Registry& r) __attribute__((weak));
void register_scattering(Registry& r) __attribute__((weak));
void register_sorting(Registry& r) __attribute__((weak));
void register_comparing(Registry& r) __attribute__((weak));
void register_histograms(Registry& r) __attribute__((weak));
void register_joining(Registry& r) __attribute__((weak));
void register_rearranging(Registry& r) __attribute__((weak));
void register_matmul(Registry& r) __attribute__((weak));
void register_convolution(Registry& r) __attribute__((weak));
void register_fourier(Registry& r) __attribute__((weak));
void register_pooling(Registry& r) __attribute__((weak));

// All of them. Called once, when the module loads.
void register_operators();
const char* instruction_set();  // the level in use: "baseline", "avx2" or "avx512"

}  // namespace cresset
