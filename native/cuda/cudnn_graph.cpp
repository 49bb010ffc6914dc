#include "cuda/cudnn_graph.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/cudnn.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace cresset::cuda {

CudnnSettings cudnn_settings;

const std::string& cudnn_problem() { return cudnn::library().problem; }
int64_t cudnn_version() { return cudnn::library().version ? static_cast<int64_t>(cudnn::library().version()) : 0; }

namespace cudnn {

const Cudnn& library() {
  static const Cudnn* const the = [] {
    // Those that it opens by itself, so that it finds the ones that we have found.
    static const auto* const others =
        new Library[2]{Library{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                       Library{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}};
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

void check_done(CudnnStatus status, const char* what) {
  check(status == kDone, "cuDNN error: ", status == kDone ? "" : library().error_text(status), " when calling `", what,
        "`");
}

namespace {

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

// What the engine of a configuration does with numbers: kTensorCore...
std::vector<int> notes_of(const Descriptor& configuration) {
  Descriptor engine(kEngine);
  RawDescriptor raw = engine.raw();
  int64_t count = 0;
  if (library().cudnnBackendGetAttribute(configuration.raw(), kConfigurationEngine, kTypeDescriptor, 1, &count, &raw) !=
      kDone)
    return {};
  std::vector<int> notes(kNoteKinds);
  if (library().cudnnBackendGetAttribute(engine.raw(), kEngineNumericalNotes, kTypeNumericalNote, kNoteKinds, &count,
                                         notes.data()) != kDone)
    return {};
  notes.resize(static_cast<size_t>(std::min<int64_t>(count, kNoteKinds)));
  return notes;
}

}  // namespace

DataType data_type(Dtype d) {
  return d == Dtype::f64 ? kDouble : d == Dtype::f16 ? kHalf : d == Dtype::bf16 ? kBfloat16 : kFloat;
}

bool run(const Place& place, const Plan& plan, std::span<const int64_t> ids, std::span<void* const> pointers) {
  const Workspace workspace(place.device, static_cast<size_t>(plan.workspace));
  void* const memory = workspace.data();
  Descriptor pack(kVariantPack);
  pack.set_numbers(kPackIds, ids.data(), static_cast<int64_t>(ids.size()));
  pack.set(kPackPointers, kTypePointer, static_cast<int64_t>(pointers.size()), pointers.data());
  pack.set(kPackWorkspace, kTypePointer, 1, &memory);
  finish_launches();
  return pack.finalize() && library().cudnnBackendExecute(handle(place), plan.plan->raw(), pack.raw()) == kDone;
}

OperationGraph::OperationGraph(const Place& place) : handle_(handle(place)) {}

Node OperationGraph::tensor(int64_t id, std::span<const int64_t> sizes, std::span<const int64_t> strides, DataType type,
                            Where where) {
  Descriptor d(kTensor);
  d.set_choice(kTensorType, kTypeDataType, type);
  d.set_numbers(kTensorSizes, sizes.data(), static_cast<int64_t>(sizes.size()));
  d.set_numbers(kTensorStrides, strides.data(), static_cast<int64_t>(strides.size()));
  d.set_number(kTensorId, id);
  d.set_number(kTensorAlignment, 16);
  d.set_flag(kTensorIsVirtual, where == kVirtual);
  if (where == kByValue) d.set_flag(kTensorIsByValue, true);
  taken_ = d.finalize() && taken_;
  parts_->push_back(std::move(d));
  return parts_->back().raw();
}

bool OperationGraph::add_operation(Descriptor d) {
  taken_ = taken_ && d.finalize();
  operations_.push_back(d.raw());
  parts_->push_back(std::move(d));
  return taken_;
}

void OperationGraph::pointwise(PointwiseMode mode, Node y, Node x, Node b, Node t, DataType compute, int64_t axis) {
  if (!taken_) return;
  Descriptor description(kPointwise);
  description.set_choice(kPointwiseMode, kTypePointwiseMode, mode);
  description.set_choice(kPointwiseCompute, kTypeDataType, compute);
  if (axis >= 0) description.set_number(kPointwiseAxis, axis);
  taken_ = description.finalize();
  if (!taken_) return;
  Descriptor operation(kPointwiseOperation);
  operation.set_descriptor(kPointwiseDescription, description.raw());
  operation.set_descriptor(kPointwiseX, x);
  if (b) operation.set_descriptor(kPointwiseB, b);
  if (t) operation.set_descriptor(kPointwiseT, t);
  operation.set_descriptor(kPointwiseY, y);
  add_part(std::move(description));
  add_operation(std::move(operation));
}

void OperationGraph::reduce(ReductionMode mode, Node y, Node x) {
  if (!taken_) return;
  Descriptor description(kReduction);
  description.set_choice(kReductionOperator, kTypeReduction, mode);
  description.set_choice(kReductionCompute, kTypeDataType, kFloat);
  taken_ = description.finalize();
  if (!taken_) return;
  Descriptor operation(kReductionOperation);
  operation.set_descriptor(kReductionDescription, description.raw());
  operation.set_descriptor(kReductionX, x);
  operation.set_descriptor(kReductionY, y);
  add_part(std::move(description));
  add_operation(std::move(operation));
}

void OperationGraph::multiply(Node c, Node a, Node b) {
  if (!taken_) return;
  Descriptor description(kProduct);
  description.set_choice(kProductCompute, kTypeDataType, kFloat);
  taken_ = description.finalize();
  if (!taken_) return;
  Descriptor operation(kProductOperation);
  operation.set_descriptor(kProductDescription, description.raw());
  operation.set_descriptor(kProductA, a);
  operation.set_descriptor(kProductB, b);
  operation.set_descriptor(kProductC, c);
  add_part(std::move(description));
  add_operation(std::move(operation));
}

void OperationGraph::reshape(Node y, Node x) {
  if (!taken_) return;
  Descriptor operation(kReshapeOperation);
  operation.set_descriptor(kReshapeX, x);
  operation.set_descriptor(kReshapeY, y);
  add_operation(std::move(operation));
}

bool OperationGraph::finish() {
  if (!taken_) return false;
  Descriptor graph(kOperationGraph);
  graph.set(kGraphOperations, kTypeDescriptor, static_cast<int64_t>(operations_.size()), operations_.data());
  graph.set(kGraphHandle, kTypeHandle, 1, &handle_);
  if (!graph.finalize()) return false;
  graph_ = graph.raw();
  add_part(std::move(graph));
  return true;
}

std::vector<Plan> OperationGraph::plans(size_t wanted, const std::function<bool(std::span<const int>)>& is_allowed,
                                        int64_t most_workspace) {
  std::vector<Plan> found;
  for (const Heuristic mode : {kHeuristicA, kHeuristicFallback}) {
    if (found.size() >= wanted || (mode == kHeuristicFallback && !found.empty())) break;
    for (Descriptor& configuration : configurations(mode)) {
      if (found.size() >= wanted) break;
      if (!is_allowed(notes_of(configuration))) continue;
      auto plan = std::make_shared<Descriptor>(kExecutionPlan);
      plan->set(kPlanHandle, kTypeHandle, 1, &handle_);
      plan->set_descriptor(kPlanConfiguration, configuration.raw());
      int64_t workspace = 0, count = 0;
      if (!plan->finalize() ||
          library().cudnnBackendGetAttribute(plan->raw(), kPlanWorkspace, kTypeInt64, 1, &count, &workspace) != kDone)
        continue;
      if (workspace > most_workspace) continue;
      found.push_back({std::move(plan), workspace, parts_});
      parts_->push_back(std::move(configuration));
    }
  }
  return found;
}

std::vector<Descriptor> OperationGraph::configurations(Heuristic mode) {
  constexpr int64_t kMostConfigurations = 24;
  Descriptor heuristic(kHeuristic);
  heuristic.set_descriptor(kHeuristicGraph, graph_);
  heuristic.set_choice(kHeuristicMode, kTypeHeuristicMode, mode);
  if (!heuristic.finalize()) return {};
  std::vector<Descriptor> all;
  std::vector<RawDescriptor> raw;
  for (int64_t i = 0; i < kMostConfigurations; ++i) {
    all.emplace_back(kEngineConfiguration);
    raw.push_back(all.back().raw());
  }
  int64_t count = 0;
  if (library().cudnnBackendGetAttribute(heuristic.raw(), kHeuristicResults, kTypeDescriptor, kMostConfigurations,
                                         &count, raw.data()) != kDone)
    return {};
  while (static_cast<int64_t>(all.size()) > count) all.pop_back();
  return all;
}

}  // namespace cudnn
}  // namespace cresset::cuda
