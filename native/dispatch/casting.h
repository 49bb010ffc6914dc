// What happens to a result where out= has another dtype: it is cast, if that loses no kind of number, or refused.
#pragma once
#include "dispatch/call.h"

namespace cresset {

// Formulas and what makes tensors of nothing cast; other operators do where their Python file says so:
// operator("sum", ..., casts_out=True).
bool casts_out(const Operator& op);
void let_cast_out(const Operator& op);

inline void check_own_dtype(const char* who, const Tensor& out, Dtype dtype, const char* result = "out") {
  check(out.dtype() == dtype, who, ": Expected out tensor to have dtype ", name_of(dtype), ", but got ",
        name_of(out.dtype()), " instead: expected scalar_type ", facts(dtype).legacy, " but found ",
        facts(out.dtype()).legacy, " (expected scalar type ", facts(dtype).legacy, " but got ",
        facts(out.dtype()).legacy, " for ", result, ')');
}

}  // namespace cresset
