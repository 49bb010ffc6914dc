// cuDNN's interface of graphs: a computation is described by descriptors of tensors and operations, and the library
// finds plans that carry it out.
//
//   OperationGraph graph(place);
//   Node x = graph.tensor({id, sizes, strides, kFloat}), y = graph.tensor(...);
//   graph.pointwise(kExponential, y, {x});
//   if (graph.finish()) plans = graph.plans(1, ...);
//   run(plans[0], place, ids, pointers, workspace);
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda/launch.h"

namespace cresset::cuda::cudnn {

using CudnnStatus = int;
using Handle = void*;
using RawDescriptor = void*;

// Numbers of cuDNN's interface.
constexpr CudnnStatus kDone = 0;
enum DescriptorKind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfiguration = 3,
  kHeuristic = 4,
  kExecutionPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kProduct = 18,
  kProductOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
};
enum AttributeType : int {
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypeDouble = 5,
  kTypePointer = 6,
  kTypeConvolutionMode = 7,
  kTypeHeuristicMode = 8,
  kTypeNumericalNote = 11,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,
  kTypeReduction = 18,
};
enum AttributeName : int {
  kPointwiseMode = 0,
  kPointwiseCompute = 1,
  kPointwiseAxis = 9,
  kConvolutionCompute = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPaddingAfter = 104,
  kConvolutionPaddingBefore = 105,
  kConvolutionRank = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigurationEngine = 300,
  kPlanHandle = 400,
  kPlanConfiguration = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,
  kBackwardDataAlpha = 706,
  kBackwardFilterAlpha = 712,  // beta, the convolution and three tensors follow, one number each
  kPointwiseDescription = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303,
  kProductCompute = 1500,
  kProductA = 1520,
  kProductB = 1521,
  kProductC = 1522,
  kProductDescription = 1523,
  kReductionOperator = 1600,
  kReductionCompute = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescription = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201,
};
enum DataType : int { kFloat = 0, kDouble = 1, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };
enum PointwiseMode : int {
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExponential = 13,
  kLogarithm = 15,
  kIdentity = 21,
  kGreaterOrEqual = 303,
  kIndexAlong = 501,
  kSelect = 601
};
enum ReductionMode : int { kSum = 0, kMaximum = 3 };
enum NumericalNote : int { kTensorCore = 0, kDownConvertsInputs = 1, kNondeterministic = 4, kNoteKinds = 32 };
enum Heuristic : int { kHeuristicFallback = 2, kHeuristicA = 3 };

// The functions of the library; those of the functions table are checked by CRESSET_CUDNN, except where an answer is
// looked at.
#define CRESSET_CUDNN_FUNCTIONS(X)                                                                                   \
  X(cudnnCreate, (Handle * handle))                                                                                  \
  X(cudnnSetStream, (Handle handle, StreamHandle stream))                                                            \
  X(cudnnBackendCreateDescriptor, (int kind, RawDescriptor* d))                                                      \
  X(cudnnBackendDestroyDescriptor, (RawDescriptor d))                                                                \
  X(cudnnBackendFinalize, (RawDescriptor d))                                                                         \
  X(cudnnBackendSetAttribute, (RawDescriptor d, int name, int type, int64_t count, const void* elements))            \
  X(cudnnBackendGetAttribute, (RawDescriptor d, int name, int type, int64_t wanted, int64_t* count, void* elements)) \
  X(cudnnBackendExecute, (Handle handle, RawDescriptor plan, RawDescriptor pack))

struct Cudnn {
#define CRESSET_MEMBER(name, parameters) CudnnStatus(*name) parameters = nullptr;
  CRESSET_CUDNN_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
  size_t (*version)() = nullptr;
  const char* (*error_text)(CudnnStatus) = nullptr;
  std::string problem;  // why it is not there; empty when it is
};
const Cudnn& library();

void check_done(CudnnStatus status, const char* what);
#define CRESSET_CUDNN(call) ::cresset::cuda::cudnn::check_done(::cresset::cuda::cudnn::library().call, #call)

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

  void set(int name, int type, int64_t count, const void* elements) {
    CRESSET_CUDNN(cudnnBackendSetAttribute(raw_, name, type, count, elements));
  }
  void set_numbers(int name, const int64_t* numbers, int64_t count) { set(name, kTypeInt64, count, numbers); }
  void set_number(int name, int64_t number) { set(name, kTypeInt64, 1, &number); }
  void set_choice(int name, int type, int value) { set(name, type, 1, &value); }
  void set_flag(int name, bool value) { set(name, kTypeBoolean, 1, &value); }
  void set_descriptor(int name, RawDescriptor d) { set(name, kTypeDescriptor, 1, &d); }
  bool finalize() { return library().cudnnBackendFinalize(raw_) == kDone; }  // false: the library does not support it

 private:
  RawDescriptor raw_ = nullptr;
};

DataType data_type(Dtype d);

struct Plan {
  std::shared_ptr<Descriptor> plan = nullptr;  // null: there is none
  int64_t workspace = 0;
  std::shared_ptr<std::vector<Descriptor>> parts = nullptr;  // what it was made of lives as long
};

// Puts it onto the stream; false when the library could not.
bool run(const Place& place, const Plan& plan, std::span<const int64_t> ids, std::span<void* const> pointers);

using Node = RawDescriptor;  // a tensor of the graph

class OperationGraph {
 public:
  explicit OperationGraph(const Place& place);

  enum Where : int { kInMemory, kVirtual, kByValue };
  // Virtual ones live within the graph only; those by value are one number, at an address of the host. Ids are unique
  // in the graph.
  Node tensor(int64_t id, std::span<const int64_t> sizes, std::span<const int64_t> strides, DataType type,
              Where where = kInMemory);

  void pointwise(PointwiseMode mode, Node y, Node x, Node b = nullptr, Node t = nullptr, DataType compute = kFloat,
                 int64_t axis = -1);
  void reduce(ReductionMode mode, Node y, Node x);
  void multiply(Node c, Node a, Node b);
  void reshape(Node y, Node x);
  void add_part(Descriptor d) { parts_->push_back(std::move(d)); }
  bool add_operation(Descriptor d);

  bool finish();  // whether the library takes the graph
  // The most promising ones first, as many as are wanted. `is_allowed` is asked what the engine does with numbers.
  std::vector<Plan> plans(size_t wanted, const std::function<bool(std::span<const int>)>& is_allowed,
                          int64_t most_workspace);

 private:
  Handle handle_;
  bool taken_ = true;
  std::vector<RawDescriptor> operations_;
  RawDescriptor graph_ = nullptr;  // one of the parts
  std::shared_ptr<std::vector<Descriptor>> parts_ = std::make_shared<std::vector<Descriptor>>();

  std::vector<Descriptor> configurations(Heuristic mode);
};

// Plans, kept by numbers that say all that they depend on.
template <class Key>
class PlanCache {
  static_assert(std::is_trivially_copyable_v<Key> && sizeof(Key) % 8 == 0);

 protected:
  struct Same {
    bool operator()(const Key& a, const Key& b) const { return std::memcmp(&a, &b, sizeof(Key)) == 0; }
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t words[sizeof(Key) / 8], h = 0;
      std::memcpy(words, &key, sizeof words);
      for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
      return h;
    }
  };
  static constexpr size_t kMost = 4096;  // then all are forgotten: programs whose shapes never come again

 private:
  std::unordered_map<Key, Plan, Hash, Same> all_;

 public:
  size_t size() const { return all_.size(); }
  bool knows(const Key& key) const { return all_.count(key) > 0; }
  std::mutex lock;  // held while a plan is looked up and run
  template <class Make>
  Plan& get(const Key& key, const Make& make) {
    const auto found = all_.find(key);
    if (found != all_.end()) [[likely]]
      return found->second;
    if (all_.size() >= kMost) all_.clear();
    return all_.emplace(key, make()).first->second;
  }
};

}  // namespace cresset::cuda::cudnn
