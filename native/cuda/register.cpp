#include "cuda/register.h"

namespace cresset::cuda {

void register_cuda_operators() {
  Registry& r = Registry::instance();
  register_cuda_attention(r);
  register_cuda_matmul(r);
  register_cuda_reduction(r);
  register_cuda_random(r);
  register_cuda_softmax(r);
  register_cuda_normalization(r);
  register_cuda_updates();
  register_cuda_class_losses(r);
  register_cuda_scan(r);
}

}  // namespace cresset::cuda
