// Attention as the graphs of operations that the library recognizes and carries out in one kernel, without the matrix
// of scores:
//
//   forward    S = Q Kᵀ scale, plus a mask of numbers, masked; P = exp(S - max S) / sum; O = P V; rows = max S + log
//   sum backward   P = exp(S - rows); dV = Pᵀ dO; dS = P (dO Vᵀ - sum(dO O)) scale; dK = dSᵀ Q; dQ = dS K
//
// The order and the types of the operations are those of NVIDIA's documentation: other orders of the same arithmetic
// are not recognized.
#include <limits>
#include <unordered_map>

#include "cuda/cudnn.h"
#include "cuda/cudnn_graph.h"
#include "cuda/workspace.h"

namespace cresset::cuda {
namespace {

using namespace cudnn;

enum Id : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOutput,
  kRows,
  kScale,
  kHidden,
  kGrad,
  kQueryGrad,
  kKeyGrad,
  kValueGrad,
  kQuerySum,
  kDots,
  kOne,
  kMask,
  kFirstFree
};

using Four = std::array<int64_t, 4>;
constexpr Four kSingle = {1, 1, 1, 1};

struct Key {
  AttentionSizes sizes;
  int64_t device, backward;
};

class AttentionGraph : public OperationGraph {
 public:
  AttentionGraph(const Place& place, const AttentionSizes& s)
      : OperationGraph(place), s_(s), type_(data_type(static_cast<Dtype>(s.dtype))) {
    scale_ = tensor(kScale, kSingle, kSingle, kFloat, kByValue);
    if (s.causal) hidden_ = tensor(kHidden, kSingle, kSingle, kFloat, kByValue);
    query_ = tensor(kQuery, query_sizes(), strides(s.query), type_);
    key_transposed_ = tensor(kKey, {{s.batches, s.key_heads, s.width, s.keys}}, transposed(strides(s.key)), type_);
  }

  bool describe_forward() {
    const Node scores = masked(scaled(product_of_queries_and_keys()));
    const Node greatest = fresh_row(), shifted = fresh_scores(), exponentials = fresh_scores(), sum = fresh_row(),
               logarithm = fresh_row(), weights = fresh_scores(type_);
    reduce(kMaximum, greatest, scores);
    pointwise(kSubtract, shifted, scores, greatest);
    pointwise(kExponential, exponentials, shifted);
    reduce(kSum, sum, exponentials);
    pointwise(kLogarithm, logarithm, sum);
    pointwise(kAdd, tensor(kRows, row_sizes(), row_strides(), kFloat), greatest, logarithm);
    pointwise(kDivide, weights, exponentials, sum);
    const Node value = tensor(kValue, {{s_.batches, s_.key_heads, s_.keys, s_.width}}, strides(s_.value), type_);
    multiply(tensor(kOutput, query_sizes(), strides(s_.output), type_), weights, value);
    return finish();
  }

  bool describe_backward() {
    const Node grad = tensor(kGrad, query_sizes(), strides(s_.grad), type_),
               output = tensor(kOutput, query_sizes(), strides(s_.output), type_);
    const Node rows = tensor(kRows, row_sizes(), row_strides(), kFloat),
               one = tensor(kOne, kSingle, kSingle, kFloat, kByValue);
    // The products of the output's rows with their gradients.
    const Node products =
                   fresh({s_.batches, s_.heads, s_.queries, s_.width},
                         {s_.heads * s_.queries * s_.width, s_.queries * s_.width, s_.heads * s_.width, 1}, kFloat),
               sums = fresh_row();
    const Node dots = tensor(kDots, row_sizes(), row_strides(), kFloat);
    pointwise(kMultiply, products, grad, output);
    reduce(kSum, sums, products);
    pointwise(kMultiply, dots, sums, one);
    // The weights again, and from them the gradient of the values.
    const Node shifted = fresh_scores();
    pointwise(kSubtract, shifted, scaled(product_of_queries_and_keys()), rows);
    const Node weights = fresh_scores();
    pointwise(kExponential, weights, masked(shifted));
    reduce_heads(kValueGrad, transpose_scores(weights), grad, strides(s_.value_grad));
    // The gradient of the scores, and from it those of the keys and the queries.
    const Node weight_grads = fresh_scores(), differences = fresh_scores(), score_grads = fresh_scores(),
               scaled_grads = fresh_scores();
    const Node value_transposed =
        tensor(kValue, {{s_.batches, s_.key_heads, s_.width, s_.keys}}, transposed(strides(s_.value)), type_);
    multiply(weight_grads, grad, value_transposed);
    pointwise(kSubtract, differences, weight_grads, dots);
    pointwise(kMultiply, score_grads, differences, weights);
    pointwise(kMultiply, scaled_grads, score_grads, scale_);
    reduce_heads(kKeyGrad, transpose_scores(scaled_grads), query_, strides(s_.key_grad));
    const Node key = fresh({s_.batches, s_.key_heads, s_.keys, s_.width}, strides(s_.key), type_);
    reshape(key, key_transposed_);
    const Node sum = tensor(kQuerySum, query_sizes(),
                            {{s_.heads * s_.queries * s_.width, s_.queries * s_.width, s_.width, 1}}, kFloat);
    multiply(sum, scaled_grads, key);
    pointwise(kIdentity, tensor(kQueryGrad, query_sizes(), strides(s_.query_grad), type_), sum);
    return finish();
  }

 private:
  const AttentionSizes& s_;
  DataType type_;
  int64_t next_ = kFirstFree;
  Node scale_, hidden_ = nullptr, query_, key_transposed_;

  static Four strides(const HeadStrides& h) { return {h.batch, h.head, h.row, 1}; }
  static Four transposed(Four f) { return {f[0], f[1], f[3], f[2]}; }
  Four query_sizes() const { return {s_.batches, s_.heads, s_.queries, s_.width}; }
  Four row_sizes() const { return {s_.batches, s_.heads, s_.queries, 1}; }
  Four row_strides() const { return {s_.heads * s_.queries, s_.queries, 1, 1}; }
  Four score_strides() const { return {s_.heads * s_.queries * s_.keys, s_.queries * s_.keys, s_.keys, 1}; }

  Node fresh(const Four& sizes, const Four& strides, DataType type) {
    return tensor(next_++, sizes, strides, type, kVirtual);
  }
  Node fresh_scores(DataType type = kFloat) {
    return fresh({s_.batches, s_.heads, s_.queries, s_.keys}, score_strides(), type);
  }
  Node fresh_row() { return fresh(row_sizes(), row_strides(), kFloat); }

  Node product_of_queries_and_keys() {
    const Node scores = fresh_scores();
    multiply(scores, query_, key_transposed_);
    return scores;
  }
  Node scaled(Node scores) {
    const Node y = fresh_scores();
    pointwise(kMultiply, y, scores, scale_);
    if (!s_.mask_batches) return y;
    const Node added = fresh_scores();
    pointwise(kAdd, added, y,
              tensor(kMask, {{s_.mask_batches, s_.mask_heads, s_.queries, s_.keys}}, strides(s_.mask), type_));
    return added;
  }
  // Queries see the keys up to their own place.
  Node masked(Node scores) {
    if (!s_.causal) return scores;
    const Node row = fresh_scores(kInt32), column = fresh_scores(kInt32), seen = fresh_scores(kBoolean),
               y = fresh_scores();
    pointwise(kIndexAlong, row, scores, nullptr, nullptr, kFloat, 2);
    pointwise(kIndexAlong, column, scores, nullptr, nullptr, kFloat, 3);
    pointwise(kGreaterOrEqual, seen, row, column, nullptr, kBoolean);
    pointwise(kSelect, y, scores, hidden_, seen);
    return y;
  }
  Node transpose_scores(Node scores) {
    const Node y = fresh({s_.batches, s_.heads, s_.keys, s_.queries}, transposed(score_strides()), type_);
    reshape(y, scores);
    return y;
  }
  // The product of each head; heads that share a key are added.
  void reduce_heads(Id id, Node scores_transposed, Node by, const Four& strides) {
    const Node result = tensor(id, {{s_.batches, s_.key_heads, s_.keys, s_.width}}, strides, type_);
    if (s_.heads == s_.key_heads) return multiply(result, scores_transposed, by);
    const Node each = fresh({s_.batches, s_.heads, s_.keys, s_.width},
                            {s_.heads * s_.keys * s_.width, s_.keys * s_.width, s_.width, 1}, type_);
    multiply(each, scores_transposed, by);
    reduce(kSum, result, each);
  }
};

// A plan takes the library about a second. The first shapes get theirs at once; where there are many, as with texts of
// every length, one that comes again and again.
class AttentionPlans : public PlanCache<Key> {
  static constexpr size_t kAtOnce = 16;
  static constexpr int kOften = 8;
  std::unordered_map<Key, int, Hash, Same> seen_;

 public:
  bool is_worth_planning(const Key& key) {
    if (size() < kAtOnce || knows(key)) return true;
    if (seen_.size() >= kMost) seen_.clear();
    return ++seen_[key] > kOften;
  }
};
AttentionPlans& plans() {
  static auto* the = new AttentionPlans;
  return *the;
}

bool run_planned(const Place& place, const AttentionSizes& sizes, bool backward, std::span<const int64_t> ids,
                 std::span<void* const> pointers) {
  const Key key{sizes, place.device, backward};
  std::lock_guard guard(plans().lock);
  if (!plans().is_worth_planning(key)) return false;
  const Plan& plan = plans().get(key, [&]() -> Plan {
    AttentionGraph graph(place, sizes);
    if (!(backward ? graph.describe_backward() : graph.describe_forward())) return {};
    constexpr int64_t kMostWorkspace = int64_t{1} << 30;
    std::vector<Plan> found = graph.plans(1, [](std::span<const int>) { return true; }, kMostWorkspace);
    return found.empty() ? Plan{} : std::move(found[0]);
  });
  return plan.plan && run(place, plan, ids, pointers);
}

// By value; they live until the library has read them, which is when it is called.
float hidden = -std::numeric_limits<float>::infinity(), one = 1;

}  // namespace

bool attend(const Place& place, const AttentionSizes& sizes, double scale, const AttentionMemory& m) {
  if (!cudnn_problem().empty()) return false;
  auto factor = static_cast<float>(scale);
  std::vector<int64_t> ids = {kQuery, kKey, kValue, kOutput, kRows, kScale};
  std::vector<void*> pointers = {m.query, m.key, m.value, m.output, m.rows, &factor};
  if (sizes.causal) ids.push_back(kHidden), pointers.push_back(&hidden);
  if (sizes.mask_batches) ids.push_back(kMask), pointers.push_back(m.mask);
  return run_planned(place, sizes, false, ids, pointers);
}

bool attend_backward(const Place& place, const AttentionSizes& sizes, double scale, const AttentionMemory& m) {
  if (!cudnn_problem().empty()) return false;
  auto factor = static_cast<float>(scale);
  const auto row_count = static_cast<size_t>(sizes.batches * sizes.heads * sizes.queries);
  const Workspace dots(place.device, row_count * sizeof(float)),
      query_sum(place.device, row_count * static_cast<size_t>(sizes.width) * sizeof(float));
  std::vector<int64_t> ids = {kQuery,   kKey,       kValue, kOutput,   kRows,  kGrad, kQueryGrad,
                              kKeyGrad, kValueGrad, kDots,  kQuerySum, kScale, kOne};
  std::vector<void*> pointers = {m.query,    m.key,        m.value,     m.output,         m.rows,  m.grad, m.query_grad,
                                 m.key_grad, m.value_grad, dots.data(), query_sum.data(), &factor, &one};
  if (sizes.causal) ids.push_back(kHidden), pointers.push_back(&hidden);
  if (sizes.mask_batches) ids.push_back(kMask), pointers.push_back(m.mask);
  return run_planned(place, sizes, true, ids, pointers);
}

}  // namespace cresset::cuda
