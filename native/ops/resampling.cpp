// Images of bytes in another size: each new row is a sum of old rows times whole weights, as image libraries compute
// it.
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

constexpr int64_t kColumns = 256;  // columns of a row that are summed at a time
constexpr int64_t kTurned = 16;    // lines that are turned into columns at a time

// The sum of `taps` rows, `step` bytes apart, times their weights, in units of 2^-bits and rounded.
struct BlendRows {
  template <class Fma>
  CRESSET_INLINE void run(const uint8_t* x, int64_t step, const int16_t* weights, int64_t taps, int64_t bits,
                          int64_t columns, uint8_t* out) {
    alignas(64) int32_t sums[kColumns];
    for (int64_t c = 0; c < columns; ++c) sums[c] = int32_t{1} << (bits - 1);
    for (int64_t k = 0; k < taps; ++k) {
      const int32_t weight = weights[k];
      const uint8_t* __restrict row = x + k * step;
      for (int64_t c = 0; c < columns; ++c) sums[c] += weight * row[c];
    }
    for (int64_t c = 0; c < columns; ++c) {
      const int32_t value = sums[c] >> bits, above = value < 0 ? 0 : value;
      out[c] = static_cast<uint8_t>(above > 255 ? 255 : above);
    }
  }
};

// How new elements are made of old ones: those from first[j] on, `taps` of them; weights of 0 at the end do not count.
struct Weights {
  const int64_t* first;
  const int16_t* values;
  int64_t size, taps, bits;
  SmallVector<int64_t, 64> used;

  Weights(const Tensor& first, const Tensor& values, int64_t bits)
      : first(first.data<int64_t>()),
        values(values.data<int16_t>()),
        size(values.size(0)),
        taps(values.size(1)),
        bits(bits) {
    for (int64_t j = 0; j < size; ++j) {
      int64_t n = taps;
      while (n > 0 && this->values[j * taps + n - 1] == 0) --n;
      used.push_back(n);
    }
  }
  void blend(const uint8_t* x, int64_t step, int64_t j, int64_t columns, uint8_t* out) const {
    for (int64_t c = 0; c < columns; c += kColumns)
      run_vectorized<BlendRows>(x + first[j] * step + c, step, values + j * taps, used[j], bits,
                                std::min(kColumns, columns - c), out + c);
  }
};

void infer_resized_bytes(Call& c) {
  const Tensor input = c.tensor(0), first = c.tensor(2), weights = c.tensor(3);
  const int64_t dim = c.integer(1), bits = c.integer(4);
  check(input.dtype() == Dtype::u8 && first.dtype() == Dtype::i64 && weights.dtype() == Dtype::i16,
        "resized_bytes: expected uint8, int64 and int16, got ", name_of(input.dtype()), ", ", name_of(first.dtype()),
        " and ", name_of(weights.dtype()));
  check(dim >= 0 && dim < input.dim() && first.dim() == 1 && weights.dim() == 2 && first.size(0) == weights.size(0) &&
            bits > 0 && bits < 31,
        "resized_bytes: dimension ", dim, " of ", list(input.sizes()), " does not fit ", list(first.sizes()), " and ",
        list(weights.sizes()), " with ", bits, " bits");
  Dims sizes = input.sizes();
  sizes[dim] = first.size(0);
  c.promise({std::move(sizes)}, Dtype::u8, input.device());
}

void run_resized_bytes(Call& c) {
  const Tensor input = contiguous(c.tensor(0)), first = contiguous(c.tensor(2)), values = contiguous(c.tensor(3)),
               out = c.out();
  const int64_t dim = c.integer(1), old = input.size(dim), size = first.size(0);
  const Weights weights(first, values, c.integer(4));
  for (int64_t j = 0; j < size; ++j)
    check(weights.first[j] >= 0 && weights.first[j] + weights.used[j] <= old, "resized_bytes: element ", j,
          " is made of ", weights.used[j], " from ", weights.first[j], " on, of ", old);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < input.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : input.size(d);
  if (outer == 0 || inner == 0 || size == 0) return;
  const auto* x = input.data<uint8_t>();
  auto* y = out.data<uint8_t>();
  if (inner > 1) {
    parallel_for(outer * size, std::max<int64_t>(1, kParallelGrain / (inner * weights.taps)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     weights.blend(x + i / size * old * inner, inner, i % size, inner, y + i * inner);
                 });
    return;
  }
  // Along lines: some of them are turned, so that what was one element of each is a row.
  const int64_t groups = (outer + kTurned - 1) / kTurned;
  parallel_for(groups, std::max<int64_t>(1, kParallelGrain / (kTurned * (old + size * weights.taps))),
               [&](int64_t begin, int64_t end) {
                 const auto turned = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(old * kTurned));
                 alignas(64) uint8_t row[kTurned];
                 for (int64_t g = begin; g < end; ++g) {
                   const int64_t lines = std::min(kTurned, outer - g * kTurned);
                   const uint8_t* from = x + g * kTurned * old;
                   uint8_t* to = y + g * kTurned * size;
                   for (int64_t l = 0; l < kTurned; ++l)
                     for (int64_t i = 0; i < old; ++i) turned[i * kTurned + l] = l < lines ? from[l * old + i] : 0;
                   for (int64_t j = 0; j < size; ++j) {
                     weights.blend(turned.get(), kTurned, j, kTurned, row);
                     for (int64_t l = 0; l < lines; ++l) to[l * size + j] = row[l];
                   }
                 }
               });
}

}  // namespace

REGISTER(resampling) {
  constexpr uint32_t kInternal = kFunctionOnly | kMethodOnly;  // for cresset.nn.functional, under no public name
  r.add("resized_bytes(Tensor input, int dim, Tensor first, Tensor weights, int bits) -> Tensor", infer_resized_bytes,
        run_resized_bytes, kNotDifferentiable | kInternal);
}

}  // namespace cresset
