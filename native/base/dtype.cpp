#include "base/dtype.h"

namespace cresset {

const DtypeFacts kDtypeFacts[kDtypes] = {
    {"uint8", nullptr, "Byte", 1, false, false, true, false},
    {"int8", nullptr, "Char", 1, false, false, true, true},
    {"int16", "short", "Short", 2, false, false, true, true},
    {"int32", "int", "Int", 4, false, false, true, true},
    {"int64", "long", "Long", 8, false, false, true, true},
    {"float16", "half", "Half", 2, true, false, false, true},
    {"float32", "float", "Float", 4, true, false, false, true},
    {"float64", "double", "Double", 8, true, false, false, true},
    {"complex32", "chalf", "ComplexHalf", 4, false, true, false, true},
    {"complex64", "cfloat", "ComplexFloat", 8, false, true, false, true},
    {"complex128", "cdouble", "ComplexDouble", 16, false, true, false, true},
    {"bool", nullptr, "Bool", 1, false, false, false, false},
    {"bfloat16", nullptr, "BFloat16", 2, true, false, false, true},
    {"float8_e5m2", nullptr, "Float8_e5m2", 1, true, false, false, true},
    {"float8_e4m3fn", nullptr, "Float8_e4m3fn", 1, true, false, false, true},
    {"float8_e5m2fnuz", nullptr, "Float8_e5m2fnuz", 1, true, false, false, true},
    {"float8_e4m3fnuz", nullptr, "Float8_e4m3fnuz", 1, true, false, false, true},
    {"uint16", nullptr, "UInt16", 2, false, false, true, false},
    {"uint32", nullptr, "UInt32", 4, false, false, true, false},
    {"uint64", nullptr, "UInt64", 8, false, false, true, false},
    {"float8_e8m0fnu", nullptr, "Float8_e8m0fnu", 1, true, false, false, false},
    {"float4_e2m1fn_x2", nullptr, "Float4_e2m1fn_x2", 1, true, false, false, true},
    {"uint1", nullptr, "UInt1", 1, false, false, false, false},
    {"uint2", nullptr, "UInt2", 1, false, false, false, false},
    {"uint3", nullptr, "UInt3", 1, false, false, false, false},
    {"uint4", nullptr, "UInt4", 1, false, false, false, false},
    {"uint5", nullptr, "UInt5", 1, false, false, false, false},
    {"uint6", nullptr, "UInt6", 1, false, false, false, false},
    {"uint7", nullptr, "UInt7", 1, false, false, false, false},
    {"int1", nullptr, "Int1", 1, false, false, false, true},
    {"int2", nullptr, "Int2", 1, false, false, false, true},
    {"int3", nullptr, "Int3", 1, false, false, false, true},
    {"int4", nullptr, "Int4", 1, false, false, false, true},
    {"int5", nullptr, "Int5", 1, false, false, false, true},
    {"int6", nullptr, "Int6", 1, false, false, false, true},
    {"int7", nullptr, "Int7", 1, false, false, false, true},
    {"bits1x8", nullptr, "Bits1x8", 1, false, false, false, false},
    {"bits2x4", nullptr, "Bits2x4", 1, false, false, false, false},
    {"bits4x2", nullptr, "Bits4x2", 1, false, false, false, false},
    {"bits8", nullptr, "Bits8", 1, false, false, false, false},
    {"bits16", nullptr, "Bits16", 2, false, false, false, false},
};

namespace {

bool is_float8(Dtype d) { return is_floating(d) && size_of(d) == 1; }
bool is_wide_unsigned(Dtype d) { return d == Dtype::u16 || d == Dtype::u32 || d == Dtype::u64; }

// Position of the floating types by range: half and bfloat16 do not contain one another and meet in float.
Dtype promote_floating(Dtype a, Dtype b) {
  if (a == b) return a;
  if (a == Dtype::f64 || b == Dtype::f64) return Dtype::f64;
  if (a == Dtype::f32 || b == Dtype::f32 || size_of(a) == size_of(b)) return Dtype::f32;
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  check(!(is_container(a) || is_container(b)), "Promotion from ", name_of(a), " and ", name_of(b), " is unsupported.");
  check(!(is_float8(a) || is_float8(b)), "Promotion for Float8 Types is not supported, attempted to promote ",
        name_of(a), " and ", name_of(b));
  if (is_complex(a) || is_complex(b)) {
    Dtype x = to_real(a), y = to_real(b);
    if (!is_floating(x)) return b;
    if (!is_floating(y)) return a;
    return to_complex(promote_floating(x, y));
  }
  if (is_floating(a) && is_floating(b)) return promote_floating(a, b);
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (a == Dtype::b8) return b;
  if (b == Dtype::b8) return a;
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    const bool both_unsigned = !facts(a).is_signed && !facts(b).is_signed;
    check(both_unsigned, "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ",
          name_of(a), " and ", name_of(b));
    return size_of(a) > size_of(b) ? a : b;
  }
  if (facts(a).is_signed == facts(b).is_signed) return size_of(a) > size_of(b) ? a : b;
  const Dtype with_sign = facts(a).is_signed ? a : b;  // the other is uint8
  return with_sign == Dtype::i8 ? Dtype::i16 : with_sign;
}

bool can_cast(Dtype from, Dtype to) {
  if (is_complex(from)) return is_complex(to);
  if (is_floating(from)) return is_floating(to) || is_complex(to);
  return from == Dtype::b8 || to != Dtype::b8;
}

Dtype to_real(Dtype d) {
  switch (d) {
    case Dtype::c32: return Dtype::f16;
    case Dtype::c64: return Dtype::f32;
    case Dtype::c128: return Dtype::f64;
    default: return d;
  }
}

Dtype to_complex(Dtype d) {
  switch (d) {
    case Dtype::f16: return Dtype::c32;
    case Dtype::f64: return Dtype::c128;
    case Dtype::f32:
    case Dtype::bf16: return Dtype::c64;
    default: return is_complex(d) ? d : to_complex(default_dtype());
  }
}

static Dtype the_default_dtype = Dtype::f32;
Dtype default_dtype() { return the_default_dtype; }
void set_default_dtype(Dtype d) {
  check_type(is_floating(d) && size_of(d) > 1, "only floating-point types are supported as the default type, got ",
             name_of(d));
  the_default_dtype = d;
}

}  // namespace cresset
