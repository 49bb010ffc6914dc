#include "cuda/register.h"

namespace cresset::cuda {

void register_cuda_operators() {
  Registry& r = Registry::instance();
  register_cuda_attention(r);
  register_cuda_creation(r);
  register_cuda_indexing(r);
  register_cuda_join(r);
  register_cuda_convolution(r);
  register_cuda_fourier(r);
  register_cuda_matmul(r);
  register_cuda_normalization(r);
  register_cuda_pooling(r);
  register_cuda_random(r);
  register_cuda_random_sampling(r);
  register_cuda_rearrange(r);
  register_cuda_recurrence(r);
  register_cuda_reduction(r);
  register_cuda_scatter(r);
  register_cuda_compare(r);
  register_cuda_softmax(r);
  register_cuda_sorting(r);
  register_cuda_updates();
  register_cuda_loss(r);
  register_cuda_scan(r);
}

}  // namespace cresset::cuda
