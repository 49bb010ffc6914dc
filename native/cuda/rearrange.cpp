// The elements in another order, or some of them: flip, tril, triu. (roll and repeat are copies, and the same on all
// devices.)
#include <algorithm>
#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/launch.h"
#include "cuda/transpose.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

const KernelFamily kTriangle("rearrange.cuh", "triangle", {"WORD", "VECTOR", "UPPER", "BIG"});

// A flipped dimension is one that is read from its end, with a negative stride.
void run_flip(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  if (t.numel() == 0) return;
  Dims strides = t.strides();
  int64_t end = 0;
  if (t.dim()) {
    for (const int64_t d : wrap_dims(c.integers(1), t.dim())) {
      end += (t.size(d) - 1) * strides[d];
      strides[d] = -strides[d];
    }
  }
  copy_strided({out.bytes(), t.dtype(), t.dtype(), out.strides()},
               {t.bytes() + end * size_of(t.dtype()), t.dtype(), t.dtype(), strides}, t.sizes(), t.device());
}

template <bool upper>
void run_triangle(Call& c) {
  const Tensor t = contiguous_on_device(c.tensor(0)), out = c.out();
  if (out.numel() == 0) return;
  const int64_t rows = t.size(-2), columns = t.size(-1), width = size_of(t.dtype());
  const int64_t diagonal = std::clamp(c.integer(1), -rows, columns);
  int64_t vector = std::max<int64_t>(16 / width, 1);
  while (columns % vector || (reinterpret_cast<uintptr_t>(t.bytes()) | reinterpret_cast<uintptr_t>(out.bytes())) %
                                 static_cast<uintptr_t>(vector * width))
    vector /= 2;
  const int64_t vectors = out.numel() / vector;
  const bool big = vectors >= std::numeric_limits<int32_t>::max() - 256;
  kTriangle.launch(Place(out.device()), {static_cast<int>(width), static_cast<int>(vector), upper, big},
                   divide_up(vectors, 256), 256, 0, out.bytes(), t.bytes(), vectors, Divider(columns / vector),
                   Divider(rows), diagonal);
}

}  // namespace

REGISTER_KERNELS(rearrange) {
  r.set_kernel("flip", DeviceType::cuda, run_flip);
  r.set_kernel("tril", DeviceType::cuda, run_triangle<false>);
  r.set_kernel("triu", DeviceType::cuda, run_triangle<true>);
}

}  // namespace cresset::cuda
