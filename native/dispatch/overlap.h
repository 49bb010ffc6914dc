// Who shares memory with whom: what a call may write without changing what it still has to read.
#pragma once
#include "tensor/tensor.h"

namespace cresset {

enum class Overlap : uint8_t {
  none,
  whole,    // each element of one is the element of the other at the same place
  partial,  // for certain, in another order or only in part
  unknown,  // there are gaps: they may mesh or meet
};
// How the elements of two tensors lie to each other in memory.
Overlap overlap_of(const Tensor& a, const Tensor& b);
// Whether the memory that two tensors are views of is the same, or meets: then one of them may be changed by a write to
// the other.
bool shares_memory(const Tensor& a, const Tensor& b);

// What an operator says about the memory of what it writes and what it reads.
enum class Aliasing : uint8_t {
  any,     // all is computed as if they lay apart
  whole,   // an input may be what is written; one that overlaps it otherwise is an error
  apart,   // an input that overlaps what is written is an error
  unread,  // no element of an input is read: only its sizes are asked for, or its memory is shared
};
void check_aliasing(const char* who, const Tensor& written, const Tensor& read, Aliasing allowed);
// An error when an element of `written` is seen more than once.
void check_no_internal_overlap(const char* who, const Tensor& written);

}  // namespace cresset
