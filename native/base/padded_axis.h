// One dimension that gets elements at its ends: which old element a new one is, and which new ones an old one became.
//
// CUDA kernels include this file too: cresset/cuda/kernels/padding.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include <cstdint>
#ifndef CRESSET_DEVICE
#define CRESSET_DEVICE
#endif
#endif

namespace cresset {

enum PadMode : int { kPadConstant, kPadReflect, kPadReplicate, kPadCircular };

template <class Int>
struct PaddedAxis {
  Int size = 1, padded = 1, before = 0;
  Int first = 0, kept = 1;             // what is joined to a circle: negative amounts have taken the rest away
  Int alone_begin = 0, alone_end = 1;  // old elements that became one new one, at their place + before
};

// The old element that the new one `at` is; -1 for a constant.
template <class Int>
CRESSET_DEVICE inline Int old_place(const PaddedAxis<Int>& a, int mode, Int at) {
  const Int last = a.size - 1;
  Int place = at - a.before;
  if (mode == kPadConstant) return place < 0 || place > last ? Int(-1) : place;
  if (mode == kPadReplicate) return place < 0 ? Int(0) : place > last ? last : place;
  if (mode == kPadReflect) {
    place = last - (place < 0 ? -place : place);
    return last - (place < 0 ? -place : place);
  }
  place = at - (a.before > 0 ? a.before : Int(0));
  if (place < 0 || place >= a.kept) place %= a.kept;
  return a.first + (place < 0 ? place + a.kept : place);
}

// The first new element, from `from` on, that the old one `at` became; `padded` if there is none.
template <class Int>
CRESSET_DEVICE inline Int new_place(const PaddedAxis<Int>& a, int mode, Int at, Int from) {
  const Int last = a.size - 1;
  if (mode == kPadReplicate) {
    const Int low = at == 0 ? Int(0) : at + a.before, high = at == last ? a.padded - 1 : at + a.before;
    const Int place = low > from ? low : from;
    return place <= high && place < a.padded ? place : a.padded;
  }
  if (mode == kPadReflect) {
    const Int places[3] = {a.before - at, a.before + at, a.before + 2 * last - at};
    for (int k = 0; k < 3; ++k)
      if (places[k] >= from) return places[k] < a.padded ? places[k] : a.padded;
    return a.padded;
  }
  if (at < a.first || at >= a.first + a.kept) return a.padded;
  Int place = (at - a.first + (a.before > 0 ? a.before : Int(0))) % a.kept;
  if (place < from) place += (from - place + a.kept - 1) / a.kept * a.kept;
  return place < a.padded ? place : a.padded;
}

}  // namespace cresset
