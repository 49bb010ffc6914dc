// One kernel of the device's own.
#include "fake_device.h"

namespace cresset::fake {
namespace {

// flip of a list.
void run_flip(Call& c) {
  const Tensor from = seen(c.tensor(0)), to = seen(c.out());
  check(from.dim() == 1 && from.dtype() == Dtype::f32, "flip: this device has it for lists of float32");
  for (int64_t i = 0; i < from.numel(); ++i)
    to.data<float>()[i] = from.data<float>()[(from.numel() - 1 - i) * from.stride(0)];
}

}  // namespace

REGISTER_KERNELS(rearrange) { r.set_kernel("flip", kDevice.type, run_flip); }

}  // namespace cresset::fake
