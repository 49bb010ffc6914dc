#include "tensor/convert.h"

#include <array>
#include <cstring>

#include "base/instruction_set.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace cresset {
namespace {

struct Byte {
  uint8_t value;
};
// A bool is read as a byte: it may have been made of any.
template <class From>
using Stored = std::conditional_t<std::is_same_v<From, bool>, Byte, From>;
template <class T>
CRESSET_INLINE T value_of(T v) {
  return v;
}
CRESSET_INLINE bool value_of(Byte v) { return v.value != 0; }

template <class From, class To>
struct ConvertLoop {
  template <class Fma>
  CRESSET_INLINE void run(const From* a, To* b, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) b[i] = convert_element<To>(value_of(a[i]));
  }
};

// bfloat16 becomes float. What is widened is most often read for the first time: memory is asked for early, since the
// processor's own guesses end with each page. (A sum of 4 M took 1.7 times as long.)
template <>
struct ConvertLoop<BFloat16, float> {
  template <class Fma>
  CRESSET_INLINE void run(const BFloat16* a, float* b, int64_t n) {
    constexpr int64_t kTogether = 32, kAhead = 1024;
    int64_t i = 0;
    for (; i + kTogether <= n; i += kTogether) {
      __builtin_prefetch(a + i + kAhead);
#pragma GCC ivdep
      for (int64_t k = 0; k < kTogether; ++k) b[i + k] = static_cast<float>(a[i + k]);
    }
    for (; i < n; ++i) b[i] = static_cast<float>(a[i]);
  }
};

#ifdef __x86_64__
// Eight or sixteen numbers by one instruction, where the processor has it: half the time of half_to_float and a third
// of that of float_to_half, whose bits these have. They return how many they did.
[[gnu::target("avx2,f16c")]] int64_t widen_eights(const Half* a, float* b, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(b + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i))));
  return i;
}
[[gnu::target("avx512f")]] int64_t widen_sixteens(const Half* a, float* b, int64_t n) {
  constexpr int64_t kAhead = 1024;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __builtin_prefetch(a + i + kAhead);
    _mm512_storeu_ps(b + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i))));
  }
  return i;
}

// A nan loses what else it says: the instruction would keep some of its bits.
constexpr int kToNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
[[gnu::target("avx2,f16c")]] int64_t narrow_eights(const float* a, Half* b, int64_t n) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), sign = _mm256_set1_ps(-0.0f);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(a + i), plain = _mm256_or_ps(nan, _mm256_and_ps(x, sign));
    const __m256 known = _mm256_blendv_ps(x, plain, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(b + i), _mm256_cvtps_ph(known, kToNearest));
  }
  return i;
}
[[gnu::target("avx512f")]] int64_t narrow_sixteens(const float* a, Half* b, int64_t n) {
  const __m512i nan = _mm512_set1_epi32(0x7fc00000), sign = _mm512_set1_epi32(INT32_MIN);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 x = _mm512_loadu_ps(a + i);
    const __mmask16 unknown = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i known = _mm512_mask_or_epi32(bits, unknown, nan, _mm512_and_si512(bits, sign));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b + i), _mm512_cvtps_ph(_mm512_castsi512_ps(known), kToNearest));
  }
  return i;
}

// The instruction takes denormal numbers for zero and keeps bits of a nan: where there are any among 32, the shifts of
// float_to_bfloat16 are taken, and elsewhere it has their bits in less than half of the time.
[[gnu::target("avx512f,avx512dq,avx512bf16")]] int64_t narrow_pairs(const float* a, BFloat16* b, int64_t n) {
  constexpr int kQuietNan = 0x01, kDenormal = 0x20, kSignalingNan = 0x80,
                kOther = kQuietNan | kDenormal | kSignalingNan;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m512 low = _mm512_loadu_ps(a + i), high = _mm512_loadu_ps(a + i + 16);
    if (_mm512_fpclass_ps_mask(low, kOther) | _mm512_fpclass_ps_mask(high, kOther)) {
      for (int64_t k = i; k < i + 32; ++k) b[k] = BFloat16(a[k]);
      continue;
    }
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    std::memcpy(b + i, &both, sizeof(both));
  }
  return i;
}

bool has_eights() {
  static const bool has = detect_instruction_set() != InstructionSet::baseline;
  return has;
}
bool has_sixteens() {
  static const bool has = detect_instruction_set() == InstructionSet::avx512;
  return has;
}
bool has_pairs() {
  static const bool has = has_sixteens() && __builtin_cpu_supports("avx512bf16");
  return has;
}
int64_t convert_most(const Half* a, float* b, int64_t n) {
  return has_sixteens() ? widen_sixteens(a, b, n) : has_eights() ? widen_eights(a, b, n) : 0;
}
int64_t convert_most(const float* a, Half* b, int64_t n) {
  return has_sixteens() ? narrow_sixteens(a, b, n) : has_eights() ? narrow_eights(a, b, n) : 0;
}
int64_t convert_most(const float* a, BFloat16* b, int64_t n) { return has_pairs() ? narrow_pairs(a, b, n) : 0; }
#endif
// The first elements, by instructions for this conversion: how many, where there are any.
template <class From, class To>
int64_t convert_most(const From*, To*, int64_t) {
  return 0;
}

// The conversions that programs spend time in: those between float and the types of inputs and of mixed precision.
template <class Other>
constexpr bool is_common =
    std::is_same_v<Other, Half> || std::is_same_v<Other, BFloat16> || std::is_same_v<Other, double> ||
    std::is_same_v<Other, int64_t> || std::is_same_v<Other, int32_t> || std::is_same_v<Other, uint8_t> ||
    std::is_same_v<Other, bool>;
// All integers are computed as int64.
template <class Other>
constexpr bool is_common_integer =
    std::is_same_v<Other, int32_t> || std::is_same_v<Other, uint8_t> || std::is_same_v<Other, bool>;
template <class From, class To>
constexpr bool is_hot =
    (std::is_same_v<From, float> && is_common<To>) || (std::is_same_v<To, float> && is_common<From>) ||
    (std::is_same_v<From, int64_t> && is_common_integer<To>) ||
    (std::is_same_v<To, int64_t> && is_common_integer<From>);

template <class From, class To>
void convert_loop(const char* from, char* to, int64_t n) {
  const auto* a = reinterpret_cast<const Stored<From>*>(from);
  To* b = reinterpret_cast<To*>(to);
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
  } else if constexpr (is_hot<From, To>) {
    const int64_t done = convert_most(a, b, n);
    if (done < n) run_vectorized<ConvertLoop<Stored<From>, To>>(a + done, b + done, n - done);
  } else {
    ConvertLoop<Stored<From>, To>::template run<HardwareFma>(a, b, n);
  }
}

// The rare types go through a block of float (or complex) on the way.
template <Dtype kFrom, Dtype kVia, Dtype kTo>
void convert_via(const char* from, char* to, int64_t n) {
  constexpr int64_t kBlock = 256;
  alignas(64) char middle[kBlock * 16];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    converter(kFrom, kVia)(from + i * size_of(kFrom), middle, m);
    converter(kVia, kTo)(middle, to + i * size_of(kTo), m);
  }
}

void from_complex_half(const char* from, char* to, int64_t n) {
  const uint16_t* a = reinterpret_cast<const uint16_t*>(from);
  float* b = reinterpret_cast<float*>(to);
  for (int64_t i = 0; i < 2 * n; ++i) b[i] = half_to_float(a[i]);
}
void to_complex_half(const char* from, char* to, int64_t n) {
  const float* a = reinterpret_cast<const float*>(from);
  uint16_t* b = reinterpret_cast<uint16_t*>(to);
  for (int64_t i = 0; i < 2 * n; ++i) b[i] = float_to_half(a[i]);
}
template <int kWidth>
void copy_bytes(const char* from, char* to, int64_t n) {
  std::memcpy(to, from, static_cast<size_t>(n * kWidth));
}

constexpr bool is_rare(Dtype d) {
  return d == Dtype::f8e5m2 || d == Dtype::f8e4m3fn || d == Dtype::f8e5m2fnuz || d == Dtype::f8e4m3fnuz ||
         d == Dtype::f8e8m0fnu || d == Dtype::c32;
}
constexpr Dtype step(Dtype d) { return d == Dtype::c32 ? Dtype::c64 : Dtype::f32; }

template <class From, class To>
constexpr Convert pick() {
  constexpr Dtype a = dtype_of<From>, b = dtype_of<To>;
  if constexpr (a == Dtype::c32 && b == Dtype::c32)
    return copy_bytes<4>;
  else if constexpr (a == Dtype::c32 && b == Dtype::c64)
    return from_complex_half;
  else if constexpr (a == Dtype::c64 && b == Dtype::c32)
    return to_complex_half;
  else if constexpr (a == b || (is_rare(a) && b == Dtype::f32 && a != Dtype::c32) ||
                     (is_rare(b) && a == Dtype::f32 && b != Dtype::c32))
    return convert_loop<From, To>;
  else if constexpr (is_rare(a))
    return convert_via<a, step(a), b>;
  else if constexpr (is_rare(b))
    return convert_via<a, step(b), b>;
  else
    return convert_loop<From, To>;
}

using Row = std::array<Convert, kDtypes>;

template <class From>
Row make_row() {
  Row row{};
#define CRESSET_SET(tag, type) row[static_cast<int>(Dtype::tag)] = pick<From, type>();
  CRESSET_FOR_EACH_DTYPE(CRESSET_SET)
#undef CRESSET_SET
  return row;
}

std::array<Row, kDtypes> make_table() {
  std::array<Row, kDtypes> table{};
#define CRESSET_SET(tag, type) table[static_cast<int>(Dtype::tag)] = make_row<type>();
  CRESSET_FOR_EACH_DTYPE(CRESSET_SET)
#undef CRESSET_SET
  for (int d = 0; d < kDtypes; ++d)
    if (const Dtype dtype = static_cast<Dtype>(d); is_container(dtype))
      table[d][d] = size_of(dtype) == 1 ? copy_bytes<1> : copy_bytes<2>;
  return table;
}

}  // namespace

Convert converter(Dtype from, Dtype to) {
  static const auto table = make_table();
  const Convert found = table[static_cast<int>(from)][static_cast<int>(to)];
  check_implemented(found, "\"copy_\" not implemented for '", facts(is_container(from) ? from : to).legacy, "'");
  return found;
}

}  // namespace cresset
