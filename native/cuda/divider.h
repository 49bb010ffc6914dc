// Division on the device by a number that is known before the launch. The same struct as in
// cresset/cuda/kernels/divider.cuh.
#pragma once
#include <bit>
#include <cstdint>

namespace cresset::cuda {

// quotient = (umulhi(n, magic) + n) >> shift for n below 2^31.
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0, unused = 0;
  Divider() = default;
  explicit Divider(int64_t size) : divisor(static_cast<uint32_t>(size)) {
    shift = divisor <= 1 ? 0 : 32 - static_cast<uint32_t>(std::countl_zero(divisor - 1));
    magic =
        static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / (divisor ? divisor : 1) + 1);
  }
};

}  // namespace cresset::cuda
