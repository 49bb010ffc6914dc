// Reading through indices and masks: x[i], gather, index_select, take, masked_select, nonzero, embedding. The rules of
// shape are the CPU's.
#include "cuda/backend.h"
#include "cuda/compact.h"
#include "cuda/divider.h"
#include "cuda/extremes.h"
#include "cuda/fault.h"
#include "cuda/indexed_walk.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int kMostDims = 8;

bool is_empty(const Tensor& t) { return t.numel() == 0; }

// ---------------------------------------------------------------- x[i]

// As in indexing.cuh.
struct List {
  char* index = nullptr;
  int64_t scale = 0, bound = 0, wrap = 0;
  int64_t strides[kMostDims] = {};
};
template <int lists>
struct Lists {
  int64_t count;
  char* offsets;
  Address fault;
  int64_t operation;
  Divider sizes[kMostDims];
  List all[lists];
};

template <int count>
void launch_offsets(const char* who, std::span<const IndexItem> items, DimsView shape, const Tensor& out) {
  static const KernelFamily family("indexing.cuh", "index_offsets", {"LISTS", "RANK"}, {"-DOFFSETS"});
  const Place place(out.device());
  Lists<count> l;
  l.count = out.numel();
  l.offsets = out.bytes();
  l.fault = fault_place(place.device);
  l.operation = operation_number(who);
  const size_t rank = shape.size();
  for (size_t d = 0; d < rank; ++d) l.sizes[d] = Divider(shape[d]);
  for (size_t k = 0; k < items.size(); ++k) {
    const IndexItem& item = items[k];
    l.all[k].index = item.index.bytes();
    l.all[k].scale = item.rule.scale;
    l.all[k].bound = item.rule.bound;
    l.all[k].wrap = item.rule.wrap;
    const Dims strides = expanded_strides(who, item.index, shape);
    for (size_t d = 0; d < rank; ++d) l.all[k].strides[d] = strides[static_cast<int64_t>(d)];
  }
  // Lists that are left over have neither strides nor scale: they read the first index and add nothing.
  for (size_t k = items.size(); k < count; ++k) l.all[k] = {items[0].index.bytes(), 0, INT64_MAX, INT64_MAX, {}};
  family.launch(place, {count, static_cast<int>(std::max<size_t>(rank, 1))}, divide_up(out.numel(), 256), 256, 0, l);
}

}  // namespace

Tensor offsets_of_lists(const char* who, std::span<const IndexItem> items, DimsView shape) {
  const Tensor out = empty(shape, Dtype::i64, items[0].index.device());
  if (out.numel() == 0) return out;
  check_implemented(shape.size() <= kMostDims && items.size() <= kMostDims, who, ": more than ", kMostDims,
                    " indices, or dimensions of an index, on 'cuda'");
  if (items.size() == 2)
    launch_offsets<2>(who, items, shape, out);
  else if (items.size() == 3)
    launch_offsets<3>(who, items, shape, out);
  else
    launch_offsets<kMostDims>(who, items, shape, out);
  return out;
}

Tensor places_of_device_mask(const Tensor& mask, DimsView strides) {
  return CountedFlags(mask).places(mask.sizes(), strides);
}

namespace {

// x[i, j] where each dimension has a list, and all lists lie alike: no list of offsets is written, and read again,
// which would take 1.6 times as long. Undefined: it is something else.
template <int count>
Tensor elements_of(const Tensor& input, std::span<const Tensor> lists, int operation) {
  static const KernelFamily family("indexing.cuh", "index_elements", {"LISTS", "WORD"}, {"-DELEMENTS"});
  const Place place(input.device());
  if (!lists[0].defined()) return {};
  Lists<count> l;
  l.count = lists[0].numel();
  l.offsets = nullptr;
  l.fault = fault_place(place.device);
  l.operation = operation;
  for (int k = 0; k < count; ++k) {
    const Tensor& index = lists[static_cast<size_t>(k)];
    if (!index.defined() || index.dtype() != Dtype::i64 || index.device() != input.device() || !index.is_contiguous() ||
        index.sizes() != lists[0].sizes() || input.size(k) == 0 || reinterpret_cast<uintptr_t>(index.bytes()) % 16 != 0)
      return {};
    l.all[k] = {index.bytes(), input.stride(k), input.size(k), input.size(k), {}};
  }
  const Tensor out = empty(lists[0].sizes(), input.dtype(), input.device());
  if (l.count)
    family.launch(place, {count, static_cast<int>(size_of(input.dtype()))}, divide_up(l.count, 256 * 4), 256, 0, l,
                  input.bytes(), out.bytes());
  return out;
}

void run_index(Call& c) {
  static const int number = operation_number("index");
  const Tensor input = c.tensor(0);
  const std::span<const Tensor> lists = c.tensors(1);
  if (static_cast<int64_t>(lists.size()) == input.dim() && (lists.size() == 2 || lists.size() == 3))
    if (const Tensor out =
            lists.size() == 2 ? elements_of<2>(input, lists, number) : elements_of<3>(input, lists, number);
        out.defined())
      return c.give(out);
  if (lists.size() == 1 && lists[0].defined() && lists[0].dtype() == Dtype::b8 && lists[0].sizes() == input.sizes() &&
      lists[0].device() == input.device() && input.is_contiguous())
    return c.give(CountedFlags(lists[0]).elements(input));
  const AdvancedIndex a = resolve_index("index", input, c.tensors(1));
  const Tensor out = empty(a.result, input.dtype(), input.device());
  if (!is_empty(out))
    read_indexed(walk_through(a, input, out), size_of(input.dtype()),
                 {Place(input.device()), input.device(), Dtype::i64, number});
  c.give(out);
}

// ---------------------------------------------------------------- along one dimension

void run_index_select(Call& c) {
  static const int number = operation_number("index_select");
  const Tensor input = c.tensor(0), index = c.tensor(2);
  const IndexedWalk w = walk_slices("index_select", input, wrap_dim(c.integer(1), input.dim()), index, c.out());
  read_indexed(w, size_of(input.dtype()), {Place(input.device()), input.device(), index.dtype(), number});
}
void run_gather(Call& c) {
  static const int number = operation_number("gather");
  const Tensor input = c.tensor(0), index = c.tensor(2);
  if (is_empty(index)) return;
  const IndexedWalk w = walk_along("gather", input, wrap_dim(c.integer(1), input.dim()), index, c.out());
  read_indexed(w, size_of(input.dtype()), {Place(input.device()), input.device(), index.dtype(), number});
}
void run_take(Call& c) {
  static const int number = operation_number("take");
  const Tensor input = contiguous_on_device(c.tensor(0)), index = contiguous_on_device(c.tensor(1));
  if (is_empty(index)) return;
  IndexedWalk w = walk_slices("take", flattened(input), 0, flattened(index), flattened(c.out()));
  w.wrap = w.bound;
  read_indexed(w, size_of(input.dtype()), {Place(input.device()), input.device(), Dtype::i64, number});
}

// ---------------------------------------------------------------- masks

void run_masked_select(Call& c) {
  const Tensor input = c.tensor(0), mask = c.tensor(1);
  check(mask.dtype() == Dtype::b8, "masked_select: expected BoolTensor for mask, got ", name_of(mask.dtype()));
  const Dims sizes = broadcast("masked_select", input.sizes(), mask.sizes());
  const Tensor all = view_of(input, sizes, expanded_strides("masked_select", input, sizes), input.offset());
  const Tensor on = view_of(mask, sizes, expanded_strides("masked_select", mask, sizes), mask.offset());
  if (all.is_contiguous()) return c.give(CountedFlags(on).elements(all));
  const Tensor indices[1] = {on};
  const AdvancedIndex a = resolve_index("masked_select", all, indices);
  const Tensor out = empty(a.result, input.dtype(), input.device());
  if (!is_empty(out))
    read_indexed(walk_through(a, all, out), size_of(input.dtype()),
                 {Place(input.device()), input.device(), Dtype::i64, 0});
  c.give(out);
}

Tensor nonzero_coordinates(const Tensor& input, bool by_dim) {
  const Tensor flags = contiguous_on_device(convert(input, Dtype::b8));
  const int64_t one = 1, n = flags.numel();
  const Tensor places = CountedFlags(flags).places({&n, 1}, {&one, 1});
  if (input.dim() == 1) {
    const int64_t count = places.numel();
    return by_dim ? view_of(places, {{1, count}}, {{count, 1}}, 0) : view_of(places, {{count, 1}}, {{1, 1}}, 0);
  }
  return coordinates(places, input.sizes(), by_dim);
}
void run_nonzero(Call& c) { c.give(nonzero_coordinates(c.tensor(0), false)); }
void run_nonzero_numpy(Call& c) {
  Tensor input = c.tensor(0);
  if (input.dim() == 0) input = view_of(input, {{1}}, {{1}}, input.offset());
  const Tensor all = nonzero_coordinates(input, true);
  const int64_t n = all.size(1);
  // Each dimension's coordinates are a tensor of their own, without common memory.
  for (int64_t d = 0; d < input.dim(); ++d) c.give(clone(view_of(all, {{n}}, {{1}}, d * n)));
}

// ---------------------------------------------------------------- embedding

void run_embedding(Call& c) {
  static const int number = operation_number("embedding");
  const Tensor weight = c.tensor(0), indices = contiguous_on_device(c.tensor(1)), out = c.out();
  const int64_t width = weight.size(1);
  if (is_empty(out)) return;
  const IndexedWalk w = walk_slices("embedding", weight, 0, flattened(indices),
                                    view_of(out, {{indices.numel(), width}}, {{width, 1}}, out.offset()));
  read_indexed(w, size_of(weight.dtype()), {Place(weight.device()), weight.device(), indices.dtype(), number});
}

void run_bags(Call& c) {
  static const int number = operation_number("embedding");
  static const KernelFamily kBags("indexing.cuh", "bags_of_rows", {"T", "VECTOR"}, {"-DBAGS"});
  const Tensor weight = contiguous_on_device(c.tensor(0)), indices = contiguous_on_device(c.tensor(1)), out = c.out();
  const Tensor starts = c.has(2) ? contiguous_on_device(c.tensor(2)) : Tensor();
  if (is_empty(out)) return;
  const int64_t width = out.size(1), length = starts.defined() ? 0 : indices.size(1), rows = weight.size(0);
  check_index(rows > 0 || is_empty(indices), "embedding: the weight has no rows");
  int64_t vector = 16 / size_of(out.dtype());
  while (width % vector ||
         reinterpret_cast<uintptr_t>(weight.bytes()) % static_cast<uintptr_t>(vector * size_of(out.dtype())))
    vector /= 2;
  const Place place(out.device());
  kBags.launch(place, {out.dtype(), static_cast<int>(vector)}, divide_up(out.numel() / vector, 256), 256, 0,
               weight.bytes(), indices.bytes(), starts.defined() ? starts.bytes() : nullptr, out.bytes(), out.numel(),
               width, length, indices.numel(), rows, static_cast<int32_t>(c.boolean(3)), fault_place(place.device),
               static_cast<int32_t>(number));
}

void run_embedding_backward(Call& c) {
  static const int number = operation_number("embedding_dense_backward");
  const Tensor grad = contiguous_on_device(c.tensor(0)), indices = contiguous_on_device(c.tensor(1)), out = c.out();
  check_implemented(is_floating(grad.dtype()), "\"embedding_backward\" not implemented for '", name_of(grad.dtype()),
                    "'");
  fill(out, Scalar(0));
  if (is_empty(grad) || is_empty(out)) return;
  const int64_t width = out.size(1), n = indices.numel();
  check_implemented(n < INT32_MAX - 4096 && out.size(0) < INT32_MAX, "embedding_dense_backward: ", n,
                    " indices on 'cuda'");
  const IndexedWalk w = walk_slices("embedding_dense_backward", out, 0, flattened(indices),
                                    view_of(grad, {{n, width}}, {{width, 1}}, grad.offset()));
  sum_slices(w, grad.dtype(), c.integer(3) < 0 ? INT64_MIN : c.integer(3), c.boolean(4),
             {Place(out.device()), out.device(), indices.dtype(), number});
}

// ---------------------------------------------------------------- repeat_interleave

// How often each position is to be repeated, as the list of positions: repeats [2, 0, 1] gives [0, 0, 2].
void run_repeat_positions(Call& c) {
  static const KernelFamily kRepeat("indexing.cuh", "repeat_positions", {"T"}, {"-DREPEAT"});
  static const Operator* cumsum = Registry::instance().find("cumsum");
  const Tensor repeats = c.tensor(0);
  check(repeats.dim() == 1, "repeat_interleave: only accept 1D vector as repeat, got ", repeats.dim(), " dims");
  check(repeats.dtype() == Dtype::i64 || repeats.dtype() == Dtype::i32,
        "repeat_interleave: repeats has to be Long or Int tensor, got ", name_of(repeats.dtype()));
  const int64_t n = repeats.numel();
  if (n == 0 || !cumsum || !cumsum->run_on(repeats.device())) return execute_on_host(c, repeats.device());
  const Tensor counts = contiguous_on_device(convert(repeats, Dtype::i64));
  const int64_t lowest = integer_of(extremes_of(counts).low);
  check(lowest >= 0, "repeat_interleave: repeats can not be negative, got ", lowest);
  const GradModeGuard unrecorded(false);
  const Tensor ends = contiguous_on_device(call_operator(*cumsum, counts, int64_t{0}));
  const int64_t total = item(view_of(ends, {}, {}, ends.offset() + n - 1)).integer;
  check(!c.has(1) || c.integer(1) == total,
        "repeat_interleave: allocated size does not match required size: output_size=", c.has(1) ? c.integer(1) : 0,
        ", need ", total);
  const Tensor out = empty({{total}}, repeats.dtype(), repeats.device());
  if (total)
    kRepeat.launch(Place(repeats.device()), {repeats.dtype()}, divide_up(total, 256), 256, 0, ends.bytes(), n,
                   out.bytes(), total);
  c.give(out);
}

}  // namespace

REGISTER_KERNELS(indexing) {
  r.set_kernel("index", DeviceType::cuda, run_index);
  r.set_kernel("repeat_positions", DeviceType::cuda, run_repeat_positions);
  r.set_kernel("index_select", DeviceType::cuda, run_index_select);
  r.set_kernel("gather", DeviceType::cuda, run_gather);
  r.set_kernel("take", DeviceType::cuda, run_take);
  r.set_kernel("masked_select", DeviceType::cuda, run_masked_select);
  r.set_kernel("nonzero", DeviceType::cuda, run_nonzero);
  r.set_kernel("nonzero_numpy", DeviceType::cuda, run_nonzero_numpy);
  r.set_kernel("embedding", DeviceType::cuda, run_embedding);
  r.set_kernel("_embedding_bags", DeviceType::cuda, run_bags);
  r.set_kernel("embedding_dense_backward", DeviceType::cuda, run_embedding_backward);
}

}  // namespace cresset::cuda
