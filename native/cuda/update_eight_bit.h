#pragma once
#include "ops/update_eight_bit.h"

namespace cresset::cuda {

void adam_in_8_bits(const EightBitAdam& step);

}  // namespace cresset::cuda
