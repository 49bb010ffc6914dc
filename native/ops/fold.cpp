// The driver of folds: which elements meet in which chunk, and who folds it.
#include "ops/fold.h"

#include <memory>

#include "base/parallel.h"
#include "dispatch/late.h"
#include "tensor/blocks.h"
#include "tensor/convert.h"
#include "tensor/space.h"

namespace cresset {
namespace {

constexpr int64_t kBufferBytes = 65536;

class FoldRun {
 public:
  // `data` is null where the elements are still to be computed.
  FoldRun(const Tensor& input, const char* data, uint64_t reduced, const Fold& fold, std::span<const Tensor> outs)
      : fold_(fold), outs_(outs), dtype_(input.dtype()), data_(data) {
    width_ = size_of(dtype_);
    as_stored_ = dtype_ == fold.element;
    Dims order;  // of the reduced dimensions: by stride where the order of the elements does not matter
    for (int64_t d = 0; d < input.dim(); ++d) {
      if (!(reduced >> d & 1)) {
        kept_.add(input.size(d), input.stride(d));
        continue;
      }
      order.push_back(d);
      for (int64_t i = order.size() - 1; !fold.ordered && i > 0 && input.stride(order[i - 1]) < input.stride(order[i]);
           --i)
        std::swap(order[i - 1], order[i]);
    }
    for (int64_t d : order) folded_.add(input.size(d), input.stride(d));
  }

  // Rows of a contiguous input, each chunk as it is made: what a chunk is depends on the shape alone, as below.
  bool run_late(const Tensor& input) {
    const int64_t n = folded_.count, chunks = (n + kFoldChunk - 1) / kFoldChunk;
    const bool in_rows = folded_.rank() == 1 && folded_.inner_stride() == 1 &&
                         (kept_.rank() == 0 || (kept_.rank() == 1 && kept_.inner_stride() == n));
    if (!as_stored_ || fold_.ordered || !in_rows || kept_.count == 0 ||
        (chunks > 1 && kept_.count > 1 && n % kFoldChunk != 0))
      return false;
    if (chunks > 1) make_partial(chunks);
    const Taker taker{chunks > 1 ? kFoldChunk : std::clamp<int64_t>(kFoldChunk / n, 1, kRowsTaken) * n,
                      [](void* self, const char* x, int64_t begin, int64_t count) {
                        static_cast<FoldRun*>(self)->take(x, begin, count);
                      },
                      this};
    if (!take_late(input, taker)) return false;
    if (chunks > 1) merge_and_store(chunks);
    return true;
  }

  void run() {
    if (kept_.count == 0) return;
    // Side by side where neighboring results come from neighboring elements, one by one where a result's own elements
    // are neighbors.
    if (kept_.rank() > 0 && folded_.rank() > 0 && kept_.inner_stride() < folded_.inner_stride())
      run_columns();
    else
      run_rows();
  }

 private:
  const Fold& fold_;
  std::span<const Tensor> outs_;
  Dtype dtype_;
  const char* data_;
  int64_t width_;
  bool as_stored_;
  Space kept_, folded_;
  std::unique_ptr<char[]> partial_;  // accumulators [chunk][result]

  char* partial(int64_t chunk, int64_t result) {
    return partial_.get() + (chunk * kept_.count + result) * fold_.accumulator;
  }
  void make_partial(int64_t chunks) {
    partial_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(chunks * kept_.count * fold_.accumulator));
  }

  // Finishes accumulators into the results from `at` on.
  void store(const char* accs, int64_t at, int64_t count) {
    constexpr int64_t kBlock = 256;
    alignas(64) char buffers[2][kBlock * 16];
    for (int64_t done = 0; done < count; done += kBlock) {
      const int64_t m = std::min(kBlock, count - done);
      char* out[2] = {};
      bool direct[2] = {};
      for (size_t k = 0; k < outs_.size(); ++k) {
        direct[k] = outs_[k].dtype() == fold_.results[k];
        out[k] = direct[k] ? outs_[k].bytes() + (at + done) * size_of(fold_.results[k]) : buffers[k];
      }
      fold_.finish(fold_.self, accs + done * fold_.accumulator, m, folded_.count, out);
      for (size_t k = 0; k < outs_.size(); ++k)
        if (!direct[k])
          converter(fold_.results[k], outs_[k].dtype())(buffers[k],
                                                        outs_[k].bytes() + (at + done) * size_of(outs_[k].dtype()), m);
    }
  }

  void merge_and_store(int64_t chunks) {
    parallel_for(kept_.count, std::max<int64_t>(1, kParallelGrain / chunks), [&](int64_t begin, int64_t end) {
      for (int64_t apart = 1; apart < chunks; apart *= 2)
        for (int64_t i = 0; i + apart < chunks; i += 2 * apart)
          fold_.merge(partial(i, begin), partial(i + apart, begin), end - begin);
      store(partial(0, begin), begin, end - begin);
    });
  }

  // Contiguous elements [begin, begin + n) of a space at an offset, in the fold's element type.
  struct Buffer {
    alignas(64) char elements[kBufferBytes];
    alignas(64) char raw[kBufferBytes];
  };
  int64_t buffer_capacity() const { return kBufferBytes / std::max(width_, size_of(fold_.element)); }
  void fetch(Buffer& buffer, int64_t at, int64_t offset, const Space& space, int64_t begin, int64_t n) const {
    char* to = buffer.elements + at * size_of(fold_.element);
    const char* from = data_ + offset * width_;
    if (as_stored_) return gather(to, from, space.sizes, space.strides, begin, n, width_);
    if (space.rank() == 0 || (space.rank() == 1 && space.inner_stride() == 1))
      return converter(dtype_, fold_.element)(from + begin * width_, to, n);
    gather(buffer.raw, from, space.sizes, space.strides, begin, n, width_);
    converter(dtype_, fold_.element)(buffer.raw, to, n);
  }

  // ---- rows

  static constexpr int64_t kRowsTaken = 64;
  void take(const char* x, int64_t begin, int64_t count) {
    const int64_t n = folded_.count;
    if (n > kFoldChunk) {
      const int64_t result = begin / n, first = begin % n;
      return fold_.rows(fold_.self, x, 1, 0, count, first, partial(first / kFoldChunk, result));
    }
    alignas(64) char accs[kRowsTaken * kLargestAccumulator];
    fold_.rows(fold_.self, x, count / n, n, n, 0, accs);
    store(accs, begin / n, count / n);
  }

  void run_rows() {
    const int64_t n = folded_.count, chunks = (n + kFoldChunk - 1) / kFoldChunk;
    const bool direct = as_stored_ && (folded_.rank() == 0 || (folded_.rank() == 1 && folded_.inner_stride() == 1));
    if (chunks <= 1) {
      parallel_for(
          kept_.count, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(n, 1)),
          [&](int64_t begin, int64_t end) { direct ? short_rows(begin, end) : gathered_short_rows(begin, end); });
      return;
    }
    make_partial(chunks);
    parallel_for(kept_.count * chunks, 8, [&](int64_t begin, int64_t end) {
      direct ? long_rows(begin, end, chunks) : gathered_long_rows(begin, end, chunks);
    });
    merge_and_store(chunks);
  }

  void short_rows(int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 256;
    alignas(64) char accs[kBlock * kLargestAccumulator];
    const int64_t inner = kept_.inner_size(), step = kept_.inner_stride();
    while (begin < end) {
      const int64_t m = std::min({kBlock, end - begin, inner - begin % inner});
      fold_.rows(fold_.self, data_ + kept_.offset(begin) * width_, m, step, folded_.count, 0, accs);
      store(accs, begin, m);
      begin += m;
    }
  }

  void gathered_short_rows(int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 256;
    alignas(64) char accs[kBlock * kLargestAccumulator];
    Buffer buffer;
    // A quarter of the buffer: rows that were converted are folded while they lie in the first-level cache.
    const int64_t n = folded_.count, rows = buffer_capacity() / 4 / std::max<int64_t>(n, 1),
                  fit = std::clamp<int64_t>(rows, 1, kBlock);
    Space all = kept_;
    for (int64_t d = 0; d < folded_.rank(); ++d) all.add(folded_.sizes[d], folded_.strides[d]);
    while (begin < end) {
      const int64_t m = std::min(fit, end - begin);
      if (n > 0) fetch(buffer, 0, 0, all, begin * n, m * n);
      fold_.rows(fold_.self, buffer.elements, m, n, n, 0, accs);
      store(accs, begin, m);
      begin += m;
    }
  }

  void long_rows(int64_t begin, int64_t end, int64_t chunks) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t result = i / chunks, chunk = i % chunks, first = chunk * kFoldChunk,
                    n = std::min(kFoldChunk, folded_.count - first);
      fold_.rows(fold_.self, data_ + (kept_.offset(result) + first) * width_, 1, 0, n, first, partial(chunk, result));
    }
  }

  void gathered_long_rows(int64_t begin, int64_t end, int64_t chunks) {
    // Long runs are folded where they are, the others after a copy into the buffer.
    const int64_t inner = folded_.inner_size();
    const bool in_runs = as_stored_ && folded_.inner_stride() == 1 && inner >= kFoldLanes * 4;
    Buffer buffer;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t result = i / chunks, chunk = i % chunks, first = chunk * kFoldChunk,
                    last = std::min(first + kFoldChunk, folded_.count);
      char* acc = partial(chunk, result);
      if (!in_runs) {
        fetch(buffer, 0, kept_.offset(result), folded_, first, last - first);
        fold_.rows(fold_.self, buffer.elements, 1, 0, last - first, first, acc);
        continue;
      }
      for (int64_t at = first; at < last;) {
        const int64_t n = std::min(last - at, inner - at % inner);
        alignas(64) char more[kLargestAccumulator];
        fold_.rows(fold_.self, data_ + (kept_.offset(result) + folded_.offset(at)) * width_, 1, 0, n, at,
                   at == first ? acc : more);
        if (at != first) fold_.merge(acc, more, 1);
        at += n;
      }
    }
  }

  // ---- columns

  void run_columns() {
    Space outer = kept_;
    const int64_t columns = outer.inner_size(), column_step = outer.inner_stride();
    outer.sizes.pop_back();
    outer.strides.pop_back();
    outer.count /= columns;
    const int64_t n = folded_.count;
    const bool direct = as_stored_ && column_step == 1 && folded_.rank() <= 1;
    const int64_t step = folded_.inner_stride();
    // Narrow rows that lie behind one another are taken several at a time, as one wider row.
    const int64_t together = direct && !fold_.ordered && step == columns && columns <= 64 ? 128 / columns : 1;
    const int64_t rows_in_chunk = kFoldRows * together;
    const int64_t chunks = std::max<int64_t>(1, (n + rows_in_chunk - 1) / rows_in_chunk);
    const int64_t blocks = (columns + kFoldColumns - 1) / kFoldColumns;
    if (chunks > 1) make_partial(chunks);
    const int64_t work = std::min(n, rows_in_chunk) * std::min(columns, kFoldColumns);
    // A few rows of a small matrix are read at once: the processor does not see that the next matrix lies behind them.
    // (The sums of 16384 matrices of 4 x 128 floats: 1.0 ms instead of 2.9.)
    const int64_t tile_bytes = n * columns * width_;
    const bool reads_ahead = direct && step == columns && chunks == 1 && blocks == 1 &&
                             tile_bytes <= kBufferBytes / 4 && tile_bytes * outer.count > kBufferBytes * 16;
    parallel_for(outer.count * chunks * blocks, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(work, 1)),
                 [&](int64_t begin, int64_t end) {
                   alignas(64) char accs[2][kFoldColumns * kLargestAccumulator];
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t block = i % blocks, chunk = i / blocks % chunks, o = i / blocks / chunks;
                     const int64_t row = chunk * rows_in_chunk, rows = std::min(rows_in_chunk, n - row);
                     const int64_t column = block * kFoldColumns, width = std::min(kFoldColumns, columns - column),
                                   result = o * columns + column;
                     char *to = chunks > 1 ? partial(chunk, result) : accs[0], *more = accs[1];
                     const int64_t offset = outer.offset(o) + column * column_step;
                     if (reads_ahead && i + 2 < end) read_ahead(data_ + outer.offset(o + 2) * width_, tile_bytes);
                     if (direct)
                       fold_tile(data_ + (offset + row * step) * width_, step, row, rows, width, together, to, more);
                     else
                       fold_gathered_tile(offset, column_step, row, rows, width, to, more);
                     if (chunks == 1) store(to, result, width);
                   }
                 });
    if (chunks > 1) merge_and_store(chunks);
  }

  void fold_tile(const char* x, int64_t step, int64_t first, int64_t rows, int64_t columns, int64_t together, char* to,
                 char* more) {
    const int64_t wide = rows / together;
    if (together == 1 || wide == 0) return fold_.columns(fold_.self, x, step, rows, columns, first, to);
    fold_.columns(fold_.self, x, step * together, wide, columns * together, first, more);
    for (int64_t k = 1; k < together; ++k) fold_.merge(more, more + k * columns * fold_.accumulator, columns);
    std::memcpy(to, more, static_cast<size_t>(columns * fold_.accumulator));
    if (const int64_t rest = rows - wide * together) {
      fold_.columns(fold_.self, x + wide * together * step * width_, step, rest, columns, first + wide * together,
                    more);
      fold_.merge(to, more, columns);
    }
  }

  void fold_gathered_tile(int64_t offset, int64_t column_step, int64_t first, int64_t rows, int64_t columns, char* to,
                          char* more) {
    Buffer buffer;
    Space line;
    line.add(columns, column_step);
    const int64_t fit = buffer_capacity() / columns;
    for (int64_t done = 0; done < rows;) {
      const int64_t m = std::min(fit, rows - done);
      for (int64_t r = 0; r < m; ++r)
        fetch(buffer, r * columns, offset + folded_.offset(first + done + r), line, 0, columns);
      fold_.columns(fold_.self, buffer.elements, columns, m, columns, first + done, done == 0 ? to : more);
      if (done > 0) fold_.merge(to, more, columns);
      done += m;
    }
    if (rows == 0) fold_.columns(fold_.self, buffer.elements, columns, 0, columns, 0, to);
  }
};

}  // namespace

void run_fold(const Tensor& input, uint64_t reduced, const Fold& fold, std::span<const Tensor> outs) {
  const int64_t n = input.numel();
  if (outs[0].numel() == 1 && n <= kFoldChunk && input.is_contiguous() && input.dtype() == fold.element) {
    // The common small case, without any ado.
    bool direct = true;
    for (size_t k = 0; k < outs.size(); ++k) direct &= outs[k].dtype() == fold.results[k];
    if (direct) {
      alignas(64) char acc[kLargestAccumulator];
      fold.rows(fold.self, input.bytes(), 1, 0, n, 0, acc);
      char* out[2] = {outs[0].bytes(), outs.size() > 1 ? outs[1].bytes() : nullptr};
      return fold.finish(fold.self, acc, 1, n, out);
    }
  }
  FoldRun(input, input.bytes(), reduced, fold, outs).run();
}

bool run_fold_late(const Tensor& input, uint64_t reduced, const Fold& fold, std::span<const Tensor> outs) {
  return FoldRun(input, nullptr, reduced, fold, outs).run_late(input);
}

}  // namespace cresset
