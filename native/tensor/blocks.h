// Block iteration: how a contiguous loop meets strided, broadcast and converted operands.
//
// Elements are visited in blocks small enough for the first-level cache. An operand that already lies contiguous in the
// right dtype is used where it is; any other is gathered (and converted) into a block before the loop, or scattered
// after it.
#pragma once
#include "tensor/tensor.h"

namespace cresset {

inline constexpr int64_t kBlock = 1024;
inline constexpr int kMaxOperands = 6;

struct Operand {
  char* data;
  Dtype dtype, loop_dtype;  // as stored, as the loop wants it
  Dims strides;             // in elements, one per dimension of the iteration; 0 where broadcast
};

// Runs loop(pointers, n) so that together the calls cover all elements of `sizes`; operand 0 is written, the others are
// read. Template-free inside: the loop is a function pointer with one context argument.
using BlockLoop = void (*)(char* const* pointers, const void* context, int64_t n);
// With `streams`, a large result that lies contiguous is written past the cache.
void run_blocks(DimsView sizes, Operand* operands, int count, BlockLoop loop, const void* context,
                bool streams = false);

// Whether what a kernel reads and writes, together so many bytes, is more than the last-level cache holds: then its
// result is written past the cache, which spares reading its lines first. Below, the result is read from the cache
// next. (32 MB of cache: `x + 1` of 2 M floats takes 75 us on two threads and 189 past the cache, of 16 M floats 2396
// and 1999.)
bool exceeds_cache(int64_t bytes);
// Copies without leaving `to` in the cache. Call end_stream() when all is written.
void stream(char* to, const char* from, int64_t bytes);
void end_stream();
// Elements that are made aside before they are streamed: few, so that the loop's reading and the writing overlap. All
// that a block reads is asked for before its loop. (4 M floats on one thread: their sum takes 660 us, in blocks of 512
// without asking 750; their maximum, whose loop reads one operand where the other lets it, 620 and 1400.)
inline constexpr int64_t kStreamedBlock = 128;
inline void read_ahead(const char* from, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(from + byte, 0, 2);
}
// How many elements to write until a line of the cache begins: blocks that begin with one are streamed by whole lines.
inline int64_t until_line(const char* to, int64_t width) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % 64) / width;
}
// Whether a kernel that makes a contiguous result row by row, and reads `others` tensors of its size, should make each
// row aside and stream it. Rows are at most kStreamedRow elements long.
inline constexpr int64_t kStreamedRow = 4096;
inline bool streams_rows(const void* result, int64_t rows, int64_t row_length, int64_t width, int64_t others) {
  return row_length <= kStreamedRow && row_length * width % 16 == 0 && reinterpret_cast<uintptr_t>(result) % 16 == 0 &&
         exceeds_cache(rows * row_length * width * (1 + others));
}
// One row on its way: `place` is where to make it. Writing a piece while the next is made lets the two overlap. The
// loop ends with finish().
template <class T>
struct RowWriter {
  const bool streams;
  alignas(64) T buffer[kStreamedRow];
  explicit RowWriter(bool streams) : streams(streams) {}
  [[gnu::always_inline]] T* place(T* row) { return streams ? buffer : row; }
  [[gnu::always_inline]] void write(T* row, int64_t n) { write(row, 0, n); }
  [[gnu::always_inline]] void write(T* row, int64_t first, int64_t n) {
    if (streams)
      stream(reinterpret_cast<char*>(row + first), reinterpret_cast<const char*>(buffer + first),
             n * static_cast<int64_t>(sizeof(T)));
  }
  [[gnu::always_inline]] void finish() {
    if (streams) end_stream();
  }
};

// n copies of one element.
void fill_run(char* to, const char* element, int64_t n, int64_t width);

// Elements [begin, begin + n) of a strided operand, in row-major order of `sizes`, to or from contiguous memory.
void gather(char* to, const char* from, DimsView sizes, DimsView strides, int64_t begin, int64_t n, int64_t width);
void scatter(char* to, const char* from, DimsView sizes, DimsView strides, int64_t begin, int64_t n, int64_t width);

// Orders dimensions from the largest stride of the first operand to the smallest and merges neighbors that all operands
// walk alike. strides[k] are the strides of operand k. Returns the new rank.
int64_t coalesce(Dims& sizes, Dims* const* strides, int count);

}  // namespace cresset
