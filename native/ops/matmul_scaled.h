// Products of 8-bit floats with scales.
#pragma once
#include "dispatch/call.h"

namespace cresset {

// One scale for each matrix, or one for each row of the first and each column of the second.
bool has_single_scales(const Call& c);

// _scaled_mm by way of float32, on any device.
void compose_scaled_product(Call& c);

}  // namespace cresset
