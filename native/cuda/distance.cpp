// Distances of all points of one set to all of another, and their gradient.
#include <cmath>

#include "cuda/backend.h"
#include "cuda/launch.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kTile = 16;  // as below

// NORM: 0 counts differences, 1 sums them, 2 is Euclid's, 3 takes the largest, 4 is any other power.
const KernelText kText{R"cuda(// with T=dtype_f32 NORM=0, T=dtype_f32 NORM=2, T=dtype_f64 NORM=3, T=dtype_f64 NORM=4
#include "math.cuh"

__device__ __forceinline__ T sign_of(T d) { return d > 0 ? T(1) : d < 0 ? T(-1) : d; }

// A block computes 16 x 16 distances of [batch][rows][n] to [batch][others][n], from 16 coordinates at a time. Each is
// summed in the order of the coordinates, as on the CPU.
extern "C" __global__ void __launch_bounds__(256)
    distances(const T* x1, const T* x2, T* out, int64_t rows, int64_t others, int64_t n, int64_t across, int64_t down,
              T p) {
  after_earlier_work();
  __shared__ T first[16][17], second[16][17];
  const int64_t block = blockIdx.x, batch = block / (across * down), tile = block % (across * down);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int64_t row = tile / across * 16, other = tile % across * 16;
  x1 += batch * rows * n;
  x2 += batch * others * n;
  T total = 0;
  for (int64_t m = 0; m < n; m += 16) {
    first[y][x] = m + x < n && row + y < rows ? x1[(row + y) * n + m + x] : T(0);
    second[y][x] = m + x < n && other + y < others ? x2[(other + y) * n + m + x] : T(0);
    __syncthreads();
    const int count = n - m < 16 ? int(n - m) : 16;
    for (int i = 0; i < count; ++i) {
      const T d = first[y][i] - second[x][i], size = math::abs(d);
      if (NORM == 0) total += d != 0 ? (d != d ? d : T(1)) : T(0);
      if (NORM == 1) total += size;
      if (NORM == 2) total += d * d;
      if (NORM == 3) total = size > total || size != size ? size : total;
      if (NORM == 4) total += math::pow(size, p);
    }
    __syncthreads();
  }
  if (row + y >= rows || other + x >= others) return;
  if (NORM == 2) total = math::sqrt(total);
  if (NORM == 4) total = math::pow(total, T(1) / p);
  out[(batch * rows + row + y) * others + other + x] = total;
}

// A thread sums one coordinate of the gradient of one point, over the other points in their order.
extern "C" __global__ void __launch_bounds__(256)
    distance_gradients(const T* grad, const T* x1, const T* x2, const T* distance, T* out, int64_t count, int64_t rows,
                       int64_t others, int64_t n, T p) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) return;
  const int64_t row = i / n, m = i % n;
  const T at = x1[i], *other = x2 + row / rows * others * n + m;
  T total = 0;
  for (int64_t j = 0; j < others; ++j) {
    const T g = grad[row * others + j], length = distance[row * others + j], d = at - other[j * n];
    if (length == 0) continue;  // the slope of a distance at zero is taken as zero
    if (NORM == 1) total += g * sign_of(d);
    if (NORM == 2) total += g / length * d;
    if (NORM == 3) total += math::abs(d) == length ? g * sign_of(d) : T(0);
    if (NORM == 4 && d != 0) total += g / math::pow(length, p - 1) * (sign_of(d) * math::pow(math::abs(d), p - 1));
  }
  out[i] = total;
}
)cuda"};
const KernelFamily kDistances(kText, "distances", {"T", "NORM"});
const KernelFamily kGradients(kText, "distance_gradients", {"T", "NORM"});

int norm_of(double p) { return p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : std::isinf(p) ? 3 : 4; }

// The kernels compute in float32 or float64; other dtypes come and go as float32. f(dtype, an example of its C++ type)
template <class F>
void compute(const Tensor& out, F&& f) {
  const Dtype computed = out.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const Tensor to = computed == out.dtype() ? out : empty(out.sizes(), computed, out.device());
  const auto given = [&](const Tensor& t) { return contiguous_on_device(convert(t, computed)); };
  if (computed == Dtype::f64)
    f(to, given, double{});
  else
    f(to, given, float{});
  if (to.get() != out.get()) copy_into(out, to);
}

void run_cdist(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const double p = c.real(2);
  compute(out, [&](const Tensor& to, auto given, auto kind) {
    const Tensor x1 = given(c.tensor(0)), x2 = given(c.tensor(1));
    const int64_t rows = out.size(-2), others = out.size(-1), n = x1.size(-1), batch = out.numel() / (rows * others);
    const int64_t across = divide_up(others, kTile), down = divide_up(rows, kTile);
    kDistances.launch(Place(out.device()), {to.dtype(), norm_of(p)}, batch * across * down, kTile * kTile, 0,
                      x1.bytes(), x2.bytes(), to.bytes(), rows, others, n, across, down,
                      static_cast<decltype(kind)>(p));
  });
}

void run_cdist_backward(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const double p = c.real(3);
  compute(out, [&](const Tensor& to, auto given, auto kind) {
    const Tensor grad = given(c.tensor(0)), x1 = given(c.tensor(1)), x2 = given(c.tensor(2)),
                 distance = given(c.tensor(4));
    kGradients.launch(Place(out.device()), {to.dtype(), norm_of(p)}, divide_up(out.numel(), 256), 256, 0, grad.bytes(),
                      x1.bytes(), x2.bytes(), distance.bytes(), to.bytes(), out.numel(), x1.size(-2), x2.size(-2),
                      x1.size(-1), static_cast<decltype(kind)>(p));
  });
}

}  // namespace

REGISTER_KERNELS(distance) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("_cdist", run_cdist);
  set("_cdist_backward", run_cdist_backward);
}

}  // namespace cresset::cuda
