// Products with weights of 8 or 4 bits that are widened as they are read: what large language models say token after
// token is bound by reading their weights.
#include "ops/packed_weights.h"

#include <vector>

#include "base/checked.h"
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/fold.h"

namespace cresset {
namespace {

constexpr int64_t kGrain = 1 << 14;  // weights

bool is_computed_with(Dtype d) { return d == Dtype::f32 || d == Dtype::f16 || d == Dtype::bf16; }

void check_rows(const Call& c, const char* who) {
  const Tensor x = c.tensor(0);
  check(x.dim() == 2 && is_computed_with(x.dtype()), who,
        " : expect A to be a matrix of float32, float16 or bfloat16, got ", x.dtype(), " ", list(x.sizes()));
}

// ---------------------------------------------------------------- 8 bits

// (input, mat2, scales): input mat2^T, each column times its scale
void infer_int8_product(Call& c) {
  const char* who = "_weight_int8pack_mm";
  check_rows(c, who);
  const Tensor x = c.tensor(0), w = c.tensor(1), scales = c.tensor(2);
  check(w.dtype() == Dtype::i8, who, " : expect B to be int8 tensor, got ", w.dtype());
  check(w.dim() == 2 && w.size(1) == x.size(1), who, " : expect B.size(1) == ", x.size(1), ", got B of shape ",
        list(w.sizes()));
  check(scales.dim() == 1 && scales.size(0) == w.size(0), who, " : expect scales to be 1d tensor with size ", w.size(0),
        ", got ", list(scales.sizes()));
  check(scales.dtype() == x.dtype(), who, " : expect scales of ", x.dtype(), ", got ", scales.dtype());
  const int64_t sizes[] = {x.size(0), w.size(0)};
  c.promise(sizes, x.dtype(), x.device());
}

struct BytesTimesRow {
  template <class Fma>
  CRESSET_INLINE void run(const int8_t* weights, const float* x, int64_t k, float* result) {
    *result = static_cast<float>(
        sum_of_terms<float>(k, [=](int64_t i) CRESSET_TERM { return static_cast<float>(weights[i]) * x[i]; }));
  }
};

// out[m][n] = f(n, x row m, made row n)
template <class Row>
void multiply_rows(const Tensor& out, const Tensor& x, int64_t n, Row&& row) {
  const int64_t rows = x.size(0), k = x.size(1), sizes[] = {rows, n};
  const Tensor made = out.dtype() == Dtype::f32 && out.is_contiguous() ? out : empty(sizes, Dtype::f32);
  parallel_for(n, std::max<int64_t>(1, kGrain / std::max<int64_t>(k * rows, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      row(i, [&](auto&& dot) {
        for (int64_t m = 0; m < rows; ++m) made.data<float>()[m * n + i] = dot(x.data<float>() + m * k);
      });
  });
  if (made.get() != out.get()) copy_into(out, made);
}

void run_int8_product(Call& c) {
  const Tensor x = ready<float>(c.tensor(0)), w = contiguous(c.tensor(1)), scales = ready<float>(c.tensor(2));
  const int64_t k = x.size(1);
  multiply_rows(c.out(), x, w.size(0), [&](int64_t i, auto&& each) {
    each([&](const float* row) {
      float sum;
      run_vectorized<BytesTimesRow>(static_cast<const int8_t*>(w.data<int8_t>() + i * k), row, k, &sum);
      return sum * scales.data<float>()[i];
    });
  });
}

// ---------------------------------------------------------------- 4 bits

// Numbers from 0 to 15 as words, from `weight(row, k)`.
template <class Weight>
void pack_rows(uint32_t* words, int64_t rows, int64_t k, Weight&& weight) {
  parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t at = 0; at < k / 8; ++at) {
        const PackedWord to(row, at, k);
        uint32_t word = 0;
        for (int i = 0; i < 8; ++i) word |= (static_cast<uint32_t>(weight(row, to.first + i)) & 15) << kNibbleShifts[i];
        words[to.place] = word;
      }
  });
}

// (weights of int32 from 0 to 15, innerKTiles)
void infer_pack_of_numbers(Call& c) {
  const char* who = "_convert_weight_to_int4pack_cpu";
  const Tensor w = c.tensor(0);
  check(w.dtype() == Dtype::i32, who, " : expect weight to be kInt, got ", w.dtype());
  check(w.dim() == 2, who, " : expect a matrix, got shape ", list(w.sizes()));
  check(w.size(0) % 16 == 0, who, " : expect N to be dividable by 16, got ", w.size(0));
  check(w.size(1) % 32 == 0, who, " : expect K to be dividable by 32, got ", w.size(1));
  const int64_t sizes[] = {w.size(0), w.size(1) / 2};
  c.promise(sizes, Dtype::u8, w.device());
}
void run_pack_of_numbers(Call& c) {
  const Tensor w = contiguous(c.tensor(0)), out = c.out().is_contiguous() ? c.out() : empty(c.out().sizes(), Dtype::u8);
  const int64_t k = w.size(1);
  pack_rows(reinterpret_cast<uint32_t*>(out.bytes()), w.size(0), k,
            [&](int64_t row, int64_t i) { return w.data<int32_t>()[row * k + i]; });
  if (out.get() != c.out().get()) copy_into(c.out(), out);
}

// (bytes with the weights 2 i in the upper and 2 i + 1 in the lower half, innerKTiles)
void infer_pack_of_bytes(Call& c) {
  const char* who = "_convert_weight_to_int4pack";
  const Tensor w = c.tensor(0);
  const int64_t tiles = c.integer(1);
  check(w.dtype() == Dtype::u8, who, ": expected in to be uint8, got ", w.dtype());
  check(w.dim() == 2, who, ": expected a matrix, got shape ", list(w.sizes()));
  check(tiles == 2 || tiles == 4 || tiles == 8, who, ": innerKTiles must be 2, 4 or 8, got ", tiles);
  check(w.size(0) % 8 == 0 && w.size(1) * 2 % (tiles * 16) == 0, who, ": expected rows in eights and columns in ",
        tiles * 16, "s, got weights of shape [", w.size(0), ", ", w.size(1) * 2, "]");
  const int64_t sizes[] = {w.size(0) / 8, w.size(1) * 2 / (tiles * 16), 32, tiles / 2};
  c.promise(sizes, Dtype::i32, w.device());
}
void run_pack_of_bytes(Call& c) {
  const Tensor w = contiguous(c.tensor(0)),
               out = c.out().is_contiguous() ? c.out() : empty(c.out().sizes(), Dtype::i32);
  const int64_t half = w.size(1);
  pack_rows(reinterpret_cast<uint32_t*>(out.bytes()), w.size(0), 2 * half, [&](int64_t row, int64_t i) {
    const int byte = w.data<uint8_t>()[row * half + i / 2];
    return i % 2 ? byte & 15 : byte >> 4;
  });
  if (out.get() != c.out().get()) copy_into(c.out(), out);
}

// (input, mat2, qGroupSize, qScaleAndZeros): input w^T with w = (number - 8) scale + zero, for each group along k
void infer_int4_product(Call& c, const char* who, Dtype packed) {
  check_rows(c, who);
  const Tensor x = c.tensor(0), w = c.tensor(1), scales = c.tensor(3);
  const int64_t k = x.size(1), group = c.integer(2);
  check(w.dtype() == packed, who, " : expect B to be ", packed == Dtype::u8 ? "uint8" : "int32", " tensor, got ",
        w.dtype());
  check(w.dim() == (packed == Dtype::u8 ? 2 : 4), who, " : expect B as the conversion to int4pack gives it, got shape ",
        list(w.sizes()));
  check(group == 32 || group == 64 || group == 128 || group == 256, who,
        ": expect qGroupSize to be 32, 64, 128 or 256, got ", group);
  const int64_t n = packed == Dtype::u8 ? w.size(0) : w.size(0) * 8;
  check(k % 32 == 0 && w.numel() * static_cast<int64_t>(size_of(packed)) * 2 == n * k, who, " : expect B for ", k,
        " columns of A, got shape ", list(w.sizes()));
  check(k % group == 0, who, " : expect K to be dividable by qGroupSize ", group, ", got ", k);
  check(scales.dim() == 3 && scales.size(0) == k / group && scales.size(1) == n && scales.size(2) == 2, who,
        ": expect qScaleAndZeros to be 3d tensor with sizes [", k / group, ", ", n, ", 2], got ", list(scales.sizes()));
  check(scales.dtype() == x.dtype(), who, ": expect qScaleAndZeros of ", x.dtype(), ", got ", scales.dtype());
  const int64_t sizes[] = {x.size(0), n};
  c.promise(sizes, x.dtype(), x.device());
}
void infer_int4_product_of_bytes(Call& c) { infer_int4_product(c, "_weight_int4pack_mm_cpu", Dtype::u8); }
void infer_int4_product_of_words(Call& c) { infer_int4_product(c, "_weight_int4pack_mm", Dtype::i32); }

struct WidenRow {
  template <class Fma>
  CRESSET_INLINE void run(const uint32_t* words, int64_t row, const float* scales, int64_t step, int64_t k,
                          int64_t group, float* to) {
    for (int64_t at = 0; at < k / 8; ++at) {
      const PackedWord from(row, at, k);
      const int64_t first = from.first;
      const float scale = scales[first / group * step], zero = scales[first / group * step + 1];
      const uint32_t word = words[from.place];
#pragma GCC ivdep
      for (int i = 0; i < 8; ++i)
        to[first + i] = static_cast<float>(static_cast<int32_t>(word >> kNibbleShifts[i] & 15) - 8) * scale + zero;
    }
  }
};
struct RowTimesRow {
  template <class Fma>
  CRESSET_INLINE void run(const float* a, const float* b, int64_t k, float* result) {
    *result = static_cast<float>(sum_of_terms<float>(k, [=](int64_t i) CRESSET_TERM { return a[i] * b[i]; }));
  }
};
void run_int4_product(Call& c) {
  const Tensor x = ready<float>(c.tensor(0)), w = contiguous(c.tensor(1)), scales = ready<float>(c.tensor(3));
  const int64_t k = x.size(1), n = c.out().size(1), group = c.integer(2);
  const auto* words = reinterpret_cast<const uint32_t*>(w.bytes());
  multiply_rows(c.out(), x, n, [&](int64_t i, auto&& each) {
    thread_local std::vector<float> wide;
    wide.resize(static_cast<size_t>(k));
    run_vectorized<WidenRow>(static_cast<const uint32_t*>(words), i,
                             static_cast<const float*>(scales.data<float>() + 2 * i), 2 * n, k, group, wide.data());
    each([&](const float* row) {
      float sum;
      run_vectorized<RowTimesRow>(static_cast<const float*>(wide.data()), row, k, &sum);
      return sum;
    });
  });
}

}  // namespace

REGISTER(packed_weights) {
  const uint32_t kPlain = kFunctionOnly | kNotDifferentiable;
  r.add("_weight_int8pack_mm(Tensor input, Tensor mat2, Tensor scales) -> Tensor", infer_int8_product, run_int8_product,
        kPlain);
  r.add("_convert_weight_to_int4pack(Tensor input, int innerKTiles) -> Tensor", infer_pack_of_bytes, run_pack_of_bytes,
        kPlain);
  r.add("_convert_weight_to_int4pack_for_cpu(Tensor input, int innerKTiles) -> Tensor", infer_pack_of_numbers,
        run_pack_of_numbers, kPlain);
  r.add("_weight_int4pack_mm(Tensor input, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
        infer_int4_product_of_words, run_int4_product, kPlain);
  r.add("_weight_int4pack_mm_for_cpu(Tensor input, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
        infer_int4_product_of_bytes, run_int4_product, kPlain);
}

}  // namespace cresset
