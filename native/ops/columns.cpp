// Patches of images, as columns, put back: where patches overlap they are summed, in the order of the places in a
// patch.
#include <memory>

#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/columns.h"
#include "tensor/blocks.h"

namespace cresset {

PatchAxis::PatchAxis(const Call& c, size_t d)
    : size(c.integers(1)[d]),
      kernel(c.integers(2)[d]),
      dilation(c.integers(3)[d]),
      padding(c.integers(4)[d]),
      stride(c.integers(3)[2 + d]),
      places((size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1) {}

namespace {

void infer_image(Call& c) {
  const Tensor input = c.tensor(0);
  for (int k = 1; k < 5; ++k)
    check(c.integers(k).size() == (k == 3 ? 4 : 2), "_from_columns: expected two numbers each and four steps, got ",
          list(c.integers(k)));
  for (size_t d = 0; d < 2; ++d)
    check(c.integers(1)[d] >= 0 && c.integers(2)[d] > 0 && c.integers(3)[d] > 0 && c.integers(4)[d] >= 0 &&
              c.integers(3)[2 + d] > 0,
          "_from_columns: sizes, kernels, dilations and strides are positive");
  const PatchAxis y(c, 0), x(c, 1);
  check(input.dim() >= 2 && input.size(-2) == y.kernel * x.kernel && input.size(-1) == y.places * x.places,
        "_from_columns: expected columns of ", y.kernel * x.kernel, " elements, one for each of ", y.places * x.places,
        " places, got shape ", list(input.sizes()));
  Dims sizes = input.sizes();
  sizes[input.dim() - 2] = y.size, sizes[input.dim() - 1] = x.size;
  c.promise(sizes, input.dtype(), input.device());
}

// The places [first, end) where element `in_kernel` of a patch lies inside the image.
struct Inside {
  int64_t offset, first, end;  // offset: of the element, at place 0
  Inside(const PatchAxis& a, int64_t in_kernel)
      : offset(in_kernel * a.dilation - a.padding),
        first(offset < 0 ? (-offset + a.stride - 1) / a.stride : 0),
        end(std::min(a.places, a.size - 1 - offset < 0 ? 0 : (a.size - 1 - offset) / a.stride + 1)) {}
};

void run_image(Call& c) {
  const Tensor input = contiguous(c.tensor(0)), out = c.out();
  const PatchAxis y(c, 0), x(c, 1);
  const int64_t plane = y.size * x.size, column = y.places * x.places;
  if (out.numel() == 0) return;
  visit_all(input.dtype(), "fold", [&]<class T>() {
    using A = opmath<T>;
    const int64_t work = y.kernel * x.kernel * column;
    parallel_for(out.numel() / plane, std::max<int64_t>(1, kParallelGrain / work), [&](int64_t begin, int64_t end) {
      const auto sums = std::make_unique_for_overwrite<A[]>(static_cast<size_t>(plane));
      for (int64_t p = begin; p < end; ++p) {
        const T* from = input.data<T>() + p * work;
        std::fill_n(sums.get(), plane, A(0));
        for (int64_t ky = 0; ky < y.kernel; ++ky)
          for (int64_t kx = 0; kx < x.kernel; ++kx, from += column) {
            const Inside rows(y, ky), columns(x, kx);
            for (int64_t py = rows.first; py < rows.end; ++py) {
              A* __restrict to = sums.get() + (rows.offset + py * y.stride) * x.size + columns.offset;
              const T* __restrict row = from + py * x.places;
              if (x.stride == 1)
                for (int64_t px = columns.first; px < columns.end; ++px) to[px] += static_cast<A>(row[px]);
              else
                for (int64_t px = columns.first; px < columns.end; ++px) to[px * x.stride] += static_cast<A>(row[px]);
            }
          }
        T* image = out.data<T>() + p * plane;
        for (int64_t i = 0; i < plane; ++i) image[i] = static_cast<T>(sums[i]);
      }
    });
  });
}

}  // namespace

REGISTER(columns) {
  r.add("_from_columns(Tensor input, int[] size, int[] kernel, int[] steps, int[] padding) -> Tensor", infer_image,
        run_image, kFunctionOnly, "Col2ImBackward0");
}

}  // namespace cresset
