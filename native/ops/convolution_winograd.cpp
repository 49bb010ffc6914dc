#include "ops/convolution_winograd.h"

#include <cstring>
#include <string_view>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "ops/convolution_pieces.h"

namespace cresset {
namespace {

using Kind = ConvolutionKind;

constexpr int64_t kChannelsUnit = 16;  // a vector of the widest kind
// Pairs of channels. With fewer, turning the tiles takes longer than multiplying them; with more, the turned filters
// leave the cache.
constexpr int64_t kLeastPairs = 16 * 32, kMostPairs = 256 * 256;
constexpr int64_t kLeastWidth = 4;
constexpr int64_t kTaps = 9;

const WinogradKernels& kernels() {
#ifdef __x86_64__
  static const WinogradKernels the =
      instruction_set() == std::string_view("avx512") ? winograd_kernels_avx512() : winograd_kernels_avx2();
#else
  static const WinogradKernels the = {};  // the level of these processors is not taken
#endif
  return the;
}

// The gradient of the input is a convolution of the gradient with the filter turned around.
WinogradSizes sizes_of(const ConvolutionSizes& c) {
  const bool back = c.kind == Kind::input_gradient;
  WinogradSizes s{c.images, back ? c.out_channels : c.in_channels, back ? c.in_channels : c.out_channels, {}, {}, {}};
  for (int d = 0; d < 2; ++d) {
    s.in[d] = back ? c.out[d + 1] : c.in[d + 1];
    s.out[d] = back ? c.in[d + 1] : c.out[d + 1];
    s.before[d] = back ? 2 - c.before[d + 1] : c.before[d + 1];
  }
  return s;
}

class WinogradKernel : public ConvolutionKernel {
 public:
  explicit WinogradKernel(const ConvolutionSizes& c) : kind_(c.kind), sizes_(sizes_of(c)) {
    const bool sums = c.kind == Kind::weight_gradient;
    const int64_t floats = sums ? kTaps * sizes_.from * sizes_.to : kHead + kernels().packed(sizes_);
    weight_bytes = floats * static_cast<int64_t>(sizeof(float));
    scratch_bytes = kernels().scratch(sizes_, sums) * static_cast<int64_t>(sizeof(float));
  }

  bool packs_like(const ConvolutionKernel&) const override { return true; }  // what depends on the channels only
  // What is packed begins with where it came from: results that are not finite are computed from that.
  void pack(const float* weight, char* packed) const override {
    WinogradFilter filter{weight, kTaps, sizes_.from * kTaps, false};
    if (kind_ == Kind::input_gradient) filter = {weight, sizes_.to * kTaps, kTaps, true};
    std::memcpy(packed, &filter, sizeof filter);
    float* const to = reinterpret_cast<float*>(packed) + kHead;
    parallel_for(sizes_.to / kChannelsUnit, std::max<int64_t>(1, 2048 / sizes_.from), [&](int64_t begin, int64_t end) {
      kernels().pack(sizes_, filter, begin * kChannelsUnit, end * kChannelsUnit, to);
    });
  }
  void unpack(const char* packed, float* weight) const override {
    const float* const from = reinterpret_cast<const float*>(packed);
    const int64_t pairs = sizes_.from * sizes_.to;
    parallel_for(sizes_.to / kChannelsUnit, std::max<int64_t>(1, 2048 / sizes_.from), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * kChannelsUnit; j < end * kChannelsUnit; j += kChannelsUnit)
        for (int64_t i = 0; i < sizes_.from; ++i)
          for (int64_t k = j; k < j + kChannelsUnit; ++k)
            for (int64_t t = 0; t < kTaps; ++t)
              weight[(k * sizes_.from + i) * kTaps + t] = from[t * pairs + i * sizes_.to + k];
    });
  }
  void run(const float* from, const char* packed, const float* bias, float* to, char* scratch) const override {
    WinogradFilter filter;
    std::memcpy(&filter, packed, sizeof filter);
    kernels().images(sizes_, from, filter, reinterpret_cast<const float*>(packed) + kHead, bias, to,
                     reinterpret_cast<float*>(scratch));
  }
  void run_weight(const float* grad, const float* input, char* packed, char* scratch) const override {
    kernels().sums(sizes_, grad, input, reinterpret_cast<float*>(packed), reinterpret_cast<float*>(scratch));
  }

 private:
  static constexpr int64_t kHead = 16;  // floats, for a WinogradFilter and to begin a line of the cache
  static_assert(sizeof(WinogradFilter) <= kHead * sizeof(float));
  Kind kind_;
  WinogradSizes sizes_;
};

}  // namespace

bool winograd_does(const ConvolutionSizes& c) {
  if (c.groups != 1 || c.kernel[0] != 1 || c.in[0] != 1 || c.out[0] != 1 || c.before[0] != 0) return false;
  for (int d = 1; d < 3; ++d)
    if (c.kernel[d] != 3 || c.stride[d] != 1 || c.dilation[d] != 1 || c.in[d] < kLeastWidth || c.out[d] < kLeastWidth)
      return false;
  const int64_t pairs = c.in_channels * c.out_channels;
  return c.in_channels % kChannelsUnit == 0 && c.out_channels % kChannelsUnit == 0 && pairs >= kLeastPairs &&
         pairs <= kMostPairs && instruction_set() != std::string_view("baseline");
}

std::shared_ptr<const ConvolutionKernel> winograd_convolution(const ConvolutionSizes& c) {
  return std::make_shared<const WinogradKernel>(c);
}

}  // namespace cresset
