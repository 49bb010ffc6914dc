// The mean of a row, and the squares about it, of which layer and group normalization are made.
#pragma once
#include <limits>

#include "ops/fold.h"

namespace cresset::normalization {

template <class T>
struct RowMoments {
  T mean;
  double squares;
};

// Where the elements lie as close together as the sum was rounded, the mean is taken once more, of their distances: so
// that of equal numbers is that number, and all distances are zero.
template <class T>
CRESSET_INLINE RowMoments<T> moments_of_row(const T* x, int64_t n, double share) {
  constexpr double kClose = 256 * static_cast<double>(std::numeric_limits<T>::epsilon());
  const auto squares_about = [=](T mean) CRESSET_TERM {
    return sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return (x[i] - mean) * (x[i] - mean); });
  };
  const T mean = static_cast<T>(sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return x[i]; }) * share);
  const double squares = squares_about(mean), close = kClose * static_cast<double>(mean);
  if (mean == 0 || !(squares * share <= close * close)) [[likely]]
    return {mean, squares};
  const double apart = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return x[i] - mean; }) * share;
  const T nearer = static_cast<T>(static_cast<double>(mean) + apart);
  return {nearer, squares_about(nearer)};
}

}  // namespace cresset::normalization
