// The table of contents of the CPU's operators: one function a topic.
#pragma once
#include "dispatch/call.h"

namespace cresset {

void register_pointwise(Registry& r);
void register_arithmetic(Registry& r);
void register_view(Registry& r);
void register_copy(Registry& r);
void register_creation(Registry& r);
void register_random(Registry& r);
void register_reduction(Registry& r);
void register_scan(Registry& r);
void register_softmax(Registry& r);
void register_loss(Registry& r);
void register_indexing(Registry& r);
void register_scatter(Registry& r);
void register_sorting(Registry& r);
void register_compare(Registry& r);
void register_histogram(Registry& r);
void register_join(Registry& r);
void register_rearrange(Registry& r);
void register_matmul(Registry& r);
void register_older_forms(Registry& r);
void register_matmul_integer(Registry& r);
void register_matmul_scaled(Registry& r);
void register_attention(Registry& r);
void register_recurrence(Registry& r);
void register_convolution(Registry& r);
void register_fourier(Registry& r);
void register_sparse(Registry& r);
void register_quantize(Registry& r);
void register_resampling(Registry& r);
void register_pooling(Registry& r);

// All of them. Called once, when the module loads.
void register_operators();
const char* instruction_set();  // the level in use: "baseline", "avx2" or "avx512"

}  // namespace cresset
