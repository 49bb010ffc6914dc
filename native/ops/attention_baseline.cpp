// Attention in blocks for any processor.
#include "ops/attention_blocks.h"

namespace cresset {

template <>
AttentionKernels<float> attention_kernels_baseline<float>() {
  return AttentionBlocks<float>::kernels();
}
template <>
AttentionKernels<double> attention_kernels_baseline<double>() {
  return AttentionBlocks<double>::kernels();
}

}  // namespace cresset
