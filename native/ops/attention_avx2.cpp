// Attention in blocks for processors with AVX2 and FMA.
#include "ops/attention_blocks.h"

namespace cresset {

template <>
AttentionKernels<float> attention_kernels_avx2<float>() {
  return AttentionBlocks<float>::kernels();
}
template <>
AttentionKernels<double> attention_kernels_avx2<double>() {
  return AttentionBlocks<double>::kernels();
}

}  // namespace cresset
