// Attention on CUDA: how tensors reach cuDNN and the kernels of attention_*.cuh. With rows of up to 128 elements they
// go to our tensor core kernels; in half precision before that to the kernel that splits keys where there are few
// queries, and to cuDNN where the problem is large and has no mask. Everything else goes to the plain ones. Memory
// grows with the number of queries, never with queries times keys.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "cuda/attention.h"
#include "cuda/backend.h"
#include "cuda/cudnn.h"
#include "cuda/fault.h"
#include "cuda/launch.h"
#include "dispatch/late.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

// The same as in attention_problem.cuh.
struct HeadRows {
  char* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
};
struct Mask {
  const char* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
};
struct Problem {
  HeadRows query, key, value, output, grad, query_grad, key_grad, value_grad;
  Mask mask;
  void *rows = nullptr, *dots = nullptr;
  int32_t batches = 1, heads = 1, group = 1, queries = 0, keys = 0, width = 0, value_width = 0, unused = 0;
  double scale = 1;
};
static_assert(sizeof(Problem) == 8 * 32 + 40 + 16 + 32 + 8);

const KernelFamily kForward("attention_forward.cuh", "attention_forward",
                            {"T", "WIDTH", "WARP_TILES", "TILE", "MASK", "MASK_TYPE", "CAUSAL", "T_IS_FLOAT"},
                            {"--fmad=true"});
const KernelFamily kBackwardQueries("attention_backward_queries.cuh", "attention_backward_queries",
                                    {"T", "WIDTH", "WARP_TILES", "TILE", "MASK", "MASK_TYPE", "CAUSAL", "T_IS_FLOAT"},
                                    {"--fmad=true"});
const KernelFamily kBackwardKeys("attention_backward_keys.cuh", "attention_backward_keys",
                                 {"T", "WIDTH", "WARP_TILES", "TILE", "MASK", "MASK_TYPE", "CAUSAL", "T_IS_FLOAT"},
                                 {"--fmad=true"});
const KernelFamily kPlain("attention_plain.cuh", "attention_plain",
                          {"ENTRY", "T", "ITEMS", "MASK", "MASK_TYPE", "CAUSAL"}, {"--fmad=true"});
const KernelFamily kDecode("attention_decode.cuh", "attention_decode",
                           {"ENTRY", "T", "WIDTH", "ROWS", "PART", "MASK", "MASK_TYPE", "CAUSAL"}, {"--fmad=true"});
constexpr int kThreads = 128, kPlainTile = 32;

// One call: what is computed, and the tensors that have to live until it is launched.
class Attention {
 public:
  Problem p;
  Dtype dtype;
  int mask_kind = 0;  // MASK
  Dtype mask_dtype = Dtype::b8;
  bool causal;

  Attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dims& output_sizes, bool shares_heads,
            bool is_causal, double scale)
      : dtype(q.dtype()), causal(is_causal), batch_(output_sizes) {
    batch_.pop_back(), batch_.pop_back();
    p.group = shares_heads ? static_cast<int32_t>(q.size(-3) / k.size(-3)) : 1;
    p.heads = batch_.empty() ? 1 : static_cast<int32_t>(batch_.back());
    for (int64_t d = 0; d + 1 < batch_.size(); ++d) p.batches *= static_cast<int32_t>(batch_[d]);
    p.queries = static_cast<int32_t>(q.size(-2)), p.keys = static_cast<int32_t>(k.size(-2));
    p.width = static_cast<int32_t>(q.size(-1)), p.value_width = static_cast<int32_t>(v.size(-1));
    p.scale = scale;
    shared_ = batch_;
    if (!shared_.empty()) shared_.back() /= std::max(p.group, 1);
    in_half = dtype == Dtype::f16 || dtype == Dtype::bf16;
    on_tensor_cores = (in_half || dtype == Dtype::f32) && p.width == p.value_width && p.width % piece() == 0 &&
                      p.width <= 128 && p.width > 0 && scale > 0;
  }

  bool in_half, on_tensor_cores;
  int32_t piece() const { return in_half ? 8 : 4; }  // elements of 16 bytes
  const Dims& batch() const { return batch_; }
  const Dims& shared() const { return shared_; }

  // A tensor with the batch's dimensions, or one that is broadcast to them; copied when its rows cannot be read where
  // they lie.
  HeadRows read(Tensor t, const Dims& batch) {
    HeadRows r;
    if (!place(t, batch, r)) {
      Dims sizes = batch;
      sizes.push_back(t.size(-2)), sizes.push_back(t.size(-1));
      t = contiguous_on_device(view_of(t, sizes, expanded_strides(kName, t, sizes), t.offset()));
      if (!place(t, batch, r)) {  // contiguous, but not at a multiple of 16 bytes
        const Tensor fresh = empty(t.sizes(), t.dtype(), t.device());
        copy_into(fresh, t);
        t = fresh;
        invariant(place(t, batch, r), "the rows of attention");
      }
    }
    alive_.push_back(t);
    return r;
  }
  // A result: fresh, so that its rows lie well.
  HeadRows written(const Tensor& t, const Dims& batch) {
    HeadRows r;
    invariant(place(t, batch, r), "the rows of attention's results");
    return r;
  }
  void read_mask(const Tensor& t) {
    Dims sizes = batch_;
    sizes.push_back(p.queries), sizes.push_back(p.keys);
    Tensor mask = view_of(t, sizes, expanded_strides(kName, t, sizes), t.offset());
    if (!merge(mask.strides(), p.mask.batch, p.mask.head)) {
      mask = contiguous_on_device(mask);
      merge(mask.strides(), p.mask.batch, p.mask.head);
    }
    p.mask.row = mask.stride(-2), p.mask.column = mask.stride(-1), p.mask.data = mask.bytes();
    mask_kind = mask.dtype() == Dtype::b8 ? 1 : 2, mask_dtype = mask.dtype();
    alive_.push_back(mask);
  }

 private:
  Dims batch_, shared_;
  SmallVector<Tensor, 10> alive_;

  // The steps of the heads, and of all other dimensions of the batch as one.
  bool merge(const Dims& strides, int64_t& outer, int64_t& head) const {
    const int64_t n = batch_.size();
    head = n ? strides[n - 1] : 0;
    outer = 0;
    int64_t merged = 1;
    for (int64_t d = n - 2; d >= 0; --d) {
      if (batch_[d] == 1) continue;
      if (merged == 1)
        outer = strides[d];
      else if (strides[d] != outer * merged)
        return false;
      merged *= batch_[d];
    }
    return true;
  }
  bool place(const Tensor& t, const Dims& batch, HeadRows& r) const {
    if (t.stride(-1) != 1 && t.size(-1) != 1) return false;
    Dims sizes = batch;
    sizes.push_back(t.size(-2)), sizes.push_back(t.size(-1));
    if (!merge(expanded_strides(kName, t, sizes), r.batch, r.head)) return false;
    r.row = t.stride(-2), r.data = t.bytes();
    if (!on_tensor_cores) return true;
    const auto fits = [this](int64_t step, int64_t size) { return size <= 1 || step % piece() == 0; };
    return reinterpret_cast<uintptr_t>(r.data) % 16 == 0 && fits(r.row, t.size(-2)) && fits(r.head, p.heads) &&
           fits(r.batch, p.batches);
  }
};

// ---------------------------------------------------------------- tensor cores

struct Shape {
  int width, warp_tiles, tile;
  int64_t rows() const { return 64 * warp_tiles; }
};
int rounded_width(int width) { return (width + 31) / 32 * 32; }

void launch_tiles(const KernelFamily& family, const Attention& a, const Place& place, Shape s, int64_t rows,
                  int64_t heads, int64_t own_matrices, int64_t more_bytes) {
  const int64_t row_bytes = 16 * (s.width / a.piece() + 1),
                shared = row_bytes * (own_matrices * s.rows() + 4 * s.tile) + more_bytes;
  family.launch(place, {a.dtype, s.width, s.warp_tiles, s.tile, a.mask_kind, a.mask_dtype, a.causal, !a.in_half},
                divide_up(rows, s.rows()) * heads, kThreads, shared, a.p);
}

// ---------------------------------------------------------------- few queries

constexpr int32_t kFewQueries = 8;
constexpr int64_t kDecodeThreads = 256;  // as in attention_decode.cuh

bool has_few_queries(const Attention& a) { return a.in_half && a.on_tensor_cores && a.p.queries <= kFewQueries; }

void attend_with_few_queries(Attention& a, const Place& place, Device device) {
  const int64_t shared_rows = int64_t{a.p.group} * a.p.queries, rows = int64_t{a.p.batches} * a.p.heads * a.p.queries;
  const int at_once = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(shared_rows, 8)))),
            width = static_cast<int>(std::bit_ceil(static_cast<uint32_t>(std::max(a.p.width, 16))));
  // Small parts of few keys, so that all multiprocessors have some. How many other rows there are has no say.
  const int part = width >= 64 && a.p.keys <= 1024 ? 64 : 128;
  const int64_t parts = std::max<int64_t>(1, divide_up(a.p.keys, part));
  Tensor kept;
  if (parts > 1) {
    kept = empty({{rows * parts * (a.p.width + 2)}}, Dtype::f32, device);
    a.p.dots = kept.bytes();
  }
  const auto launch = [&](int entry, int64_t blocks, int64_t threads) {
    kDecode.launch(place, {entry, a.dtype, width, at_once, part, a.mask_kind, a.mask_dtype, a.causal}, blocks, threads,
                   0, a.p);
  };
  launch(0, parts * divide_up(shared_rows, at_once) * (a.p.heads / a.p.group) * a.p.batches, kDecodeThreads);
  if (parts > 1) launch(1, rows, width);
}

// ---------------------------------------------------------------- cuDNN

const KernelFamily kRows("attention_rows.cuh", "attention_rows", {"JOIN", "T", "MASK"}, {});
const KernelFamily kAdded("attention_rows.cuh", "added_mask", {"JOIN", "T", "MASK"}, {});

HeadStrides strides_of(const HeadRows& r) { return {r.batch, r.head, r.row}; }

// Masks of numbers whose rows lie as those of matrices do.
bool has_mask_for_cudnn(const Attention& a) {
  const Mask& m = a.p.mask;
  return a.mask_kind == 2 && a.mask_dtype == a.dtype && !a.causal && m.column == 1 && m.row >= a.p.keys &&
         m.row % 8 == 0 && m.head % 8 == 0 && m.batch % 8 == 0 && reinterpret_cast<uintptr_t>(m.data) % 16 == 0;
}
bool is_for_cudnn(const Attention& a) {
  const double work = double{1} * a.p.batches * a.p.heads * a.p.queries * a.p.keys * a.p.width;
  return cudnn_settings.enabled && cudnn_settings.attention && a.in_half && a.on_tensor_cores &&
         (!a.mask_kind || has_mask_for_cudnn(a)) && work >= static_cast<double>(cudnn_settings.attention_from) &&
         cudnn_problem().empty();
}
// Tensors that are broadcast are not for it.
bool lies_for_cudnn(const Attention& a, const HeadRows& r, int64_t heads) {
  return (a.p.batches == 1 || r.batch != 0) && (heads == 1 || r.head != 0);
}
bool lie_for_cudnn(const Attention& a) {
  return lies_for_cudnn(a, a.p.query, a.p.heads) && lies_for_cudnn(a, a.p.key, a.p.heads / a.p.group) &&
         lies_for_cudnn(a, a.p.value, a.p.heads / a.p.group);
}

AttentionSizes sizes_of(const Attention& a) {
  const Problem& p = a.p;
  AttentionSizes s{static_cast<int64_t>(a.dtype),
                   p.batches,
                   p.heads,
                   p.heads / p.group,
                   p.queries,
                   p.keys,
                   p.width,
                   a.causal,
                   0,
                   0,
                   {},
                   {},
                   {},
                   {},
                   {},
                   {},
                   {},
                   {},
                   {}};
  if (a.mask_kind) {
    s.mask_batches = p.mask.batch ? p.batches : 1, s.mask_heads = p.mask.head ? p.heads : 1;
    const int64_t matrix = p.mask.row * p.queries, head = p.mask.head ? p.mask.head : matrix;
    s.mask = {p.mask.batch ? p.mask.batch : head * s.mask_heads, head, p.mask.row};
  }
  s.query = strides_of(p.query), s.key = strides_of(p.key), s.value = strides_of(p.value),
  s.output = strides_of(p.output);
  s.grad = strides_of(p.grad), s.query_grad = strides_of(p.query_grad), s.key_grad = strides_of(p.key_grad),
  s.value_grad = strides_of(p.value_grad);
  return s;
}

// cuDNN keeps log l + m of a row, we keep m and 1 / l: the pair log l + m and 1 says the same. Under a mask, rows that
// see nobody are made zeros.
void launch_rows(const Attention& a, const Place& place, bool join, void* pairs, void* logarithms) {
  const int64_t count = int64_t{a.p.batches} * a.p.heads * a.p.queries;
  kRows.launch(place, {join, a.dtype, a.mask_kind != 0}, divide_up(count, 256), 256, 0, pairs, logarithms, count, a.p);
}

// A mask of bools as one of numbers: 0 or minus infinity.
Tensor added_mask(const Tensor& mask, Dtype dtype) {
  const Tensor bools = contiguous_on_device(mask), numbers = empty(mask.sizes(), dtype, mask.device());
  const int64_t n = mask.numel();
  if (n)
    kAdded.launch(Place(mask.device()), {false, dtype, false}, divide_up(n, 256), 256, 0, bools.bytes(),
                  numbers.bytes(), n);
  return numbers;
}
// Where cuDNN takes such a mask, that of `a` is read so.
void read_mask(Attention& a, const Tensor& mask) {
  a.read_mask(mask);
  if (a.mask_kind != 1 || a.causal || !a.in_half) return;
  const Tensor numbers = added_mask(mask, a.dtype);
  const Mask bools = a.p.mask;
  a.read_mask(numbers);
  if (is_for_cudnn(a)) return;
  a.p.mask = bools, a.mask_kind = 1, a.mask_dtype = Dtype::b8;
}

bool attend_with_cudnn(const Attention& a, const Place& place, Device device) {
  if (!is_for_cudnn(a) || !lie_for_cudnn(a)) return false;
  const Tensor logarithms = empty({{int64_t{a.p.batches} * a.p.heads * a.p.queries}}, Dtype::f32, device);
  if (!attend(place, sizes_of(a), a.p.scale,
              {a.p.query.data, a.p.key.data, a.p.value.data, const_cast<char*>(a.p.mask.data), a.p.output.data,
               logarithms.bytes(), nullptr, nullptr, nullptr, nullptr}))
    return false;
  launch_rows(a, place, false, a.p.rows, logarithms.bytes());
  return true;
}

// It adds what the blocks of keys give to a query's gradient in the order in which they come: not the same in every
// run.
bool attend_backward_with_cudnn(const Attention& a, const Place& place, Device device) {
  if (!is_for_cudnn(a) || cudnn_settings.wants_deterministic() || !lie_for_cudnn(a) ||
      !lies_for_cudnn(a, a.p.grad, a.p.heads) || !lies_for_cudnn(a, a.p.output, a.p.heads))
    return false;
  const Tensor logarithms = empty({{int64_t{a.p.batches} * a.p.heads * a.p.queries}}, Dtype::f32, device);
  launch_rows(a, place, true, a.p.rows, logarithms.bytes());
  const Problem& p = a.p;
  return attend_backward(place, sizes_of(a), p.scale,
                         {p.query.data, p.key.data, p.value.data, const_cast<char*>(p.mask.data), p.output.data,
                          logarithms.bytes(), p.grad.data, p.query_grad.data, p.key_grad.data, p.value_grad.data});
}

// ---------------------------------------------------------------- plain

enum Entry : int { kEntryForward, kEntryQueries, kEntryKeys, kEntryDots };

int items_of(const Attention& a) { return static_cast<int>(divide_up(std::max({a.p.width, a.p.value_width, 1}), 32)); }
int64_t plain_rows(const Attention& a) { return items_of(a) <= 4 ? 32 : 16; }  // of a block
// The most that a kernel takes. It depends on what the kernel is compiled for alone: a function is told once how much
// shared memory it may have.
int64_t plain_bytes(const Attention& a) {
  const int64_t widths = int64_t{2} * 32 * items_of(a);
  return (plain_rows(a) * (widths + kPlainTile) + kPlainTile * (widths + 8)) * (a.dtype == Dtype::f64 ? 8 : 4);
}
void launch_plain(Entry entry, const Attention& a, const Place& place, int64_t blocks) {
  kPlain.launch(place, {static_cast<int>(entry), a.dtype, items_of(a), a.mask_kind, a.mask_dtype, a.causal}, blocks,
                kThreads, plain_bytes(a), a.p);
}
void launch_dots(const Attention& a, const Place& place, int64_t rows) {
  const int items = a.on_tensor_cores ? a.piece() : 1;
  kPlain.launch(place, {static_cast<int>(kEntryDots), a.dtype, items, 0, Dtype::b8, false},
                divide_up(rows, kThreads / (items > 1 ? 8 : 32)), kThreads, 0, a.p);
}

bool fits(const Attention& a, int device) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t blocks = divide_up(std::max(a.p.queries, a.p.keys), plain_rows(a)) * a.p.heads * a.p.batches;
  return blocks < kMost &&
         (a.on_tensor_cores || (plain_bytes(a) <= properties(device).shared_per_block_optin && items_of(a) <= 16));
}

// ---------------------------------------------------------------- operators

void run_attention(Call& c) {
  const Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2), out = c.out(0);
  Attention a(q, k, v, out.sizes(), c.boolean(6), c.boolean(4), c.real(5));
  if (out.numel() == 0 && c.out(1).numel() == 0) return;
  const Place place(out.device());
  if (!fits(a, place.device)) return execute_on_host(c, out.device());
  a.p.query = a.read(q, a.batch()), a.p.key = a.read(k, a.shared()), a.p.value = a.read(v, a.shared());
  if (c.has(3)) read_mask(a, c.tensor(3));
  a.p.output = a.written(out, a.batch());
  a.p.rows = c.out(1).bytes();
  if (has_few_queries(a)) return attend_with_few_queries(a, place, out.device());
  if (attend_with_cudnn(a, place, out.device())) return;
  const int64_t heads = int64_t{a.p.heads} * a.p.batches;
  if (!a.on_tensor_cores) return launch_plain(kEntryForward, a, place, divide_up(a.p.queries, plain_rows(a)) * heads);
  // Two tiles a warp read keys and values half as often, but there must be blocks for all multiprocessors.
  const bool many = divide_up(a.p.queries, 128) * heads >= properties(place.device).multiprocessors && !a.mask_kind;
  const int width = rounded_width(a.p.width);
  const Shape shape = a.in_half ? Shape{width, many ? 2 : 1, 64} : Shape{width, many && width <= 64 ? 2 : 1, 32};
  launch_tiles(kForward, a, place, shape, a.p.queries, heads, 1, 0);
}

void run_attention_backward(Call& c) {
  const Tensor q = c.tensor(1), k = c.tensor(2), v = c.tensor(3), out = c.tensor(4),
               kept = contiguous_on_device(c.tensor(5));
  Attention a(q, k, v, out.sizes(), c.boolean(9), c.boolean(7), c.real(8));
  if (c.out(0).numel() == 0 || c.out(1).numel() == 0 || a.p.keys == 0) {
    for (int i = 0; i < 3; ++i) fill(c.out(i), 0);
    return;
  }
  const Place place(out.device());
  if (!fits(a, place.device)) return execute_on_host(c, out.device());
  a.p.grad = a.read(c.tensor(0), a.batch()), a.p.output = a.read(out, a.batch());
  a.p.query = a.read(q, a.batch()), a.p.key = a.read(k, a.shared()), a.p.value = a.read(v, a.shared());
  if (c.has(6)) read_mask(a, c.tensor(6));
  a.p.query_grad = a.written(c.out(0), a.batch()), a.p.key_grad = a.written(c.out(1), a.shared()),
  a.p.value_grad = a.written(c.out(2), a.shared());
  a.p.rows = kept.bytes();
  if (attend_backward_with_cudnn(a, place, out.device())) return;
  const int64_t heads = int64_t{a.p.heads} * a.p.batches;
  const Tensor dots = empty({{heads * a.p.queries}}, kept.dtype(), out.device());
  a.p.dots = dots.bytes();
  launch_dots(a, place, heads * a.p.queries);
  if (!a.on_tensor_cores) {
    launch_plain(kEntryKeys, a, place, divide_up(a.p.keys, plain_rows(a)) * (heads / a.p.group));
    return launch_plain(kEntryQueries, a, place, divide_up(a.p.queries, plain_rows(a)) * heads);
  }
  const int width = rounded_width(a.p.width), tile = width <= 64 && a.in_half ? 64 : 32;
  launch_tiles(kBackwardKeys, a, place, {width, 1, tile}, a.p.keys, heads / a.p.group, 2, 2 * 3 * tile * 4);
  launch_tiles(kBackwardQueries, a, place, {width, 1, a.mask_kind || !a.in_half ? 32 : 64}, a.p.queries, heads, 2, 0);
}

// Query, key and value that were split from one tensor: their gradients lie as they do, and what joins them has nothing
// to do (join_late in join.cpp).
bool attention_backward_late(Call& c) {
  const Tensor q = c.tensor(1), k = c.tensor(2), v = c.tensor(3);
  const int64_t step = k.offset() - q.offset();
  const auto follows = [&](const Tensor& t, const Tensor& before) {
    return t.storage().get() == q.storage().get() && t.dtype() == q.dtype() && t.sizes() == q.sizes() &&
           t.strides() == q.strides() && t.offset() == before.offset() + step;
  };
  if (step <= 0 || q.numel() == 0 || q.stride(-1) != 1 || !follows(k, q) || !follows(v, k)) return false;
  Dims sizes = q.sizes(), strides = q.strides();
  sizes.push_back(3), strides.push_back(step);
  if (!is_dense(sizes, strides)) return false;
  for (const int64_t stride : strides)  // rows are written in pieces of 16 bytes
    if (stride != 1 && stride * size_of(q.dtype()) % 16) return false;
  const Attention a(q, k, v, c.tensor(4).sizes(), c.boolean(9), c.boolean(7), c.real(8));
  if (!fits(a, q.device().index)) return false;
  settle_arguments(c);
  const Tensor all = empty({{3 * q.numel()}}, q.dtype(), q.device());
  for (int64_t i = 0; i < 3; ++i) c.give(view_of(all, q.sizes(), q.strides(), i * step));
  run_attention_backward(c);
  return true;
}

// ---------------------------------------------------------------- functions of the program

// The same as in attention_flex_words.cuh and attention_flex.cuh.
struct FlexWords {
  Address fault = 0;
  int64_t operation = 0, words[FlexAttention::kMostWords] = {};
};
struct Blocks {
  const char* states = nullptr;
  char* logarithms = nullptr;
  int64_t batch = 0, head = 0;
  int32_t rows = 0, columns = 0, queries = 1, keys = 1;
};

Kernel& flex_kernel(const std::string& text, const Place& place, const std::vector<std::string>& options) {
  static auto* known = new std::unordered_map<std::string, Kernel*>;
  static auto* lock = new std::mutex;
  std::string key = join(place.device);
  for (const std::string& option : options) key += option;
  key += text;
  const std::lock_guard guard(*lock);
  Kernel*& kernel = (*known)[key];
  if (!kernel) kernel = &load_kernel(place.device, text, "flex_attention", options);
  return *kernel;
}

// Whether the products can be those of a warpgroup, with tiles of 64.
bool has_warpgroups(const FlexAttention& f, const Attention& a, const Place& place, int width) {
  return f.by_warpgroups && a.in_half && (width == 64 || width == 128) && properties(place.device).major == 9;
}

class Flex {
 public:
  Flex(const FlexAttention& f, const Attention& a, const Place& place) : f_(f), a_(a), place_(place) {
    static const int kNumber = operation_number("flex_attention");
    words_.fault = fault_place(place.device), words_.operation = kNumber;
    size_t n = 0;
    const auto put = [&](int64_t word) {
      check(n < std::size(words_.words), "flex_attention: its functions read too many tensors");
      words_.words[n++] = word;
    };
    for (const Tensor& t : f.tensors) {
      put(reinterpret_cast<int64_t>(t.bytes()));
      for (const int64_t size : t.sizes()) put(size);
      for (const int64_t stride : t.strides()) put(stride);
    }
    if (!f.states.defined()) return;
    const Tensor& t = f.states;
    blocks_.states = t.bytes();
    blocks_.batch = t.size(0) > 1 ? t.stride(0) : 0, blocks_.head = t.size(1) > 1 ? t.stride(1) : 0;
    blocks_.rows = static_cast<int32_t>(t.size(2)), blocks_.columns = static_cast<int32_t>(t.size(3));
    blocks_.queries = f.block_queries, blocks_.keys = f.block_keys;
  }
  void launch(int entry, Shape s, int64_t rows, int64_t heads, int64_t own_matrices, int64_t more_bytes,
              void* logarithms) {
    blocks_.logarithms = static_cast<char*>(logarithms);
    const int64_t own = s.rows(), passing = s.tile;
    const bool warpgroup = has_warpgroups(f_, a_, place_, s.width) && passing == 64;
    const int64_t queries = entry == 2 ? passing : own, keys = entry == 2 ? own : passing;
    const bool aligned = blocks_.queries % queries == 0 && blocks_.keys % keys == 0;
    const int64_t row_bytes = 16 * (s.width / a_.piece() + !warpgroup),
                  shared = row_bytes * (own_matrices * own + 4 * passing) + more_bytes + (warpgroup ? 1024 : 0);
    Kernel& kernel = flex_kernel(
        f_.text, place_,
        {"--fmad=true", a_.in_half ? "--prec-div=false" : "--prec-div=true", join("-DT=dtype_", tag_of(a_.dtype)),
         join("-DWIDTH=", s.width), join("-DWARP_TILES=", s.warp_tiles), join("-DTILE=", s.tile),
         join("-DT_IS_FLOAT=", int{!a_.in_half}), join("-DENTRY=", entry), join("-DSCORED=", int{f_.scored}),
         join("-DBLOCKED=", int{f_.states.defined()}), join("-DALIGNED=", int{aligned}),
         join("-DWARPGROUP=", int{warpgroup})});
    cuda::launch(kernel, place_, divide_up(rows, own) * heads, kThreads, shared, a_.p, words_, blocks_);
  }

 private:
  const FlexAttention& f_;
  const Attention& a_;
  const Place& place_;
  FlexWords words_;
  Blocks blocks_;
};

}  // namespace

void FlexAttention::forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& rows,
                            const Tensor& logarithms) const {
  Attention a(q, k, v, out.sizes(), true, false, scale);
  a.on_tensor_cores = true;  // also with longer rows, and with scales that are not positive
  const Place place(out.device());
  a.p.query = a.read(q, a.batch()), a.p.key = a.read(k, a.shared()), a.p.value = a.read(v, a.shared());
  a.p.output = a.written(out, a.batch());
  a.p.rows = rows.bytes();
  const int64_t heads = int64_t{a.p.heads} * a.p.batches;
  const bool many = divide_up(a.p.queries, 128) * heads >= properties(place.device).multiprocessors;
  const int width = rounded_width(a.p.width), usual_rows = many && a.in_half && width <= 128 ? 128 : 64;
  const Shape shape{width, (own_rows ? own_rows : usual_rows) / 64, tile ? tile : a.in_half && width <= 128 ? 64 : 32};
  Flex(*this, a, place).launch(0, shape, a.p.queries, heads, 1, 0, logarithms.bytes());
}

void FlexAttention::backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                             const Tensor& rows, const Tensor& logarithm_grad, const Tensor& query_grad,
                             const Tensor& key_grad, const Tensor& value_grad) const {
  Attention a(q, k, v, out.sizes(), true, false, scale);
  a.on_tensor_cores = true;  // also with longer rows, and with scales that are not positive
  const Place place(out.device());
  a.p.grad = a.read(grad, a.batch()), a.p.output = a.read(out, a.batch());
  a.p.query = a.read(q, a.batch()), a.p.key = a.read(k, a.shared()), a.p.value = a.read(v, a.shared());
  a.p.query_grad = a.written(query_grad, a.batch()), a.p.key_grad = a.written(key_grad, a.shared()),
  a.p.value_grad = a.written(value_grad, a.shared());
  a.p.rows = rows.bytes();
  const int64_t heads = int64_t{a.p.heads} * a.p.batches;
  const Tensor dots = empty({{heads * a.p.queries}}, Dtype::f32, out.device());
  a.p.dots = dots.bytes();
  launch_dots(a, place, heads * a.p.queries);
  const int width = rounded_width(a.p.width),
            usual_queries = has_warpgroups(*this, a, place, width) || (width <= 64 && a.in_half) ? 64 : 32,
            usual_keys = width <= 128 && a.in_half ? 64 : 32,
            queries = backward_queries ? backward_queries : usual_queries,
            keys = backward_keys ? backward_keys : usual_keys;
  void* const of_logarithms = logarithm_grad.defined() ? logarithm_grad.bytes() : nullptr;
  Flex flex(*this, a, place);
  flex.launch(2, {width, 1, queries}, a.p.keys, heads / a.p.group, 2, 2 * 2 * queries * 4, of_logarithms);
  flex.launch(1, {width, 1, keys}, a.p.queries, heads, 2, 0, of_logarithms);
}

REGISTER_KERNELS(attention) {
  let_compute_late("_attention_backward", DeviceType::cuda, attention_backward_late);
  r.set_kernel("_attention", DeviceType::cuda, run_attention);
  r.set_kernel("_attention_backward", DeviceType::cuda, run_attention_backward);
}

}  // namespace cresset::cuda
