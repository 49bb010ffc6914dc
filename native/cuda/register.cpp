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
}

}  // namespace cresset::cuda
