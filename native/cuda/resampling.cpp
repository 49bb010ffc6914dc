// Images and volumes in another size: the launches of resampling.cuh. The rules of shape are the CPU's.
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

const KernelFamily kMake("resampling.cuh", "resample", {"T", "TAPS"}, {"-DMAKE", "--fmad=true"});
const KernelFamily kBack("resampling.cuh", "resample", {"T", "TAPS"}, {"-DBACK", "--fmad=true"});

// As in resampling.cuh.
struct Resampling {
  int64_t planes, places;
  Divider heights, widths, place_blocks;
  int64_t from_plane, from_depth, from_row;
  ResampledAxis axes[3];
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
  const Resampling r{planes,
                     places,
                     Divider(made[1]),
                     Divider(made[2]),
                     Divider(place_blocks),
                     read[0] * read[1] * read[2],
                     read[1] * read[2],
                     read[2],
                     {axes.all[0], axes.all[1], axes.all[2]}};
  int taps = 1;
  for (const ResampledAxis& a : axes.all) taps = std::max(taps, a.mode == kCubic ? 4 : a.mode == kLinear ? 2 : 1);
  (axes.back ? kBack : kMake)
      .launch(Place(out.device()), {out.dtype(), taps}, blocks, kBlock, 0, from.bytes(), out.bytes(), r);
  if (out.get() != c.out().get()) copy_into(c.out(), out);
}

}  // namespace

REGISTER_KERNELS(resampling) { r.set_kernel("_resample", DeviceType::cuda, run_resample); }

}  // namespace cresset::cuda
