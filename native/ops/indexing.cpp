// Reading through indices and masks: x[i], gather, index_select, take, masked_select, nonzero, embedding.
#include <memory>

#include "base/checked.h"
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/indexed_walk.h"

namespace cresset {
namespace {

// ---------------------------------------------------------------- x[i]

// The shape depends on masks, so that there is no shape rule apart.
void run_index(Call& c) {
  const Tensor input = c.tensor(0);
  const AdvancedIndex a = resolve_index("index", input, c.tensors(1));
  // The dimensions lie in the order of the input's, as in PyTorch.
  const int64_t own = a.result.size() - a.sizes.size();
  Dims strides[2] = {a.strides, Dims(a.result.size(), 0)};
  for (int64_t k = 0; k < own; ++k) strides[0].insert(a.position, 0);
  int64_t step = 1;
  for (int64_t k = own; k-- > 0; step *= a.result[a.position + k]) strides[1][a.position + k] = step;
  for (int64_t d = 0; d < a.result.size(); ++d)  // what the indices have along dimensions of one element
    if (a.result[d] == 1 && (d < a.position || d >= a.position + own)) strides[1][d] = d < a.position ? step : 1;
  const Tensor out = empty(TensorInfo{a.result, result_strides(a.result, strides), input.dtype(), input.device()});
  if (out.numel() && !out.is_meta()) {
    LongWork work(out.numel());
    const Tensor plain = out.is_contiguous() || own == 1 ? out : empty(a.result, input.dtype(), input.device());
    IndexedWalk walk = walk_through(a, input, plain);
    if (!plain.is_contiguous()) walk.plain_strides = plain.strides();
    read_indexed(walk, size_of(input.dtype()));
    if (plain.get() != out.get()) copy_into(out, plain);
  }
  c.give(out);
}

// ---------------------------------------------------------------- along one dimension

void infer_index_select(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(2);
  const int64_t dim = wrap_dim(c.integer(1), input.dim());
  check_index(index.dim() <= 1, "index_select(): Index is supposed to be a vector, got shape ", list(index.sizes()));
  check(is_index(index.dtype()), "index_select(): Expected dtype int32 or int64 for index, got ",
        name_of(index.dtype()));
  check(input.dim() > 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
        index.numel(), " value(s)");
  if (c.target) check_no_internal_overlap("index_select", *c.target);
  Dims sizes = input.sizes();
  if (input.dim() > 0) sizes[dim] = index.numel();
  c.promise(sizes, input.dtype(), input.device());
}
void run_index_select(Call& c) {
  const Tensor input = c.tensor(0), index = convert(c.tensor(2), Dtype::i64);
  IndexedWalk w = walk_slices("index_select", input, wrap_dim(c.integer(1), input.dim()), index, c.out());
  check(w.bound > 0 || input.dim() < 2 || index.numel() == 0,
        "index_select(): self indexing axis dim should be positive; dimension ", w.dim, " has size 0");
  w.phrase = "index out of range in self; ";
  if (c.out().numel() == 0)  // nothing is read, but the places are looked at all the same
    for (int64_t i = 0; i < index.numel(); ++i) {
      const int64_t place = index.data<int64_t>()[index.dim() == 0 ? 0 : i * index.stride(0)];
      check(place >= 0 && place < w.bound, "index_select: INDICES element is out of DATA bounds, index ", place,
            " is out of bounds for dimension ", w.dim, " with size ", w.bound);
    }
  read_indexed(w, size_of(input.dtype()));
}

void infer_gather(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(2);
  const int64_t dim = wrap_dim(c.integer(1), input.dim());
  if (index.numel() != 0) {
    check(is_index(index.dtype()), "gather(): Expected dtype int32/int64 for index, got ", name_of(index.dtype()));
    check(std::max<int64_t>(index.dim(), 1) == std::max<int64_t>(input.dim(), 1),
          "gather: Index tensor must have the same number of dimensions as input tensor; they have ", index.dim(),
          " and ", input.dim());
    for (int64_t d = 0; d < std::min(index.dim(), input.dim()); ++d)
      check(d == dim || index.size(d) <= input.size(d), "gather: Size does not match at dimension ", d,
            " expected index ", list(index.sizes()), " to be no larger than self ", list(input.sizes()),
            " apart from dimension ", dim);
  }
  c.promise(index.sizes(), input.dtype(), input.device());
}
void run_gather(Call& c) {
  const Tensor input = c.tensor(0), index = convert(c.tensor(2), Dtype::i64);
  if (index.numel() == 0) return;
  read_indexed(walk_along("gather", input, wrap_dim(c.integer(1), input.dim()), index, c.out()),
               size_of(input.dtype()));
}

// ---------------------------------------------------------------- in the flattened tensor

void infer_take(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(1);
  check(index.dtype() == Dtype::i64, "take(): Expected a long tensor for index, but got ", name_of(index.dtype()));
  check_index(input.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  c.promise(index.sizes(), input.dtype(), input.device());
}
void run_take(Call& c) {
  const Tensor input = contiguous(c.tensor(0)), index = contiguous(c.tensor(1));
  const Tensor flat = view_of(input, {{input.numel()}}, {{1}}, input.offset()),
               list = view_of(index, {{index.numel()}}, {{1}}, index.offset());
  IndexedWalk w = walk_slices("take", flat, 0, list, view_of(c.out(), {{index.numel()}}, {{1}}, c.out().offset()));
  w.wrap = w.bound;
  w.phrase = "out of range: ";
  read_indexed(w, size_of(input.dtype()));
}

void run_masked_select(Call& c) {
  const Tensor input = c.tensor(0), mask = c.tensor(1);
  check(mask.dtype() == Dtype::b8, "masked_select: expected BoolTensor for mask, got ", name_of(mask.dtype()));
  check_implemented(
      !input.is_meta() && !mask.is_meta(),
      "masked_select: the shape of the result depends on the elements of the mask, which a meta tensor does not have");
  const Dims sizes = broadcast("masked_select", input.sizes(), mask.sizes());
  const Tensor all = view_of(input, sizes, expanded_strides("masked_select", input, sizes), input.offset());
  const Tensor on = view_of(mask, sizes, expanded_strides("masked_select", mask, sizes), mask.offset());
  LongWork work(on.numel());
  const Tensor indices[1] = {on};
  const AdvancedIndex a = resolve_index("masked_select", all, indices);
  const Tensor out = empty(a.result, input.dtype());
  if (out.numel()) read_indexed(walk_through(a, all, out), size_of(input.dtype()));
  c.give(out);
}

// ---------------------------------------------------------------- nonzero

// The coordinates of the elements that are not zero: a row for each dimension.
Tensor coordinates(const Tensor& input) {
  const Tensor flags = contiguous(convert(input, Dtype::b8));
  const Tensor flat = view_of(flags, {{flags.numel()}}, {{1}}, flags.offset());
  const Tensor places = places_of_mask(flat, Dims{1});
  const int64_t n = places.numel(), rank = input.dim();
  const Tensor out = empty({{rank, n}}, Dtype::i64);
  const int64_t* place = places.data<int64_t>();
  int64_t* to = out.data<int64_t>();
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    // The places increase: most lie in the same row (along the last dimension) as the one before.
    const int64_t row = rank ? input.size(-1) : 1;
    Dims outer(rank, 0);
    int64_t start = 0, stop = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (place[i] >= stop) {
        int64_t rest = place[i] / row;
        start = rest * row;
        stop = start + row;
        for (int64_t d = rank - 2; d >= 0; --d) {
          outer[d] = rest % input.size(d);
          rest /= input.size(d);
        }
      }
      for (int64_t d = 0; d < rank - 1; ++d) to[d * n + i] = outer[d];
      if (rank) to[(rank - 1) * n + i] = place[i] - start;
    }
  });
  return out;
}

void run_nonzero(Call& c) {
  const Tensor input = c.tensor(0);
  check_implemented(!input.is_meta(),
                    "nonzero: the shape of the result depends on the elements, which a meta tensor does not have");
  LongWork work(input.numel());
  // A row for each element, but the memory by dimension: PyTorch's strides.
  const Tensor all = coordinates(input);
  c.give(view_of(all, {{all.size(1), all.size(0)}}, {{1, all.size(1)}}, 0));
}
void run_nonzero_numpy(Call& c) {
  Tensor input = c.tensor(0);
  check_implemented(!input.is_meta(),
                    "nonzero: the shape of the result depends on the elements, which a meta tensor does not have");
  if (input.dim() == 0) input = view_of(input, {{1}}, {{1}}, input.offset());
  const Tensor all = coordinates(input);
  const int64_t n = all.size(1);
  // Each dimension's coordinates are a tensor of their own, without common memory.
  for (int64_t d = 0; d < input.dim(); ++d) c.give(clone(view_of(all, {{n}}, {{1}}, d * n)));
}

// How often each position is to be repeated, as the list of positions: repeats [2, 0, 1] gives [0, 0, 2].
void run_repeat_interleave(Call& c) {
  const Tensor repeats = c.tensor(0);
  check(repeats.dim() == 1, "repeat_interleave: only accept 1D vector as repeat, got ", repeats.dim(), " dims");
  check(is_index(repeats.dtype()), "repeat_interleave: repeats has to be Long or Int tensor, got ",
        name_of(repeats.dtype()));
  check_implemented(!repeats.is_meta() || c.has(1), "repeat_interleave: output_size is needed for a meta tensor");
  if (repeats.is_meta()) return c.give(empty({{c.integer(1)}}, repeats.dtype(), repeats.device()));
  const Tensor counts = contiguous(convert(repeats, Dtype::i64));
  const int64_t* count = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    check(count[i] >= 0, "repeat_interleave: repeats can not be negative, got ", count[i]);
    total = checked_sum("repeat_interleave", total, count[i]);
  }
  check(!c.has(1) || c.integer(1) == total,
        "repeat_interleave: allocated size does not match required size: output_size=", c.has(1) ? c.integer(1) : 0,
        ", need ", total);
  const Tensor out = empty({{total}}, repeats.dtype());
  visit_width(size_of(repeats.dtype()), [&]<class T>() {
    if constexpr (!std::is_same_v<T, Bytes16>) {
      T* to = out.data<T>();
      for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, count[i], static_cast<T>(i));
    }
  });
  c.give(out);
}

// ---------------------------------------------------------------- embedding

void infer_embedding(Call& c) {
  const Tensor weight = c.tensor(0), indices = c.tensor(1);
  check(weight.dim() == 2, "embedding: 'weight' must be 2-D, got shape ", list(weight.sizes()));
  check(is_index(indices.dtype()),
        "embedding: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
        "but got ",
        name_of(indices.dtype()), " instead (while checking arguments for embedding)");
  Dims sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  c.promise(sizes, weight.dtype(), weight.device());
}
void run_embedding(Call& c) {
  const Tensor weight = c.tensor(0), indices = contiguous(convert(c.tensor(1), Dtype::i64)), out = c.out();
  const int64_t n = indices.numel(), width = weight.size(1);
  check(weight.size(0) > 0 || n == 0, "embedding: the weight has no rows (shape ", list(weight.sizes()), "), and ", n,
        " are asked for");
  IndexedWalk w = walk_slices("embedding", weight, 0, view_of(indices, {{n}}, {{1}}, indices.offset()),
                              view_of(out, {{n, width}}, {{width, 1}}, out.offset()));
  w.phrase = "index out of range in self; ";
  read_indexed(w, size_of(weight.dtype()));
}

// ---------------------------------------------------------------- bags of rows

// Some columns of a bag at a time, whose sums stay in registers. `known` indices lie there, those of later bags, too.
template <class T>
struct BagSum {
  template <class Fma>
  CRESSET_INLINE void run(const T* table, const int64_t* index, int64_t length, int64_t known, int64_t width,
                          opmath<T> divisor, T* out) {
    constexpr int64_t kTogether = 64;
    int64_t column = 0;
    for (; column + kTogether <= width; column += kTogether)
      add<kTogether>(table + column, index, length, known, width, divisor, out + column);
    for (; column < width; ++column) add<1>(table + column, index, length, known, width, divisor, out + column);
  }

 private:
  template <int64_t kColumns>
  CRESSET_INLINE void add(const T* table, const int64_t* index, int64_t length, int64_t known, int64_t width,
                          opmath<T> divisor, T* out) {
    using A = opmath<T>;
    constexpr int64_t kAhead = 8;  // rows: which one is next is nothing that the processor could guess
    A sums[kColumns] = {};
    for (int64_t i = 0; i < length; ++i) {
      if (i + kAhead < known)
        for (int64_t k = 0; k < kColumns; k += static_cast<int64_t>(64 / sizeof(T)))
          __builtin_prefetch(table + index[i + kAhead] * width + k);
      const T* row = table + index[i] * width;
      for (int64_t k = 0; k < kColumns; ++k) sums[k] += static_cast<A>(row[k]);
    }
    for (int64_t k = 0; k < kColumns; ++k) out[k] = static_cast<T>(sums[k] / divisor);
  }
};

// The bags are the rows of `indices`, or where there are `starts` what lies between two of them.
void infer_bags(Call& c) {
  const Tensor weight = c.tensor(0), indices = c.tensor(1);
  const bool ragged = c.has(2);
  check(weight.dim() == 2 && indices.dim() == (ragged ? 1 : 2) && (ragged || indices.size(1) > 0) &&
            indices.dtype() == Dtype::i64,
        "_embedding_bags: expected a matrix of weights and int64 indices, a row for each bag or one for all with "
        "starts, got shapes ",
        list(weight.sizes()), " and ", list(indices.sizes()), " of ", name_of(indices.dtype()));
  if (ragged)
    check(c.tensor(2).dim() == 1 && c.tensor(2).size(0) > 0 && c.tensor(2).dtype() == Dtype::i64,
          "_embedding_bags: expected a vector of int64 starts, one more than there are bags, got shape ",
          list(c.tensor(2).sizes()), " of ", name_of(c.tensor(2).dtype()));
  check_implemented(is_floating(weight.dtype()) && size_of(weight.dtype()) > 1,
                    "\"embedding_bag\" not implemented for '", name_of(weight.dtype()), "'");
  c.promise({{ragged ? c.tensor(2).size(0) - 1 : indices.size(0), weight.size(1)}}, weight.dtype(), weight.device());
}
void run_bags(Call& c) {
  const Tensor weight = contiguous(c.tensor(0)), indices = contiguous(c.tensor(1)), out = c.out();
  const Tensor starts = c.has(2) ? contiguous(c.tensor(2)) : Tensor();
  const int64_t width = out.size(1), bags = out.size(0), rows = weight.size(0), count = indices.numel();
  const int64_t* all = indices.data<int64_t>();
  for (int64_t i = 0; i < count; ++i)
    check_index(static_cast<uint64_t>(all[i]) < static_cast<uint64_t>(rows),
                "embedding: index out of range in self; index ", all[i], " is out of bounds for dimension 0 with size ",
                rows);
  const int64_t* from = starts.defined() ? starts.data<int64_t>() : nullptr;
  const int64_t length = from ? count / std::max<int64_t>(bags, 1) : indices.size(1);
  const bool mean = c.boolean(3);
  visit_floating(weight.dtype(), "embedding_bag", [&]<class T>() {
    using A = opmath<T>;
    const T* table = weight.data<T>();
    T* to = out.data<T>();
    parallel_for(bags, std::max<int64_t>(1, kParallelGrain / (length * width + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t bag = begin; bag < end; ++bag) {
        const int64_t first = from ? std::clamp<int64_t>(from[bag], 0, count) : bag * length,
                      last = from ? std::clamp(from[bag + 1], first, count) : first + length;
        run_vectorized<BagSum<T>>(table, all + first, last - first, count - first, width,
                                  mean ? static_cast<A>(std::max<int64_t>(last - first, 1)) : A(1), to + bag * width);
      }
    });
  });
}

// The gradient of embedding's weight: the rows of grad, summed by index. The rows of `padding_idx` get none; with
// scale_grad_by_freq each row counts by one over the number of times its index occurs.
void infer_embedding_backward(Call& c) {
  const Tensor grad = c.tensor(0), indices = c.tensor(1);
  check(grad.dim() > 0 && grad.numel() == indices.numel() * grad.size(-1) && c.integer(2) >= 0,
        "embedding_dense_backward: the gradient has shape ", list(grad.sizes()), ", the indices ",
        list(indices.sizes()), "; there are ", c.integer(2), " weights");
  c.promise({{c.integer(2), grad.size(-1)}}, grad.dtype(), grad.device());
}
template <class T>
void add_rows(const Tensor& grad, const int64_t* index, int64_t n, const Tensor& out, int64_t padding,
              const int64_t* count) {
  using A = opmath<T>;
  const int64_t width = out.size(1), rows = out.size(0);
  // Half precision is summed in float and rounded once.
  const Tensor sums = std::is_same_v<A, T> ? out : empty(out.sizes(), dtype_of<A>);
  fill(sums, Scalar(0));
  A* to = sums.data<A>();
  const T* from = grad.data<T>();
  constexpr int64_t kPiece = 64;
  parallel_for((width + kPiece - 1) / kPiece, std::max<int64_t>(1, kParallelGrain / (n * kPiece + 1)),
               [&](int64_t begin, int64_t end) {
                 const int64_t left = begin * kPiece, right = std::min(width, end * kPiece);
                 for (int64_t i = 0; i < n; ++i) {
                   if (index[i] == padding) continue;
                   check_index(index[i] >= 0 && index[i] < rows, "embedding: index out of range in self; index ",
                               index[i], " is out of bounds for dimension 0 with size ", rows);
                   A* row = to + index[i] * width;
                   const T* more = from + i * width;
                   if (count) {
                     const A scale = A(1) / static_cast<A>(count[index[i]]);
                     for (int64_t k = left; k < right; ++k) row[k] += static_cast<A>(more[k]) * scale;
                   } else {
                     for (int64_t k = left; k < right; ++k) row[k] += static_cast<A>(more[k]);
                   }
                 }
               });
  if (!std::is_same_v<A, T>) copy_into(out, sums);
}
void run_embedding_backward(Call& c) {
  const Tensor grad = contiguous(c.tensor(0)), indices = contiguous(convert(c.tensor(1), Dtype::i64)), out = c.out();
  const int64_t n = indices.numel(), rows = c.integer(2);
  const int64_t* index = indices.data<int64_t>();
  Tensor counts;
  if (c.boolean(4)) {
    counts = full({{rows}}, Scalar(0), Dtype::i64);
    for (int64_t i = 0; i < n; ++i)
      if (index[i] >= 0 && index[i] < rows) ++counts.data<int64_t>()[index[i]];
  }
  visit_floating(grad.dtype(), "embedding_backward", [&]<class T>() {
    add_rows<T>(grad, index, n, out, c.integer(3), counts.defined() ? counts.data<int64_t>() : nullptr);
  });
}

}  // namespace

REGISTER(indexing) {
  r.add("_embedding_bags(Tensor weight, Tensor indices, Tensor? starts, bool mean) -> Tensor", infer_bags, run_bags,
        kFunctionOnly, "EmbeddingBagBackward0");
  constexpr uint32_t kInternal =
      kFunctionOnly | kMethodOnly;  // for other operators and derivatives, under no public name
  r.add("index(Tensor input, Tensor?[] indices) -> Tensor", nullptr, run_index, kInternal);
  r.add("index_select(Tensor input, int dim, Tensor index) -> Tensor", infer_index_select, run_index_select,
        kWritesApart);
  r.add("gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", infer_gather, run_gather,
        kWritesApart);
  r.add("take(Tensor input, Tensor index) -> Tensor", infer_take, run_take, kWritesApart);
  r.add("masked_select(Tensor input, Tensor mask) -> Tensor", nullptr, run_masked_select, kWritesApart);
  r.add("nonzero(Tensor input) -> Tensor", nullptr, run_nonzero, kNotDifferentiable);
  r.add("nonzero_numpy(Tensor input) -> Tensor[]", nullptr, run_nonzero_numpy, kNotDifferentiable | kInternal);
  r.add("repeat_positions(Tensor repeats, *, SymInt? output_size=None) -> Tensor", nullptr, run_repeat_interleave,
        kNotDifferentiable | kInternal);
  r.add(
      "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
      "sparse=False) "
      "-> Tensor",
      infer_embedding, run_embedding);
  r.add(
      "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool "
      "scale_grad_by_freq) -> Tensor",
      infer_embedding_backward, run_embedding_backward, kInternal);
}

}  // namespace cresset
