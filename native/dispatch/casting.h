// What happens to a result where out= has another dtype: it is cast, if that loses no kind of number, or refused.
#pragma once
#include <string_view>

#include "dispatch/call.h"

namespace cresset {

// Formulas and what makes tensors of nothing cast; other operators do where their Python file says so:
// operator("sum", ..., casts_out=True).
bool casts_out(const Operator& op);
void let_cast_out(const Operator& op);

inline void check_cast(std::string_view who, Dtype from, Dtype to) {
  check(can_cast(from, to), who, ": result type ", facts(from).legacy, " can't be cast to the desired output type ",
        facts(to).legacy);
}
// A dtype as C calls it, where it does.
inline const char* alias_of(Dtype d) { return facts(d).alias ? facts(d).alias : name_of(d); }

// The same in the words of linear algebra, whose results have names.
inline void check_cast_of(std::string_view who, std::string_view result, Dtype from, Dtype to) {
  check(can_cast(from, to), who, ": Expected ", result, " to be safely castable from ", facts(from).legacy,
        " dtype, but got ", result, " with dtype ", facts(to).legacy, ": Expected out tensor to have dtype ",
        alias_of(from), ", but got ", alias_of(to), " instead");
}
inline void check_own_dtype(const char* who, const Tensor& out, Dtype dtype, const char* result = "out") {
  check(out.dtype() == dtype, who, ": Expected out tensor to have dtype ", name_of(dtype), ", but got ",
        name_of(out.dtype()), " instead: expected scalar_type ", facts(dtype).legacy, " but found ",
        facts(out.dtype()).legacy, " (expected scalar type ", facts(dtype).legacy, " but got ",
        facts(out.dtype()).legacy, " for ", result, ')');
}

}  // namespace cresset
