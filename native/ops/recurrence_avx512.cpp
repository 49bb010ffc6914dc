// The steps of recurrent layers for processors with AVX-512.
#include "ops/recurrence_steps.h"

namespace cresset {

template <>
RecurrenceKernels<float> recurrence_kernels_avx512<float>() {
  return RecurrenceSteps<float>::kernels();
}
template <>
RecurrenceKernels<double> recurrence_kernels_avx512<double>() {
  return RecurrenceSteps<double>::kernels();
}

}  // namespace cresset
