// Vectors of channels for the tiles of convolutions, and how many sums of them the registers hold, for the instruction
// set that the including file is compiled for. In an anonymous namespace: each instruction set has its own copy.
#pragma once
#include <cstdint>

namespace cresset {
namespace {

// The sums of a tile, a row of the filter and an element of the image just fit the registers.
#if defined(__AVX512F__)
constexpr int kBytes = 64;  // of a vector
constexpr int kMostVectors = 4;
constexpr int rows_for(int vectors) { return vectors == 4 ? 6 : vectors == 3 ? 8 : 12; }
#else
#if defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kMostVectors = 2;
constexpr int rows_for(int) { return 6; }
#endif
constexpr int64_t kLanes = kBytes / static_cast<int64_t>(sizeof(float));

typedef float Vector __attribute__((vector_size(kBytes)));
typedef float Loose __attribute__((vector_size(kBytes), aligned(alignof(float)), may_alias));
const Loose& at(const float* p) { return *reinterpret_cast<const Loose*>(p); }
Loose& at(float* p) { return *reinterpret_cast<Loose*>(p); }

}  // namespace
}  // namespace cresset
