// Products with weights of 8 or 4 bits on the device: see native/ops/packed_weights.cpp. Of few rows they are bound by
// reading the weights, which are widened in registers for the tensor cores; for many rows the weights are widened in
// memory first.
#include <bit>
#include <limits>

#include "cuda/backend.h"
#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kTileRows = 8, kTileColumns = 16, kFewRows = 16;  // the former two as below

// BITS of a weight. GROUPS: scales in a block of 128 weights of four bits; a group may have several blocks.
const KernelText kText{
    R"cuda(// with T=dtype_bf16 BITS=4 GROUPS=4, T=dtype_f16 BITS=4 GROUPS=1, T=dtype_bf16 BITS=8 GROUPS=1
#include "tensor_core.cuh"

constexpr int kWarps = 8, kAhead = 2;  // blocks of weights on their way
constexpr int kBlock = BITS == 4 ? 128 : 64;  // weights along k of a block: 16 bytes for each of four lanes

struct Product {
  const T* x;               // [rows][k]
  const uint32_t* weights;  // [columns][k]
  const T* scales;          // 4 bits: [k / group][columns][2]: scale, zero; 8 bits: [columns]
  T* out;                   // [rows][columns]
  int32_t rows, columns, k, group;  // 2^group weights along k share a scale
};

// Two numbers of the same sign and nearly the same size: the difference of such halves is exact.
__device__ __forceinline__ uint32_t less(uint32_t pair, uint32_t less) {
#ifndef CRESSET_EMULATED
  uint32_t result;
  if constexpr (is_same<T, half>)
    asm("sub.f16x2 %0, %1, %2;" : "=r"(result) : "r"(pair), "r"(less));
  else
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(pair), "r"(0x3f803f80u), "r"(less ^ 0x80008000u));
  return result;
#else
  float a, b, c, d;
  unpack<T>(pair, a, b);
  unpack<T>(less, c, d);
  return pack<T>(a - c, b - d);
#endif
}
// The nibbles 0 and 4 of a word, less 8: as the last bits of 128 in bfloat16, of 1024 in float16.
__device__ __forceinline__ uint32_t widened(uint32_t word) {
  constexpr uint32_t kLarge = is_same<T, half> ? 0x64006400u : 0x43004300u;
  return less((word & 0x000f000fu) | kLarge, kLarge | 0x00080008u);
}
// Two bytes of a word from `first` on, as signed numbers: each as the last bits of 2^23.
template <int FIRST>
__device__ __forceinline__ uint32_t widened_bytes(uint32_t word) {
  word ^= 0x80808080u;
#ifndef CRESSET_EMULATED
  const uint32_t low = __byte_perm(word, 0x4b000000u, 0x7540 + FIRST), high = __byte_perm(word, 0x4b000000u, 0x7541 + FIRST);
#else
  const uint32_t low = 0x4b000000u | (word >> 8 * FIRST & 255), high = 0x4b000000u | (word >> 8 * (FIRST + 1) & 255);
#endif
  return pack<T>(__builtin_bit_cast(float, low) - 8388736.0f, __builtin_bit_cast(float, high) - 8388736.0f);
}

// A block computes eight rows and sixteen columns; its warps divide k among them. A lane has the columns g and g + 8 of
// weights, which are the first factor of the tensor cores; the order of the terms of a sum along k is free.
extern "C" __global__ void __launch_bounds__(256, 2) few_rows(const Product p) {
  after_earlier_work();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int column = blockIdx.x * 16 + g, row = blockIdx.y * 8 + g;
  const int blocks = (p.k + kBlock - 1) / kBlock;
  const bool has[2] = {column < p.columns, column + 8 < p.columns}, has_row = row < p.rows;
  const uint32_t* from[2];
#pragma unroll
  for (int c = 0; c < 2; ++c)
    from[c] = p.weights + static_cast<int64_t>(has[c] ? column + 8 * c : 0) * (p.k * BITS / 32);
  const T* const x = p.x + static_cast<int64_t>(has_row ? row : 0) * p.k;
  float total[4] = {};

  const auto load = [&](int block, int which) {
    uint4 loaded = {0, 0, 0, 0};
    if (!has[which] || block >= blocks) return loaded;
#if BITS == 4
    const int parts = (p.k - block * kBlock) / 32;
    const uint32_t* const at = from[which] + block * 16 + t * (parts < 4 ? parts : 4);
    if (parts >= 4) return *reinterpret_cast<const uint4*>(at);
    loaded.x = at[0];
    if (parts > 1) loaded.y = at[1];
    if (parts > 2) loaded.z = at[2];
#else
    if (block * kBlock + t * 16 < p.k) loaded = *reinterpret_cast<const uint4*>(from[which] + block * 16 + t * 4);
#endif
    return loaded;
  };
  const auto rows_at = [&](int k) {
    return has_row && k < p.k ? *reinterpret_cast<const uint2*>(x + k) : uint2{0, 0};
  };
  // Of the columns g and g + 8: weights of a block, and the scale and zero of each group in it.
  struct Loaded {
    uint4 weights[2];
    uint32_t scales[2][GROUPS];
  };
  const auto load_both = [&](int block) {
    Loaded loaded;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      loaded.weights[c] = load(block, c);
#if BITS == 4
#pragma unroll
      for (int q = 0; q < GROUPS; ++q) {
        const int k = block * kBlock + q * (kBlock / GROUPS);
        const int64_t at = (static_cast<int64_t>(k >> p.group) * p.columns + column + 8 * c) * 2;
        loaded.scales[c][q] = has[c] && k < p.k ? *reinterpret_cast<const uint32_t*>(p.scales + at) : 0u;
      }
#endif
    }
    return loaded;
  };
  const auto multiply = [&](int block, const Loaded& loaded) {
    const uint4 low = loaded.weights[0], high = loaded.weights[1];
    const uint32_t first[4] = {low.x, low.y, low.z, low.w}, second[4] = {high.x, high.y, high.z, high.w};
#if BITS == 4
    constexpr uint32_t kOne = is_same<T, half> ? 0x3c003c00u : 0x3f803f80u;
    constexpr uint32_t kOnes[4] = {kOne, kOne, kOne, kOne};
    constexpr int kParts = 4 / GROUPS;  // of 32 weights, in a group
#pragma unroll
    for (int q = 0; q < GROUPS; ++q) {
      float sum[4] = {}, level[4] = {};
#pragma unroll
      for (int j = q * kParts; j < (q + 1) * kParts; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const uint2 b = rows_at(block * kBlock + j * 32 + t * 8 + h * 4);
          const uint32_t a[4] = {widened(first[j] >> 8 * h), widened(second[j] >> 8 * h),
                                 widened(first[j] >> (8 * h + 4)), widened(second[j] >> (8 * h + 4))};
          multiply_add<T>(sum, a, b.x, b.y);
          multiply_add<T>(level, kOnes, b.x, b.y);
        }
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float scale, zero;
        unpack<T>(loaded.scales[c][q], scale, zero);
        total[2 * c] += scale * sum[2 * c] + zero * level[2 * c];
        total[2 * c + 1] += scale * sum[2 * c + 1] + zero * level[2 * c + 1];
      }
    }
#else
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint2 b = rows_at(block * kBlock + t * 16 + j * 4);
      const uint32_t a[4] = {widened_bytes<0>(first[j]), widened_bytes<0>(second[j]), widened_bytes<2>(first[j]),
                             widened_bytes<2>(second[j])};
      multiply_add<T>(total, a, b.x, b.y);
    }
#endif
  };

  // A warp has neighboring blocks: what it reads of a column lies side by side.
  Loaded ahead[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) ahead[i] = load_both(warp * kAhead + i);
  for (int block = warp * kAhead; block < blocks; block += kWarps * kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const Loaded loaded = ahead[i];
      ahead[i] = load_both(block + kWarps * kAhead + i);
      if (block + i < blocks) multiply(block + i, loaded);
    }
  }

  __shared__ float sums[kWarps][16][8];
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[warp][g + i / 2 * 8][2 * t + i % 2] = total[i];
  __syncthreads();
  if (threadIdx.x >= 128) return;
  const int64_t to = static_cast<int64_t>(blockIdx.x) * 16 + threadIdx.x % 16,
                of = static_cast<int64_t>(blockIdx.y) * 8 + threadIdx.x / 16;
  if (to >= p.columns || of >= p.rows) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) sum += sums[i][threadIdx.x % 16][threadIdx.x / 16];
#if BITS == 8
  sum *= convert<float>(p.scales[to]);
#endif
  p.out[of * p.columns + to] = convert<T>(sum);
}

// The weights as [columns][k] of T: a block has a column, a thread eight weights at a time.
extern "C" __global__ void __launch_bounds__(256) wide_weights(const Product p, T* out) {
  after_earlier_work();
  const int64_t column = blockIdx.x;
  for (int at = threadIdx.x; at < p.k / 8; at += 256) {
    float wide[8];
#if BITS == 4
    const int block = at / 16, left = (p.k - block * kBlock) / 32, parts = left < 4 ? left : 4;
    const int first = block * kBlock + at % 16 % parts * 32 + at % 16 / parts * 8;
    const uint32_t word = p.weights[column * (p.k / 8) + at];
    const T* const scales = p.scales + (static_cast<int64_t>(first >> p.group) * p.columns + column) * 2;
    const float scale = convert<float>(scales[0]), zero = convert<float>(scales[1]);
    const int shifts[8] = {0, 16, 4, 20, 8, 24, 12, 28};
#pragma unroll
    for (int w = 0; w < 8; ++w)
      wide[w] = static_cast<float>(static_cast<int>(word >> shifts[w] & 15) - 8) * scale + zero;
#else
    const int first = at * 8;
    const uint2 words = *reinterpret_cast<const uint2*>(p.weights + column * (p.k / 4) + at * 2);
    const float scale = convert<float>(p.scales[column]);
#pragma unroll
    for (int w = 0; w < 8; ++w)
      wide[w] = static_cast<float>(static_cast<int8_t>((w < 4 ? words.x : words.y) >> w % 4 * 8)) * scale;
#endif
    *reinterpret_cast<uint4*>(out + column * p.k + first) =
        uint4{pack<T>(wide[0], wide[1]), pack<T>(wide[2], wide[3]), pack<T>(wide[4], wide[5]), pack<T>(wide[6], wide[7])};
  }
}
)cuda"};
// From bytes with two weights each, the first in the upper half, to words in the order of native/ops/packed_weights.h.
const KernelText kPackText{R"cuda(// with INDEX=dtype_i64
#include "types.cuh"

extern "C" __global__ void __launch_bounds__(256)
    pack_weights(const uint8_t* bytes, uint32_t* out, INDEX count, INDEX words, INDEX k) {
  after_earlier_work();
  const INDEX i = static_cast<INDEX>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) return;
  const INDEX row = i / words, at = i % words, left = (k - at / 16 * 128) / 32, parts = left < 4 ? left : 4;
  const INDEX first = at / 16 * 128 + at % 16 % parts * 32 + at % 16 / parts * 8;
  uint32_t word = 0;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const uint32_t two = bytes[row * (k / 2) + first / 2 + pair];
    word |= two >> 4 << 4 * pair | (two & 15) << (4 * pair + 16);
  }
  out[i] = word;
}
)cuda"};
const KernelFamily kPack(kPackText, "pack_weights", {"INDEX"});

const KernelFamily kFew(kText, "few_rows", {"T", "BITS", "GROUPS"});
const KernelFamily kWide(kText, "wide_weights", {"T", "BITS", "GROUPS"});

// As above.
struct Product {
  const void *x, *weights, *scales;
  void* out;
  int32_t rows, columns, k, group;
};

void multiply(Call& c, int bits, const Tensor& scales_given, int64_t group) {
  const Tensor x = contiguous_on_device(c.tensor(0)), weights = contiguous_on_device(c.tensor(1)),
               scales = contiguous_on_device(scales_given), out = c.out();
  const Device device = x.device();
  const int64_t rows = x.size(0), k = x.size(1), columns = out.size(1);
  if (out.numel() == 0) return;
  const auto is_aligned = [](const Tensor& t, uintptr_t to) {
    return reinterpret_cast<uintptr_t>(t.bytes()) % to == 0;
  };
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 8;
  if (x.dtype() == Dtype::f32 || k == 0 || k % 16 || std::max({rows, columns, k}) > kMost || !out.is_contiguous() ||
      !is_aligned(x, 8) || !is_aligned(weights, 16) || !is_aligned(scales, 4))
    return execute_on_host(c, device);
  const Place place(device);
  const Product p{x.bytes(),
                  weights.bytes(),
                  scales.bytes(),
                  out.bytes(),
                  static_cast<int32_t>(rows),
                  static_cast<int32_t>(columns),
                  static_cast<int32_t>(k),
                  std::countr_zero(static_cast<uint64_t>(group))};
  const int groups = bits == 4 && group < 128 ? static_cast<int>(128 / group) : 1;
  if (rows <= kFewRows)
    return kFew.launch(place, {x.dtype(), bits, groups},
                       Grid(divide_up(columns, kTileColumns), divide_up(rows, kTileRows)), 256, 0, p);
  const int64_t sizes[] = {columns, k}, transposed[] = {k, columns}, strides[] = {1, k};
  const Tensor wide = empty(sizes, x.dtype(), device);
  kWide.launch(place, {x.dtype(), bits, 1}, columns, 256, 0, p, wide.bytes());
  static const Operator& product = *Registry::instance().find("mm");
  copy_into(out, call_operator(product, x, view_of(wide, transposed, strides, wide.offset())));
}

void run_int8_product(Call& c) { multiply(c, 8, c.tensor(2), 1); }
void run_int4_product(Call& c) { multiply(c, 4, c.tensor(3), c.integer(2)); }

void run_pack_of_bytes(Call& c) {
  const Tensor w = contiguous_on_device(c.tensor(0)), out = c.out();
  if (out.numel() == 0) return;
  if (!out.is_contiguous()) return execute_on_host(c, out.device());
  const int64_t k = w.size(1) * 2;
  kPack.launch(Place(out.device()), {Dtype::i64}, divide_up(out.numel(), 256), 256, 0, w.bytes(), out.bytes(),
               out.numel(), k / 8, k);
}

}  // namespace

REGISTER_KERNELS(packed_weights) {
  r.set_kernel("_convert_weight_to_int4pack", DeviceType::cuda, run_pack_of_bytes);
  r.set_kernel("_weight_int8pack_mm", DeviceType::cuda, run_int8_product);
  r.set_kernel("_weight_int4pack_mm", DeviceType::cuda, run_int4_product);
}

}  // namespace cresset::cuda
