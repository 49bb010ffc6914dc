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

constexpr int64_t kTileRows = 8, kTileColumns = 16, kPad = 32;  // as below
constexpr int64_t kFewRows = 16;
constexpr int64_t kMostShared = 96 << 10;  // for two blocks of a multiprocessor

// BITS of a weight. GROUPS: scales in a block of 128 weights of four bits; a group may have several blocks. PARTS: of
// k, which warps of a block of threads share. WHOLE: k has whole blocks, and columns come in sixteens.
const KernelText kText{
    R"cuda(// with T=dtype_bf16 BITS=4 GROUPS=4 PARTS=8 WHOLE=0, T=dtype_f16 BITS=4 GROUPS=1 PARTS=4 WHOLE=1, T=dtype_bf16 BITS=8 GROUPS=1 PARTS=16 WHOLE=1
#include "tensor_core.cuh"

constexpr int kWarps = BITS == 4 ? 8 : 16, kAhead = BITS == 4 ? 3 : 2;  // blocks of weights on their way
constexpr int kBlock = BITS == 4 ? 128 : 64;  // weights along k of a block: 16 bytes for each of four lanes
constexpr int kStep = BITS == 4 ? 128 : 16;   // words from a block to the next one
constexpr int kSlices = kWarps / PARTS;       // of sixteen columns, of a block of threads
constexpr int kPad = 32;                      // between rows in shared memory, so that their banks are others

struct Product {
  const T* x;               // [rows][k]
  const uint32_t* weights;  // 4 bits: see native/ops/packed_weights.h; 8 bits: [columns][k]
  const T* scales;          // 4 bits: [k / group][columns][2]: scale, zero; 8 bits: [columns]
  T* out;                   // [rows][columns]
  int32_t rows, columns, k, group;  // 2^group weights along k share a scale
  int32_t at_once;                  // rows of a block of threads, no more than eight
};

// The nibbles NUMBER and NUMBER + 4 of a word, plus 16: the first bits of the mantissa of 16.
template <int NUMBER>
__device__ __forceinline__ uint32_t widened(uint32_t word) {
  constexpr int kPlace = is_same<T, half> ? 6 : 3, kShift = kPlace - 4 * NUMBER;
  constexpr uint32_t kSixteen = is_same<T, half> ? 0x4c004c00u : 0x41804180u, kMask = 0x000f000fu << kPlace;
  const uint32_t shifted = kShift > 0 ? word << (kShift > 0 ? kShift : 0) : word >> (kShift > 0 ? 0 : -kShift);
#ifndef CRESSET_EMULATED
  uint32_t wide;  // the compiler takes two instructions
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(wide) : "r"(shifted), "r"(kMask), "r"(kSixteen));
  return wide;
#else
  return (shifted & kMask) | kSixteen;
#endif
}
// Two bytes of a word from FIRST on, as signed numbers: each as the last bits of 2^23.
template <int FIRST>
__device__ __forceinline__ uint32_t widened_bytes(uint32_t word) {
#ifndef CRESSET_EMULATED
  const uint32_t low = __byte_perm(word, 0x4b000000u, 0x7540 + FIRST), high = __byte_perm(word, 0x4b000000u, 0x7541 + FIRST);
#else
  const uint32_t low = 0x4b000000u | (word >> 8 * FIRST & 255), high = 0x4b000000u | (word >> 8 * (FIRST + 1) & 255);
#endif
  return pack<T>(__builtin_bit_cast(float, low) - 8388736.0f, __builtin_bit_cast(float, high) - 8388736.0f);
}
// Weights are read once: what else lies in the cache shall stay there.
__device__ __forceinline__ uint4 load_once(const uint32_t* from) {
#ifndef CRESSET_EMULATED
  uint4 words;
  asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from));
  return words;
#else
  return *reinterpret_cast<const uint4*>(from);
#endif
}
__device__ __forceinline__ uint32_t word_of(const uint4& words, int which) {
  return which == 0 ? words.x : which == 1 ? words.y : which == 2 ? words.z : words.w;
}

// A warp computes eight rows and sixteen columns over a part of k. A lane has the columns g and g + 8 of weights, which
// are the first factor of the tensor cores; the order of the terms of a sum along k is free.
extern "C" __global__ void __launch_bounds__(32 * kWarps, 16 / kWarps) few_rows(const Product p) {
  extern __shared__ char shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int part = warp % PARTS, slice = blockIdx.x * kSlices + warp / PARTS;
  const int first_row = blockIdx.y * p.at_once, left = p.rows - first_row, rows = left < p.at_once ? left : p.at_once;
  const int blocks = (p.k + kBlock - 1) / kBlock, each = (blocks + PARTS - 1) / PARTS;
  const int begin = part * each, end = begin + each < blocks ? begin + each : blocks;
  // Columns that are not there are computed as others, and not written.
  const uint32_t* from[2];
  int column[2];
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    column[c] = slice * 16 + 8 * c + g;
    if (column[c] >= p.columns) column[c] = BITS == 4 ? p.columns - 8 + g : p.columns - 1;
    if (BITS == 4)
      from[c] = p.weights + column[c] / 8 * static_cast<int64_t>(p.k) + begin * kStep + lane * 4;
    else
      from[c] = p.weights + column[c] * static_cast<int64_t>(p.k / 4) + begin * kStep + t * 4;
  }

  // A warp's weights are on their way to the cache before the kernel may begin: half of its time is that of its start.
  const int64_t own = (end - begin) * static_cast<int64_t>(kStep) * 4;
  if (WHOLE && begin < end && lane == 0)
#pragma unroll
    for (int c = 0; c < (BITS == 4 ? 2 : 16); ++c)
      prefetch(p.weights + (BITS == 4 ? (slice * 2 + c) * static_cast<int64_t>(p.k) : (slice * 16 + c) * static_cast<int64_t>(p.k / 4)) + begin * kStep, own);
  after_earlier_work();

  struct Loaded {
    uint4 weights[2];
#if BITS == 4
    uint32_t scales[2][GROUPS];
#endif
  };
  const auto load = [&](int block, int ahead, Loaded& loaded) {  // `from` is `ahead` blocks before it
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const uint32_t* const at = from[c] + ahead * kStep;
      if (WHOLE) {
        loaded.weights[c] = load_once(at);
        continue;
      }
#if BITS == 4
      const int parts = (p.k - block * kBlock) / 32;
      if (parts >= 4) {
        loaded.weights[c] = load_once(at);
      } else {
        const uint32_t* const few = at - lane * (4 - parts);
        loaded.weights[c] = {few[0], parts > 1 ? few[1] : 0, parts > 2 ? few[2] : 0, 0};
      }
#else
      loaded.weights[c] = {0, 0, 0, 0};
      if (block * kBlock + t * 16 < p.k) loaded.weights[c] = load_once(at);
#endif
    }
#if BITS == 4
#pragma unroll
    for (int q = 0; q < GROUPS; ++q) {
      const int k = block * kBlock + q * (kBlock / GROUPS);
      const uint32_t* const scales = reinterpret_cast<const uint32_t*>(p.scales) + ((k >> p.group) * p.columns + column[0]);
#pragma unroll
      for (int c = 0; c < 2; ++c) loaded.scales[c][q] = WHOLE ? scales[8 * c] : k < p.k ? scales[column[c] - column[0]] : 0;
    }
#endif
  };
  Loaded ahead[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i)
    if (begin + i < end) load(begin + i, i, ahead[i]);

  // The rows, with zeros up to a whole block; and of each group of them its sum.
  const int wide = blocks * kBlock + kPad;
  auto* const sums = reinterpret_cast<float(*)[16][8]>(shared);  // of each warp
  T* const x = reinterpret_cast<T*>(sums + kWarps);
#pragma unroll 1
  for (int r = 0; r < rows; ++r)
    for (int at = threadIdx.x * 8; at < wide; at += 32 * kWarps * 8)
      *reinterpret_cast<uint4*>(x + r * wide + at) =
          at < p.k ? *reinterpret_cast<const uint4*>(p.x + static_cast<int64_t>(first_row + r) * p.k + at) : uint4{0, 0, 0, 0};
  __syncthreads();
#if BITS == 4
  constexpr int kGroup = kBlock / GROUPS, kLanes = kGroup / 8;
  float* const levels = reinterpret_cast<float*>(x + rows * wide);  // [groups][8]
  const int wanted = blocks * GROUPS * rows;
#pragma unroll 1
  for (int base = 0; base < wanted; base += 32 * kWarps / kLanes) {
    const int i = base + threadIdx.x / kLanes, r = i % rows, group = i / rows;
    float sum = 0;
    if (i < wanted) {
      float values[8];
      unpack<T>(*reinterpret_cast<const uint4*>(x + r * wide + group * kGroup + threadIdx.x % kLanes * 8), values);
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += values[k];
    }
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (i < wanted && threadIdx.x % kLanes == 0) levels[group * 8 + r] = sum;
  }
  __syncthreads();
#endif

  // What the lane multiplies with: of rows that are not there, the first one, whose sums are not written.
  const T* row = x + (g < rows ? g : 0) * wide + begin * kBlock + t * (BITS == 4 ? 8 : 16);
  float total[4] = {};
  const auto multiply = [&](int block, int i, const Loaded& loaded) {
#if BITS == 4
    constexpr int kParts = 4 / GROUPS;  // of 32 weights, in a group
#pragma unroll
    for (int q = 0; q < GROUPS; ++q) {
      float sum[4] = {};
#pragma unroll
      for (int j = q * kParts; j < (q + 1) * kParts; ++j) {
        const uint4 b = *reinterpret_cast<const uint4*>(row + i * kBlock + j * 32);
        const uint32_t first = word_of(loaded.weights[0], j), second = word_of(loaded.weights[1], j);
        const uint32_t a[4] = {widened<0>(first), widened<0>(second), widened<1>(first), widened<1>(second)};
        multiply_add<T>(sum, a, b.x, b.y);
        const uint32_t more[4] = {widened<2>(first), widened<2>(second), widened<3>(first), widened<3>(second)};
        multiply_add<T>(sum, more, b.z, b.w);
      }
      const float* const level = levels + ((block + i) * GROUPS + q) * 8 + 2 * t;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float scale, zero;
        unpack<T>(loaded.scales[c][q], scale, zero);
        zero -= 24 * scale;  // 8 of the format, 16 of `widened`
#pragma unroll
        for (int r = 0; r < 2; ++r) total[c * 2 + r] += scale * sum[c * 2 + r] + zero * level[r];
      }
    }
#else
    const uint4 b[2] = {*reinterpret_cast<const uint4*>(row + i * kBlock), *reinterpret_cast<const uint4*>(row + i * kBlock + 8)};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t signs = 0x80808080u, first = word_of(loaded.weights[0], j) ^ signs,
                     second = word_of(loaded.weights[1], j) ^ signs;
      const uint32_t a[4] = {widened_bytes<0>(first), widened_bytes<0>(second), widened_bytes<2>(first),
                             widened_bytes<2>(second)};
      multiply_add<T>(total, a, j % 2 ? b[j / 2].z : b[j / 2].x, j % 2 ? b[j / 2].w : b[j / 2].y);
    }
#endif
  };
#pragma unroll 1
  for (int block = begin; block < end; block += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (block + i < end) multiply(block, i, ahead[i]);
      if (block + kAhead + i < end) load(block + kAhead + i, kAhead + i, ahead[i]);
    }
    from[0] += kAhead * kStep, from[1] += kAhead * kStep;
    row += kAhead * kBlock;
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) sums[warp][g + i / 2 * 8][2 * t + i % 2] = total[i];
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < kSlices * 16 * rows; i += 32 * kWarps) {
    const int which = i / 16 % kSlices, r = i / (16 * kSlices);
    const int64_t to = (static_cast<int64_t>(blockIdx.x) * kSlices + which) * 16 + i % 16;
    if (to >= p.columns) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < PARTS; ++w) sum += sums[which * PARTS + w][i % 16][r];
#if BITS == 8
    sum *= convert<float>(p.scales[to]);
#endif
    p.out[static_cast<int64_t>(first_row + r) * p.columns + to] = convert<T>(sum);
  }
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
    const uint32_t word = p.weights[column / 8 * p.k + block * kBlock + column % 8 * (4 * parts) + at % 16];
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
    pack_weights(const uint8_t* bytes, uint32_t* out, INDEX count, INDEX k) {
  after_earlier_work();
  const INDEX i = static_cast<INDEX>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) return;
  const INDEX in_rows = i % k, block = in_rows / 128, left = (k - block * 128) / 32, parts = left < 4 ? left : 4;
  const INDEX word = in_rows % 128 % (4 * parts), row = i / k * 8 + in_rows % 128 / (4 * parts);
  const INDEX first = block * 128 + word % parts * 32 + word / parts * 8;
  uint32_t packed = 0;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const uint32_t two = bytes[row * (k / 2) + first / 2 + pair];
    packed |= two >> 4 << 4 * pair | (two & 15) << (4 * pair + 16);
  }
  out[i] = packed;
}
)cuda"};
const KernelFamily kPack(kPackText, "pack_weights", {"INDEX"});

const KernelFamily kFew(kText, "few_rows", {"T", "BITS", "GROUPS", "PARTS", "WHOLE"}, {"--fmad=true"});
const KernelFamily kWide(kText, "wide_weights", {"T", "BITS", "GROUPS", "PARTS", "WHOLE"});

// As above.
struct Product {
  const void *x, *weights, *scales;
  void* out;
  int32_t rows, columns, k, group, at_once;
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
  if (x.dtype() == Dtype::f32 || k == 0 || k % 16 || std::max({rows, columns, k, columns * (k / 32)}) > kMost ||
      !out.is_contiguous() || !is_aligned(x, 16) || !is_aligned(weights, 16) || !is_aligned(scales, 4))
    return execute_on_host(c, device);
  const Place place(device);
  const int groups = bits == 4 && group < 128 ? static_cast<int>(128 / group) : 1;
  const int64_t warps = bits == 4 ? 8 : 16, block = bits == 4 ? 128 : 64, blocks = divide_up(k, block),
                of_row = (blocks * block + kPad) * size_of(x.dtype()),
                of_sums = (warps * kTileColumns + (bits == 4 ? blocks * groups : 0)) * kTileRows *
                          static_cast<int64_t>(sizeof(float)),
                shared = std::min<int64_t>(kMostShared, properties(place.device).shared_per_block_optin),
                at_once = std::min({kTileRows, rows, (shared - of_sums) / of_row});
  const Product p{x.bytes(),
                  weights.bytes(),
                  scales.bytes(),
                  out.bytes(),
                  static_cast<int32_t>(rows),
                  static_cast<int32_t>(columns),
                  static_cast<int32_t>(k),
                  std::countr_zero(static_cast<uint64_t>(group)),
                  static_cast<int32_t>(at_once)};
  if (rows <= kFewRows && at_once > 0) {
    // How many warps share a column: measured on an H200.
    const int64_t parts = bits == 8 ? 16 : columns <= 8192 ? 8 : 4;
    return kFew.launch(
        place, {x.dtype(), bits, groups, static_cast<int>(parts), k % block == 0 && columns % kTileColumns == 0},
        Grid(divide_up(columns, kTileColumns * warps / parts), divide_up(rows, at_once)), 32 * warps,
        at_once * of_row + of_sums, p);
  }
  const int64_t sizes[] = {columns, k}, transposed[] = {k, columns}, strides[] = {1, k};
  const Tensor wide = empty(sizes, x.dtype(), device);
  kWide.launch(place, {x.dtype(), bits, 1, 8, false}, columns, 256, 0, p, wide.bytes());
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
               out.numel(), k);
}

}  // namespace

REGISTER_KERNELS(packed_weights) {
  r.set_kernel("_convert_weight_to_int4pack", DeviceType::cuda, run_pack_of_bytes);
  r.set_kernel("_weight_int8pack_mm", DeviceType::cuda, run_int8_product);
  r.set_kernel("_weight_int4pack_mm", DeviceType::cuda, run_int4_product);
}

}  // namespace cresset::cuda
