// Patches of images, as columns, put back.
#include "ops/columns.h"

#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

// A thread gathers one element of the image from the patches that have it, in the order of the places in a patch.
const KernelText kText{
    R"cuda(// with T=dtype_f32 DENSE=1, T=dtype_bf16 DENSE=0, T=dtype_i64 DENSE=0, T=dtype_c64 DENSE=1, T=dtype_b8 DENSE=0
#include "divider.cuh"

// As below.
struct Axis {
  int32_t size, kernel, dilation, padding, stride, places;
  // The place at which element k of a patch is element `at` of the image; -1: there is none.
  CRESSET_INLINE int32_t place(int32_t at, int32_t k) const {
    const int32_t start = at + padding - k * dilation;
#if DENSE
    return start >= 0 && start < places ? start : -1;
#else
    return start >= 0 && start % stride == 0 && start / stride < places ? start / stride : -1;
#endif
  }
};
struct Image {
  Axis y, x;
  Divider width, plane;
};

extern "C" __global__ void __launch_bounds__(256) image_of_columns(const T* columns, T* out, int64_t n, const Image m) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const uint32_t plane = divided(static_cast<uint32_t>(i), m.plane),
                 at = static_cast<uint32_t>(i) - plane * static_cast<uint32_t>(m.plane.divisor),
                 row = divided(at, m.width);
  const int32_t y = static_cast<int32_t>(row), x = static_cast<int32_t>(at - row * static_cast<uint32_t>(m.width.divisor));
  const int64_t column = static_cast<int64_t>(m.y.places) * m.x.places;
  const T* from = columns + static_cast<int64_t>(plane) * m.y.kernel * m.x.kernel * column;
  opmath<T> sum{};
#pragma unroll 1
  for (int32_t ky = 0; ky < m.y.kernel; ++ky, from += m.x.kernel * column) {
    const int32_t py = m.y.place(y, ky);
    if (py < 0) continue;
    const T* line = from + static_cast<int64_t>(py) * m.x.places;
#pragma unroll 4
    for (int32_t kx = 0; kx < m.x.kernel; ++kx) {
      const int32_t px = m.x.place(x, kx);
      if (px >= 0) sum = static_cast<opmath<T>>(sum + convert<opmath<T>>(line[kx * column + px]));
    }
  }
  out[i] = convert<T>(sum);
}
)cuda"};
const KernelFamily kImage(kText, "image_of_columns", {"T", "DENSE"});

struct Axis {
  int32_t size, kernel, dilation, padding, stride, places;
  explicit Axis(const PatchAxis& a)
      : size(static_cast<int32_t>(a.size)),
        kernel(static_cast<int32_t>(a.kernel)),
        dilation(static_cast<int32_t>(a.dilation)),
        padding(static_cast<int32_t>(a.padding)),
        stride(static_cast<int32_t>(a.stride)),
        places(static_cast<int32_t>(a.places)) {}
};
struct Image {
  Axis y, x;
  Divider width, plane;
};

void run_image(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const PatchAxis y(c, 0), x(c, 1);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 256;
  if (out.numel() >= kMost || (y.size + 2 * y.padding) * (x.size + 2 * x.padding) >= kMost)
    return execute_on_host(c, out.device());
  const Tensor columns = contiguous_on_device(c.tensor(0));
  const Image image{Axis(y), Axis(x), Divider(x.size), Divider(y.size * x.size)};
  kImage.launch(Place(out.device()), {out.dtype(), y.stride == 1 && x.stride == 1}, divide_up(out.numel(), 256), 256, 0,
                columns.bytes(), out.bytes(), out.numel(), image);
}

}  // namespace

REGISTER_KERNELS(columns) { r.set_kernel("_from_columns", DeviceType::cuda, run_image); }

}  // namespace cresset::cuda
