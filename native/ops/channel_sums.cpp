#include "ops/channel_sums.h"

#include <cstring>
#include <type_traits>
#include <vector>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/late.h"
#include "tensor/convert.h"

#pragma GCC diagnostic ignored \
    "-Wpsabi"  // vectors wider than the baseline's are passed only between functions that are inlined

namespace cresset {
namespace {

constexpr int64_t kBlockRows = 512, kLanes = 8,
                  kChannels = 16,  // worked on together when they are innermost
    kTogether = 4;  // blocks of one channel otherwise, or half as many: a set of lanes waits for each sum

template <class T>
struct Vectors {
  typedef T Channels __attribute__((vector_size(kChannels * sizeof(T))));
  typedef T Lanes __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T>
using Channels = typename Vectors<T>::Channels;
template <class T>
using Lanes = typename Vectors<T>::Lanes;

// Neighbors in a row of channels; unless it `is_whole`, only `left` elements of memory are there.
template <class T, bool kWhole>
CRESSET_INLINE Channels<T> load(const T* from, int64_t left, std::bool_constant<kWhole>) {
  Channels<T> v{};
  if (kWhole || left >= kChannels)
    std::memcpy(&v, from, sizeof v);
  else
    std::memcpy(&v, from, static_cast<size_t>(left) * sizeof(T));
  return v;
}

template <class V>
CRESSET_INLINE V meet(const V* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// f(lane, row) for all rows. Where nobody asks what is left of the memory, lanes stay in registers: half the time.
template <class F>
CRESSET_INLINE void for_lanes(int64_t rows, const F& f) {
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
#pragma GCC unroll 8
    for (int64_t l = 0; l < kLanes; ++l) f(l, r + l);
  }
#pragma GCC unroll 8
  for (int64_t l = 0; l < kLanes; ++l)
    if (r + l < rows) f(l, r + l);
}

#define CRESSET_LANE __attribute__((always_inline))

// A block, channels innermost: `step` elements from row to row, `left` from its first element to the end of the memory.
template <class T>
struct MomentsInside {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t rows, int64_t step, int64_t left, int64_t channels, double* sums,
                          T* centers, double* squares) {
    if ((rows - 1) * step + kChannels <= left)
      fold(x, rows, step, left, channels, sums, centers, squares, std::true_type());
    else
      fold(x, rows, step, left, channels, sums, centers, squares, std::false_type());
  }

 private:
  template <class Whole>
  CRESSET_INLINE void fold(const T* x, int64_t rows, int64_t step, int64_t left, int64_t channels, double* sums,
                           T* centers, double* squares, Whole is_whole) {
    using V = Channels<T>;
    const auto at = [&](int64_t row) CRESSET_LANE { return load(x + row * step, left - row * step, is_whole); };
    V lanes[kLanes] = {};
    for_lanes(rows, [&](int64_t l, int64_t row) CRESSET_LANE { lanes[l] += at(row); });
    const V total = meet(lanes);
    V center{};
    for (int64_t c = 0; c < kChannels; ++c)
      center[c] = static_cast<T>(static_cast<double>(total[c]) / static_cast<double>(rows));
#pragma GCC unroll 8
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = V{};
    for_lanes(rows, [&](int64_t l, int64_t row) CRESSET_LANE {
      const V d = at(row) - center;
      lanes[l] += d * d;
    });
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
    if ((rows - 1) * step + kChannels <= left)
      fold(g, x, mean, rows, step, left, channels, level, slope, std::true_type());
    else
      fold(g, x, mean, rows, step, left, channels, level, slope, std::false_type());
  }

 private:
  template <class Whole>
  CRESSET_INLINE void fold(const T* g, const T* x, const T* mean, int64_t rows, int64_t step, int64_t left,
                           int64_t channels, double* level, double* slope, Whole is_whole) {
    using V = Channels<T>;
    V lanes[kLanes] = {}, products[kLanes] = {};
    if (x) {
      const V center = load(mean, channels, std::false_type());
      for_lanes(rows, [&](int64_t l, int64_t row) CRESSET_LANE {
        const V v = load(g + row * step, left - row * step, is_whole);
        lanes[l] += v;
        products[l] += v * (load(x + row * step, left - row * step, is_whole) - center);
      });
    } else {
      for_lanes(rows, [&](int64_t l, int64_t row)
                          CRESSET_LANE { lanes[l] += load(g + row * step, left - row * step, is_whole); });
    }
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
CRESSET_INLINE T meet_lanes(const Lanes<T>& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
template <class T>
CRESSET_INLINE Lanes<T> load_lanes(const T* from) {
  Lanes<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// kCount whole blocks of one channel; what is found of them lies `step` apart. (16 x 64 images of 56 x 56: all
// moments take 0.5 ms on one thread, block by block 1.1.)
template <class T, int64_t kCount>
struct MomentsOfBlocks {
  template <class Fma>
  CRESSET_INLINE void run(const T* const* x, int64_t step, double* sums, T* centers, double* squares) {
    Lanes<T> lanes[kCount] = {}, center[kCount];
    for (int64_t r = 0; r < kBlockRows; r += kLanes)
#pragma GCC unroll 4
      for (int64_t b = 0; b < kCount; ++b) lanes[b] += load_lanes(x[b] + r);
#pragma GCC unroll 4
    for (int64_t b = 0; b < kCount; ++b) {
      const T total = meet_lanes<T>(lanes[b]);
      sums[b * step] = static_cast<double>(total);
      centers[b * step] = static_cast<T>(static_cast<double>(total) / static_cast<double>(kBlockRows));
      center[b] = Lanes<T>{} + centers[b * step];
      lanes[b] = Lanes<T>{};
    }
    for (int64_t r = 0; r < kBlockRows; r += kLanes)
#pragma GCC unroll 4
      for (int64_t b = 0; b < kCount; ++b) {
        const Lanes<T> d = load_lanes(x[b] + r) - center[b];
        lanes[b] += d * d;
      }
#pragma GCC unroll 4
    for (int64_t b = 0; b < kCount; ++b) squares[b * step] = static_cast<double>(meet_lanes<T>(lanes[b]));
  }
};
template <class T, int64_t kCount>
struct SumsOfBlocks {
  template <class Fma>
  CRESSET_INLINE void run(const T* const* g, const T* const* x, T mean, int64_t step, double* level, double* slope) {
    Lanes<T> lanes[kCount] = {}, products[kCount] = {};
    if (x) {
      const Lanes<T> center = Lanes<T>{} + mean;
      for (int64_t r = 0; r < kBlockRows; r += kLanes)
#pragma GCC unroll 4
        for (int64_t b = 0; b < kCount; ++b) {
          const Lanes<T> v = load_lanes(g[b] + r);
          lanes[b] += v;
          products[b] += v * (load_lanes(x[b] + r) - center);
        }
    } else {
      for (int64_t r = 0; r < kBlockRows; r += kLanes)
#pragma GCC unroll 4
        for (int64_t b = 0; b < kCount; ++b) lanes[b] += load_lanes(g[b] + r);
    }
#pragma GCC unroll 4
    for (int64_t b = 0; b < kCount; ++b) {
      level[b * step] = static_cast<double>(meet_lanes<T>(lanes[b]));
      if (x) slope[b * step] = static_cast<double>(meet_lanes<T>(products[b]));
    }
  }
};

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
// images or converted.
template <class T>
const T* rows_of_channel(const ChannelImages& s, const ImageElements<T>& x, int64_t channel, int64_t begin,
                         int64_t rows, T* buffer) {
  int64_t image = begin / s.points, point = begin % s.points;
  const auto place = [&] { return (image * s.channels + channel) * s.points + point; };
  const bool converts = x.dtype != dtype_of<T>;
  if (!converts && point + rows <= s.points) return x.at(place());
  const Convert convert_run = converts ? converter(x.dtype, dtype_of<T>) : nullptr;
  for (int64_t done = 0; done < rows; ++image, point = 0) {
    const int64_t n = std::min(s.points - point, rows - done);
    if (converts)
      convert_run(x.data + place() * size_of(x.dtype), reinterpret_cast<char*>(buffer + done), n);
    else
      std::memcpy(buffer + done, x.at(place()), static_cast<size_t>(n) * sizeof(T));
    done += n;
  }
  return buffer;
}
// The same of several blocks that follow each other.
template <class T>
struct BlocksOfChannel {
  T buffers[kTogether][kBlockRows];
  const T* blocks[kTogether];
  BlocksOfChannel(const ChannelImages& s, const ImageElements<T>& x, int64_t channel, int64_t block, int64_t count) {
    for (int64_t b = 0; b < count; ++b)
      blocks[b] = rows_of_channel(s, x, channel, (block + b) * kBlockRows, kBlockRows, buffers[b]);
  }
};

int64_t blocks_of(const ChannelImages& s) { return (s.each() + kBlockRows - 1) / kBlockRows; }
int64_t rows_at(const ChannelImages& s, int64_t block) { return std::min(kBlockRows, s.each() - block * kBlockRows); }

// f(block, first channel, channels) or f(block, one block or kTogether or half as many whole ones, channel), in
// parallel.
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
        for (int64_t b = 0, count; b < blocks; b += count) {
          const int64_t whole = s.each() / kBlockRows - b;
          outside(b, count = whole >= kTogether ? kTogether : whole >= kTogether / 2 ? kTogether / 2 : 1, i);
        }
    }
  });
}

}  // namespace

template <class T>
void channel_moments(const ChannelImages& s, const ImageElements<T>& x, double* mean, double* squares) {
  const int64_t blocks = blocks_of(s), total = s.each() * s.channels;
  const size_t places = static_cast<size_t>(blocks * s.channels);
  std::vector<double> sums(places), around(places);
  std::vector<T> centers(places);
  for_blocks(
      s,
      [&](int64_t block, int64_t c, int64_t count) {
        const int64_t start = block * kBlockRows * s.channels + c, at = block * s.channels + c;
        run_vectorized<MomentsInside<T>>(x.at(start), rows_at(s, block), s.channels, total - start, count,
                                         sums.data() + at, centers.data() + at, around.data() + at);
      },
      [&](int64_t block, int64_t count, int64_t c) {
        const int64_t at = block * s.channels + c;
        const auto together = [&]<int64_t kCount>() {
          const BlocksOfChannel<T> from(s, x, c, block, kCount);
          run_vectorized<MomentsOfBlocks<T, kCount>>(static_cast<const T* const*>(from.blocks), s.channels,
                                                     sums.data() + at, centers.data() + at, around.data() + at);
        };
        if (count == kTogether) return together.template operator()<kTogether>();
        if (count == kTogether / 2) return together.template operator()<kTogether / 2>();
        T buffer[kBlockRows];
        const int64_t rows = rows_at(s, block);
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

namespace {

// The sums of each block.
template <class T>
class BlockSums {
 public:
  BlockSums(const ChannelImages& s, const ImageElements<T>& x, const T* mean) : s_(s), x_(x), mean_(mean) {
    const size_t places = static_cast<size_t>(blocks_of(s) * s.channels);
    levels_.resize(places);
    slopes_.resize(x ? places : 0);
  }

  int64_t channels() const { return s_.channels; }
  // Channels from `c` on; g is the block's first row.
  void inside(const T* g, int64_t block, int64_t c, int64_t count) {
    const int64_t rows = rows_at(s_, block), start = block * kBlockRows * s_.channels + c, at = block * s_.channels + c;
    run_vectorized<SumsInside<T>>(g + c, x_ ? x_.at(start) : nullptr, x_ ? mean_ + c : nullptr, rows, s_.channels,
                                  rows * s_.channels - c, count, levels_.data() + at,
                                  x_ ? slopes_.data() + at : nullptr);
  }
  void outside(const ImageElements<T>& g, int64_t block, int64_t count, int64_t c) {
    const int64_t at = block * s_.channels + c;
    const auto together = [&]<int64_t kCount>() {
      const BlocksOfChannel<T> grads(s_, g, c, block, kCount);
      const auto add = [&](const T* const* x, T mean) {
        run_vectorized<SumsOfBlocks<T, kCount>>(static_cast<const T* const*>(grads.blocks), x, mean, s_.channels,
                                                levels_.data() + at, x ? slopes_.data() + at : nullptr);
      };
      return x_ ? add(BlocksOfChannel<T>(s_, x_, c, block, kCount).blocks, mean_[c]) : add(nullptr, T(0));
    };
    if (count == kTogether) return together.template operator()<kTogether>();
    if (count == kTogether / 2) return together.template operator()<kTogether / 2>();
    T first[kBlockRows], second[kBlockRows];
    const int64_t rows = rows_at(s_, block), begin = block * kBlockRows;
    run_vectorized<SumsOfBlock<T>>(rows_of_channel(s_, g, c, begin, rows, first),
                                   x_ ? rows_of_channel(s_, x_, c, begin, rows, second) : nullptr, x_ ? mean_[c] : T(0),
                                   rows, levels_.data() + at, x_ ? slopes_.data() + at : nullptr);
  }
  void add_up(double* level, double* slope) const {
    const int64_t blocks = blocks_of(s_);
    for (int64_t c = 0; c < s_.channels; ++c) {
      level[c] = 0;
      if (x_) slope[c] = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        level[c] += levels_[static_cast<size_t>(b * s_.channels + c)];
        if (x_) slope[c] += slopes_[static_cast<size_t>(b * s_.channels + c)];
      }
    }
  }

 private:
  const ChannelImages& s_;
  const ImageElements<T> x_;
  const T* mean_;
  std::vector<double> levels_, slopes_;
};

}  // namespace

template <class T>
void channel_sums(const ChannelImages& s, const ImageElements<T>& g, const ImageElements<T>& x, const T* mean,
                  double* level, double* slope) {
  BlockSums<T> sums(s, x, mean);
  for_blocks(
      s,
      [&](int64_t block, int64_t c, int64_t count) {
        sums.inside(g.at(block * kBlockRows * s.channels), block, c, count);
      },
      [&](int64_t block, int64_t count, int64_t c) { sums.outside(g, block, count, c); });
  sums.add_up(level, slope);
}

bool channel_sums_late(const ChannelImages& s, const Tensor& g, const float* x, const float* mean, double* level,
                       double* slope) {
  BlockSums<float> sums(s, x, mean);
  const auto take = [](void* self, const char* elements, int64_t begin, int64_t) {
    auto& to = *static_cast<BlockSums<float>*>(self);
    const int64_t channels = to.channels(), block = begin / (kBlockRows * channels);
    for (int64_t c = 0; c < channels; c += kChannels)
      to.inside(reinterpret_cast<const float*>(elements), block, c, std::min(kChannels, channels - c));
  };
  const Taker taker{kBlockRows * s.channels, take, &sums, true, true};
  if (!take_late(g, taker)) return false;
  sums.add_up(level, slope);
  return true;
}

template void channel_moments<float>(const ChannelImages&, const ImageElements<float>&, double*, double*);
template void channel_moments<double>(const ChannelImages&, const ImageElements<double>&, double*, double*);
template void channel_sums<float>(const ChannelImages&, const ImageElements<float>&, const ImageElements<float>&,
                                  const float*, double*, double*);
template void channel_sums<double>(const ChannelImages&, const ImageElements<double>&, const ImageElements<double>&,
                                   const double*, double*, double*);

}  // namespace cresset
