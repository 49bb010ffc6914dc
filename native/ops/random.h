// What operators that draw random numbers share.
#pragma once
#include "base/generator.h"
#include "dispatch/call.h"

namespace cresset {

// The generator that is argument `at`, or the default one.
Twister& generator(const Call& c, int at);
// `t` broadcast to the shape of `like` and converted to its dtype, contiguous.
Tensor spread(const Tensor& t, const Tensor& like);
// The real and imaginary parts of a complex tensor, as one more dimension.
Tensor parts(const Tensor& t);

}  // namespace cresset
