// Weights of four bits in words of 32, eight along k in each, in the order in which tensor cores of a GPU want them.
//
// A row of k weights is cut into blocks of 128 (the last may have 32, 64 or 96). Word t * parts + j of a block, with t
// from 0 to 3 and `parts` times 32 weights in the block, has those from 32 j + 8 t on; its nibbles, from the lowest on,
// are the weights 0, 2, 4, 6, 1, 3, 5, 7 of the eight. The same blocks of eight rows lie one after the other, so that a
// warp reads 512 bytes in a row.
#pragma once
#include <algorithm>
#include <cstdint>

namespace cresset {

inline constexpr int64_t kPackedBlock = 128;
// Weight i of a word is shifted by this.
inline constexpr int kNibbleShifts[8] = {0, 16, 4, 20, 8, 24, 12, 28};

inline constexpr int64_t kPackedRows = 8;

// A word of a row: where it lies, and where its eight weights begin.
struct PackedWord {
  int64_t place, first;
  PackedWord(int64_t row, int64_t word, int64_t k) {
    const int64_t block = word / 16, parts = std::min<int64_t>(4, (k - block * kPackedBlock) / 32), at = word % 16;
    place = row / kPackedRows * k + block * kPackedBlock + row % kPackedRows * (4 * parts) + at;
    first = block * kPackedBlock + at % parts * 32 + at / parts * 8;
  }
};

}  // namespace cresset
