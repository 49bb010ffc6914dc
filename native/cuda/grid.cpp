// Images and volumes read at the places of a grid, and the gradients of both: the launches of grid.cuh. The rules of
// shape are the CPU's.
#include "ops/grid.h"

#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/radix_sort.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kPlaceBlock = 128, kChannels = 8;  // as in grid.cuh

const KernelFamily kRead("grid.cuh", "grid_read", {"T", "DIMS", "TAPS"}, {"-DREAD", "--fmad=true"});
const KernelFamily kGridGradient("grid.cuh", "grid_gradient", {"T", "DIMS", "TAPS"},
                                 {"-DGRID_GRADIENT", "--fmad=true"});
const KernelFamily kKeys("grid.cuh", "grid_keys", {"T", "DIMS", "TAPS"}, {"-DKEYS", "--fmad=true"});
const KernelFamily kRuns("grid.cuh", "grid_runs", {"T", "DIMS", "TAPS"}, {"-DRUNS"});
const KernelFamily kInputGradient("grid.cuh", "grid_input_gradient", {"T", "DIMS", "TAPS"},
                                  {"-DINPUT_GRADIENT", "--fmad=true"});

// As in grid.cuh.
struct Sampled {
  int64_t samples, channels, places, elements;
  int32_t sizes[3];
  int32_t padding, align_corners, unused = 0;
  int64_t sample_step = 0, channel_step = 0, steps[3] = {};
  Divider place_blocks, channel_groups;
  int64_t blocks;  // of the host alone; last

  // A block has 256 of `side` places, or elements, of up to 8 channels of a sample.
  Sampled(const GridShape& s, const Call& c, int modes, int64_t side)
      : samples(s.samples),
        channels(s.channels),
        places(s.places),
        elements(s.elements),
        sizes{s.sizes[0], s.sizes[1], s.sizes[2]},
        padding(static_cast<int32_t>(c.integer(modes + 1))),
        align_corners(c.boolean(modes + 2)),
        place_blocks(divide_up(side, kBlock)),
        channel_groups(divide_up(s.channels, kChannels)),
        blocks(divide_up(side, kBlock) * divide_up(s.channels, kChannels) * s.samples) {}
  void read(const Tensor& input, int rank) {
    sample_step = input.stride(0), channel_step = input.stride(1);
    for (int d = 0; d < rank; ++d) steps[3 - rank + d] = input.stride(2 + d);
  }
  bool fits(int corners) const {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 65536;
    return blocks < kMost && samples * elements < kMost && samples * places * corners < kMost;
  }
};

int corners_of(int rank, int taps) { return rank == 2 ? taps * taps : taps * taps * taps; }

void run_sample(Call& c) {
  const Tensor input = c.tensor(0), grid = contiguous_on_device(convert(c.tensor(1), input.dtype())), out = c.out();
  if (out.numel() == 0) return;
  const GridShape shape("_grid_sample", input.sizes(), grid.sizes());
  const int taps = taps_of_mode(c.integer(2));
  Sampled s(shape, c, 2, shape.places);
  if (!s.fits(1)) return execute_on_host(c, out.device());
  s.read(input, shape.rank);
  kRead.launch(Place(out.device()), {input.dtype(), shape.rank, taps}, s.blocks, kBlock, 0, input.bytes(), grid.bytes(),
               out.bytes(), s);
}

void run_grid_gradient(Call& c) {
  const Tensor out = c.out(), input = c.tensor(1), grad = contiguous_on_device(convert(c.tensor(0), input.dtype())),
               grid = contiguous_on_device(convert(c.tensor(2), input.dtype()));
  if (out.numel() == 0) return;
  const GridShape shape("_grid_sample_grid_gradient", input.sizes(), grid.sizes());
  Sampled s(shape, c, 3, shape.places);
  if (!s.fits(1)) return execute_on_host(c, out.device());
  s.read(input, shape.rank);
  kGridGradient.launch(Place(out.device()), {input.dtype(), shape.rank, taps_of_mode(c.integer(3))},
                       divide_up(s.samples * s.places, kPlaceBlock), kPlaceBlock, 0, grad.bytes(), input.bytes(),
                       grid.bytes(), out.bytes(), s);
}

void run_input_gradient(Call& c) {
  const Tensor out = c.out(), grad = contiguous_on_device(c.tensor(0)),
               grid = contiguous_on_device(convert(c.tensor(1), grad.dtype()));
  if (out.numel() == 0) return;
  const GridShape shape("_grid_sample_input_gradient", c.integers(2), grid.sizes());
  const int taps = taps_of_mode(c.integer(3)), corners = corners_of(shape.rank, taps);
  const Sampled s(shape, c, 3, shape.elements);
  if (!s.fits(corners)) return execute_on_host(c, out.device());
  const Place place(out.device());
  const Device device = out.device();
  const Dtype d = grad.dtype();
  const int64_t n = s.samples * s.places * corners, all = s.samples * s.elements;
  const Tensor begins = full({{all}}, Scalar(0), Dtype::i32, device),
               ends = full({{all}}, Scalar(0), Dtype::i32, device),
               keys = empty({{std::max<int64_t>(n, 1)}}, Dtype::i32, device),
               weights = empty({{std::max<int64_t>(n, 1)}}, d == Dtype::f64 ? Dtype::f64 : Dtype::f32, device);
  Tensor positions = begins;
  if (n) {
    kKeys.launch(place, {d, shape.rank, taps}, divide_up(s.samples * s.places, kPlaceBlock), kPlaceBlock, 0,
                 grid.bytes(), keys.bytes(), weights.bytes(), s);
    const SortedKeys sorted = sort_keys(place, keys, n, bits_for(all));
    positions = sorted.positions;
    kRuns.launch(place, {Dtype::f32, 2, 1}, divide_up(n, kBlock), kBlock, 0, sorted.keys.bytes(), begins.bytes(),
                 ends.bytes(), n, static_cast<uint32_t>(all));
  }
  kInputGradient.launch(place, {d, shape.rank, taps}, s.blocks, kBlock, 0, grad.bytes(), begins.bytes(), ends.bytes(),
                        positions.bytes(), weights.bytes(), out.bytes(), s);
}

}  // namespace

REGISTER_KERNELS(grid) {
  r.set_kernel("_grid_sample", DeviceType::cuda, run_sample);
  r.set_kernel("_grid_sample_input_gradient", DeviceType::cuda, run_input_gradient);
  r.set_kernel("_grid_sample_grid_gradient", DeviceType::cuda, run_grid_gradient);
}

}  // namespace cresset::cuda
