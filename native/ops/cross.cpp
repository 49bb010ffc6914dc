// The cross product of vectors of three elements.
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset {
namespace {

void infer_cross(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check(a.dim() == b.dim(), "linalg.cross: inputs must have the same number of dimensions, got ", a.dim(), " and ",
        b.dim(), ".");
  check(a.dtype() == b.dtype(), "linalg.cross: expected scalar type ", name_of(a.dtype()), " but found ",
        name_of(b.dtype()));
  check_index(a.dim() > 0, "linalg.cross: Dimension specified as ", c.integer(2), " but tensor has no dimensions");
  const int64_t dim = wrap_dim(c.integer(2), a.dim());
  check(a.size(dim) == 3 && b.size(dim) == 3, "linalg.cross: inputs dimension ", dim,
        " must have length 3. Got shapes ", list(a.sizes()), " and ", list(b.sizes()));
  c.promise(broadcast("linalg.cross", a.sizes(), b.sizes()), a.dtype(), a.device());
}

// a b - c d. Whole numbers wrap around; in half precision each product is rounded.
template <class T>
T difference_of_products(T a, T b, T c, T d) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide = [](T x) { return static_cast<uint64_t>(x); };
    return static_cast<T>(wide(a) * wide(b) - wide(c) * wide(d));
  } else if constexpr (requires { a.bits; }) {
    const auto product = [](T x, T y) { return static_cast<float>(T(static_cast<float>(x) * static_cast<float>(y))); };
    return T(product(a, b) - product(c, d));
  } else {
    return a * b - c * d;
  }
}

void run_cross(Call& c) {
  const Tensor& out = c.out();
  check_implemented(out.dtype() != Dtype::b8, "\"cross\" not implemented for 'Bool'");
  if (out.numel() == 0) return;
  const auto whole = [&](const Tensor& t) {
    return contiguous(view_of(t, out.sizes(), expanded_strides("linalg.cross", t, out.sizes()), t.offset()));
  };
  const Tensor first = whole(c.tensor(0)), second = whole(c.tensor(1));
  const int64_t inner = along(out, wrap_dim(c.integer(2), out.dim())).inner;
  visit_all(out.dtype(), "cross", [&]<class T>() {
    const T *a = first.data<T>(), *b = second.data<T>();
    T* to = out.data<T>();
    parallel_for(out.numel() / 3, kParallelGrain / 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t x = (inner == 1 ? i : i / inner) * 3 * inner + (inner == 1 ? 0 : i % inner), y = x + inner,
                      z = y + inner;
        to[x] = difference_of_products(a[y], b[z], a[z], b[y]);
        to[y] = difference_of_products(a[z], b[x], a[x], b[z]);
        to[z] = difference_of_products(a[x], b[y], a[y], b[x]);
      }
    });
  });
}

}  // namespace

REGISTER(cross) {
  r.add("linalg_cross(Tensor input, Tensor other, *, int dim=-1) -> Tensor", infer_cross, run_cross, kFunctionOnly);
}

}  // namespace cresset
