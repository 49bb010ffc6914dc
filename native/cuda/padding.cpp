// Elements added at the ends of dimensions, and the way back: the launches of padding.cuh. The rules are the CPU's.
#include "ops/padding.h"

#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kUnroll = 4;  // as in padding.cuh

const KernelFamily kPad("padding.cuh", "pad", {"WORD", "MODE", "BIG"}, {"-DMAKE"});
const KernelFamily kBack("padding.cuh", "pad", {"T", "MODE", "BIG"}, {"-DBACK"});

// As in padding.cuh.
struct Step {
  int64_t count;
  Divider made[3], inner;
  int64_t read[3], read_inner;
  PaddedAxis<int32_t> axes[3];
};

Step step_of(const PadStep& s, bool back, int64_t together) {
  Step to;
  to.count = (back ? s.old_count() : s.new_count()) / together;
  to.inner = Divider(s.inner / together);
  to.read_inner = s.inner / together;
  for (int d = 0; d < 3; ++d) {
    const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
    const PaddedAxis<int64_t>& a = s.axes[d];
    to.made[d] = Divider(back ? a.size : a.padded);
    to.read[d] = back ? a.padded : a.size;
    to.axes[d] = {narrow(a.size), narrow(a.padded),      narrow(a.before),   narrow(a.first),
                  narrow(a.kept), narrow(a.alone_begin), narrow(a.alone_end)};
  }
  return to;
}
bool fits(const PadStep& s) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 4;
  for (const PaddedAxis<int64_t>& a : s.axes)
    if (a.size > kMost || a.padded > kMost || std::abs(a.before) > kMost) return false;
  return s.inner <= kMost;
}

void run_pad(Call& c) {
  const Tensor input = c.tensor(0), out = c.out();
  if (out.numel() == 0) return;
  const Padding padding(c);
  for (const PadStep& s : padding.steps)
    if (!fits(s)) return execute_on_host(c, out.device());
  const Place place(out.device());
  const int mode = padding.mode;
  Tensor from = out.is_contiguous()
                    ? contiguous_on_device(input)
                    : clone(input, out.dim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d);
  const auto blocks = [](int64_t count) { return divide_up(count, kBlock * kUnroll); };
  const auto is_big = [](int64_t count) { return count >= std::numeric_limits<int32_t>::max() - kBlock * kUnroll; };
  if (padding.back) {
    const Step s = step_of(padding.steps[0], true, 1);
    return kBack.launch(place, {out.dtype(), mode, is_big(s.count)}, blocks(s.count), kBlock, 0, from.bytes(),
                        out.bytes(), s);
  }
  // The constant, as often as it fits into 16 bytes.
  const Tensor value = scalar_tensor(c.scalar(3), out.dtype());
  struct alignas(16) {
    char bytes[16];
  } filler;
  const int64_t width = size_of(out.dtype());
  for (int64_t at = 0; at < 16; at += width) std::memcpy(filler.bytes + at, value.bytes(), static_cast<size_t>(width));
  for (int64_t k = 0; k < padding.steps.size(); ++k) {
    const PadStep& step = padding.steps[k];
    const Tensor to = k + 1 == padding.steps.size() ? out : empty({{step.new_count()}}, out.dtype(), out.device());
    int64_t word = 16;
    while (word > width && (step.inner * width % word ||
                            (reinterpret_cast<uintptr_t>(from.bytes()) | reinterpret_cast<uintptr_t>(to.bytes())) %
                                static_cast<uintptr_t>(word)))
      word /= 2;
    const Step s = step_of(step, false, word / width);
    kPad.launch(place, {static_cast<int>(word), mode, is_big(s.count)}, blocks(s.count), kBlock, 0, from.bytes(),
                to.bytes(), filler, s);
    from = to;
  }
}

}  // namespace

REGISTER_KERNELS(padding) { r.set_kernel("_pad", DeviceType::cuda, run_pad); }

}  // namespace cresset::cuda
