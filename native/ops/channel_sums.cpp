#include "ops/channel_sums.h"

#include <cstring>
#include <vector>

#include "base/instruction_set.h"
#include "base/parallel.h"

#pragma GCC diagnostic ignored \
    "-Wpsabi"  // vectors wider than the baseline's are passed only between functions that are inlined

namespace cresset {
namespace {

constexpr int64_t kBlockRows = 512, kLanes = 8,
                  kChannels = 16;  // kChannels: worked on together when they are innermost

template <class T>
struct Vectors {
  typedef T Channels __attribute__((vector_size(kChannels * sizeof(T))));
};
template <class T>
using Channels = typename Vectors<T>::Channels;

// Neighbors in a row of channels; only `left` elements of memory are there.
template <class T>
CRESSET_INLINE Channels<T> load(const T* from, int64_t left) {
  Channels<T> v{};
  if (left >= kChannels)
    std::memcpy(&v, from, sizeof v);
  else
    std::memcpy(&v, from, static_cast<size_t>(left) * sizeof(T));
  return v;
}

template <class V>
CRESSET_INLINE V meet(const V* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// A block, channels innermost: `step` elements from row to row, `left` from its first element to the end of the memory.
template <class T>
struct MomentsInside {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t rows, int64_t step, int64_t left, int64_t channels, double* sums,
                          T* centers, double* squares) {
    using V = Channels<T>;
    V lanes[kLanes] = {};
    int64_t r = 0;
    for (; r + kLanes <= rows; r += kLanes) {
#pragma GCC unroll 8
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += load(x + (r + l) * step, left - (r + l) * step);
    }
#pragma GCC unroll 8
    for (int64_t l = 0; l < kLanes; ++l)
      if (r + l < rows) lanes[l] += load(x + (r + l) * step, left - (r + l) * step);
    const V total = meet(lanes);
    V center{};
    for (int64_t c = 0; c < kChannels; ++c)
      center[c] = static_cast<T>(static_cast<double>(total[c]) / static_cast<double>(rows));
#pragma GCC unroll 8
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = V{};
    for (r = 0; r + kLanes <= rows; r += kLanes) {
#pragma GCC unroll 8
      for (int64_t l = 0; l < kLanes; ++l) {
        const V d = load(x + (r + l) * step, left - (r + l) * step) - center;
        lanes[l] += d * d;
      }
    }
#pragma GCC unroll 8
    for (int64_t l = 0; l < kLanes; ++l)
      if (r + l < rows) {
        const V d = load(x + (r + l) * step, left - (r + l) * step) - center;
        lanes[l] += d * d;
      }
    const V around = meet(lanes);
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] = static_cast<double>(total[c]);
      centers[c] = center[c];
      squares[c] = static_cast<double>(around[c]);
    }
  }
};

template <class T>
struct SumsInside {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* x, const T* mean, int64_t rows, int64_t step, int64_t left,
                          int64_t channels, double* level, double* slope) {
    using V = Channels<T>;
    V lanes[kLanes] = {}, products[kLanes] = {};
    const V center = x ? load(mean, channels) : V{};
    const auto add = [&](int64_t l, int64_t row) __attribute__((always_inline)) {
      const V v = load(g + row * step, left - row * step);
      lanes[l] += v;
      if (x) products[l] += v * (load(x + row * step, left - row * step) - center);
    };
    int64_t r = 0;
    for (; r + kLanes <= rows; r += kLanes) {
#pragma GCC unroll 8
      for (int64_t l = 0; l < kLanes; ++l) add(l, r + l);
    }
#pragma GCC unroll 8
    for (int64_t l = 0; l < kLanes; ++l)
      if (r + l < rows) add(l, r + l);
    const V total = meet(lanes), moment = meet(products);
    for (int64_t c = 0; c < channels; ++c) {
      level[c] = static_cast<double>(total[c]);
      if (x) slope[c] = static_cast<double>(moment[c]);
    }
  }
};

// A block of one channel, one element after the other.
template <class T, class Term>
CRESSET_INLINE T sum_of_block(int64_t rows, const Term& term) {
  T lanes[kLanes] = {};
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += term(r + l);
  for (int64_t l = 0; r + l < rows; ++l) lanes[l] += term(r + l);
  return meet(lanes);
}

template <class T>
struct MomentsOfBlock {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t rows, double* sum, T* center, double* squares) {
    const T total = sum_of_block<T>(rows, [=](int64_t i) __attribute__((always_inline)) { return x[i]; });
    const T at = static_cast<T>(static_cast<double>(total) / static_cast<double>(rows));
    const T around =
        sum_of_block<T>(rows, [=](int64_t i) __attribute__((always_inline)) { return (x[i] - at) * (x[i] - at); });
    *sum = static_cast<double>(total);
    *center = at;
    *squares = static_cast<double>(around);
  }
};
template <class T>
struct SumsOfBlock {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* x, T mean, int64_t rows, double* level, double* slope) {
    *level = static_cast<double>(sum_of_block<T>(rows, [=](int64_t i) __attribute__((always_inline)) { return g[i]; }));
    if (x)
      *slope = static_cast<double>(
          sum_of_block<T>(rows, [=](int64_t i) __attribute__((always_inline)) { return g[i] * (x[i] - mean); }));
  }
};

// Elements [begin, begin + rows) of a channel whose points follow each other: where they lie, or gathered from several
// images.
template <class T>
const T* rows_of_channel(const ChannelImages& s, const T* x, int64_t channel, int64_t begin, int64_t rows, T* buffer) {
  int64_t image = begin / s.points, point = begin % s.points;
  const auto at = [&] { return x + (image * s.channels + channel) * s.points + point; };
  if (point + rows <= s.points) return at();
  for (int64_t done = 0; done < rows; ++image, point = 0) {
    const int64_t n = std::min(s.points - point, rows - done);
    std::memcpy(buffer + done, at(), static_cast<size_t>(n) * sizeof(T));
    done += n;
  }
  return buffer;
}

int64_t blocks_of(const ChannelImages& s) { return (s.each() + kBlockRows - 1) / kBlockRows; }
int64_t rows_at(const ChannelImages& s, int64_t block) { return std::min(kBlockRows, s.each() - block * kBlockRows); }

// f(block, first channel, channels) or f(block, channel), in parallel.
template <class Inside, class Outside>
void for_blocks(const ChannelImages& s, const Inside& inside, const Outside& outside) {
  const int64_t blocks = blocks_of(s),
                grain = std::max<int64_t>(
                    1, kParallelGrain / 2 / std::max<int64_t>(1, kBlockRows * (s.inside ? s.channels : blocks)));
  parallel_for(s.inside ? blocks : s.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (s.inside)
        for (int64_t c = 0; c < s.channels; c += kChannels) inside(i, c, std::min(kChannels, s.channels - c));
      else
        for (int64_t b = 0; b < blocks; ++b) outside(b, i);
    }
  });
}

}  // namespace

template <class T>
void channel_moments(const ChannelImages& s, const T* x, double* mean, double* squares) {
  const int64_t blocks = blocks_of(s), total = s.each() * s.channels;
  const size_t places = static_cast<size_t>(blocks * s.channels);
  std::vector<double> sums(places), around(places);
  std::vector<T> centers(places);
  for_blocks(
      s,
      [&](int64_t block, int64_t c, int64_t count) {
        const int64_t start = block * kBlockRows * s.channels + c, at = block * s.channels + c;
        run_vectorized<MomentsInside<T>>(x + start, rows_at(s, block), s.channels, total - start, count,
                                         sums.data() + at, centers.data() + at, around.data() + at);
      },
      [&](int64_t block, int64_t c) {
        T buffer[kBlockRows];
        const int64_t rows = rows_at(s, block), at = block * s.channels + c;
        run_vectorized<MomentsOfBlock<T>>(rows_of_channel(s, x, c, block * kBlockRows, rows, buffer), rows,
                                          sums.data() + at, centers.data() + at, around.data() + at);
      });
  const double n = static_cast<double>(s.each());
  for (int64_t c = 0; c < s.channels; ++c) {
    double sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += sums[static_cast<size_t>(b * s.channels + c)];
    mean[c] = sum / n;
    // The squares are about a block's own center: moved to the mean of all.
    double moved = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      const size_t at = static_cast<size_t>(b * s.channels + c);
      const double rows = static_cast<double>(rows_at(s, b)), center = static_cast<double>(centers[at]),
                   shift = center - mean[c];
      moved += around[at] + shift * (2 * (sums[at] - rows * center) + rows * shift);
    }
    squares[c] = std::max(moved, 0.0);
  }
}

template <class T>
void channel_sums(const ChannelImages& s, const T* g, const T* x, const T* mean, double* level, double* slope) {
  const int64_t blocks = blocks_of(s), total = s.each() * s.channels;
  const size_t places = static_cast<size_t>(blocks * s.channels);
  std::vector<double> levels(places), slopes(x ? places : 0);
  for_blocks(
      s,
      [&](int64_t block, int64_t c, int64_t count) {
        const int64_t start = block * kBlockRows * s.channels + c, at = block * s.channels + c;
        run_vectorized<SumsInside<T>>(g + start, x ? x + start : nullptr, x ? mean + c : nullptr, rows_at(s, block),
                                      s.channels, total - start, count, levels.data() + at,
                                      x ? slopes.data() + at : nullptr);
      },
      [&](int64_t block, int64_t c) {
        T first[kBlockRows], second[kBlockRows];
        const int64_t rows = rows_at(s, block), begin = block * kBlockRows, at = block * s.channels + c;
        run_vectorized<SumsOfBlock<T>>(rows_of_channel(s, g, c, begin, rows, first),
                                       x ? rows_of_channel(s, x, c, begin, rows, second) : nullptr, x ? mean[c] : T(0),
                                       rows, levels.data() + at, x ? slopes.data() + at : nullptr);
      });
  for (int64_t c = 0; c < s.channels; ++c) {
    level[c] = 0;
    if (x) slope[c] = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      level[c] += levels[static_cast<size_t>(b * s.channels + c)];
      if (x) slope[c] += slopes[static_cast<size_t>(b * s.channels + c)];
    }
  }
}

template void channel_moments<float>(const ChannelImages&, const float*, double*, double*);
template void channel_moments<double>(const ChannelImages&, const double*, double*, double*);
template void channel_sums<float>(const ChannelImages&, const float*, const float*, const float*, double*, double*);
template void channel_sums<double>(const ChannelImages&, const double*, const double*, const double*, double*, double*);

}  // namespace cresset
