// Overloads with an older order of arguments, factors as numbers in front of what they multiply: add(input, alpha,
// other), addcmul(input, value, tensor1, tensor2), addmm(beta, input, alpha, mat1, mat2). Published optimizers still
// call x.add_(1 - beta, grad). A call warns and becomes one of today's form.
#pragma once
#include "dispatch/registration.h"

namespace cresset {

// add_older_overload(r, "add", "older", "Operand input, Scalar alpha, Operand other"): the parameters are found by
// their names.
void add_older_overload(Registry& r, const std::string& name, const std::string& overload,
                        const std::string& parameters, uint32_t flags = 0);

}  // namespace cresset
