// The cross product of vectors of three elements.
#include <limits>

#include "cuda/backend.h"
#include "cuda/launch.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

// VECTOR: vectors that a thread has where their elements lie side by side; 0: `inner` elements lie between these.
const KernelText kText{
    R"cuda(// with T=dtype_f32 VECTOR=1, T=dtype_bf16 VECTOR=2, T=dtype_i32 VECTOR=0, T=dtype_c64 VECTOR=1
#include "math.cuh"

// a b - c d, as on the CPU: whole numbers wrap around; in half precision each product is rounded.
template <class E>
CRESSET_INLINE E difference_of_products(E a, E b, E c, E d) {
  if constexpr (is_integer<E>) {
    return static_cast<E>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) -
                          static_cast<uint64_t>(c) * static_cast<uint64_t>(d));
  } else if constexpr (is_half<E>) {
    const E first(convert<float>(a) * convert<float>(b)), second(convert<float>(c) * convert<float>(d));
    return E(convert<float>(first) - convert<float>(second));
  } else {
    return a * b - c * d;
  }
}
CRESSET_INLINE void cross_of(const T* a, const T* b, T* out, int64_t step) {
  const T ax = a[0], ay = a[step], az = a[2 * step], bx = b[0], by = b[step], bz = b[2 * step];
  out[0] = difference_of_products(ay, bz, az, by);
  out[step] = difference_of_products(az, bx, ax, bz);
  out[2 * step] = difference_of_products(ax, by, ay, bx);
}

extern "C" __global__ void __launch_bounds__(256) cross(const T* a, const T* b, T* out, int64_t count, int64_t inner) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
#if VECTOR
  const int64_t first = i * VECTOR;
  if (first + VECTOR <= count) {
    Vector<T, VECTOR> x[3], y[3], z[3];  // each three vectors' elements, as they lie
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      x[k] = load_vector<VECTOR>(a + 3 * first + k * VECTOR);
      y[k] = load_vector<VECTOR>(b + 3 * first + k * VECTOR);
    }
#pragma unroll
    for (int k = 0; k < 3 * VECTOR; ++k) {
      const int whole = k / 3 * 3, second = whole + (k + 1) % 3, third = whole + (k + 2) % 3;
      z[k / VECTOR].values[k % VECTOR] = difference_of_products(
          x[second / VECTOR].values[second % VECTOR], y[third / VECTOR].values[third % VECTOR],
          x[third / VECTOR].values[third % VECTOR], y[second / VECTOR].values[second % VECTOR]);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) store_vector(out + 3 * first + k * VECTOR, z[k]);
    return;
  }
  for (int64_t k = first; k < count; ++k) cross_of(a + 3 * k, b + 3 * k, out + 3 * k, 1);
#else
  if (i >= count) return;
  int64_t outer;
  if (count < 0x7fffffff)
    outer = static_cast<uint32_t>(i) / static_cast<uint32_t>(inner);
  else
    outer = i / inner;
  const int64_t at = outer * 2 * inner + i;
  cross_of(a + at, b + at, out + at, inner);
#endif
}
)cuda"};
const KernelFamily kCross(kText, "cross", {"T", "VECTOR"});

void run_cross(Call& c) {
  const Tensor& out = c.out();
  check_implemented(out.dtype() != Dtype::b8, "\"cross\" not implemented for 'Bool'");
  if (out.numel() == 0) return;
  const auto whole = [&](const Tensor& t) {
    return contiguous_on_device(view_of(t, out.sizes(), expanded_strides("linalg.cross", t, out.sizes()), t.offset()));
  };
  const Tensor a = whole(c.tensor(0)), b = whole(c.tensor(1));
  const int64_t count = out.numel() / 3, inner = along(out, wrap_dim(c.integer(2), out.dim())).inner,
                width = size_of(out.dtype());
  // 12 bytes a thread: three loads of four that are a warp's neighbors' are faster than wide ones with gaps.
  int64_t vector = inner == 1 ? std::max<int64_t>(4 / width, 1) : 0;
  const auto places = reinterpret_cast<uintptr_t>(a.bytes()) | reinterpret_cast<uintptr_t>(b.bytes()) |
                      reinterpret_cast<uintptr_t>(out.bytes());
  if (vector && places % static_cast<uintptr_t>(vector * width)) vector = 1;
  kCross.launch(Place(out.device()), {out.dtype(), static_cast<int>(vector)},
                divide_up(count, 256 * std::max<int64_t>(vector, 1)), 256, 0, a.bytes(), b.bytes(), out.bytes(), count,
                inner);
}

}  // namespace

REGISTER_KERNELS(cross) { r.set_kernel("linalg_cross", DeviceType::cuda, run_cross); }

}  // namespace cresset::cuda
