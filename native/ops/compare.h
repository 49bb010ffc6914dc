// What searches in a sorted sequence share on every device.
#pragma once
#include "dispatch/call.h"

namespace cresset {

bool searches_right(const Call& c);  // what searchsorted's arguments `right` and `side` say
// The common dtype of the sequence and the elements. Bool and complex have no place in a sequence.
Dtype search_dtype(const char* who, const Tensor& sequence, const Tensor& input);

}  // namespace cresset
