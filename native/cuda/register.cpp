#include "cuda/register.h"

namespace cresset::cuda {

void register_cuda_operators() {
  Registry& r = Registry::instance();
  register_cuda_matmul(r);
  register_cuda_reduction(r);
}

}  // namespace cresset::cuda
