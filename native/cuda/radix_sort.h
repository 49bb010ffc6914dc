// A stable sort of keys on the device, with their positions.
#pragma once
#include <bit>

#include "cuda/launch.h"

namespace cresset::cuda {

struct SortedKeys {
  Tensor keys, positions;  // positions: int32
};

// Sorts n < 2^31 keys by their low `bits`. `keys` is a dense tensor of int32 or int64, read as unsigned; it is not
// kept. With row_length each row of so many keys is sorted by itself; positions count from the first key of all.
// `differing`: two words (int32) of the bits in which the keys are not all alike, where they are known on the device.
SortedKeys sort_keys(const Place& place, const Tensor& keys, int64_t n, int bits, int64_t row_length = 0,
                     const Tensor& differing = {});

inline int bits_for(int64_t largest) {
  return largest <= 0 ? 0 : 64 - std::countl_zero(static_cast<uint64_t>(largest));
}

}  // namespace cresset::cuda
