// What is known of a Fourier transform before the numbers come: factors of its length and roots of unity. Plans are
// made once a length and kept.
#pragma once
#include <memory>
#include <vector>

#include "ops/fourier_kernels.h"

namespace cresset {

// The kernels of this machine.
template <class R>
const FourierKernels<R>& fourier_kernels();

// exp(-2 pi i k / n), rounded once, as pairs of reals.
template <class R>
class Roots {
 public:
  explicit Roots(int64_t n);
  void get(int64_t k, R* to) const;

 private:
  using Wide = std::conditional_t<std::is_same_v<R, float>, double, long double>;
  struct Pair {
    Wide re, im;
  };
  int64_t n_, fine_bits_ = 0;
  std::vector<Pair> fine_, coarse_;  // w^k is the product of one of each
};

// Whether the length has only factors that a pass can have.
bool has_passes(int64_t n);

// A number that is not such a product is transformed by Bluestein's chirp: x_k w^(k^2/2) convolved with the chirp's
// conjugate, by transforms of a friendly length.
template <class R>
struct Chirp {
  explicit Chirp(int64_t n);
  int64_t padded;
  std::vector<R> chirp;   // [n]
  std::vector<R> filter;  // [padded], not yet transformed, divided by padded
};

// The transform of a block of lines: Note [Blocks of lines].
template <class R>
class BlockPlan {
 public:
  explicit BlockPlan(int64_t n);
  // In place with the help of y; both have room for `room` numbers of each line. Returns where the result is.
  R* run(R* x, R* y, bool swapped) const;
  int64_t room() const { return room_; }
  int64_t bytes() const { return static_cast<int64_t>((numbers_.size() + filter_.size()) * sizeof(R)); }

 private:
  int64_t n_, room_;
  std::vector<FourierPass<R>> passes_;
  std::vector<R> numbers_, filter_;
  std::unique_ptr<BlockPlan> padded_;
};

// The transform of a single line.
//
// Note [Long lines]
// A line of n = rows * columns numbers is a matrix. Its columns are transformed, in blocks of neighboring ones; the
// numbers are multiplied by the roots of unity for (row, column) and transposed; and the columns of that are
// transformed: they are the result, in order. Each block stays in the cache, and blocks are shared out among the
// threads.
template <class R>
class LinePlan {
 public:
  explicit LinePlan(int64_t n);
  // From 2n reals to 2n reals, perhaps the same, with the help of `scratch` reals.
  void run(const R* in, R* out, R scale, bool backward, R* scratch) const;
  int64_t scratch() const { return scratch_; }
  int64_t bytes() const { return static_cast<int64_t>((turns_.size() + chirp_.size() + filter_.size()) * sizeof(R)); }

 private:
  void run_matrix(const R* in, R* out, R scale, bool backward, R* scratch) const;
  void run_chirp(const R* in, R* out, R scale, bool backward, R* scratch) const;

  int64_t n_, rows_ = 1, columns_ = 1, scratch_ = 0;
  std::shared_ptr<const BlockPlan<R>> first_, second_;
  std::vector<R> turns_;  // [blocks of columns][rows][2][lanes]
  std::shared_ptr<const LinePlan> padded_;
  std::vector<R> chirp_, filter_;
};

template <class R>
struct RealRoots {
  explicit RealRoots(int64_t n);
  std::vector<R> numbers;  // [n / 4 + 1]
  int64_t bytes() const { return static_cast<int64_t>(numbers.size() * sizeof(R)); }
};

// The plan for a length: BlockPlan, LinePlan or RealRoots.
template <class Plan>
std::shared_ptr<const Plan> plan_for(int64_t n);

// Memory of a thread's own while it works.
template <class R>
class FourierScratch {
 public:
  explicit FourierScratch(int64_t count);
  ~FourierScratch();
  FourierScratch(const FourierScratch&) = delete;
  FourierScratch& operator=(const FourierScratch&) = delete;
  R* data() const { return data_; }

 private:
  int64_t count_;
  R* data_;
};

}  // namespace cresset
