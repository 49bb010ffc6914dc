// Walks through indices (ops/indexed_walk.h) on the device: reading, writing and combining.
#pragma once
#include "cuda/launch.h"
#include "ops/indexed_walk.h"
#include "ops/scatter.h"

namespace cresset::cuda {

// What the device has to know besides the walk. The walk's index may be int32 as well as int64: nothing is converted.
struct IndexedOn {
  Place place;
  Device device;
  Dtype index;
  int operation;  // of `operation_number`, for the message about a bad index
};

void read_indexed(const IndexedWalk& w, int64_t width, const IndexedOn& on);
void write_indexed(const IndexedWalk& w, int64_t width, const IndexedOn& on);

// indexed = combined(indexed, plain), halves in float and rounded once. The target and the source are `dtype`.
void combine_indexed(const IndexedWalk& w, Dtype dtype, Combine how, const IndexedOn& on);

// rows[place] = the sum of the slices of `source` that `index` (a list) sends there, for every place that occurs; the
// others are left alone. Slices of `left_out` are passed over; with `by_count` each counts by one over the number of
// its kind.
void sum_slices(const IndexedWalk& w, Dtype dtype, int64_t left_out, bool by_count, const IndexedOn& on);

// The two steps of resolve_index that look at the elements of indices (indexing.cpp).
Tensor offsets_of_lists(const char* who, std::span<const IndexItem> items, DimsView shape);
Tensor places_of_device_mask(const Tensor& mask, DimsView strides);

}  // namespace cresset::cuda
