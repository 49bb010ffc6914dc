#include "tensor/blocks.h"

#include <cstdio>
#include <cstring>
#include <string>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "tensor/convert.h"

namespace cresset {
namespace {

// Walks runs along the innermost dimension: f(element offset, position in the block, run length, how many such runs,
// the distance between them). Several at a time are whole rows of the innermost dimension.
template <class F>
void for_each_run(DimsView sizes, DimsView strides, int64_t begin, int64_t n, F&& f) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  if (rank == 0) return f(int64_t{0}, int64_t{0}, n, int64_t{1}, int64_t{0});
  Dims index(rank, 0);
  int64_t offset = 0, rest = begin;
  for (int64_t d = rank - 1; d >= 0; --d) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
    offset += index[d] * strides[d];
  }
  const int64_t inner = sizes[rank - 1], step = strides[rank - 1];
  for (int64_t done = 0; done < n;) {
    if (rank > 1 && index[rank - 1] == 0 && n - done >= inner) {
      const int64_t rows = std::min(sizes[rank - 2] - index[rank - 2], (n - done) / inner), row = strides[rank - 2];
      f(offset, done, inner, rows, row);
      done += rows * inner;
      offset += rows * row;
      index[rank - 2] += rows;
      for (int64_t d = rank - 2; d > 0 && index[d] == sizes[d]; --d) {
        offset += strides[d - 1] - sizes[d] * strides[d];
        index[d] = 0;
        ++index[d - 1];
      }
      continue;
    }
    const int64_t run = std::min(inner - index[rank - 1], n - done);
    f(offset, done, run, int64_t{1}, int64_t{0});
    done += run;
    offset += run * step;
    index[rank - 1] += run;
    for (int64_t d = rank - 1; d > 0 && index[d] == sizes[d]; --d) {
      offset += strides[d - 1] - sizes[d] * strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

// Written as wide as loops read: narrower pieces would have to reach the cache before they could be read together.
template <class T>
struct FillLoop {
  template <class Fma>
  CRESSET_INLINE void run(T* to, T value, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  }
};

template <class T>
void copy_run(T* __restrict to, int64_t to_step, const T* __restrict from, int64_t from_step, int64_t n) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (from_step == 0 && to_step == 1) {
    run_vectorized<FillLoop<T>>(to, *from, n);
  } else if (to_step == 1 && from_step == -1) {  // steps that the compiler knows are taken by whole vectors
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else if (to_step == 1 && from_step == 2) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  } else if (to_step == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * from_step];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

// Short rows of one element each, or as they lie, without a call for each of them.
template <class T>
struct ShortRowsLoop {
  template <class Fma>
  CRESSET_INLINE void run(T* __restrict to, const T* __restrict from, int64_t row, bool repeats, int64_t n,
                          int64_t rows) {
    if (repeats)
      for (int64_t r = 0; r < rows; ++r, to += n) {
        const T value = from[r * row];
        for (int64_t i = 0; i < n; ++i) to[i] = value;
      }
    else
      for (int64_t r = 0; r < rows; ++r, to += n)
        for (int64_t i = 0; i < n; ++i) to[i] = from[r * row + i];
  }
};
constexpr size_t kShortRow = 512;  // bytes

// Rows to where they lie one after the other. Short ones are copied by moves whose width the compiler knows: calling
// memcpy takes longer than a row of 32 bytes does.
template <class T>
void copy_rows(T* __restrict to, const T* __restrict from, int64_t row, int64_t step, int64_t n, int64_t rows) {
  const auto of_length = [&]<size_t kBytes>() {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * n, from + r * row, kBytes);
  };
  if (step == 1) {
    switch (static_cast<size_t>(n) * sizeof(T)) {
      case 8: return of_length.template operator()<8>();
      case 16: return of_length.template operator()<16>();
      case 32: return of_length.template operator()<32>();
      case 64: return of_length.template operator()<64>();
      case 128: return of_length.template operator()<128>();
    }
  }
  if ((step == 0 || step == 1) && rows > 1 && static_cast<size_t>(n) * sizeof(T) < kShortRow)
    return run_vectorized_256<ShortRowsLoop<T>>(to, from, row, step == 0, n, rows);
  for (int64_t r = 0; r < rows; ++r) copy_run(to + r * n, 1, from + r * row, step, n);
}

constexpr int64_t kShortestRow = 256;  // elements; shorter rows are gathered into blocks

bool is_linear(DimsView sizes, DimsView strides) { return is_contiguous(sizes, strides); }

// How many elements there are in memory: one that is broadcast counts once.
int64_t elements_of(DimsView sizes, DimsView strides) {
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (strides[d] != 0) n *= sizes[d];
  return n;
}

bool is_constant(DimsView sizes, DimsView strides) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (strides[d] != 0 && sizes[d] != 1) return false;
  return true;
}

}  // namespace

void fill_run(char* to, const char* element, int64_t n, int64_t width) {
  visit_width(width, [&]<class T>() {
    T v;
    std::memcpy(&v, element, sizeof(T));
    run_vectorized<FillLoop<T>>(reinterpret_cast<T*>(to), v, n);
  });
}

void gather(char* to, const char* from, DimsView sizes, DimsView strides, int64_t begin, int64_t n, int64_t width) {
  visit_width(width, [&]<class T>() {
    const int64_t step = sizes.empty() ? 0 : strides.back();
    for_each_run(sizes, strides, begin, n, [&](int64_t offset, int64_t at, int64_t run, int64_t rows, int64_t row) {
      copy_rows(reinterpret_cast<T*>(to) + at, reinterpret_cast<const T*>(from) + offset, row, step, run, rows);
    });
  });
}

void scatter(char* to, const char* from, DimsView sizes, DimsView strides, int64_t begin, int64_t n, int64_t width) {
  visit_width(width, [&]<class T>() {
    const int64_t step = sizes.empty() ? 1 : strides.back();
    for_each_run(sizes, strides, begin, n, [&](int64_t offset, int64_t at, int64_t run, int64_t rows, int64_t row) {
      for (int64_t r = 0; r < rows; ++r)
        copy_run(reinterpret_cast<T*>(to) + offset + r * row, step, reinterpret_cast<const T*>(from) + at + r * run, 1,
                 run);
    });
  });
}

int64_t coalesce(Dims& sizes, Dims* const* strides, int count) {
  // Insertion sort by the strides of the first operand, then of the others: stable, and the rank is small.
  const auto before = [&](int64_t a, int64_t b) {  // a should lie outside of b
    for (int k = 0; k < count; ++k) {
      const int64_t x = std::abs((*strides[k])[a]), y = std::abs((*strides[k])[b]);
      if (x != y && x != 0 && y != 0) return x > y;
    }
    return false;
  };
  const auto swap = [&](int64_t a, int64_t b) {
    std::swap(sizes[a], sizes[b]);
    for (int k = 0; k < count; ++k) std::swap((*strides[k])[a], (*strides[k])[b]);
  };
  for (int64_t i = 1; i < sizes.size(); ++i)
    for (int64_t j = i; j > 0 && before(j, j - 1); --j) swap(j, j - 1);
  // Merge from the inside out; dimensions of size one vanish.
  int64_t kept = 0;
  for (int64_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    bool merges = kept > 0;
    for (int k = 0; merges && k < count; ++k) merges = (*strides[k])[kept - 1] == (*strides[k])[d] * sizes[d];
    if (merges) {
      sizes[kept - 1] *= sizes[d];
      for (int k = 0; k < count; ++k) (*strides[k])[kept - 1] = (*strides[k])[d];
    } else {
      sizes[kept] = sizes[d];
      for (int k = 0; k < count; ++k) (*strides[k])[kept] = (*strides[k])[d];
      ++kept;
    }
  }
  sizes.resize(kept);
  for (int k = 0; k < count; ++k) strides[k]->resize(kept);
  return kept;
}

namespace {

// The largest of the first processor's caches, as Linux describes it. (The C library's figure is that of all chips
// together on some virtual machines.)
int64_t find_cache_bytes() {
  int64_t largest = 0;
  for (int i = 0; i < 8; ++i) {
    FILE* const file =
        std::fopen(("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size").c_str(), "r");
    if (!file) break;
    long long size = 0;
    char unit = 0;
    if (std::fscanf(file, "%lld%c", &size, &unit) == 2)
      largest = std::max<int64_t>(largest, size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0));
    std::fclose(file);
  }
  return largest;
}

constexpr int64_t kLeastCache = int64_t{16} << 20;

}  // namespace

bool exceeds_cache(int64_t bytes) {
  if (bytes <= kLeastCache) return false;
  static const int64_t cache = std::max(find_cache_bytes(), kLeastCache);
  return bytes > cache;
}

#ifdef __x86_64__
namespace {

// Whole lines: a fifth faster by one store each than by four. `to` is aligned.
[[gnu::target("avx512f")]] void stream_lines_512(char* to, const char* from, int64_t lines) {
  for (int64_t i = 0; i < 64 * lines; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
}
[[gnu::target("avx2")]] void stream_lines_256(char* to, const char* from, int64_t lines) {
  for (int64_t i = 0; i < 64 * lines; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
}
void stream_lines_128(char* to, const char* from, int64_t lines) {
  for (int64_t i = 0; i < 64 * lines; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
}
const auto stream_lines = [] {
  const InstructionSet best = detect_instruction_set();
  return best == InstructionSet::avx512 ? stream_lines_512
         : best == InstructionSet::avx2 ? stream_lines_256
                                        : stream_lines_128;
}();

}  // namespace

void stream(char* to, const char* from, int64_t bytes) {
  if ((reinterpret_cast<uintptr_t>(to) | static_cast<uintptr_t>(bytes)) % 64 == 0)
    return stream_lines(to, from, bytes / 64);
  const int64_t head = std::min(bytes, until_line(to, 1)), lines = (bytes - head) / 64, done = head + 64 * lines;
  std::memcpy(to, from, static_cast<size_t>(head));
  stream_lines(to + head, from + head, lines);
  std::memcpy(to + done, from + done, static_cast<size_t>(bytes - done));
}
void end_stream() { _mm_sfence(); }
#else
void stream(char* to, const char* from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }
void end_stream() {}
#endif

void run_blocks(DimsView shape, Operand* operands, int count, BlockLoop loop, const void* context, bool streams) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  if (n == 0) return;
  Dims sizes(shape);
  Dims* strides[kMaxOperands];
  for (int k = 0; k < count; ++k) strides[k] = &operands[k].strides;
  coalesce(sizes, strides, count);

  enum class How : uint8_t { direct, constant, gathered };
  How how[kMaxOperands];
  bool all_direct = true;
  for (int k = 0; k < count; ++k) {
    Operand& o = operands[k];
    const bool fits = o.dtype == o.loop_dtype;
    how[k] = fits && is_linear(sizes, o.strides)      ? How::direct
             : k > 0 && is_constant(sizes, o.strides) ? How::constant
                                                      : How::gathered;
    all_direct &= how[k] == How::direct;
  }

  // Rows that are long enough are visited one by one where they lie, or converted from there: then a broadcast vector
  // and the rows of a slice need not be gathered.
  bool by_rows = !all_direct && sizes.size() > 1 && sizes.back() >= kShortestRow;
  for (int k = 0; by_rows && k < count; ++k) {
    const Operand& o = operands[k];
    by_rows = how[k] == How::constant || o.strides.back() == 1 || (k > 0 && o.strides.back() == 0);
  }

  const int64_t out_width = size_of(operands[0].dtype);
  int64_t bytes = 0;
  for (int k = 0; k < count; ++k) bytes += elements_of(sizes, operands[k].strides) * size_of(operands[k].dtype);
  const bool reads_ahead = exceeds_cache(2 * bytes);
  bool writes_past = streams && exceeds_cache(bytes) && is_linear(sizes, operands[0].strides);
  for (int k = 1; k < count; ++k) writes_past = writes_past && operands[k].data != operands[0].data;
  streams = writes_past && how[0] == How::direct;  // otherwise after a conversion

  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    char *pointers[kMaxOperands], *starts[kMaxOperands];
    if (all_direct && !streams) {
      for (int k = 0; k < count; ++k) pointers[k] = operands[k].data + begin * size_of(operands[k].dtype);
      return loop(pointers, context, end - begin);
    }
    // One buffer an operand for what the loop sees, one for raw elements on their way to or from a conversion.
    alignas(64) char buffers[kMaxOperands][kBlock * 8];
    alignas(64) char raw[kBlock * 16];
    // Complex128 elements are twice as wide: halve the block.
    int64_t block = kBlock;
    for (int k = 0; k < count; ++k)
      if (size_of(operands[k].loop_dtype) > 8) block = kBlock / 2;
    if (streams) block = std::min(block, kStreamedBlock);
    for (int k = 1; k < count; ++k) {
      if (how[k] != How::constant) continue;
      const Operand& o = operands[k];
      char one[16];
      converter(o.dtype, o.loop_dtype)(o.data, one, 1);
      fill_run(buffers[k], one, std::min(block, end - begin), size_of(o.loop_dtype));
      pointers[k] = buffers[k];
    }
    if (by_rows) {
      // What is the same for all rows is looked up once: it took as long as a row of 256 elements does.
      const int64_t inner = sizes.back(), outer = static_cast<int64_t>(sizes.size()) - 1;
      struct Line {
        int64_t row_step, width;  // in bytes; the step is that of the outermost dimension
        bool repeats;             // one element for the whole row
        Convert convert;          // to what the loop sees, or of the result from there; null: it is seen as it lies
      } lines[kMaxOperands];
      int varying[kMaxOperands], varied = 0;
      for (int k = 0; k < count; ++k) {
        const Operand& o = operands[k];
        if (how[k] == How::constant) continue;
        varying[varied++] = k;
        const Dtype from = k == 0 ? o.loop_dtype : o.dtype, to = k == 0 ? o.dtype : o.loop_dtype;
        lines[k] = {o.strides[0] * size_of(o.dtype), size_of(o.dtype), o.strides.back() == 0,
                    from == to ? nullptr : converter(from, to)};
      }
      for (int64_t at = begin; at < end;) {
        const int64_t first_row = at / inner, column = at - first_row * inner;
        const int64_t row_end = std::min(end, at - column + inner);
        for (int v = 0; v < varied; ++v) {
          const int k = varying[v];
          const Line& line = lines[k];
          int64_t row = first_row;
          char* start = operands[k].data;
          for (int64_t d = outer - 1; d > 0; --d) {
            start += row % sizes[d] * operands[k].strides[d] * line.width;
            row /= sizes[d];
          }
          start += row * line.row_step;  // of two dimensions no division is left, which takes as long as a short row
          if (!line.repeats) {
            starts[k] = start + column * line.width;
            pointers[k] = line.convert ? buffers[k] : starts[k];
            continue;
          }
          char one[16];
          if (line.convert) line.convert(start, one, 1), start = one;
          fill_run(buffers[k], start, std::min(block, row_end - at), size_of(operands[k].loop_dtype));
          pointers[k] = buffers[k];
        }
        for (int64_t m; at < row_end; at += m) {
          m = std::min(block, row_end - at);
          for (int v = 0; v < varied; ++v) {
            const int k = varying[v];
            if (k == 0 || lines[k].repeats) continue;
            if (streams) read_ahead(starts[k], m * lines[k].width);
            if (lines[k].convert) lines[k].convert(starts[k], buffers[k], m);
          }
          if (streams) pointers[0] = buffers[0];
          loop(pointers, context, m);
          if (streams)
            stream(starts[0], buffers[0], m * out_width);
          else if (lines[0].convert)
            lines[0].convert(buffers[0], starts[0], m);
          if (at + m == row_end) continue;
          for (int v = 0; v < varied; ++v) {
            const int k = varying[v];
            if (lines[k].repeats) continue;
            starts[k] += m * lines[k].width;
            if (!lines[k].convert) pointers[k] = starts[k];
          }
        }
      }
      if (streams) end_stream();
      return;
    }
    for (int64_t at = begin, m; at < end; at += m) {
      m = std::min(block, end - at);
      if (streams && at == begin)  // the others begin with a line, too
        if (const int64_t first = until_line(operands[0].data + at * out_width, out_width); first > 0)
          m = std::min(m, first);
      // What is converted is asked for a block before. (The sum of 8 M bfloat16 on one thread: 1.7 ms instead of 2.5.)
      for (int k = 1; reads_ahead && k < count; ++k) {
        const Operand& o = operands[k];
        if (how[k] == How::constant || !is_linear(sizes, o.strides)) continue;
        const int64_t width = size_of(o.dtype), from = streams ? at : at + m;
        read_ahead(o.data + from * width, m * width);
      }
      for (int k = 0; k < count; ++k) {
        const Operand& o = operands[k];
        if (how[k] == How::direct) {
          pointers[k] = o.data + at * size_of(o.dtype);
        } else if (how[k] == How::gathered) {
          pointers[k] = buffers[k];
          if (k == 0) continue;
          if (o.dtype == o.loop_dtype) {
            gather(buffers[k], o.data, sizes, o.strides, at, m, size_of(o.dtype));
          } else if (is_linear(sizes, o.strides)) {
            converter(o.dtype, o.loop_dtype)(o.data + at * size_of(o.dtype), buffers[k], m);
          } else {
            gather(raw, o.data, sizes, o.strides, at, m, size_of(o.dtype));
            converter(o.dtype, o.loop_dtype)(raw, buffers[k], m);
          }
        }
      }
      if (streams) pointers[0] = buffers[0];
      loop(pointers, context, m);
      if (streams) stream(operands[0].data + at * out_width, buffers[0], m * out_width);
      if (how[0] == How::gathered) {
        const Operand& o = operands[0];
        if (writes_past) {
          converter(o.loop_dtype, o.dtype)(buffers[0], raw, m);
          stream(o.data + at * out_width, raw, m * out_width);
        } else if (is_linear(sizes, o.strides)) {
          converter(o.loop_dtype, o.dtype)(buffers[0], o.data + at * size_of(o.dtype), m);
        } else if (o.dtype == o.loop_dtype) {
          scatter(o.data, buffers[0], sizes, o.strides, at, m, size_of(o.dtype));
        } else {
          converter(o.loop_dtype, o.dtype)(buffers[0], raw, m);
          scatter(o.data, raw, sizes, o.strides, at, m, size_of(o.dtype));
        }
      }
    }
    if (writes_past) end_stream();
  });
}

}  // namespace cresset
