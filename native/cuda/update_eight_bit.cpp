// Adam whose means are kept in 8 bits: Note [Means in 8 bits].
#include "cuda/update_eight_bit.h"

#include "cuda/launch.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kThreads = 256, kBlocksOfThreads = kThreads / 32;

const KernelFamily kAdam("update_eight_bit.cuh", "adam_in_8_bits", {"T", "G", "VECTOR"});

}  // namespace

void adam_in_8_bits(const EightBitAdam& s) {
  check(s.param.device().type == DeviceType::cuda, "adam_in_8_bits: there is no kernel for ", s.param.device());
  const int64_t count = s.param.numel(), blocks = divide_up(count, kEightBitBlock);
  const Place place(s.param.device());
  check(!is_capturing(place.stream),
        "Adam8bit, AdamW8bit: a step cannot be recorded in a CUDA graph, which would repeat it with the same count");
  const auto lies = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.bytes()) % static_cast<uintptr_t>(4 * size_of(t.dtype())) == 0;
  };
  const int vector = count % 4 == 0 && lies(s.param) && lies(s.grad) && lies(s.first) && lies(s.second) ? 4 : 1;
  const int64_t most = int64_t{properties(place.device).multiprocessors} * 8;
  kAdam.launch(place, {s.param.dtype(), s.grad.dtype(), vector}, std::min(divide_up(blocks, kBlocksOfThreads), most),
               kThreads, 0, s.param.bytes(), static_cast<const char*>(s.grad.bytes()), s.first.bytes(),
               s.second.bytes(), s.first_largest.bytes(), s.second_largest.bytes(), s.first_values.bytes(),
               s.second_values.bytes(), count, numbers_of(s));
}

}  // namespace cresset::cuda
