// Where a mask holds: the places of its set elements, and for each element how many are set before it.
#pragma once
#include "cuda/launch.h"

namespace cresset::cuda {

// A mask whose set elements are counted, tile by tile. The flags are bytes.
struct CountedFlags {
  Tensor flags, counts;  // counts: the set flags before each tile, then all of them
  int64_t n;
  explicit CountedFlags(const Tensor& mask);
  int64_t total() const;  // waits for the device
  // The offsets, in order, of the set elements in a tensor of the mask's shape with these strides.
  Tensor places(DimsView sizes, DimsView strides) const;
  // The elements, in order, of a dense tensor of the mask's shape that the mask holds.
  Tensor elements(const Tensor& dense) const;
  // The other way: the first elements of a dense `source` go where the mask holds. `operation` is named where they are
  // too few.
  void put(const Tensor& source, const Tensor& dense, int operation) const;
  // For each element the number of set ones before it, or with `including` up to it; int64, dense.
  Tensor ranks(bool including) const;
};

// The elements of a dense tensor of one dimension that differ from the one before them.
Tensor starts_of_runs(const Tensor& x);

// Where the `places` of a dense tensor of this shape lie: (places, rank), or by_dim (rank, places).
Tensor coordinates(const Tensor& places, DimsView sizes, bool by_dim);

}  // namespace cresset::cuda
