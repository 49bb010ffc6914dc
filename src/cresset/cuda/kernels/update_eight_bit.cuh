// Adam whose means are kept in 8 bits: Note [Means in 8 bits] in native/ops/update_eight_bit.h. A warp has a block of
// 256 elements, a lane eight of them, VECTOR side by side; T is the parameter's dtype, G the gradient's.
#include "types.cuh"

// The same as EightBitNumbers in native/ops/update_eight_bit.h.
struct Numbers {
  float beta1, beta2, eps, step_size, root, shrink, added;
};

__device__ __forceinline__ int nearest(const float* values, float x) {
  int at = 0;
#pragma unroll
  for (int step = 128; step > 0; step /= 2)
    if (values[at + step] <= x) at += step;
  return at < 255 && x - values[at] > values[at + 1] - x ? at + 1 : at;
}
__device__ __forceinline__ float warp_max(float x) {
  for (int d = 16; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
  return x;
}

extern "C" __global__ void __launch_bounds__(256)
    adam_in_8_bits(T* param, const G* grad, uint8_t* first, uint8_t* second, float* first_largest,
                   float* second_largest, const float* first_table, const float* second_table, int64_t count,
                   const Numbers n) {
  after_earlier_work();
  constexpr int PARTS = 8 / VECTOR;
  __shared__ float first_values[256], second_values[256];
  first_values[threadIdx.x] = first_table[threadIdx.x];
  second_values[threadIdx.x] = second_table[threadIdx.x];
  __syncthreads();
  const int lane = threadIdx.x % 32;
  const int64_t blocks = (count + 255) / 256;
  for (int64_t block = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32; block < blocks;
       block += static_cast<int64_t>(gridDim.x) * 8) {
    float m[8] = {}, v[8] = {}, most = 0, most_square = 0;
    const float largest = first_largest[block], largest_square = second_largest[block];
    const int64_t from = block * 256 + lane * VECTOR;
    Vector<T, VECTOR> old[PARTS];
    Vector<G, VECTOR> grads[PARTS];
    Vector<uint8_t, VECTOR> codes[PARTS], square_codes[PARTS];
#pragma unroll
    for (int i = 0; i < PARTS; ++i) {
      const int64_t at = from + i * (32 * VECTOR);
      if (at >= count) continue;
      old[i] = load_vector<VECTOR>(param + at), grads[i] = load_vector<VECTOR>(grad + at);
      codes[i] = load_vector<VECTOR>(first + at), square_codes[i] = load_vector<VECTOR>(second + at);
    }
#pragma unroll
    for (int i = 0; i < PARTS; ++i) {
      const int64_t at = from + i * (32 * VECTOR);
      if (at >= count) continue;
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        const float p = convert<float>(old[i][k]), g = convert<float>(grads[i][k]) + n.added * p;
        float& mean = m[i * VECTOR + k];
        float& square = v[i * VECTOR + k];
        mean = n.beta1 * (first_values[codes[i][k]] * largest) + (1 - n.beta1) * g;
        square = n.beta2 * (second_values[square_codes[i][k]] * largest_square) + (1 - n.beta2) * g * g;
        old[i][k] = convert<T>(p * n.shrink - n.step_size * mean / (sqrtf(square) / n.root + n.eps));
        most = fmaxf(most, fabsf(mean)), most_square = fmaxf(most_square, square);
      }
      store_vector(param + at, old[i]);
    }
    most = warp_max(most), most_square = warp_max(most_square);
    const float inverse = most > 0 ? 1.0f / most : 0.0f, square_inverse = most_square > 0 ? 1.0f / most_square : 0.0f;
#pragma unroll
    for (int i = 0; i < PARTS; ++i) {
      const int64_t at = from + i * (32 * VECTOR);
      if (at >= count) continue;
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        const float square = v[i * VECTOR + k];
        const int code = nearest(second_values, square * square_inverse);
        codes[i][k] = static_cast<uint8_t>(nearest(first_values, m[i * VECTOR + k] * inverse));
        square_codes[i][k] = static_cast<uint8_t>(code == 0 && square > 0 ? 1 : code);
      }
      store_vector(first + at, codes[i]);
      store_vector(second + at, square_codes[i]);
    }
    if (lane == 0) first_largest[block] = most, second_largest[block] = most_square;
  }
}
