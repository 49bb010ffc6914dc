// Functions that share work with their derivative.
#pragma once

namespace cresset {

// Generated, in the order of kPointwiseDefinitions: whether the derivative is a factor of the gradient, reads the one
// input alone, and calls a function (an exponential, the error function) on what the operator calls it on.
extern const bool kSharesFunctions[];

}  // namespace cresset
