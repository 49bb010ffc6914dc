// What writes through indices have in common on every device: where they may write, and how elements are combined.
#pragma once
#include <string>
#include <string_view>

#include "dispatch/call.h"

namespace cresset {

// Changes part of `target`. `name_` does so in place, `name` in a copy.
using Write = void (*)(const Call&, const Tensor& target);

bool is_expanded(const Tensor& t);  // some element is seen more than once
// An element that is seen more than once can be written more than once. That is an error, but for the writers that put
// one value wherever they write, or were once allowed to: PyTorch warns there.
void check_target(const std::string& who, const Tensor& target);

template <Write write>
void run_in_copy(Call& c) {
  copy_into(c.out(), c.tensor(0));
  write(c, c.out());
}
template <Write write>
void run_in_place(Call& c) {
  check_target(c.op.name(), c.tensor(0));
  write(c, c.tensor(0));
}

enum class Combine : int { add, multiply, maximum, minimum, assign };  // the numbers in indexed_walk.cuh
Combine combine_of(std::string_view reduce);                           // of sum, mean, prod, amax or amin
Scalar identity(Combine how, Dtype dtype);                             // what leaves the other element as it is
std::string_view reduce_of_scatter(const Call& c);                     // the word of scatter's argument `reduce`

// What numbers are combined in: half precision in single.
inline Dtype combined_in(Dtype d) {
  return d == Dtype::f16 || d == Dtype::bf16 ? Dtype::f32 : d == Dtype::c32 ? Dtype::c64 : d;
}

}  // namespace cresset
