// The gradient of max_pool2d inside a compiled region: made together with what reads it (dispatch/late.h), point by
// point of the pooled images, where each is in one window at most.
#include <vector>

#include "base/instruction_set.h"
#include "dispatch/late.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"
#include "tensor/private_layout.h"

namespace cresset {
namespace {

// The window of each place along a dimension; -1: it is in none.
std::vector<int64_t> windows_of(int64_t size, int64_t count, int64_t kernel, int64_t stride, int64_t padding) {
  std::vector<int64_t> windows(static_cast<size_t>(size), -1);
  for (int64_t i = 0; i < size; ++i)
    if (const int64_t at = i + padding; at % stride < kernel && at / stride < count)
      windows[static_cast<size_t>(i)] = at / stride;
  return windows;
}

struct PooledImages {
  int64_t height, width, channels, windows_down, windows_across;
  std::vector<int64_t> down, across;  // the window of each row and column
  const float* grad;
  const int64_t* indices;
};

// Elements from `at` on. A sum starts from zero, which makes zero of minus zero.
struct GradientOfPlaces {
  template <class Fma>
  CRESSET_INLINE void run(const PooledImages* p, float* to, int64_t at, int64_t n) {
    const int64_t channels = p->channels, point = at / channels, row = point / p->width;
    int64_t channel = at % channels, column = point % p->width, line = row % p->height, image = row / p->height;
    for (int64_t done = 0; done < n;) {
      const int64_t count = n - done < channels - channel ? n - done : channels - channel;
      const int64_t y = p->down[static_cast<size_t>(line)], x = p->across[static_cast<size_t>(column)];
      float* __restrict result = to + done;
      if (y < 0 || x < 0) {
        for (int64_t c = 0; c < count; ++c) result[c] = 0;
      } else {
        const int64_t window = ((image * p->windows_down + y) * p->windows_across + x) * channels + channel,
                      place = line * p->width + column;
        const float* __restrict grad = p->grad + window;
        const int64_t* __restrict index = p->indices + window;
        for (int64_t c = 0; c < count; ++c) result[c] = 0.0f + (index[c] == place ? grad[c] : 0.0f);
      }
      done += count;
      channel = 0;
      if (++column < p->width) continue;
      column = 0;
      if (++line == p->height) line = 0, ++image;
    }
  }
};

struct LatePoolingGradient final : PlacedWork {
  LatePoolingGradient(PooledImages pooled, const Tensor& grad, const Tensor& indices)
      : images(std::move(pooled)), held{grad, indices} {
    for (const Tensor& t : held) reads.push_back(t.storage());
  }
  void run(char* result, char* const*, int64_t at, int64_t n) const override {
    run_vectorized<GradientOfPlaces>(&images, reinterpret_cast<float*>(result), at, n);
  }
  const PooledImages images;
  const Tensor held[2];  // their memory as it lies
};

// (grad_output, indices, input_size, rank, window); the window: sizes, strides, paddings and dilations.
bool max_pool_gradient_late(Call& c) {
  const DimsView sizes = c.integers(2), window = c.integers(4);
  if (c.tensor(0).dtype() != Dtype::f32 || c.integer(3) != 2 || sizes.size() != 4 || window.size() != 8 ||
      !has_plain_tensors(c))
    return false;
  for (size_t d = 0; d < 2; ++d)
    if (window[d] > window[2 + d] || window[6 + d] != 1) return false;
  c.op.infer(c);
  c.promised.clear();
  settle_arguments(c);
  const Tensor indices = physical(c.tensor(1));
  if (!indices.defined()) return false;
  Tensor grad = physical(c.tensor(0));
  if (!grad.defined()) grad = in_order(c.tensor(0), true);  // it lies otherwise where no image was read last
  PooledImages images{sizes[2], sizes[3], sizes[1], grad.size(2), grad.size(3), {}, {}, nullptr, nullptr};
  images.down = windows_of(sizes[2], grad.size(2), window[0], window[2], window[4]);
  images.across = windows_of(sizes[3], grad.size(3), window[1], window[3], window[5]);
  images.grad = grad.data<float>();
  images.indices = indices.data<int64_t>();
  c.give(placed_late(c.op, {}, TensorInfo{Dims(sizes), {}, Dtype::f32, grad.device()},
                     RefPtr<PlacedWork>(new LatePoolingGradient(std::move(images), grad, indices))));
  return true;
}

}  // namespace

REGISTER_KERNELS(pooling_late) { let_compute_late("_max_pool_gradient", DeviceType::cpu, max_pool_gradient_late); }

}  // namespace cresset
