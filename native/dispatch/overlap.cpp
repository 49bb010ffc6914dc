#include "dispatch/overlap.h"

#include "base/error.h"

namespace cresset {
namespace {

struct Bytes {
  uintptr_t begin, end;
};

// From the first byte of the first element to the last byte of the last one.
Bytes extent_of(const Tensor& t) {
  const int64_t width = size_of(t.dtype());
  const auto begin = reinterpret_cast<uintptr_t>(t.storage()->data) + static_cast<uintptr_t>(t.offset() * width);
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return {begin, begin + static_cast<uintptr_t>((last + 1) * width)};
}

// Whether both visit their elements in the same steps; dimensions of size one are none.
bool walk_alike(const Tensor& a, const Tensor& b) {
  int64_t i = 0, k = 0;
  while (true) {
    while (i < a.dim() && a.size(i) == 1) ++i;
    while (k < b.dim() && b.size(k) == 1) ++k;
    if (i == a.dim() || k == b.dim()) return i == a.dim() && k == b.dim();
    if (a.size(i) != b.size(k) || a.stride(i) != b.stride(k)) return false;
    ++i, ++k;
  }
}

}  // namespace

bool shares_memory(const Tensor& a, const Tensor& b) {
  if (a.storage().get() == b.storage().get()) return true;
  return !a.is_meta() && !b.is_meta() && a.storage()->meets(*b.storage());
}

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  if (a.get() == b.get()) return Overlap::whole;
  if (a.numel() == 0 || b.numel() == 0 || !shares_memory(a, b)) return Overlap::none;
  const Bytes x = extent_of(a), y = extent_of(b);
  if (x.begin >= y.end || y.begin >= x.end) return Overlap::none;
  if (x.begin == y.begin && x.end == y.end && walk_alike(a, b)) return Overlap::whole;
  const bool dense = is_dense(a.sizes(), a.strides()) && is_dense(b.sizes(), b.strides());
  return dense ? Overlap::partial : Overlap::unknown;
}

void check_aliasing(const char* who, const Tensor& written, const Tensor& read, Aliasing allowed) {
  if (allowed == Aliasing::any || allowed == Aliasing::unread) return;
  const Overlap overlap = overlap_of(written, read);
  const bool refused = overlap == Overlap::partial || (overlap == Overlap::whole && allowed == Aliasing::apart);
  check(!refused, who,
        ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation.");
}

void check_no_internal_overlap(const char* who, const Tensor& written) {
  if (written.is_contiguous()) return;
  for (int64_t d = 0; d < written.dim(); ++d)
    check(written.size(d) <= 1 || written.stride(d) != 0, who,
          ": unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
}

}  // namespace cresset
