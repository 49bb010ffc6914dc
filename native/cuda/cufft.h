// Fourier transforms by NVIDIA's cuFFT, opened when the first one is asked for.
//
// A transform is planned once: plans are kept by what they depend on, for each device those that were used last.
#pragma once
#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace cresset::cuda {

const std::string& cufft_problem();  // why it is not there; empty when it is

// A batch of transforms along one to three dimensions, the last of which varies fastest. Numbers only: it is the key of
// a cache.
struct FourierSizes {
  enum Kind : int64_t {
    complex,
    from_real,
    to_real
  };  // the half of a spectrum that determines the rest comes from real numbers, or gives them
  Kind kind = complex;
  int64_t dtype = 0;                           // of the complex numbers
  int64_t rank = 0, sizes[3] = {}, batch = 0;  // the sizes are those of the signal
  int64_t step = 0,
          batch_step = 0;  // between neighbors of one line, and between lines, of rank 1; both 0: everything is dense
  bool operator==(const FourierSizes&) const = default;
};

// `to` may be `from` for complex ones. to_real destroys what it reads. Nothing is scaled.
void transform(int device, const FourierSizes& sizes, void* from, void* to, bool forward);

// cresset.backends.cuda.cufft_plan_cache.
int64_t count_fourier_plans(int device);
int64_t most_fourier_plans(int device);
void set_most_fourier_plans(int device, int64_t most);
void forget_fourier_plans(int device);

}  // namespace cresset::cuda
