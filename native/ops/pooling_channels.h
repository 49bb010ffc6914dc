// Pooling of images whose channels are innermost: all channels of a point at once. Results have the same bits as plane
// by plane.
#pragma once
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "base/dtype.h"
#include "base/instruction_set.h"
#include "base/parallel.h"

namespace cresset {

// Where the windows lie along one dimension: elements begin[o], begin[o] + step, ... below end[o].
struct Axis {
  int64_t in = 1, out = 1, step = 1;
  std::vector<int64_t> begin{0}, end{1}, length{1};  // length: with the padding that the window covers
  // Those from first_whole on, below last_whole, are `taps` elements each, `stride` apart from the next.
  int64_t stride = 1, taps = 1, first_whole = 0, last_whole = 0;
};
using Axes = std::array<Axis, 3>;

// What a window's sum is divided by.
struct Divisor {
  bool include_padding;
  int64_t override_with;  // 0: none
};

inline int64_t divisor_of(const Axes& a, const Divisor& by, int64_t d, int64_t h, int64_t w) {
  if (by.override_with) return by.override_with;
  const size_t s[3] = {static_cast<size_t>(d), static_cast<size_t>(h), static_cast<size_t>(w)};
  int64_t n = 1;
  for (int k = 0; k < 3; ++k)
    n *= by.include_padding ? a[static_cast<size_t>(k)].length[s[k]]
                            : a[static_cast<size_t>(k)].end[s[k]] - a[static_cast<size_t>(k)].begin[s[k]];
  return n;
}

template <class M>
M divided(M sum, int64_t by) {
  if constexpr (std::is_floating_point_v<M>)
    return sum / static_cast<M>(by);
  else
    return static_cast<M>(sum / static_cast<M>(by));
}
template <>
inline complex64 divided(complex64 sum, int64_t by) {
  return sum / static_cast<float>(by);
}
template <>
inline complex128 divided(complex128 sum, int64_t by) {
  return sum / static_cast<double>(by);
}

constexpr int64_t kChannelsTogether = 64;

// What the windows of one point of the result see: the places of the plane, in order.
class Places {
 public:
  explicit Places(const Axes& a) : a_(a) {}
  // Returns the first place, which stands for the maximum when nothing is larger than the start.
  int64_t look(int64_t d, int64_t h, int64_t w) {
    const size_t sd = static_cast<size_t>(d), sh = static_cast<size_t>(h), sw = static_cast<size_t>(w);
    seen.clear();
    for (int64_t i = a_[0].begin[sd]; i < a_[0].end[sd]; i += a_[0].step)
      for (int64_t j = a_[1].begin[sh]; j < a_[1].end[sh]; j += a_[1].step)
        for (int64_t k = a_[2].begin[sw]; k < a_[2].end[sw]; k += a_[2].step)
          seen.push_back((i * a_[1].in + j) * a_[2].in + k);
    return (a_[0].begin[sd] * a_[1].in + a_[1].begin[sh]) * a_[2].in + a_[2].begin[sw];
  }
  std::vector<int64_t> seen;

 private:
  const Axes& a_;
};

// f(image, row of the result) in parallel; `work` is that of a row.
template <class F>
void for_image_rows(int64_t images, int64_t rows, int64_t work, F&& f) {
  parallel_for(images * rows, std::max<int64_t>(kParallelGrain / 4 / std::max<int64_t>(work, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(i / rows, i % rows);
               });
}

// The largest of what a window sees, for all channels of a point. Vectors of the compiler's own, since loops with a
// choice of value and place are not vectorized: 11 times as fast (64 images of 32 x 32 x 32, windows of 2 x 2: 8 ms as
// loops, 0.7 ms so). Wider ones would be taken apart before this is inlined where they are known.
template <class T, class Place>
struct LargestOfPlaces {
  using M = opmath<T>;
  static constexpr M kLeast =
      std::numeric_limits<M>::has_infinity ? -std::numeric_limits<M>::infinity() : std::numeric_limits<M>::lowest();
  static constexpr bool kInVectors =
      sizeof(M) == sizeof(Place);  // a comparison's result is as wide as what is compared
  static constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(Place));

  // NaN is larger than all, and the first of equals counts.
  CRESSET_INLINE void one(const T* image, const int64_t* places, int64_t count, int64_t first, T* to, int64_t* index,
                          int64_t channels) {
    M best = kLeast;
    int64_t at = first;
    for (int64_t k = 0; k < count; ++k) {
      const M v = static_cast<M>(image[places[k] * channels]);
      const bool take = v > best || v != v;
      best = take ? v : best;
      at = take ? places[k] : at;
    }
    *to = T(best);
    *index = at;
  }

  template <class Fma>
  CRESSET_INLINE void run(const T* image, const int64_t* places, int64_t count, int64_t first, T* to, int64_t* indices,
                          int64_t channels) {
    int64_t c = 0;
    if constexpr (kInVectors) {
      typedef M Values __attribute__((vector_size(32)));
      typedef Place Whole __attribute__((vector_size(32)));
      for (; c + kLanes <= channels; c += kLanes) {
        Values best = Values{} + kLeast;
        Whole at = Whole{} + static_cast<Place>(first);
        for (int64_t k = 0; k < count; ++k) {
          const T* from = image + places[k] * channels + c;
          Values v;
          if constexpr (std::is_same_v<M, T>)
            std::memcpy(&v, from, sizeof v);
          else
            for (int64_t i = 0; i < kLanes; ++i) v[i] = static_cast<M>(from[i]);
          const Whole take = (v > best) | (v != v);
          best = take ? v : best;
          at = take ? Whole{} + static_cast<Place>(places[k]) : at;
        }
        if constexpr (std::is_same_v<M, T>)
          std::memcpy(to + c, &best, sizeof best);
        else
          for (int64_t i = 0; i < kLanes; ++i) to[c + i] = T(best[i]);
        for (int64_t i = 0; i < kLanes; ++i) indices[c + i] = at[i];
      }
    }
    for (; c < channels; ++c) one(image + c, places, count, first, to + c, indices + c, channels);
  }
};

template <class T, class Place>
void max_of_channels(const Axes& a, int64_t images, int64_t channels, const T* x, T* y, int64_t* indices) {
  const int64_t in = a[0].in * a[1].in * a[2].in, rows = a[0].out * a[1].out, width = a[2].out;
  for_image_rows(images, rows, width * channels * 4, [&](int64_t image, int64_t row) {
    Places places(a);
    for (int64_t w = 0; w < width; ++w) {
      const int64_t first = places.look(row / a[1].out, row % a[1].out, w),
                    to = ((image * rows + row) * width + w) * channels;
      run_vectorized<LargestOfPlaces<T, Place>>(
          x + image * in * channels, static_cast<const int64_t*>(places.seen.data()),
          static_cast<int64_t>(places.seen.size()), first, y + to, indices + to, channels);
    }
  });
}

template <class T>
struct MeanOfPlaces {
  template <class Fma>
  CRESSET_INLINE void run(const T* image, const int64_t* places, int64_t count, int64_t divisor, T* to,
                          int64_t channels) {
    using M = opmath<T>;
    for (int64_t c = 0; c < channels; c += kChannelsTogether) {
      const int64_t n = channels - c < kChannelsTogether ? channels - c : kChannelsTogether;
      M sums[kChannelsTogether];
      for (int64_t i = 0; i < n; ++i) sums[i] = M(0);
      for (int64_t k = 0; k < count; ++k) {
        const T* from = image + places[k] * channels + c;
        for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<M>(from[i]);
      }
      for (int64_t i = 0; i < n; ++i) to[c + i] = T(divided(sums[i], divisor));
    }
  }
};

template <class T>
void mean_of_channels(const Axes& a, const Divisor& by, int64_t images, int64_t channels, const T* x, T* y) {
  const int64_t in = a[0].in * a[1].in * a[2].in, rows = a[0].out * a[1].out, width = a[2].out;
  for_image_rows(images, rows, width * channels * 4, [&](int64_t image, int64_t row) {
    Places places(a);
    const int64_t d = row / a[1].out, h = row % a[1].out;
    for (int64_t w = 0; w < width; ++w) {
      places.look(d, h, w);
      run_vectorized<MeanOfPlaces<T>>(x + image * in * channels, static_cast<const int64_t*>(places.seen.data()),
                                      static_cast<int64_t>(places.seen.size()), divisor_of(a, by, d, h, w),
                                      y + ((image * rows + row) * width + w) * channels, channels);
    }
  });
}

template <class T>
struct ShareOut {
  template <class Fma>
  CRESSET_INLINE void run(const T* from, int64_t divisor, opmath<T>* image, const int64_t* places, int64_t count,
                          int64_t channels) {
    using M = opmath<T>;
    for (int64_t c = 0; c < channels; c += kChannelsTogether) {
      const int64_t n = channels - c < kChannelsTogether ? channels - c : kChannelsTogether;
      M shares[kChannelsTogether];
      for (int64_t i = 0; i < n; ++i) shares[i] = divided(static_cast<M>(from[c + i]), divisor);
      for (int64_t k = 0; k < count; ++k) {
        M* to = image + places[k] * channels + c;
        for (int64_t i = 0; i < n; ++i) to[i] += shares[i];
      }
    }
  }
};

// Calls f(image, sums) with sums that start at zero and then go to `to`; for types that are their own sums these are
// `to` itself.
template <class T, class F>
void sum_images(int64_t images, int64_t size, T* to, F&& f) {
  using M = opmath<T>;
  parallel_for(images, std::max<int64_t>(kParallelGrain / 4 / std::max<int64_t>(size, 1), 1),
               [&](int64_t begin, int64_t end) {
                 std::vector<M> sums;
                 for (int64_t image = begin; image < end; ++image) {
                   T* place = to + image * size;
                   if constexpr (std::is_same_v<M, T>) {
                     std::fill_n(place, size, T(0));
                     f(image, place);
                   } else {
                     sums.assign(static_cast<size_t>(size), M(0));
                     f(image, sums.data());
                     for (int64_t i = 0; i < size; ++i) place[i] = T(sums[static_cast<size_t>(i)]);
                   }
                 }
               });
}

template <class T>
void mean_gradient_of_channels(const Axes& a, const Divisor& by, int64_t images, int64_t channels, const T* dy, T* dx) {
  const int64_t in = a[0].in * a[1].in * a[2].in, out = a[0].out * a[1].out * a[2].out;
  sum_images(images, in * channels, dx, [&](int64_t image, opmath<T>* sums) {
    Places places(a);
    for (int64_t o = 0; o < out; ++o) {
      const int64_t d = o / a[2].out / a[1].out, h = o / a[2].out % a[1].out, w = o % a[2].out;
      places.look(d, h, w);
      run_vectorized<ShareOut<T>>(dy + (image * out + o) * channels, divisor_of(a, by, d, h, w), sums,
                                  static_cast<const int64_t*>(places.seen.data()),
                                  static_cast<int64_t>(places.seen.size()), channels);
    }
  });
}

}  // namespace cresset
