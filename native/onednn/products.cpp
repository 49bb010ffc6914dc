// oneDNN, as far as the core uses it: large products of floats, and products of small integers. This folder is the only one that includes its headers.
#include <dnnl.h>
#include <omp.h>

#include <string>

#include "base/error.h"
#include "ops/gemm.h"

namespace cresset {

void install_onednn_convolution();  // convolution.cpp

namespace {

// The threads are ours (base/parallel.h): the library's OpenMP starts none.
void product(const LibraryProduct& p) {
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha, p.a, p.a_row, p.b, p.b_row, p.beta, p.c, p.c_row);
  invariant(status == dnnl_success, "oneDNN refused a matrix product");
}

void integer_product(const LibraryIntegerProduct& p) {
  omp_set_num_threads(1);
  const int32_t offset = 0;
  const dnnl_status_t status = dnnl_gemm_s8s8s32(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', 'F', p.m, p.n, p.k, 1, p.a, p.a_row, 0, p.b, p.b_row, 0, 0, p.c, p.n, &offset);
  invariant(status == dnnl_success, "oneDNN refused a product of integers");
}

}  // namespace

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

void install_onednn() {
  library_product = product;
  // Without these instructions the library sums pairs in 16 bits, where they may saturate.
  if (__builtin_cpu_supports("avx512vnni")) library_integer_product = integer_product;
  install_onednn_convolution();
}

}  // namespace cresset
