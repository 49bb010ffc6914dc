// A call of a pointwise operator, in three steps: what comes out (pointwise_infer.cpp), the plain loop over whole
// contiguous operands (pointwise_plain.cpp), and the walk over everything else (pointwise_walk.cpp).
#pragma once
#include "dispatch/call.h"

namespace cresset {

// What the call computes in and what it gives, from shapes, strides, dtypes and numbers alone: no data is touched.
struct PointwisePlan {
  TensorInfo result;
  Dtype common;                       // of the promoted inputs
  Compute compute;                    // of the loop
  Dims strides[kMaxPointwiseInputs];  // of the inputs in the shape of the result; 0 where they are repeated
};
void plan_pointwise(const Call& c, PointwisePlan& plan);
void infer_pointwise(Call& c);  // the same as a shape rule: promises the result

// Whether beside a number, an operand of another shape, the order of a contiguous tensor's strides decides where the
// dimensions of length one lie.
bool counts_beside_numbers(const TensorImpl& t, const PointwiseDefinition& def);

// A number among those of half precision is rounded to theirs, bfloat16(0.1) == 0.1, unless the operator keeps it
// exact.
// In PointwiseDefinition::exact: an out= of another dtype is refused, always or where only the first input is a tensor.
inline constexpr uint8_t kOwnDtype = 0x80, kOwnDtypeOfOne = 0x40;
inline bool is_rounded(const PointwiseDefinition& def, int input, Dtype common) {
  return (common == Dtype::f16 || common == Dtype::bf16) && !(def.exact >> input & 1);
}
Scalar rounded(const Scalar& number, Dtype half);
void store_number(const Scalar& s, Compute c, char* to);  // as one element of the compute type
// The loop for this dtype, or for the one that it is computed in; raises when there is none.
Loop pick_loop(const Operator& op, const Loop* loops, Dtype common, Compute& compute);
// What the loop writes: bool, the real part's type, or the compute type.
Dtype loop_output(Promotion promotion, Compute compute);

// The common call: floating-point tensors of one dtype and shape, all contiguous, perhaps with a number. False: it is
// not that.
bool run_plain(Call& c);
void run_walk(Call& c, PointwisePlan& plan);  // uses up the plan

// The CPU's side of Backend::run.
void run_dense_on_cpu(const DenseLaunch& l);
void run_walk_on_cpu(const PointwiseLaunch& l);

}  // namespace cresset
