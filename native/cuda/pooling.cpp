// Pooling over windows: maxima and means, sliding and adaptive, and their gradients. The rules of shape are the CPU's.
#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/fault.h"
#include "cuda/indexed_walk.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"

namespace cresset::cuda {
namespace {

const KernelFamily kMax("pooling.cuh", "max_pool", {"T", "ADAPTIVE", "LAST", "BIG", "VECTOR", "WIDE"},
                        {"-DFORWARD_MAX"});
const KernelFamily kMean("pooling.cuh", "mean_pool", {"T", "ADAPTIVE", "LAST", "BIG", "VECTOR", "WIDE"},
                         {"-DFORWARD_MEAN"});
const KernelFamily kWindowMean("pooling.cuh", "window_means", {"T", "ADAPTIVE", "BIG"},
                               {"-DWINDOW_MEAN", "-DLAST=0", "-DVECTOR=1"});
const KernelFamily kWholeMean("pooling.cuh", "plane_means", {"T"},
                              {"-DWHOLE_MEAN", "-DADAPTIVE=0", "-DLAST=0", "-DBIG=0", "-DVECTOR=1"});
const KernelFamily kMaxGradient("pooling.cuh", "pool_gradient", {"T", "ADAPTIVE", "LAST", "BIG", "VECTOR"},
                                {"-DGRADIENT_MAX"});
const KernelFamily kMeanGradient("pooling.cuh", "pool_gradient", {"T", "ADAPTIVE", "LAST", "BIG", "VECTOR"},
                                 {"-DGRADIENT_MEAN"});

// As in pooling.cuh.
struct Axis {
  int32_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
  Divider by_stride, by_in, by_out;
};
struct Windows {
  int64_t count = 0;
  Axis axes[3];
  Divider channels, sizes[3];
  int64_t strides[5] = {};
  int64_t include_padding = 0, divide_by = 0;
};

int64_t rank_of(const Operator& op) { return op.name()[op.name().size() - 2] - '0'; }  // ..._pool2d

int32_t argument(DimsView values, int64_t d, int32_t otherwise) {
  return values.empty() ? otherwise
                        : static_cast<int32_t>(values.size() == 1 ? values[0] : values[static_cast<size_t>(d)]);
}

// A batch whose channels are innermost; what is computed is laid out alike.
bool has_channels_last(const Tensor& t, int64_t rank) { return t.dim() == rank + 2 && is_channels_last(t); }
bool is_dense_as(const Tensor& t, bool last) {
  return last ? t.strides() == channels_last_strides(t.sizes()) : t.is_contiguous();
}

// The plan to compute `made` from `read`, which may have any strides: one of them is the pooled tensor.
Windows windows_of(const Tensor& made, const Tensor& read, bool backward, int64_t rank) {
  Windows w;
  w.count = made.numel();
  const int64_t lead = made.dim() - rank;  // one or two dimensions of planes
  w.channels = Divider(made.size(lead - 1));
  w.strides[0] = lead == 2 ? read.stride(0) : 0;
  w.strides[1] = read.stride(lead - 1);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t k = 3 - rank + d;
    w.axes[k].in = static_cast<int32_t>((backward ? made : read).size(lead + d));
    w.axes[k].out = static_cast<int32_t>((backward ? read : made).size(lead + d));
    w.sizes[k] = Divider(made.size(lead + d));
    const Axis& a = w.axes[k];
    if (int64_t{a.in + 1} * (a.out + 1) < std::numeric_limits<int32_t>::max())
      w.axes[k].by_in = Divider(a.in), w.axes[k].by_out = Divider(a.out);
    else
      w.axes[k].by_in.divisor = w.axes[k].by_out.divisor = 0;
    w.strides[2 + k] = read.stride(lead + d);
  }
  return w;
}
void slide(Windows& w, int64_t rank, DimsView kernel, DimsView stride, DimsView padding, DimsView dilation) {
  for (int64_t d = 0; d < rank; ++d) {
    Axis& a = w.axes[3 - rank + d];
    a.kernel = argument(kernel, d, 1);
    a.stride = argument(stride, d, a.kernel);
    a.padding = argument(padding, d, 0);
    a.dilation = argument(dilation, d, 1);
    a.by_stride = Divider(a.stride);
  }
}

// Whether windows that cover evenly all have the same size: then they slide.
bool slides_evenly(Windows& w) {
  for (const Axis& a : w.axes)
    if (a.in % a.out) return false;
  for (Axis& a : w.axes) {
    a.kernel = a.stride = a.in / a.out;
    a.by_stride = Divider(a.stride);
  }
  return true;
}

// Means divide by one number where no window reaches over an end.
void find_divisor(Windows& w) {
  if (w.divide_by) return;
  int64_t count = 1;
  for (const Axis& a : w.axes) {
    if (a.padding || int64_t{a.out - 1} * a.stride + a.kernel > a.in) return;
    count *= a.kernel;
  }
  w.divide_by = count;
}

// How many channels a thread computes: those of 16 bytes where they lie beside each other.
int vector_of(bool last, int64_t channels, Dtype dtype, std::initializer_list<const Tensor*> tensors) {
  const int64_t length = 16 / size_of(dtype);
  if (!last || length <= 1 || channels % length != 0) return 1;
  for (const Tensor* t : tensors) {
    if (reinterpret_cast<uintptr_t>(t->bytes()) % 16 != 0 || t->stride(1) != 1) return 1;
    for (int64_t d = 0; d < t->dim(); ++d)
      if (d != 1 && t->size(d) > 1 && t->stride(d) % length != 0) return 1;
  }
  return static_cast<int>(length);
}

// How many elements of `made` a thread computes: channels that lie beside each other, or else neighbors of a line.
int elements_of(bool last, const Tensor& made, std::initializer_list<const Tensor*> tensors) {
  if (last) return vector_of(last, made.size(1), made.dtype(), tensors);
  const int64_t length = std::min<int64_t>(16 / size_of(made.dtype()), 4);
  return made.size(-1) % length == 0 && reinterpret_cast<uintptr_t>(made.bytes()) % 16 == 0 ? static_cast<int>(length)
                                                                                            : 1;
}
// How many elements a window has along a line, where they are few and it slides: then its loop is laid out.
int width_of(const Windows& w, bool adaptive) { return adaptive || w.axes[2].kernel > 4 ? 0 : w.axes[2].kernel; }

bool is_big(const Windows& w) { return w.count >= std::numeric_limits<int32_t>::max() - 256; }

// Tensors with more dimensions of planes than images and channels do not occur.
void max_over(Call& c, bool adaptive) {
  const Tensor x = c.tensor(0), y = c.out(0), indices = c.out(1);
  const int64_t rank = rank_of(c.op);
  if (y.numel() == 0) return;
  const bool last = has_channels_last(x, rank);
  if (!is_dense_as(y, last) || !is_dense_as(indices, last)) return execute_on_host(c, x.device());
  Windows w = windows_of(y, x, false, rank);
  if (!adaptive)
    slide(w, rank, c.integers(1), c.integers(2), c.integers(3), c.integers(4));
  else
    adaptive = !slides_evenly(w);
  const int vector = elements_of(last, y, {&x, &y, &indices});
  kMax.launch(Place(x.device()), {x.dtype(), adaptive, last, is_big(w), vector, width_of(w, adaptive)},
              divide_up(w.count / vector, 256), 256, 0, x.bytes(), y.bytes(), indices.bytes(), w);
}
void run_max_pool(Call& c) { max_over(c, false); }
void run_adaptive_max_pool(Call& c) { max_over(c, true); }

void mean_over(Call& c, bool adaptive) {
  const Tensor x = c.tensor(0), y = c.out();
  const int64_t rank = rank_of(c.op);
  if (y.numel() == 0) return;
  const bool last = has_channels_last(x, rank);
  if (!is_dense_as(y, last)) return execute_on_host(c, x.device());
  if (const int64_t length = x.numel() / y.numel();
      adaptive && length > 32 && x.is_contiguous() && !is_complex(x.dtype())) {
    bool is_one = true;
    for (int64_t d = 0; d < rank; ++d) is_one = is_one && y.size(y.dim() - 1 - d) == 1;
    if (is_one)
      return kWholeMean.launch(Place(x.device()), {x.dtype()}, divide_up(y.numel(), 8), 256, 0, x.bytes(), y.bytes(),
                               y.numel(), length);
  }
  Windows w = windows_of(y, x, false, rank);
  if (!adaptive) {
    slide(w, rank, c.integers(1), c.integers(2), c.integers(3), {});
    w.include_padding = c.boolean(5);
    w.divide_by = c.integer(6);
    find_divisor(w);
  } else if (slides_evenly(w)) {
    adaptive = false;
    find_divisor(w);
  }
  // Neighboring windows of many elements are far apart: threads that had one each would read from as many places.
  int64_t seen = 1;
  for (const Axis& a : w.axes) seen *= adaptive ? divide_up(int64_t{a.in}, int64_t{a.out}) : int64_t{a.kernel};
  if (!last && seen >= 64 && !is_complex(x.dtype()))
    return kWindowMean.launch(Place(x.device()), {x.dtype(), adaptive, is_big(w)}, divide_up(w.count, 8), 256, 0,
                              x.bytes(), y.bytes(), w);
  const int vector = elements_of(last, y, {&x, &y});
  kMean.launch(Place(x.device()), {x.dtype(), adaptive, last, is_big(w), vector, width_of(w, adaptive)},
               divide_up(w.count / vector, 256), 256, 0, x.bytes(), y.bytes(), w);
}
void run_avg_pool(Call& c) { mean_over(c, false); }
void run_adaptive_avg_pool(Call& c) { mean_over(c, true); }

void mean_gradient_over(Call& c, bool adaptive, int64_t rank) {
  const Tensor dy = c.tensor(0), dx = c.out();
  if (dx.numel() == 0) return;
  const bool last = has_channels_last(dy, rank);
  if (!is_dense_as(dx, last) || dx.dim() - rank > 2) return execute_on_host(c, dx.device());
  Windows w = windows_of(dx, dy, true, rank);
  if (!adaptive) {
    slide(w, rank, c.integers(2), c.integers(3), c.integers(4), {});
    w.include_padding = c.boolean(6);
    w.divide_by = c.integer(7);
    find_divisor(w);
  } else if (slides_evenly(w)) {
    adaptive = false;
    find_divisor(w);
  }
  char* none = nullptr;
  const int vector = elements_of(last, dx, {&dy, &dx});
  kMeanGradient.launch(Place(dx.device()), {dy.dtype(), adaptive, last, is_big(w), vector},
                       divide_up(w.count / vector, 256), 256, 0, dy.bytes(), none, dx.bytes(), w);
}
void run_avg_pool_gradient(Call& c) { mean_gradient_over(c, false, static_cast<int64_t>(c.integers(2).size())); }
void run_adaptive_avg_pool_gradient(Call& c) { mean_gradient_over(c, true, c.integer(2)); }

// to[plane][index] = or += from: the way back without knowing the windows.
void place_by_index(Call& c, bool add) {
  static const int operation = operation_number("max_unpool");
  const Tensor from = c.tensor(0), indices = c.tensor(1), out = c.out();
  const int64_t rank = c.integer(3), planes = from.dim() - rank;
  fill(out, Scalar(0));
  if (from.numel() == 0) return;
  // Each plane as one dimension, which wants dense planes on all three sides.
  const bool last = has_channels_last(indices, rank);
  const auto flat = [&](const Tensor& t) {
    const Tensor dense =
        is_dense_as(t, last)
            ? t
            : clone(t, last ? (rank == 2 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d)
                            : MemoryFormat::contiguous);
    int64_t plane = 1;
    for (int64_t d = planes; d < t.dim(); ++d) plane *= t.size(d);
    Dims sizes(t.sizes().begin(), t.sizes().begin() + planes),
        strides(dense.strides().begin(), dense.strides().begin() + planes);
    sizes.push_back(plane);
    strides.push_back(last ? t.size(1) : 1);
    return view_of(dense, sizes, strides, dense.offset());
  };
  if (!is_dense_as(out, last)) return execute_on_host(c, out.device());
  const Tensor to = flat(out), at = flat(indices), values = flat(from);  // the walk keeps addresses only
  const IndexedWalk w = walk_along("max_unpool", to, planes, at, values);
  const IndexedOn on{Place(out.device()), out.device(), Dtype::i64, operation};
  add ? combine_indexed(w, out.dtype(), Combine::add, on) : write_indexed(w, size_of(out.dtype()), on);
}
void run_unpool(Call& c) { place_by_index(c, false); }

// Arguments: grad_output, indices, input_size, rank, window; the latter is empty where the windows are not known.
void run_max_pool_gradient(Call& c) {
  const Tensor dy = c.tensor(0), indices = c.tensor(1), dx = c.out();
  const int64_t rank = c.integer(3);
  const DimsView window = c.integers(4);
  if (dx.numel() == 0) return;
  const bool last = has_channels_last(indices, rank);
  if (window.empty() || !is_dense_as(dx, last) || dx.dim() - rank > 2) return place_by_index(c, true);
  // Both are read by the same strides.
  Tensor grad = dy;
  if (!(dy.strides() == indices.strides())) {
    grad = empty(TensorInfo{indices.sizes(), indices.strides(), dy.dtype(), dy.device()});
    copy_into(grad, dy);
  }
  Windows w = windows_of(dx, indices, true, rank);
  const auto part = [&](size_t k) { return window.subspan(k * static_cast<size_t>(rank), static_cast<size_t>(rank)); };
  slide(w, rank, part(0), part(1), part(2), part(3));
  // Large windows that lie side by side: each has one maximum, which is no other's.
  bool apart = true;
  int64_t seen = 1;
  for (const Axis& a : w.axes) apart = apart && a.dilation == 1 && a.kernel <= a.stride, seen *= a.kernel;
  if (apart && seen >= 8) return place_by_index(c, false);
  const int vector = elements_of(last, dx, {&grad, &indices, &dx});
  kMaxGradient.launch(Place(dx.device()), {dy.dtype(), false, last, is_big(w), vector},
                      divide_up(w.count / vector, 256), 256, 0, grad.bytes(), indices.bytes(), dx.bytes(), w);
}

}  // namespace

REGISTER_KERNELS(pooling) {
  for (const char* d : {"1d", "2d", "3d"}) {
    r.set_kernel(join("_max_pool", d).c_str(), DeviceType::cuda, run_max_pool);
    r.set_kernel(join("_avg_pool", d).c_str(), DeviceType::cuda, run_avg_pool);
    r.set_kernel(join("_adaptive_max_pool", d).c_str(), DeviceType::cuda, run_adaptive_max_pool);
    r.set_kernel(join("_adaptive_avg_pool", d).c_str(), DeviceType::cuda, run_adaptive_avg_pool);
  }
  r.set_kernel("_max_pool_gradient", DeviceType::cuda, run_max_pool_gradient);
  r.set_kernel("_max_unpool", DeviceType::cuda, run_unpool);
  r.set_kernel("_avg_pool_gradient", DeviceType::cuda, run_avg_pool_gradient);
  r.set_kernel("_adaptive_avg_pool_gradient", DeviceType::cuda, run_adaptive_avg_pool_gradient);
}

}  // namespace cresset::cuda
