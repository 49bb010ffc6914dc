// The call path below Python: autocast, autograd, then the kernel. (The tracer, which sees Python objects, stands in
// bindings/operator_type.cpp.)
#pragma once
#include "dispatch/operator.h"
#include "tensor/blocks.h"

namespace cresset {

// What the thread is doing.
struct Modes {
  bool grad_enabled = true;
  bool inference = false;
  bool keeps_inference = false;  // a derivative of `func` is taken: what inference mode made may be kept for it, too
  bool anomaly = false, anomaly_checks_nan = true;
  uint8_t autocast = 0;  // bit i: on for device type i; see dispatch/autocast.h
  bool autocast_keeps_casts = true;
  Dtype autocast_dtype[2] = {Dtype::bf16, Dtype::f16};  // the low precision on the CPU and on CUDA
  int vmap_depth = 0;                                   // random operators have to know
  bool dispatching = false;                             // somebody listens to every call: see `dispatcher`
  bool dispatch_disabled = false;                       // no class of tensors is asked
  // Note [Captured tensors]
  // A function that a derivative of `func` is taken of must not write to what it has not made and was not given: the
  // write would be recorded for one derivative, and stay. Functions are counted; a storage knows how many there were
  // when it was made, or given to one. What is older than the function that runs is captured.
  uint32_t function = 0;  // the number of the one that runs; 0: none
};
extern thread_local Modes modes;

class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : before_(modes.grad_enabled) { modes.grad_enabled = enabled; }
  ~GradModeGuard() { modes.grad_enabled = before_; }

 private:
  bool before_;
};

// Autograd stands above dispatch and plugs itself in here.
struct AutogradSteps {
  void (*before_write)(Call&, const Tensor& target, bool record);  // checks of an in-place or out= write
  void (*save_before)(Call&);                                      // for in-place: keep what the write will destroy
  void (*record)(Call&);                                           // make the node
  void (*after_view)(Call&);                                       // note whose view the results are
  void (*forward_mode)(Call&);                                     // push tangents through
  bool (*is_leaf)(const Tensor&);
  void (*renew_view)(const TensorImpl&);  // a view whose base got a tangent has one, too
};
extern AutogradSteps autograd_steps;

// Somebody else who computes the results of a call: calls with a tensor of level > 0 (Note [Tensors of a batch]), and
// random ones inside vmap. The results go to call.outputs; recording stands above, so that it sees the call as it was
// made. The bindings plug in who.
extern void (*tracer)(Call&);

// And below recording, in the place of the kernel: calls with a tensor that answers for itself (Note [Tensors that
// answer for themselves]), and every call while the thread is `dispatching`.
extern void (*dispatcher)(Call&);

// Long work lets other Python threads run meanwhile; the bindings plug in how.
extern void* (*leave_interpreter)();
extern void (*enter_interpreter)(void*);
class LongWork {
 public:
  explicit LongWork(int64_t elements)
      : state_(elements > 200000 && leave_interpreter ? leave_interpreter() : nullptr) {}
  ~LongWork() {
    if (state_) enter_interpreter(state_);
  }
  LongWork(const LongWork&) = delete;

 private:
  void* state_;
};

// The whole path. Fills call.outputs.
void call(Call& call);
// Only the kernel: infer, allocate, run. Inside kernels and derivatives that are not recorded.
void execute(Call& call);
void execute_pointwise(Call& call);

// One pointwise backward loop: gradient of input `which`. `saved` are the tensors named by uses, in order.
Tensor pointwise_backward(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                          const ScalarAttribute* attributes);

// A pointwise operator on a device with a backend: `which` is -1, or the input whose gradient is wanted. Operand 0 is
// written. Bit i of `on_host` says that operand i is one element in host memory, in its loop_dtype or its own. A
// Backend runs it.
struct PointwiseLaunch {
  const Operator& op;
  int which;
  Compute compute;
  DimsView sizes;
  Operand* operands;
  int count;
  uint32_t on_host;
  const ScalarAttribute* attributes;
  Device device;
};
// The same where all operands in memory lie alike and densely. A number stands in host memory in the dtype that the
// formula computes in.
struct DenseLaunch {
  const Operator& op;
  int which;
  Compute compute;
  int64_t elements;
  int count;
  uint32_t on_host;
  const char* data[kMaxOperands];
  Dtype dtypes[kMaxOperands];
  const ScalarAttribute* attributes;
  Device device;
};

// PyTorch's promotion over tensors, 0-d tensors and numbers.
struct ResultType {
  int dim = -1, zero_dim = -1, number = -1;  // dtypes seen in each class; -1: none
  void add(const TensorImpl& t);
  void add(const Scalar& s);
  Dtype result() const;
};

// The scalar attributes of a pointwise call, as its loop reads them when the inputs are promoted to `dtype`.
void read_attributes(const Call& c, Dtype dtype, ScalarAttribute* to);
Scalar missing_bound(char letter);  // for a missing input of kind 'l' or 'h'
Compute compute_of(Dtype d);
Dtype dtype_of_compute(Compute c);
// Strides for the result of an elementwise operation, in the memory order of its operands.
Dims result_strides(DimsView sizes, std::span<const Dims> operand_strides);
// Whether `out` can take what is promised; then, give it the promised sizes, as out= does. Nobody may read its memory
// for the same call any more.
void check_out(const char* who, const Tensor& out, const TensorInfo& info);
// An error if what is read would get another shape by being out=.
void check_kept_shape(const char* who, const Tensor& out, const Tensor& read, const Dims& sizes);
void resize_out(const char* who, const Tensor& out, const TensorInfo& info, bool quiet = false);
extern void (*warn)(const std::string& message);  // a Python UserWarning

// Calls an operator from C++ through the whole path (recorded when grad mode is on).
template <class... Args>
Tensor call_operator(const Operator& op, const Args&... args) {
  Call c(op);
  int i = 0;
  ((c.args[i++] = Value(args)), ...);
  for (size_t k = static_cast<size_t>(i); k < op.signature.parameters.size(); ++k)
    c.args[k] = op.signature.parameters[k].default_value;
  call(c);
  return c.outputs[0];
}

}  // namespace cresset
