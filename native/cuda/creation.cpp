// Numbers by rule: arange, range, linspace, logspace, and the index pairs of triangles; complex numbers from their
// parts.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/creation.h"

namespace cresset::cuda {
namespace {

const KernelFamily kRange("creation.cuh", "count_up", {"T"}, {"-DRANGE"});
const KernelFamily kSpace("creation.cuh", "space", {"T", "EXPONENTS"}, {"-DSPACE"});
const KernelFamily kTriangle("creation.cuh", "triangle_pairs", {"T", "UPPER", "SMALL"}, {"-DTRIANGLE"});

void count_up(const Tensor& out, const Scalar& start, const Scalar& step) {
  const int64_t n = out.numel();
  check_implemented(out.dtype() != Dtype::b8, "\"arange_cuda\" not implemented for 'Bool'");
  check_implemented(!is_complex(out.dtype()), "\"arange_cuda\" not implemented for '", name_of(out.dtype()), "'");
  if (n == 0) return;
  kRange.launch(Place(out.device()), {out.dtype()}, divide_up(n, 1024), 256, 0, out.bytes(), n, start.real, step.real,
                start.integer, step.integer);
}
bool is_narrow_float(Dtype d) { return is_floating(d) && size_of(d) == 1; }
void run_arange_to(Call& c) {
  is_narrow_float(c.out().dtype()) ? execute_on_host(c, c.out().device()) : count_up(c.out(), Scalar(0), Scalar(1));
}
void run_arange(Call& c) {
  is_narrow_float(c.out().dtype()) ? execute_on_host(c, c.out().device()) : count_up(c.out(), c.scalar(0), c.scalar(2));
}

void run_space(Call& c, bool exponents) {
  const Tensor out = c.out();
  const int64_t n = out.numel();
  if (n == 0) return;
  if (is_narrow_float(out.dtype()) || (exponents && is_complex(out.dtype()))) return execute_on_host(c, out.device());
  const Scalar start = bound(c, 0), stop = bound(c, 1);
  if (n == 1 && !exponents) return fill(out, start);
  // The ends are numbers of the result's dtype.
  const bool whole = is_integral(out.dtype());
  const double first = whole ? static_cast<double>(start.integer) : start.real,
               last = whole ? static_cast<double>(stop.integer) : stop.real, base = exponents ? c.real(3) : 0;
  kSpace.launch(Place(out.device()), {out.dtype(), exponents}, divide_up(n, 256), 256, 0, out.bytes(), n, first, last,
                start.imag, stop.imag, base);
}
void run_linspace(Call& c) { run_space(c, false); }
void run_logspace(Call& c) { run_space(c, true); }

template <bool upper>
void run_triangle(Call& c) {
  const Tensor out = c.out();
  const int64_t n = out.dim() == 2 ? out.size(1) : 0, rows = c.integer(0), columns = c.integer(1),
                offset = std::clamp(c.integer(2), -rows, columns);
  if (n == 0) return;
  // Whether places and twice the lengths of rows fit in 32 bits.
  const bool small = rows < (int64_t{1} << 30) && columns < (int64_t{1} << 30) && n < (int64_t{1} << 30);
  kTriangle.launch(Place(out.device()), {out.dtype(), upper, small}, divide_up(n, 256), 256, 0, out.bytes(), n, rows,
                   columns, offset);
}

// (real, imag), or (abs, angle); both are read once, and pairs written.
template <bool polar>
void run_complex(Call& c) {
  static const KernelFamily family("creation.cuh", "make_complex", {"T", "POLAR", "VECTOR"}, {"-DPAIRS"});
  const Tensor& out = c.out();
  const int64_t n = out.numel();
  if (n == 0) return;
  const auto part = [&](const Tensor& t) {
    return contiguous_on_device(view_of(t, out.sizes(), expanded_strides("complex", t, out.sizes()), t.offset()));
  };
  const Tensor first = part(c.tensor(0)), second = part(c.tensor(1)),
               to = out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  int64_t vector = 16 / size_of(first.dtype());
  const auto places = reinterpret_cast<uintptr_t>(first.bytes()) | reinterpret_cast<uintptr_t>(second.bytes()) |
                      reinterpret_cast<uintptr_t>(to.bytes());
  if (places % 16) vector = 1;
  family.launch(Place(out.device()), {first.dtype(), polar, static_cast<int>(vector)}, divide_up(n, 256 * vector), 256,
                0, first.bytes(), second.bytes(), to.bytes(), n);
  if (to.get() != out.get()) copy_into(out, to);
}

}  // namespace

REGISTER_KERNELS(creation) {
  r.set_kernel("complex", DeviceType::cuda, run_complex<false>);
  r.set_kernel("polar", DeviceType::cuda, run_complex<true>);
  r.set_kernel("arange", DeviceType::cuda, run_arange_to);
  r.set_kernel("arange.start", DeviceType::cuda, run_arange);
  r.set_kernel("range", DeviceType::cuda, run_arange);
  r.set_kernel("linspace", DeviceType::cuda, run_linspace);
  r.set_kernel("logspace", DeviceType::cuda, run_logspace);
  r.set_kernel("tril_indices", DeviceType::cuda, run_triangle<false>);
  r.set_kernel("triu_indices", DeviceType::cuda, run_triangle<true>);
}

}  // namespace cresset::cuda
