#include "cuda/register.h"

namespace cresset::cuda {

void register_cuda_operators() {
  Registry& r = Registry::instance();
  register_cuda_matmul(r);
}

}  // namespace cresset::cuda
