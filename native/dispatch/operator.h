// Operator: a name, a signature, a shape rule (infer), kernels and a derivative. Registry: all of them.
#pragma once
#include <deque>
#include <memory>

#include "dispatch/overlap.h"
#include "dispatch/pointwise.h"
#include "dispatch/signature.h"
#include "tensor/backend.h"

namespace cresset {

class Operator;

inline constexpr int kMaxArguments = 16;

// One call on its way: arguments, what infer promises, and the results.
class Call {
 public:
  explicit Call(const Operator& op) : op(op) {}
  const Operator& op;
  Value args[kMaxArguments];
  SmallVector<TensorInfo, 1> promised;
  SmallVector<Tensor, 2> outputs;
  bool inplace = false;    // outputs[0] is args[0]
  bool given_out = false;  // outputs came from out=
  int level = 0;  // the highest among the tensors; only those are recorded, the others are constants at this level
  const Tensor* target = nullptr;  // for infer: what out= or an in-place form will write to; null if nothing
  Tensor before;                   // the first argument as it was before an in-place write, when backward needs it

  // ---- reading arguments
  Tensor tensor(int i) const { return Tensor(args[i].tensor_); }
  bool has(int i) const { return !args[i].is_none(); }
  Scalar scalar(int i) const { return has(i) ? args[i].scalar_ : Scalar(); }  // None reads as zero
  int64_t integer(int i) const { return has(i) ? args[i].scalar_.integer : 0; }
  double real(int i) const { return has(i) ? args[i].scalar_.real : 0; }
  bool boolean(int i) const { return has(i) && args[i].scalar_.integer != 0; }
  DimsView integers(int i) const { return {args[i].integers_, static_cast<size_t>(args[i].count)}; }
  std::span<const double> reals(int i) const { return {args[i].reals_, static_cast<size_t>(args[i].count)}; }
  std::span<const Tensor> tensors(int i) const { return {args[i].tensors_, static_cast<size_t>(args[i].count)}; }
  std::string_view text(int i) const { return {args[i].text_, static_cast<size_t>(args[i].count)}; }
  Dtype dtype_or(int i, Dtype otherwise) const { return has(i) ? args[i].dtype_ : otherwise; }
  Device device_or(int i, Device otherwise) const { return resolve(has(i) ? args[i].device_ : otherwise); }

  // ---- promising and giving results
  void promise(TensorInfo info) { promised.push_back(std::move(info)); }
  void promise(DimsView sizes, Dtype dtype, Device device) { promise(TensorInfo{Dims(sizes), {}, dtype, device}); }
  void promise_like(const Tensor& t) { promise(TensorInfo{t.sizes(), {}, t.dtype(), t.device()}); }
  void give(Tensor t) { outputs.push_back(std::move(t)); }
  const Tensor& out(int i = 0) const { return outputs[i]; }
};

using Infer = void (*)(Call&);
using Run = void (*)(Call&);

// Backward of one operator; the bindings implement it with a Python function.
class Derivative {
 public:
  virtual ~Derivative() = default;
  // What must be kept for backward, in order: see OperatorNode in autograd/.
  struct Saved {
    enum What : uint8_t { argument, information, output, all_outputs } what;
    int index;
    // Of an argument: bit i, it is read for the gradient of argument i. When none of these needs one, its information
    // is kept instead of the tensor. Zero: it is always kept.
    uint32_t only_for = 0;
  };
  std::vector<Saved> saves;
  uint32_t constants = 0;  // bit k: the k-th argument that is a tensor (or several) has no gradient, and no edge
};

class Operator {
 public:
  Signature signature;
  Infer infer = nullptr;  // null: run makes the results (views, data-dependent shapes)
  Run run_on(Device d) const { return run[static_cast<int>(d.type)]; }  // null: not implemented there
  const PointwiseDefinition* pointwise = nullptr;
  const PointwiseLoops* loops = nullptr;
  bool view = false;                          // the result shares the first argument's memory
  bool has_inplace = false, inplace = false;  // there is a name_ form; this is one
  bool mutates = false;  // changes the first argument itself (copy_, index_put_, random fills): run writes to it
  Aliasing aliasing = Aliasing::any;  // of what it writes (out=, or what it mutates) with what it reads
  bool differentiable = true;
  bool is_method = true, is_function = true;
  bool random = false;            // draws random numbers
  bool gives_layout = false;      // is asked for a layout: its result is not the argument where only the layout differs
  bool composite = false;         // run is made of other operators, which record themselves
  uint32_t constant_results = 0;  // bit i: result i has no gradient (statistics, permutations)
  uint8_t autocast = 0;           // see dispatch/autocast.h
  bool knows_layout = false;      // works on private images as they lie: Note [Private layout]
  bool shares_results = false;    // several results may be views of one another (split)
  std::string node_name;          // AddBackward0
  const char* (*node_name_of)(const Call&) =
      nullptr;  // another name for some calls (mm, mv and dot of matmul), or null
  std::string doc;
  std::unique_ptr<Derivative> derivative;
  const Operator* functional = nullptr;  // for an in-place form: the operator it writes in place
  const Operator* (*instead)(const Call&) =
      nullptr;  // an operator of the leading arguments that does this call better: pow(x, 2) is square(x)

  Run run[kDeviceTypes] = {};  // its kernels, one a kind of device

  const std::string& name() const { return signature.name; }
};

// Options for Registry::add, as words.
enum OperatorFlag : uint32_t {
  kView = 1,
  kInplace = 2,
  kNotDifferentiable = 4,
  kFunctionOnly = 8,
  kMethodOnly = 16,
  kMutates = 32,
  kSharesResults = 64,
  kComposite = 128,
  kFirstResultOnly = 256,
  kKnowsLayout = 512,
  kAnyDevice = 1024,
  kWritesWhole = 2048,
  kWritesApart = 4096,
  kReadsNothing = 8192,  // Aliasing::whole, ::apart, ::unread
  kRandom = 16384,
  kGivesLayout = 32768,
};

class Registry {
 public:
  static Registry& instance();
  // Adds the operator and, with kInplace, its in-place form. `run` is the CPU kernel; it also serves `meta` when infer
  // is null and it touches no data (views), and every device when it is a view, or made of what knows all devices
  // (copy_into, fill): kAnyDevice.
  Operator& add(const char* signature, Infer infer, Run run, uint32_t flags = 0, const char* node_name = nullptr);
  Operator& add_pointwise(const PointwiseDefinition& definition, const PointwiseLoops& loops);
  void set_kernel(const char* name, DeviceType device, Run run);  // "sum", "max.dim"; its in-place form too
  Operator* find(std::string_view name, std::string_view overload = "") const;
  const std::deque<Operator>& all() const { return operators_; }

 private:
  std::deque<Operator> operators_;
  Operator& add_inplace_form(Operator& op);
};

}  // namespace cresset
