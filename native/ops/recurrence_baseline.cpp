// The steps of recurrent layers for any processor.
#include "ops/recurrence_steps.h"

namespace cresset {

template <>
RecurrenceKernels<float> recurrence_kernels_baseline<float>() {
  return RecurrenceSteps<float>::kernels();
}
template <>
RecurrenceKernels<double> recurrence_kernels_baseline<double>() {
  return RecurrenceSteps<double>::kernels();
}

}  // namespace cresset
