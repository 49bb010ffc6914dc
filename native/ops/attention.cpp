// Scaled dot product attention: shape rules, and how tensors reach the blocks of attention.h.
#include "ops/attention.h"

#include <vector>

#include "base/levels.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/computed.h"

namespace cresset {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

template <class C>
const AttentionKernels<C>& the_kernels() {
  static const AttentionKernels<C> the = BY_LEVEL(attention_kernels, <C>());
  return the;
}

// What the shapes of query, key and value say. The heads are the last of the batch's dimensions.
struct Shapes {
  Dims batch, shared;  // of the queries; of keys and values: fewer heads, when several heads of queries share one
  int64_t group = 1, queries, keys, width, value_width;
};
DimsView batch_of(const Tensor& t) { return DimsView(t.sizes()).first(static_cast<size_t>(t.dim() - 2)); }

Shapes shapes_of(const Tensor& q, const Tensor& k, const Tensor& v, bool shares_heads) {
  for (const Tensor* t : {&q, &k, &v})
    check(t->dim() >= 2, kName, ": Expected query, key, and value to all be at least 2 dimensional, got ",
          list(q.sizes()), ", ", list(k.sizes()), " and ", list(v.sizes()));
  for (const Tensor* t : {&k, &v}) {
    check(t->dtype() == q.dtype(), kName, ": Expected query, key, and value to have the same dtype, got ", q.dtype(),
          ", ", k.dtype(), " and ", v.dtype());
    check(t->device() == q.device(), kName, ": Expected query, key, and value to be on the same device, got ",
          q.device(), ", ", k.device(), " and ", v.device());
  }
  check_implemented(is_floating(q.dtype()) && size_of(q.dtype()) > 1, '"', kName, "\" not implemented for '",
                    facts(q.dtype()).legacy, "'");
  Shapes s;
  s.queries = q.size(-2), s.keys = k.size(-2), s.width = q.size(-1), s.value_width = v.size(-1);
  check(k.size(-1) == s.width, kName, ": query and key must have rows of one length, they have the shapes ",
        list(q.sizes()), " and ", list(k.sizes()));
  check(v.size(-2) == s.keys, kName, ": there must be a value for each key, they have the shapes ", list(k.sizes()),
        " and ", list(v.sizes()));
  Dims key_batch(batch_of(k)), value_batch(batch_of(v));
  if (shares_heads) {
    check(q.dim() >= 3 && k.dim() >= 3 && v.dim() >= 3 && k.size(-3) > 0 && k.size(-3) == v.size(-3) &&
              q.size(-3) % k.size(-3) == 0,
          kName, ": Number of heads in key and value must divide the number of heads in query, the shapes are ",
          list(q.sizes()), ", ", list(k.sizes()), " and ", list(v.sizes()));
    s.group = q.size(-3) / k.size(-3);
    key_batch.back() = value_batch.back() = q.size(-3);
  }
  s.batch = broadcast(kName, broadcast(kName, batch_of(q), key_batch), value_batch);
  s.shared = s.batch;
  if (shares_heads) s.shared.back() /= std::max<int64_t>(s.group, 1);
  return s;
}

// Where the matrix of each head starts, in a tensor that is broadcast to `batch`.
std::vector<int64_t> head_offsets(const Tensor& t, const Dims& batch) {
  Dims sizes = batch;
  sizes.push_back(t.size(-2)), sizes.push_back(t.size(-1));
  const Dims strides = expanded_strides(kName, t, sizes);
  int64_t count = 1;
  for (int64_t s : batch) count *= s;
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (int64_t d = batch.size() - 1; d >= 0; --d) {
      offset += rest % batch[d] * strides[d];
      rest /= batch[d];
    }
    offsets[static_cast<size_t>(i)] = offset;
  }
  return offsets;
}

// HeadRows and the offsets they point to.
class Heads {
 public:
  Heads(const Tensor& t, const Dims& batch)
      : offsets_(head_offsets(t, batch)), rows{t.bytes(), t.dtype(), t.stride(-2), t.stride(-1), offsets_.data()} {}
  Heads(const Heads&) = delete;

 private:
  std::vector<int64_t> offsets_;

 public:
  const HeadRows rows;
};

Tensor expanded_mask(const Tensor& mask, const Shapes& s) {
  Dims sizes = s.batch;
  sizes.push_back(s.queries), sizes.push_back(s.keys);
  return view_of(mask, sizes, expanded_strides(kName, mask, sizes), mask.offset());
}
void check_mask(const Tensor& mask, const Tensor& q, const Shapes& s) {
  check(mask.dtype() == Dtype::b8 || mask.dtype() == q.dtype() || mask.dtype() == Dtype::f32, kName,
        ": Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
        mask.dtype(), " and query.dtype: ", q.dtype());
  Dims sizes = s.batch;
  sizes.push_back(s.queries), sizes.push_back(s.keys);
  expanded_strides(kName, mask, sizes);
}

template <class C>
AttentionProblem<C> problem_of(const Shapes& s, bool causal, double scale) {
  AttentionProblem<C> p;
  p.heads = 1;
  for (int64_t n : s.batch) p.heads *= n;
  p.queries = s.queries, p.keys = s.keys, p.width = s.width, p.value_width = s.value_width, p.group = s.group;
  p.scale = static_cast<C>(scale), p.causal = causal;
  return p;
}

// Items of `work` multiplications each, shared out among the threads.
template <class C>
void share(int64_t items, double work, typename AttentionKernels<C>::Run run, const AttentionProblem<C>& p) {
  constexpr double kGrainWork = 1 << 18;
  parallel_for(items, std::max<int64_t>(1, static_cast<int64_t>(kGrainWork / (work + 1))),
               [&](int64_t begin, int64_t end) { run(p, begin, end); });
}

// (query, key, value, attn_mask, is_causal, scale, enable_gqa) -> (output, rows)
void infer_attention(Call& c) {
  const Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2);
  const Shapes s = shapes_of(q, k, v, c.boolean(6));
  if (c.has(3)) check_mask(c.tensor(3), q, s);
  Dims sizes = s.batch;
  sizes.push_back(s.queries);
  Dims rows = sizes;
  rows.push_back(2);
  sizes.push_back(s.value_width);
  TensorInfo info{sizes, {}, q.dtype(), q.device()};
  // As PyTorch lays it out where it has a kernel: in the order of the query's dimensions, so that heads that lie side
  // by side come out so.
  if (q.dim() == 4 && sizes == q.sizes() && s.keys > 0 && q.stride(-1) == 1 && k.stride(-1) == 1 && v.stride(-1) == 1)
    info.strides = dense_strides_like(q.sizes(), q.strides());
  if (!info.strides.empty() && info.strides.back() != 1) info.strides = {};
  c.promise(std::move(info));
  c.promise(rows, computed_dtype(q.dtype()), q.device());
}
template <class C>
void run_forward(Call& c) {
  const Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2), out = c.out(0);
  const Shapes s = shapes_of(q, k, v, c.boolean(6));
  auto p = problem_of<C>(s, c.boolean(4), c.real(5));
  if (p.heads * p.queries == 0) return;
  const Heads query(q, s.batch), key(k, s.shared), value(v, s.shared), output(out, s.batch);
  const Heads mask(c.has(3) ? expanded_mask(c.tensor(3), s) : out, s.batch);
  p.query = query.rows, p.key = key.rows, p.value = value.rows, p.output = output.rows;
  if (c.has(3)) p.mask = mask.rows;
  p.rows = c.out(1).data<C>();
  const double work = static_cast<double>(std::min(p.queries, p.kQueries)) * static_cast<double>(p.keys) *
                      static_cast<double>(p.width + p.value_width);
  share<C>(p.heads * p.query_blocks(), work, the_kernels<C>().forward, p);
}
void run_attention(Call& c) {
  computed_dtype(c.tensor(0).dtype()) == Dtype::f64 ? run_forward<double>(c) : run_forward<float>(c);
}

// (grad, query, key, value, output, rows, attn_mask, is_causal, scale, enable_gqa) -> gradients of query, key and
// value, not yet summed over what was broadcast.
void infer_attention_backward(Call& c) {
  const Tensor q = c.tensor(1), k = c.tensor(2), v = c.tensor(3);
  const Shapes s = shapes_of(q, k, v, c.boolean(9));
  const auto promise = [&](const Tensor& t, const Dims& batch) {
    Dims sizes = batch;
    sizes.push_back(t.size(-2)), sizes.push_back(t.size(-1));
    TensorInfo info{sizes, {}, t.dtype(), t.device()};
    if (sizes == t.sizes() && t.dim() == 4 && t.stride(-1) == 1)
      info.strides = dense_strides_like(t.sizes(), t.strides());
    if (!info.strides.empty() && info.strides.back() != 1) info.strides = {};
    c.promise(std::move(info));
  };
  promise(q, s.batch), promise(k, s.shared), promise(v, s.shared);
}
template <class C>
void run_backward(Call& c) {
  const Tensor q = c.tensor(1), k = c.tensor(2), v = c.tensor(3), out = c.tensor(4);
  const Shapes s = shapes_of(q, k, v, c.boolean(9));
  auto p = problem_of<C>(s, c.boolean(7), c.real(8));
  if (p.heads * p.queries * p.keys == 0) {
    for (int i = 0; i < 3; ++i) fill(c.out(i), 0);
    return;
  }
  const Heads grad(c.tensor(0), s.batch), query(q, s.batch), key(k, s.shared), value(v, s.shared), output(out, s.batch);
  const Heads mask(c.has(6) ? expanded_mask(c.tensor(6), s) : out, s.batch);
  const Heads query_grad(c.out(0), s.batch), key_grad(c.out(1), s.shared), value_grad(c.out(2), s.shared);
  p.grad = grad.rows, p.query = query.rows, p.key = key.rows, p.value = value.rows, p.output = output.rows;
  if (c.has(6)) p.mask = mask.rows;
  p.query_grad = query_grad.rows, p.key_grad = key_grad.rows, p.value_grad = value_grad.rows;
  const Tensor kept = contiguous(c.tensor(5)), dots = empty({{p.heads * p.queries}}, kept.dtype());
  p.rows = kept.data<C>(), p.row_dots = dots.data<C>();
  const auto& kernels = the_kernels<C>();
  const double rows = static_cast<double>(p.queries), columns = static_cast<double>(p.keys),
               widths = static_cast<double>(p.width + p.value_width);
  share<C>(p.heads, rows * static_cast<double>(p.value_width), kernels.dots, p);
  const int64_t shared = p.heads / p.group;
  // With fewer heads than threads each block of scores is computed twice, once for the queries' and once for the keys'
  // gradients, so that threads share the blocks of a head. The sums are the same, in the same order.
  if (shared >= thread_count() || rows * columns * widths < 1 << 22)
    return share<C>(shared, rows * columns * widths * 3, kernels.backward, p);
  share<C>(shared * p.key_blocks(), rows * p.kKeys * widths * 2, kernels.backward_keys, p);
  share<C>(p.heads * p.query_blocks(), columns * p.kQueries * widths * 2, kernels.backward_queries, p);
}
void run_attention_backward(Call& c) {
  computed_dtype(c.tensor(1).dtype()) == Dtype::f64 ? run_backward<double>(c) : run_backward<float>(c);
}

}  // namespace

REGISTER(attention) {
  r.add(
      "_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale, bool "
      "enable_gqa=False) -> (Tensor output, Tensor rows)",
      infer_attention, run_attention, kFunctionOnly | kFirstResultOnly,
      "ScaledDotProductFlashAttentionForCpuBackward0");
  r.add(
      "_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor output, Tensor rows, Tensor? "
      "attn_mask, bool is_causal, float scale, bool "
      "enable_gqa=False) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
      infer_attention_backward, run_attention_backward, kFunctionOnly | kNotDifferentiable);
}

}  // namespace cresset
