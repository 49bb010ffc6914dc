// Images and volumes in another size: the launches of resampling.cuh. The rules of shape are the CPU's.
#include <algorithm>
#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/resampling.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kPlanes = 8;  // as in resampling.cuh

const KernelFamily kTotals("resampling.cuh", "filter_totals", {"T", "TAPS"}, {"-DTOTALS", "--fmad=true"});
const KernelFamily kMake("resampling.cuh", "resample", {"T", "TAPS"}, {"-DMAKE", "--fmad=true"});
const KernelFamily kBack("resampling.cuh", "resample", {"T", "TAPS"}, {"-DBACK", "--fmad=true"});

// As in resampling.cuh.
struct Resampling {
  int64_t planes, places;
  Divider heights, widths, place_blocks;
  int64_t from_plane, from_depth, from_row;
  ResampledAxis axes[3];
  char* totals[3] = {};
};

void run_resample(Call& c) {
  if (c.out().numel() == 0) return;
  const Tensor out = c.out().is_contiguous() ? c.out() : empty(c.out().sizes(), c.out().dtype(), c.out().device());
  const ResampledAxes axes(c);
  const Tensor from = contiguous_on_device(c.tensor(0));
  int64_t made[3], read[3], places = 1;
  for (int d = 0; d < 3; ++d) {
    made[d] = axes.back ? axes.all[d].old_size : axes.all[d].new_size;
    read[d] = axes.back ? axes.all[d].new_size : axes.all[d].old_size;
    places *= made[d];
  }
  const int64_t planes = out.numel() / places, place_blocks = divide_up(places, kBlock),
                blocks = place_blocks * divide_up(planes, kPlanes);
  if (places >= std::numeric_limits<int32_t>::max() || blocks >= std::numeric_limits<int32_t>::max())
    return execute_on_host(c, out.device());
  Resampling r{planes,
               places,
               Divider(made[1]),
               Divider(made[2]),
               Divider(place_blocks),
               read[0] * read[1] * read[2],
               read[1] * read[2],
               read[2],
               {axes.all[0], axes.all[1], axes.all[2]}};
  const Place place(out.device());
  const auto is_wide = [](const ResampledAxis& a) { return a.mode >= kWideLinear; };
  int taps = 1;
  for (const ResampledAxis& a : axes.all) taps = std::max(taps, a.mode == kCubic ? 4 : a.mode == kLinear ? 2 : 1);
  if (std::any_of(axes.all.begin(), axes.all.end(), is_wide)) taps = 0;
  Tensor totals;
  if (taps == 0 && axes.back) {
    const Dtype computed = out.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    const int64_t count = int64_t{axes.all[0].new_size} + axes.all[1].new_size + axes.all[2].new_size;
    totals = empty({{count}}, computed, out.device());
    char* next = totals.bytes();
    for (int d = 0; d < 3; ++d) {
      r.totals[d] = next;
      next += axes.all[d].new_size * size_of(computed);
    }
    kTotals.launch(place, {out.dtype(), 0}, divide_up(count, kBlock), kBlock, 0, r);
  }
  (axes.back ? kBack : kMake).launch(place, {out.dtype(), taps}, blocks, kBlock, 0, from.bytes(), out.bytes(), r);
  if (out.get() != c.out().get()) copy_into(c.out(), out);
}

}  // namespace

REGISTER_KERNELS(resampling) { r.set_kernel("_resample", DeviceType::cuda, run_resample); }

}  // namespace cresset::cuda
