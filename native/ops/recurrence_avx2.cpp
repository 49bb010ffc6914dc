// The steps of recurrent layers for processors with AVX2 and FMA.
#include "ops/recurrence_steps.h"

namespace cresset {

template <>
RecurrenceKernels<float> recurrence_kernels_avx2<float>() {
  return RecurrenceSteps<float>::kernels();
}
template <>
RecurrenceKernels<double> recurrence_kernels_avx2<double>() {
  return RecurrenceSteps<double>::kernels();
}

}  // namespace cresset
