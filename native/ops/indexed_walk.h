// One walk for all that moves elements through indices: reading (gather, index_select, x[i]) and writing (scatter,
// index_add, x[i] = v).
//
// At each position p of `sizes` the element  plain[p · plain_strides]  meets the element
// indexed[p · indexed_strides + the offset that index[p · index_strides] stands for].
#pragma once
#include "dispatch/call.h"

namespace cresset {

// What an index v stands for: the offset v * scale, if 0 <= v < bound. Where `wrap` is bound instead of 0, a negative v
// counts from the end.
struct IndexRule {
  int64_t scale = 1, bound = 0, wrap = 0;
  const char* who = "";  // the rest is for the message
  int64_t dim = 0;
  ErrorKind error = ErrorKind::index;
  const char* phrase = "";

  int64_t place(int64_t v) const { return v + (v >> 63 & wrap); }
  bool has(int64_t place) const { return static_cast<uint64_t>(place) < static_cast<uint64_t>(bound); }
  int64_t offset(int64_t v) const {
    if (!has(place(v))) [[unlikely]]
      out_of_bounds(v);
    return place(v) * scale;
  }
  [[noreturn, gnu::cold, gnu::noinline]] void out_of_bounds(int64_t v) const {
    fail(error, who, ": ", phrase, "index ", v, " is out of bounds for dimension ", dim, " with size ", bound);
  }
};

struct IndexedWalk : IndexRule {
  Dims sizes;
  int64_t along = 0;  // the indexed dimension: only along it can an element of `indexed` be met more than once
  char* plain = nullptr;
  char* indexed = nullptr;
  const int64_t* index = nullptr;
  Dims plain_strides, indexed_strides, index_strides;  // in elements; indexed_strides[along] is 0
};

inline bool is_index(Dtype d) { return d == Dtype::i64 || d == Dtype::i32; }
// A contiguous tensor as one dimension.
inline Tensor flattened(const Tensor& t) { return view_of(t, {{t.numel()}}, {{1}}, t.offset()); }

// A stretch of the walk: n positions, in steps.
struct IndexedRow {
  int64_t plain, indexed, index;  // offsets of the first position
  int64_t n, plain_step, indexed_step, index_step;
};
using RowLoop = void (*)(const IndexedWalk&, const IndexedRow&);
// The commonest row, of gather and scatter along the last dimension: f(i, place) for each index, without the arithmetic
// of the general one and with the rule in registers (a third of the time); false: it is another row, and nothing was
// done.
template <class F>
bool walk_plain_row(const IndexedWalk& w, const IndexedRow& r, F&& f) {
  if (r.plain_step != 1 || r.index_step != 1 || r.indexed_step != 0 || w.scale != 1 || w.wrap != 0) return false;
  const int64_t* index = w.index + r.index;
  const uint64_t bound = static_cast<uint64_t>(w.bound);
  for (int64_t i = 0, n = r.n; i < n; ++i) {
    const int64_t place = index[i];
    if (static_cast<uint64_t>(place) >= bound) [[unlikely]]
      w.out_of_bounds(place);
    f(i, place);
  }
  return true;
}

// Readers may be split anywhere among threads. Writers never along the indexed dimension, so that the order of the
// writes to an element, and with it the result, does not depend on the number of threads.
void walk_reading(const IndexedWalk& walk, RowLoop loop);
void walk_writing(const IndexedWalk& walk, RowLoop loop);

// plain = indexed, or indexed = plain, for elements of `width` bytes.
void read_indexed(const IndexedWalk& walk, int64_t width);
void write_indexed(const IndexedWalk& walk, int64_t width);

// The walk of gather, scatter and variants: `index`, of the walk's sizes, names places along dimension `dim` of
// `indexed`.
IndexedWalk walk_along(const char* who, const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& plain);
// The walk of index_select, index_add and variants: the vector `index` names slices along `dim` of `indexed`; `plain`
// has as many.
IndexedWalk walk_slices(const char* who, const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& plain);

// What x[i, :, j] means: the indices together are one list of places, which stands at `position` in the result.
struct AdvancedIndex {
  Dims result;           // the shape of x[...]
  int64_t position = 0;  // the number of dimensions before the indices' own
  Tensor index;          // contiguous int64
  IndexRule rule;
  Dims sizes, strides;  // of the dimensions that are not indexed, in the order of the result
};
AdvancedIndex resolve_index(const char* who, const Tensor& input, std::span<const Tensor> indices);
// Fails where a mask among the indices has other sizes than what it covers.
void check_masks(const char* who, const Tensor& input, std::span<const Tensor> indices);
// Where `mask` holds, as offsets into the memory of a tensor with these strides.
Tensor places_of_mask(const Tensor& mask, DimsView strides);

// The two steps of resolve_index that look at the elements of indices are a Backend's; these are the CPU's.
struct IndexItem {
  Tensor index;  // int64
  IndexRule rule;
};
Tensor places_of_mask_on_cpu(const Tensor& mask, DimsView strides);
Tensor join_indices_on_cpu(const char* who, std::span<const IndexItem> items, DimsView shape);

// The walk over the memory of `input`; `plain` is contiguous, of the result's shape, or a single element for all.
IndexedWalk walk_through(const AdvancedIndex& a, const Tensor& input, const Tensor& plain);

}  // namespace cresset
