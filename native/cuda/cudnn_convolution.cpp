// Convolutions as graphs of one operation.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "cuda/cudnn.h"
#include "cuda/cudnn_graph.h"

namespace cresset::cuda {
namespace {

using namespace cudnn;

constexpr int kCrossCorrelation = 1;
constexpr int64_t kIds[] = {'x', 'w', 'y'};
constexpr int64_t kMostWorkspace = int64_t{1} << 30;

struct Key {
  ConvolutionSizes sizes;
  int64_t device, tf32, deterministic, candidates;  // of plans that are tried
};
static_assert(sizeof(Key) == 30 * 8);

struct Memory3 {
  void* pointers[3];  // of x, w and y
};

Node tensor(OperationGraph& graph, int64_t id, const ConvolutionSizes& c, int64_t first, int64_t second,
            const int64_t* spatial) {
  int64_t sizes[5] = {first, second}, strides[5];
  const int64_t n = c.rank + 2;
  std::copy(spatial, spatial + c.rank, sizes + 2);
  int64_t step = 1;
  const auto next = [&](int64_t d) {
    strides[d] = step;
    step *= sizes[d];
  };
  if (c.channels_inside) next(1);
  for (int64_t d = n - 1; d >= 2; --d) next(d);
  if (!c.channels_inside) next(1);
  next(0);
  const auto length = static_cast<size_t>(n);
  return graph.tensor(id, {sizes, length}, {strides, length}, data_type(static_cast<Dtype>(c.dtype)));
}

// Whether the library knows such a convolution.
bool describe(OperationGraph& graph, const ConvolutionSizes& c) {
  const bool wide = static_cast<Dtype>(c.dtype) == Dtype::f64;
  Descriptor convolution(kConvolution);
  convolution.set_choice(kConvolutionCompute, kTypeDataType, wide ? kDouble : kFloat);
  convolution.set_choice(kConvolutionMode, kTypeConvolutionMode, kCrossCorrelation);
  convolution.set_number(kConvolutionRank, c.rank);
  convolution.set_numbers(kConvolutionDilations, c.dilation, c.rank);
  convolution.set_numbers(kConvolutionStrides, c.stride, c.rank);
  convolution.set_numbers(kConvolutionPaddingBefore, c.padding, c.rank);
  convolution.set_numbers(kConvolutionPaddingAfter, c.padding, c.rank);
  if (!convolution.finalize()) return false;
  const Node x = tensor(graph, kIds[0], c, c.images, c.in_channels, c.in),
             w = tensor(graph, kIds[1], c, c.out_channels, c.in_channels / c.groups, c.kernel),
             y = tensor(graph, kIds[2], c, c.images, c.out_channels, c.out);
  const bool forward = c.kind == CudnnConvolution::forward, data = c.kind == CudnnConvolution::input_gradient;
  Descriptor operation(forward ? kForward : data ? kBackwardData : kBackwardFilter);
  const int first = forward ? kForwardAlpha : data ? kBackwardDataAlpha : kBackwardFilterAlpha;
  const double alpha = 1, beta = 0;
  const float narrow_alpha = 1, narrow_beta = 0;
  operation.set(first, wide ? kTypeDouble : kTypeFloat, 1, wide ? static_cast<const void*>(&alpha) : &narrow_alpha);
  operation.set(first + 1, wide ? kTypeDouble : kTypeFloat, 1, wide ? static_cast<const void*>(&beta) : &narrow_beta);
  operation.set_descriptor(first + 2, convolution.raw());
  operation.set_descriptor(first + 3, w);
  operation.set_descriptor(first + 4, x);
  operation.set_descriptor(first + 5, y);
  graph.add_part(std::move(convolution));
  return graph.add_operation(std::move(operation)) && graph.finish();
}

std::vector<Plan> find_plans(const Place& place, const Key& key, size_t wanted) {
  OperationGraph graph(place);
  if (!describe(graph, key.sizes)) return {};
  const bool single = static_cast<Dtype>(key.sizes.dtype) == Dtype::f32;
  return graph.plans(
      wanted,
      [&](std::span<const int> notes) {
        return std::none_of(notes.begin(), notes.end(), [&](int note) {
          return (key.deterministic && note == kNondeterministic) ||
                 (single && (note == kDownConvertsInputs || (note == kTensorCore && !key.tf32)));
        });
      },
      kMostWorkspace);
}

// Each runs a few times; the one whose best time is least wins. What is written is written again by the call that
// asked.
Plan fastest(const Place& place, const std::vector<Plan>& plans, const Memory3& memory) {
  EventHandle start = nullptr, end = nullptr;
  CRESSET_DRIVER(cuEventCreate(&start, kEventDefault));
  CRESSET_DRIVER(cuEventCreate(&end, kEventDefault));
  float best = std::numeric_limits<float>::infinity();
  Plan chosen;
  for (const Plan& plan : plans) {
    float least = std::numeric_limits<float>::infinity();
    for (int i = 0; i < 4; ++i) {  // the first loads the kernels
      CRESSET_DRIVER(cuEventRecord(start, place.stream));
      if (!run(place, plan, kIds, memory.pointers)) break;
      CRESSET_DRIVER(cuEventRecord(end, place.stream));
      CRESSET_DRIVER(cuEventSynchronize(end));
      float milliseconds = 0;
      CRESSET_DRIVER(cuEventElapsedTime(&milliseconds, start, end));
      if (i > 0) least = std::min(least, milliseconds);
    }
    if (least < best) best = least, chosen = plan;
  }
  driver().cuEventDestroy_v2(start);
  driver().cuEventDestroy_v2(end);
  return chosen;
}

constexpr size_t kCandidates = 8, kAll = 1 << 16;

Plan make_plan(const Place& place, const Key& key, const Memory3& memory) {
  const std::vector<Plan> found =
      find_plans(place, key, is_capturing(place.stream) ? 1 : static_cast<size_t>(key.candidates));
  return found.empty() ? Plan{} : found.size() == 1 ? found[0] : fastest(place, found, memory);
}

// Some plans are found not to work when they are first run: the first of the others that does.
Plan make_working_plan(const Place& place, const Key& key, const Memory3& memory) {
  for (const Plan& plan : find_plans(place, key, kCandidates))
    if (run(place, plan, kIds, memory.pointers)) return plan;
  return {};
}

PlanCache<Key>& plans() {
  static auto* the = new PlanCache<Key>;
  return *the;
}

}  // namespace

bool convolve(const Place& place, const ConvolutionSizes& sizes, void* x, void* w, void* y) {
  if (!cudnn_problem().empty()) return false;
  const int64_t several = cudnn_settings.candidates ? cudnn_settings.candidates.load() : static_cast<int64_t>(kAll);
  const Key key{sizes, place.device, cudnn_settings.tf32, cudnn_settings.wants_deterministic(),
                cudnn_settings.benchmark ? several : 1};
  const Memory3 memory{{x, w, y}};
  std::lock_guard guard(plans().lock);
  Plan& plan = plans().get(key, [&] { return make_plan(place, key, memory); });
  if (!plan.plan) return false;
  if (run(place, plan, kIds, memory.pointers)) return true;
  plan = make_working_plan(place, key, memory);
  return plan.plan != nullptr;
}

}  // namespace cresset::cuda
