// What attention_tiles.cuh has for half precision, by Hopper's products of a warpgroup: four warps multiply 64 rows,
// and read what they multiply with where it lies in shared memory. A lane has of the sum what it has of sixteen rows by
// the products of a warp (tensor_core.cuh), those of the warp's sixteen rows.
//
// Note [Tiles of a warpgroup]
// A tile lies in panels of 64 columns: a row of a panel is 128 bytes, one row after the other, and within it the piece
// of 16 bytes p stands at p ^ (row % 8), so that eight rows of a column lie in different banks. The instructions are
// told where a tile begins, how far it is to the next eight rows (1024 bytes), and, where columns are summed over rows,
// to the next panel. A tile begins at a multiple of 1024 bytes.
#pragma once

template <int ROWS>
__device__ __forceinline__ int place_in_tile(int row, int column) {
  return column / 64 * (ROWS * 64) + row * 64 + (((column / 8 % 8) ^ (row % 8)) * 8 + column % 8);
}

#ifndef CRESSET_EMULATED

// A tile as the instructions are told of it, or what lies `elements` behind: there only the lower half differs, and
// stays within its bits.
__device__ __forceinline__ uint32_t described(const T* tile, int panel_bytes) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  return (address & 0x3ffffu) >> 4 | static_cast<uint32_t>(panel_bytes >> 4) << 16;
}
__device__ __forceinline__ uint64_t behind(uint32_t tile, int elements) {
  return uint64_t{1u << 30 | 1024 >> 4} << 32 | (tile + static_cast<uint32_t>(elements * sizeof(T) / 16));
}
// Nothing of the sums is read or written on the other side of this.
template <int M, int N>
__device__ __forceinline__ void keep_in_order(float (&sum)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
      asm volatile("" : "+f"(sum[m][n][0]), "+f"(sum[m][n][1]), "+f"(sum[m][n][2]), "+f"(sum[m][n][3])::"memory");
}
template <class... Sums>
__device__ __forceinline__ void begin_products(Sums&... sums) {
  (keep_in_order(sums), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <class... Sums>
__device__ __forceinline__ void end_products(Sums&... sums) {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  (keep_in_order(sums), ...);
}

#define FOUR(n) "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
#define EIGHT(n) FOUR(n), FOUR(n + 1)
#define THIRTY_TWO(n) EIGHT(n), EIGHT(n + 2), EIGHT(n + 4), EIGHT(n + 6)
#define FRESH_4(n) "=f"(sum[n][0]), "=f"(sum[n][1]), "=f"(sum[n][2]), "=f"(sum[n][3])
#define FRESH_32 FRESH_4(0), FRESH_4(1), FRESH_4(2), FRESH_4(3), FRESH_4(4), FRESH_4(5), FRESH_4(6), FRESH_4(7)
#define PLACES_32                                                                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23," \
  " %24, %25, %26, %27, %28, %29, %30, %31}"
#define PLACES_64                                                                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23," \
  " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45," \
  " %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// sum = first second^T, of 64 rows each and 16 columns, and += of the next columns.
template <bool FIRST>
__device__ __forceinline__ void multiply_shared(float (&sum)[8][4], uint64_t first, uint64_t second) {
  if constexpr (FIRST && is_same<T, half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " PLACES_32 ", %32, %33, 0, 1, 1, 0, 0;"
                 : FRESH_32
                 : "l"(first), "l"(second));
  else if constexpr (FIRST)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " PLACES_32 ", %32, %33, 0, 1, 1, 0, 0;"
                 : FRESH_32
                 : "l"(first), "l"(second));
  else if constexpr (is_same<T, half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " PLACES_32 ", %32, %33, 1, 1, 1, 0, 0;"
                 : THIRTY_TWO(0)
                 : "l"(first), "l"(second));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " PLACES_32 ", %32, %33, 1, 1, 1, 0, 0;"
                 : THIRTY_TWO(0)
                 : "l"(first), "l"(second));
}
// sum += first second: 64 rows of 16 columns in registers, 16 rows of 64 or 128 columns.
__device__ __forceinline__ void multiply_registers(float (&sum)[8][4], const uint32_t (&first)[4], uint64_t second) {
  if constexpr (is_same<T, half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " PLACES_32
                 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : THIRTY_TWO(0)
                 : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]), "l"(second));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " PLACES_32
                 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : THIRTY_TWO(0)
                 : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]), "l"(second));
}
__device__ __forceinline__ void multiply_registers(float (&sum)[16][4], const uint32_t (&first)[4], uint64_t second) {
  if constexpr (is_same<T, half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " PLACES_64
                 ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : THIRTY_TWO(0), THIRTY_TWO(8)
                 : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]), "l"(second));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " PLACES_64
                 ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : THIRTY_TWO(0), THIRTY_TWO(8)
                 : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]), "l"(second));
}

template <int M, int N>
__device__ __forceinline__ void ask_for_rows(float (&sum)[M][N][4], const T* first, const T* second) {
  static_assert(N == 8 && TILE == 64);
  const uint32_t own = described(first, 16), other = described(second, 16);
#pragma unroll
  for (int d = 0; d < WIDTH; d += 16)
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const uint64_t a = behind(own, d / 64 * (BLOCK_ROWS * 64) + m * (64 * 64) + d % 64),
                     b = behind(other, d / 64 * (TILE * 64) + d % 64);
      if (d == 0)
        multiply_shared<true>(sum[m], a, b);
      else
        multiply_shared<false>(sum[m], a, b);
    }
}
// Weights as halves, in the registers that a product takes.
template <int M, int N>
__device__ __forceinline__ void pack_weights(uint32_t (&a)[M][N / 2][4], const float (&weights)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; n += 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m][n / 2][i] = pack<T>(weights[m][n + i / 2][i % 2 * 2], weights[m][n + i / 2][i % 2 * 2 + 1]);
      asm volatile("" : "+r"(a[m][n / 2][0]), "+r"(a[m][n / 2][1]), "+r"(a[m][n / 2][2]), "+r"(a[m][n / 2][3]));
    }
}
template <int M, int N>
__device__ __forceinline__ void ask_for_weighted(float (&sum)[M][WIDTH / 8][4], const uint32_t (&a)[M][N][4],
                                                 const T* second) {
  const uint32_t other = described(second, TILE * 128);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n) multiply_registers(sum[m], a[m][n], behind(other, n * (16 * 64)));
}

// sum[64 rows][rows of `second`] = first second^T, for each 64 of the block's rows.
template <int M, int N>
__device__ __forceinline__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second) {
  begin_products();
  ask_for_rows(sum, first, second);
  end_products(sum);
}
// sum[64 rows][WIDTH] += weights second: the weights are in registers as `multiply_rows` leaves sums.
template <int M, int N>
__device__ __forceinline__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4],
                                             const T* second) {
  uint32_t a[M][N / 2][4];
  pack_weights(a, weights);
  begin_products(sum);
  ask_for_weighted(sum, a, second);
  end_products(sum);
}

// Two of them, with one wait.
template <int M, int N>
__device__ __forceinline__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second,
                                              float (&other)[M][N][4], const T* other_first, const T* other_second) {
  begin_products();
  ask_for_rows(sum, first, second);
  ask_for_rows(other, other_first, other_second);
  end_products(sum, other);
}
template <int M, int N>
__device__ __forceinline__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4],
                                             const T* second, float (&other)[M][WIDTH / 8][4],
                                             const float (&other_weights)[M][N][4], const T* other_second) {
  uint32_t a[M][N / 2][4], b[M][N / 2][4];
  pack_weights(a, weights);
  pack_weights(b, other_weights);
  begin_products(sum, other);
  ask_for_weighted(sum, a, second);
  ask_for_weighted(other, b, other_second);
  end_products(sum, other);
}

// What was copied can be multiplied: wgmma reads by another way than copies write.
__device__ __forceinline__ void wait_for_tiles() {
  wait_for_copies();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#else  // the same sums: a lane reads its rows and columns where they lie

template <int M, int N>
__device__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n)
      for (int e = 0; e < 4; ++e)
        for (int d = 0; d < WIDTH; ++d)
          sum[m][n][e] += static_cast<float>(first[place_in_tile<BLOCK_ROWS>(m * 64 + warp * 16 + g + e / 2 * 8, d)]) *
                          static_cast<float>(second[place_in_tile<TILE>(n * 8 + t * 2 + e % 2, d)]);
}
template <int M, int N>
__device__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4], const T* second) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < 8; ++k)
        for (int r = 0; r < 2; ++r) {
          const float own[2] = {weights[m][n][r * 2], weights[m][n][r * 2 + 1]};
          const float weight = static_cast<float>(T(__shfl_sync(0xffffffffu, own[k % 2], g * 4 + k / 2)));
          for (int d = 0; d < WIDTH / 8; ++d)
            for (int c = 0; c < 2; ++c)
              sum[m][d][r * 2 + c] +=
                  weight * static_cast<float>(second[place_in_tile<TILE>(n * 8 + k, d * 8 + t * 2 + c)]);
        }
}
__device__ void wait_for_tiles() { wait_for_copies(); }

#endif

// The warp's 16 rows to rows `first`... of a matrix of `count` rows.
__device__ __forceinline__ void store_rows(const float (&sum)[WIDTH / 8][4], float low, float high, T*, T* to,
                                           int64_t step, int first, int count, int width) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int d = 0; d < WIDTH / 8; ++d) {
    if (d * 8 + t * 2 >= width) continue;
    if (first + g < count)
      store_vector(to + (first + g) * step + d * 8 + t * 2, Vector<T, 2>{{T(sum[d][0] * low), T(sum[d][1] * low)}});
    if (first + g + 8 < count)
      store_vector(to + (first + g + 8) * step + d * 8 + t * 2,
                   Vector<T, 2>{{T(sum[d][2] * high), T(sum[d][3] * high)}});
  }
}

// Where a tile of the block may begin; the rows of the block that a warp multiplies, all at once; and the first of
// those that a warp has of tile i.
__device__ __forceinline__ T* begin_of_tiles(uint4* memory) {  // by an offset: it stays known that it is shared memory
  const auto past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(memory) % 1024);
  return reinterpret_cast<T*>(memory + (1024 - past) % 1024 / sizeof(uint4));
}
__device__ __forceinline__ T* own_rows(T* rows) { return rows; }
__device__ __forceinline__ int own_row(int tile) { return tile * 64 + static_cast<int>(threadIdx.x) / 32 * 16; }
