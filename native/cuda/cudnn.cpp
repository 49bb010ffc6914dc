#include "cuda/cudnn.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace cresset::cuda {

CudnnSettings cudnn_settings;

namespace {

using CudnnStatus = int;
using Handle = void*;
using RawDescriptor = void*;

// Numbers of cuDNN's interface.
constexpr CudnnStatus kDone = 0;
enum DescriptorKind : int {
  kConvolution = 1, kEngine = 2, kEngineConfiguration = 3, kHeuristic = 4, kExecutionPlan = 5, kForward = 10, kBackwardFilter = 11, kBackwardData = 12, kOperationGraph = 15, kVariantPack = 16,
  kTensor = 17,
};
enum AttributeType : int {
  kTypeHandle = 0, kTypeDataType = 1, kTypeBoolean = 2, kTypeInt64 = 3, kTypeFloat = 4, kTypeDouble = 5, kTypePointer = 6, kTypeConvolutionMode = 7, kTypeHeuristicMode = 8, kTypeNumericalNote = 11,
  kTypeDescriptor = 15,
};
enum AttributeName : int {
  kConvolutionCompute = 100, kConvolutionMode = 101, kConvolutionDilations = 102, kConvolutionStrides = 103, kConvolutionPaddingAfter = 104, kConvolutionPaddingBefore = 105, kConvolutionRank = 106,
  kHeuristicMode = 200, kHeuristicGraph = 201, kHeuristicResults = 202,
  kConfigurationEngine = 300,
  kPlanHandle = 400, kPlanConfiguration = 401, kPlanWorkspace = 402,
  kForwardAlpha = 700, kBackwardDataAlpha = 706, kBackwardFilterAlpha = 712,  // beta, the convolution and three tensors follow, one number each
  kGraphHandle = 800, kGraphOperations = 801,
  kTensorAlignment = 900, kTensorType = 901, kTensorSizes = 902, kTensorStrides = 903, kTensorId = 906, kTensorIsVirtual = 907,
  kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303,
};
enum DataType : int { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9 };
enum NumericalNote : int { kTensorCore = 0, kDownConvertsInputs = 1, kNondeterministic = 4, kNoteKinds = 32 };
enum Heuristic : int { kHeuristicFallback = 2, kHeuristicA = 3 };
constexpr int kCrossCorrelation = 1;
constexpr int64_t kIdX = 'x', kIdW = 'w', kIdY = 'y';

#define CRESSET_CUDNN_FUNCTIONS(X)                                                                                                       \
  X(cudnnCreate, (Handle * handle))                                                                                                      \
  X(cudnnSetStream, (Handle handle, StreamHandle stream))                                                                                \
  X(cudnnBackendCreateDescriptor, (int kind, RawDescriptor* d))                                                                          \
  X(cudnnBackendDestroyDescriptor, (RawDescriptor d))                                                                                    \
  X(cudnnBackendFinalize, (RawDescriptor d))                                                                                             \
  X(cudnnBackendSetAttribute, (RawDescriptor d, int name, int type, int64_t count, const void* elements))                                \
  X(cudnnBackendGetAttribute, (RawDescriptor d, int name, int type, int64_t wanted, int64_t* count, void* elements))                     \
  X(cudnnBackendExecute, (Handle handle, RawDescriptor plan, RawDescriptor pack))

struct Cudnn {
#define CRESSET_MEMBER(name, parameters) CudnnStatus(*name) parameters = nullptr;
  CRESSET_CUDNN_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
  size_t (*version)() = nullptr;
  const char* (*error_text)(CudnnStatus) = nullptr;
  std::string problem;
};

const Cudnn& library() {
  static const Cudnn* const the = [] {
    // Those that it opens by itself, so that it finds the ones that we have found.
    static const auto* const others = new Library[2]{Library{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, Library{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}};
    (void)others;
    const Library file{"libcudnn.so.9", "libcudnn.so"};
    auto* f = new Cudnn;
    f->problem = file.problem();
    if (!file.found()) return f;
    f->problem.clear();
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(file.symbol(#name));
    CRESSET_CUDNN_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
    f->version = reinterpret_cast<decltype(f->version)>(file.symbol("cudnnGetVersion"));
    f->error_text = reinterpret_cast<decltype(f->error_text)>(file.symbol("cudnnGetErrorString"));
    return f;
  }();
  return *the;
}

void check_done(CudnnStatus status, const char* what) { check(status == kDone, "cuDNN error: ", status == kDone ? "" : library().error_text(status), " when calling `", what, "`"); }
#define CRESSET_CUDNN(call) check_done(library().call, #call)

// The device's handle, with this stream.
Handle handle(const Place& place) {
  struct Known {
    Handle handle = nullptr;
    StreamHandle stream = nullptr;
  };
  static Known all[kMaxDevices];
  Known& known = all[place.device];
  if (!known.handle) {
    CRESSET_CUDNN(cudnnCreate(&known.handle));
    CRESSET_CUDNN(cudnnSetStream(known.handle, place.stream));
    known.stream = place.stream;
  } else if (known.stream != place.stream) {
    CRESSET_CUDNN(cudnnSetStream(known.handle, place.stream));
    known.stream = place.stream;
  }
  return known.handle;
}

class Descriptor {
 public:
  explicit Descriptor(DescriptorKind kind) { CRESSET_CUDNN(cudnnBackendCreateDescriptor(kind, &raw_)); }
  Descriptor(Descriptor&& o) noexcept : raw_(std::exchange(o.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(raw_, o.raw_);
    return *this;
  }
  ~Descriptor() {
    if (raw_) library().cudnnBackendDestroyDescriptor(raw_);
  }
  RawDescriptor raw() const { return raw_; }

  void set(int name, int type, int64_t count, const void* elements) { CRESSET_CUDNN(cudnnBackendSetAttribute(raw_, name, type, count, elements)); }
  void set_numbers(int name, const int64_t* numbers, int64_t count) { set(name, kTypeInt64, count, numbers); }
  void set_number(int name, int64_t number) { set(name, kTypeInt64, 1, &number); }
  void set_choice(int name, int type, int value) { set(name, type, 1, &value); }
  void set_descriptor(int name, const Descriptor& d) { set(name, kTypeDescriptor, 1, &d.raw_); }
  bool finalize() { return library().cudnnBackendFinalize(raw_) == kDone; }  // false: the library does not support it

 private:
  RawDescriptor raw_ = nullptr;
};

DataType data_type(Dtype d) { return d == Dtype::f64 ? kDouble : d == Dtype::f16 ? kHalf : d == Dtype::bf16 ? kBfloat16 : kFloat; }

Descriptor tensor(int64_t id, const ConvolutionSizes& c, int64_t first, int64_t second, const int64_t* spatial) {
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
  Descriptor d(kTensor);
  d.set_choice(kTensorType, kTypeDataType, data_type(static_cast<Dtype>(c.dtype)));
  d.set_numbers(kTensorSizes, sizes, n);
  d.set_numbers(kTensorStrides, strides, n);
  d.set_number(kTensorId, id);
  d.set_number(kTensorAlignment, 16);
  const bool is_virtual = false;
  d.set(kTensorIsVirtual, kTypeBoolean, 1, &is_virtual);
  check(d.finalize(), "cuDNN: a tensor of ", c.rank, " spatial dimensions is not supported");
  return d;
}

using Kept = std::shared_ptr<std::vector<Descriptor>>;
struct Plan {
  std::unique_ptr<Descriptor> plan;  // null: there is none
  int64_t workspace = 0;
  Kept parts = nullptr;              // what it was made of lives as long
};

bool run(Handle h, const Plan& plan, void* x, void* w, void* y, void* workspace) {
  Descriptor pack(kVariantPack);
  const int64_t ids[] = {kIdX, kIdW, kIdY};
  void* const pointers[] = {x, w, y};
  pack.set_numbers(kPackIds, ids, 3);
  pack.set(kPackPointers, kTypePointer, 3, pointers);
  pack.set(kPackWorkspace, kTypePointer, 1, &workspace);
  return pack.finalize() && library().cudnnBackendExecute(h, plan.plan->raw(), pack.raw()) == kDone;
}

// What the engine of a configuration does with numbers: kTensorCore...
std::vector<int> notes_of(const Descriptor& configuration) {
  Descriptor engine(kEngine);
  RawDescriptor raw = engine.raw();
  int64_t count = 0;
  if (library().cudnnBackendGetAttribute(configuration.raw(), kConfigurationEngine, kTypeDescriptor, 1, &count, &raw) != kDone) return {};
  std::vector<int> notes(kNoteKinds);
  if (library().cudnnBackendGetAttribute(engine.raw(), kEngineNumericalNotes, kTypeNumericalNote, kNoteKinds, &count, notes.data()) != kDone) return {};
  notes.resize(static_cast<size_t>(std::min<int64_t>(count, kNoteKinds)));
  return notes;
}
bool is_allowed(const Descriptor& configuration, Dtype dtype, bool tf32, bool deterministic) {
  if (dtype != Dtype::f32 && !deterministic) return true;
  for (const int note : notes_of(configuration)) {
    if (deterministic && note == kNondeterministic) return false;
    if (dtype == Dtype::f32 && (note == kDownConvertsInputs || (note == kTensorCore && !tf32))) return false;
  }
  return true;
}

class Planner {
 public:
  Planner(const Place& place, const ConvolutionSizes& c) : handle_(handle(place)), place_(place), sizes_(c) {}

  // The operation, described; false when the library does not know such a convolution.
  bool describe() {
    const ConvolutionSizes& c = sizes_;
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
    Descriptor x = tensor(kIdX, c, c.images, c.in_channels, c.in), w = tensor(kIdW, c, c.out_channels, c.in_channels / c.groups, c.kernel),
               y = tensor(kIdY, c, c.images, c.out_channels, c.out);
    const bool forward = c.kind == CudnnConvolution::forward, data = c.kind == CudnnConvolution::input_gradient;
    Descriptor operation(forward ? kForward : data ? kBackwardData : kBackwardFilter);
    const int first = forward ? kForwardAlpha : data ? kBackwardDataAlpha : kBackwardFilterAlpha;
    const double alpha = 1, beta = 0;
    const float narrow_alpha = 1, narrow_beta = 0;
    operation.set(first, wide ? kTypeDouble : kTypeFloat, 1, wide ? static_cast<const void*>(&alpha) : &narrow_alpha);
    operation.set(first + 1, wide ? kTypeDouble : kTypeFloat, 1, wide ? static_cast<const void*>(&beta) : &narrow_beta);
    operation.set_descriptor(first + 2, convolution);
    operation.set_descriptor(first + 3, w);
    operation.set_descriptor(first + 4, x);
    operation.set_descriptor(first + 5, y);
    if (!operation.finalize()) return false;
    Descriptor graph(kOperationGraph);
    graph.set_descriptor(kGraphOperations, operation);
    graph.set(kGraphHandle, kTypeHandle, 1, &handle_);
    if (!graph.finalize()) return false;
    graph_ = graph.raw();
    for (Descriptor* d : {&convolution, &x, &w, &y, &operation, &graph}) parts_->push_back(std::move(*d));
    return true;
  }

  // The plans for it, the most promising ones first, as many as are wanted.
  std::vector<Plan> plans(size_t wanted) {
    std::vector<Plan> found;
    for (const Heuristic mode : {kHeuristicA, kHeuristicFallback}) {
      if (found.size() >= wanted || (mode == kHeuristicFallback && !found.empty())) break;
      for (Descriptor& configuration : configurations(mode)) {
        if (found.size() >= wanted) break;
        if (!is_allowed(configuration, static_cast<Dtype>(sizes_.dtype), cudnn_settings.tf32, cudnn_settings.deterministic)) continue;
        auto plan = std::make_unique<Descriptor>(kExecutionPlan);
        plan->set(kPlanHandle, kTypeHandle, 1, &handle_);
        plan->set_descriptor(kPlanConfiguration, configuration);
        int64_t workspace = 0, count = 0;
        if (!plan->finalize() || library().cudnnBackendGetAttribute(plan->raw(), kPlanWorkspace, kTypeInt64, 1, &count, &workspace) != kDone) continue;
        if (workspace > kMostWorkspace) continue;
        found.push_back({std::move(plan), workspace, parts_});
        parts_->push_back(std::move(configuration));
      }
    }
    return found;
  }

  // Each runs a few times; the one whose best time is least wins. What is written is written again by the call that asked.
  Plan fastest(std::vector<Plan> plans, void* x, void* w, void* y) {
    EventHandle start = nullptr, end = nullptr;
    CRESSET_DRIVER(cuEventCreate(&start, kEventDefault));
    CRESSET_DRIVER(cuEventCreate(&end, kEventDefault));
    float best = std::numeric_limits<float>::infinity();
    Plan chosen;
    for (Plan& plan : plans) {
      const Workspace workspace(place_.device, static_cast<size_t>(plan.workspace));
      float least = std::numeric_limits<float>::infinity();
      for (int i = 0; i < 4; ++i) {  // the first loads the kernels
        CRESSET_DRIVER(cuEventRecord(start, place_.stream));
        if (!run(handle_, plan, x, w, y, workspace.data())) break;
        CRESSET_DRIVER(cuEventRecord(end, place_.stream));
        CRESSET_DRIVER(cuEventSynchronize(end));
        float milliseconds = 0;
        CRESSET_DRIVER(cuEventElapsedTime(&milliseconds, start, end));
        if (i > 0) least = std::min(least, milliseconds);
      }
      if (least < best || (!chosen.plan && least != std::numeric_limits<float>::infinity())) {
        best = least;
        chosen = std::move(plan);
      }
    }
    driver().cuEventDestroy_v2(start);
    driver().cuEventDestroy_v2(end);
    return chosen;
  }

 private:
  static constexpr int64_t kMostWorkspace = int64_t{1} << 30;
  static constexpr int64_t kMostConfigurations = 24;
  Handle handle_;
  const Place& place_;
  const ConvolutionSizes& sizes_;
  RawDescriptor graph_ = nullptr;  // one of the parts
  Kept parts_ = std::make_shared<std::vector<Descriptor>>();

  std::vector<Descriptor> configurations(Heuristic mode) {
    Descriptor heuristic(kHeuristic);
    heuristic.set(kHeuristicGraph, kTypeDescriptor, 1, &graph_);
    heuristic.set_choice(kHeuristicMode, kTypeHeuristicMode, mode);
    if (!heuristic.finalize()) return {};
    std::vector<Descriptor> all;
    std::vector<RawDescriptor> raw;
    for (int64_t i = 0; i < kMostConfigurations; ++i) {
      all.emplace_back(kEngineConfiguration);
      raw.push_back(all.back().raw());
    }
    int64_t count = 0;
    if (library().cudnnBackendGetAttribute(heuristic.raw(), kHeuristicResults, kTypeDescriptor, kMostConfigurations, &count, raw.data()) != kDone) return {};
    while (static_cast<int64_t>(all.size()) > count) all.pop_back();
    return all;
  }
};

struct Key {
  ConvolutionSizes sizes;
  int64_t device, tf32, deterministic, benchmark;
  bool operator==(const Key& o) const { return std::memcmp(this, &o, sizeof(Key)) == 0; }
};
static_assert(sizeof(Key) == 30 * 8);
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t words[30], h = 0;
    std::memcpy(words, &key, sizeof words);
    for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
  }
};
struct Plans {
  std::mutex lock;
  std::unordered_map<Key, Plan, KeyHash> all;
};
Plans& plans() {
  static auto* the = new Plans;
  return *the;
}

constexpr size_t kCandidates = 8;

Plan make_plan(const Place& place, const Key& key, void* x, void* w, void* y) {
  Planner planner(place, key.sizes);
  if (!planner.describe()) return {};
  int capturing = 0;
  driver().cuStreamIsCapturing(place.stream, &capturing);
  const bool try_several = key.benchmark && !capturing;
  std::vector<Plan> found = planner.plans(try_several ? kCandidates : 1);
  if (found.empty()) return {};
  if (found.size() == 1) return std::move(found[0]);
  return planner.fastest(std::move(found), x, w, y);
}

bool run_once(const Place& place, const Plan& plan, void* x, void* w, void* y) {
  const Workspace workspace(place.device, static_cast<size_t>(plan.workspace));
  return run(handle(place), plan, x, w, y, workspace.data());
}

// Some plans are found not to work when they are first run: the first of the others that does.
Plan make_working_plan(const Place& place, const Key& key, void* x, void* w, void* y) {
  Planner planner(place, key.sizes);
  if (!planner.describe()) return {};
  for (Plan& plan : planner.plans(kCandidates))
    if (run_once(place, plan, x, w, y)) return std::move(plan);
  return {};
}

}  // namespace

const std::string& cudnn_problem() { return library().problem; }
int64_t cudnn_version() { return library().version ? static_cast<int64_t>(library().version()) : 0; }

bool convolve(const Place& place, const ConvolutionSizes& sizes, void* x, void* w, void* y) {
  if (!library().problem.empty()) return false;
  Key key{sizes, place.device, cudnn_settings.tf32, cudnn_settings.deterministic, cudnn_settings.benchmark};
  std::lock_guard guard(plans().lock);
  auto found = plans().all.find(key);
  if (found == plans().all.end()) {
    constexpr size_t kMost = 4096;  // then all are forgotten: programs whose shapes never come again
    if (plans().all.size() >= kMost) plans().all.clear();
    found = plans().all.emplace(key, make_plan(place, key, x, w, y)).first;
  }
  Plan& plan = found->second;
  if (!plan.plan) return false;
  if (run_once(place, plan, x, w, y)) return true;
  plan = make_working_plan(place, key, x, w, y);
  return plan.plan != nullptr;
}

}  // namespace cresset::cuda
