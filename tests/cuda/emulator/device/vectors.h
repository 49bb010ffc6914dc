// CUDA's short vectors: float4, make_float4 and the like.
#pragma once

using uint3 = EmulatedIndex;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// clang-format off: a table, one kind a line
#define EMULATED_VECTOR_1_2_4(T, name)                                                                        \
  struct name##1 { T x; };                                                                                    \
  struct __attribute__((aligned(2 * sizeof(T)))) name##2 { T x, y; };                                         \
  struct __attribute__((aligned(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)))) name##4 { T x, y, z, w; };         \
  inline constexpr name##1 make_##name##1(T x) { return {x}; }                                                \
  inline constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                        \
  inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define EMULATED_VECTOR_3(T, name)                                                                            \
  struct name##3 { T x, y, z; };                                                                              \
  inline constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }
EMULATED_VECTOR_1_2_4(signed char, char) EMULATED_VECTOR_3(signed char, char)
EMULATED_VECTOR_1_2_4(unsigned char, uchar) EMULATED_VECTOR_3(unsigned char, uchar)
EMULATED_VECTOR_1_2_4(short, short) EMULATED_VECTOR_3(short, short)
EMULATED_VECTOR_1_2_4(unsigned short, ushort) EMULATED_VECTOR_3(unsigned short, ushort)
EMULATED_VECTOR_1_2_4(int, int) EMULATED_VECTOR_3(int, int)
EMULATED_VECTOR_1_2_4(unsigned, uint)
EMULATED_VECTOR_1_2_4(long, long) EMULATED_VECTOR_3(long, long)
EMULATED_VECTOR_1_2_4(unsigned long, ulong) EMULATED_VECTOR_3(unsigned long, ulong)
EMULATED_VECTOR_1_2_4(long long, longlong) EMULATED_VECTOR_3(long long, longlong)
EMULATED_VECTOR_1_2_4(unsigned long long, ulonglong) EMULATED_VECTOR_3(unsigned long long, ulonglong)
EMULATED_VECTOR_1_2_4(float, float) EMULATED_VECTOR_3(float, float)
EMULATED_VECTOR_1_2_4(double, double) EMULATED_VECTOR_3(double, double)
// clang-format on
#undef EMULATED_VECTOR_1_2_4
#undef EMULATED_VECTOR_3
