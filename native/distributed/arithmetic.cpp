#include "distributed/arithmetic.h"

#include <cstring>
#include <type_traits>

#include "base/half.h"

namespace cresset::mpi {
namespace {

// How elements are kept, and what they are computed in. Whole numbers wrap around.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static T decode(T x) { return x; }
  static T encode(T x) { return x; }
};
template <float (*kDecode)(uint16_t), uint16_t (*kEncode)(float)>
struct Narrow {
  using Stored = uint16_t;
  using Value = float;
  static float decode(uint16_t x) { return kDecode(x); }
  static uint16_t encode(float x) { return kEncode(x); }
};
using NarrowHalf = Narrow<half_to_float, float_to_half>;
using NarrowBFloat = Narrow<bfloat16_to_float, float_to_bfloat16>;

template <Reduction kReduction, class T>
T reduced(T x, T y) {
  if constexpr (kReduction == Reduction::sum || kReduction == Reduction::product) {
    constexpr bool kSum = kReduction == Reduction::sum;
    if constexpr (std::is_floating_point_v<T>) {
      return kSum ? x + y : x * y;
    } else {
      const auto a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
      return static_cast<T>(kSum ? a + b : a * b);
    }
  } else if constexpr (kReduction == Reduction::minimum) {
    return x != x || x < y ? x : y;  // nan wins
  } else {
    return x != x || x > y ? x : y;
  }
}

// An element times a factor, as if it had been written and read between.
template <class Format>
typename Format::Value scaled(typename Format::Stored x, typename Format::Value by) {
  if constexpr (std::is_floating_point_v<typename Format::Value>)
    return Format::decode(Format::encode(Format::decode(x) * by));
  else
    return x;
}

template <class Format, Reduction kReduction>
void combine_as(const Operand& x, const Operand& y, void* to, int64_t count) {
  const auto* a = static_cast<const typename Format::Stored*>(x.at);
  const auto* b = static_cast<const typename Format::Stored*>(y.at);
  auto* out = static_cast<typename Format::Stored*>(to);
  const auto by = static_cast<typename Format::Value>(x.factor), with = static_cast<typename Format::Value>(y.factor);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++)
    out[i] = Format::encode(reduced<kReduction>(scaled<Format>(a[i], by), scaled<Format>(b[i], with)));
}

template <class Format>
void combine_by(Reduction reduction, const Operand& x, const Operand& y, void* to, int64_t count) {
  switch (reduction) {
    case Reduction::sum: return combine_as<Format, Reduction::sum>(x, y, to, count);
    case Reduction::product: return combine_as<Format, Reduction::product>(x, y, to, count);
    case Reduction::minimum: return combine_as<Format, Reduction::minimum>(x, y, to, count);
    case Reduction::maximum: return combine_as<Format, Reduction::maximum>(x, y, to, count);
    default: return;
  }
}

template <class Format>
void scale_as(const void* from, void* to, int64_t count, double factor) {
  const auto* a = static_cast<const typename Format::Stored*>(from);
  auto* b = static_cast<typename Format::Stored*>(to);
  const auto by = static_cast<typename Format::Value>(factor);
#pragma GCC ivdep  // the same place, or apart
  for (int64_t i = 0; i < count; i++) b[i] = Format::encode(Format::decode(a[i]) * by);
}

}  // namespace

bool combines(Dtype dtype, Reduction reduction) {
  if (reduction > Reduction::maximum) return false;
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64:
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i16:
    case Dtype::i32:
    case Dtype::i64: return true;
    default: return false;
  }
}

void combine(Dtype dtype, Reduction reduction, const Operand& x, const Operand& y, void* to, int64_t count) {
  switch (dtype) {
    case Dtype::f32: return combine_by<Plain<float>>(reduction, x, y, to, count);
    case Dtype::f64: return combine_by<Plain<double>>(reduction, x, y, to, count);
    case Dtype::f16: return combine_by<NarrowHalf>(reduction, x, y, to, count);
    case Dtype::bf16: return combine_by<NarrowBFloat>(reduction, x, y, to, count);
    case Dtype::u8: return combine_by<Plain<uint8_t>>(reduction, x, y, to, count);
    case Dtype::i8: return combine_by<Plain<int8_t>>(reduction, x, y, to, count);
    case Dtype::i16: return combine_by<Plain<int16_t>>(reduction, x, y, to, count);
    case Dtype::i32: return combine_by<Plain<int32_t>>(reduction, x, y, to, count);
    case Dtype::i64: return combine_by<Plain<int64_t>>(reduction, x, y, to, count);
    default: return;
  }
}

void scale(Dtype dtype, const void* from, void* to, int64_t count, double factor) {
  if (factor != 1) switch (dtype) {
      case Dtype::f32: return scale_as<Plain<float>>(from, to, count, factor);
      case Dtype::f64: return scale_as<Plain<double>>(from, to, count, factor);
      case Dtype::f16: return scale_as<NarrowHalf>(from, to, count, factor);
      case Dtype::bf16: return scale_as<NarrowBFloat>(from, to, count, factor);
      case Dtype::c64: return scale_as<Plain<float>>(from, to, 2 * count, factor);
      case Dtype::c128: return scale_as<Plain<double>>(from, to, 2 * count, factor);
      default: break;
    }
  if (from != to) std::memcpy(to, from, static_cast<size_t>(count) * size_of(dtype));
}

}  // namespace cresset::mpi
