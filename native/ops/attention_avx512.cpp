// Attention in blocks for processors with AVX-512.
#include "ops/attention_blocks.h"

namespace cresset {

template <>
AttentionKernels<float> attention_kernels_avx512<float>() {
  return AttentionBlocks<float>::kernels();
}
template <>
AttentionKernels<double> attention_kernels_avx512<double>() {
  return AttentionBlocks<double>::kernels();
}

}  // namespace cresset
