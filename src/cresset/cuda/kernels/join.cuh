// Copies of rows into a wider result: cat and stack. The same struct as in native/cuda/join.cpp.
#pragma once
#include "divider.cuh"

constexpr int kPieces = 32;

struct Piece {
  const char* from;
  int64_t words, start,
      pitch;    // all words of the piece; where its rows begin in a row of the result; from one row to the next in it
  Divider row;  // the words of one row
};
struct Pieces {
  char* to;
  int64_t pitch;  // from one row to the next in the result
  Piece all[kPieces];
};

#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif

// A piece for each blockIdx.y, WORD bytes an access.
extern "C" __global__ void __launch_bounds__(256) copy_pieces(const Pieces pieces) {
  after_earlier_work();
  using Word = typename Words<WORD>::type;
  constexpr int kUnroll = 4;
  const Piece& piece = pieces.all[blockIdx.y];
  const Word* from = reinterpret_cast<const Word*>(piece.from);
  Word* to = reinterpret_cast<Word*>(pieces.to) + piece.start;
  const int64_t step = static_cast<int64_t>(gridDim.x) * 256 * kUnroll;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (256 * kUnroll) + threadIdx.x; first < piece.words;
       first += step) {
    Word words[kUnroll];
    int64_t target[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = first + u * 256;
      if (i >= piece.words) continue;
      const Index row = divided(static_cast<Index>(i), piece.row);
      const int64_t column = i - static_cast<int64_t>(row) * piece.row.divisor;
      words[u] = from[static_cast<int64_t>(row) * piece.pitch + column];
      target[u] = static_cast<int64_t>(row) * pieces.pitch + column;
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u * 256 < piece.words) to[target[u]] = words[u];
  }
}
