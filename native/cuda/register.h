// The table of contents of the CUDA kernels: one function a topic. An operator without one is computed on the CPU (dispatch/on_host.h).
#pragma once
#include "dispatch/call.h"

namespace cresset::cuda {

// All of them. Called once, when the module loads; touches neither the driver nor a device.
void register_cuda_operators();

void register_cuda_attention(Registry& r);
void register_cuda_creation(Registry& r);
void register_cuda_indexing(Registry& r);
void register_cuda_join(Registry& r);
void register_cuda_convolution(Registry& r);
void register_cuda_fourier(Registry& r);
void register_cuda_matmul(Registry& r);
void register_cuda_normalization(Registry& r);
void register_cuda_pooling(Registry& r);
void register_cuda_random(Registry& r);
void register_cuda_random_sampling(Registry& r);
void register_cuda_rearrange(Registry& r);
void register_cuda_recurrence(Registry& r);
void register_cuda_reduction(Registry& r);
void register_cuda_scatter(Registry& r);
void register_cuda_compare(Registry& r);
void register_cuda_softmax(Registry& r);
void register_cuda_sorting(Registry& r);
void register_cuda_updates();
void register_cuda_loss(Registry& r);
void register_cuda_scan(Registry& r);

}  // namespace cresset::cuda
