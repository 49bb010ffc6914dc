// Computing late: inside a compiled region a pointwise call gives a tensor whose values are still to come.
//
// Note [Computing late]
// The call binds, is recorded and has its shape inferred as always; errors come at their own line. Then, instead of
// running its loop over memory, it notes what there is to do: a LateValue, with other late values, memory and numbers
// as inputs. When somebody asks for the memory (Note [Pending storages]), the value and all late values behind it run
// as one group, block by block (dispatch/tiles.h): the loops are those that eager runs, so the bits are eager's, and
// what nobody refers to any more is never written. There is no recorded trace and no cache: a group is planned when it
// runs, which costs less than a microsecond a call, so small tensors are computed at once. A device that can run whole
// groups has its entry in `group_runners`. See docs/decisions/0020-computing-late.md.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "dispatch/call.h"
#include "tensor/pending.h"

namespace cresset {

// This thread is inside a compiled region.
extern constinit thread_local bool computes_late;

// Fewer elements stay in the cache between two calls: they are computed at once. (Tests want to see small ones late.)
extern int64_t late_elements;
// The same on other devices, where a launch costs more than a plan.
extern int64_t late_elements_on_device;
// So many values may wait; then all are computed, so that what they read does not pile up.
inline constexpr int kMostWaiting = 96;

// An operator on rows in a group (a normalization): what goes in and comes out are elements like any other, and a few
// numbers of each row, the `sides`, come out beside them. What it is, its device knows.
class RowWork : public RefCounted {
 public:
  static constexpr int kMostSides = 2;
  // As eager runs it. A side that is null is not wanted.
  virtual void run(char* result, char* const* inputs, char* const* sides) = 0;
  SmallVector<RefPtr<Storage>, 4> reads;  // beside its inputs
};

// An operator on images in a group of the CPU whose elements depend on where they lie, as those of a channel do: it
// makes elements [at, at + n) of the result, in the order of memory, from the same elements of its inputs.
class PlacedWork : public RefCounted {
 public:
  virtual void run(char* result, char* const* inputs, int64_t at, int64_t n) const = 0;
  SmallVector<RefPtr<Storage>, 4> reads;  // beside its inputs
};

class LateValue;
// The storage of a side waits for the value that it comes with.
class SideValue final : public Pending {
 public:
  SideValue(RefPtr<LateValue> of, int index);
  ~SideValue() override;
  void settle() override;

 private:
  const RefPtr<LateValue> of_;
  const int index_;
};

class LateValue final : public Pending {
 public:
  struct Input {
    enum Kind : uint8_t { number, memory, value } kind = number;
    Dtype dtype = Dtype::f32, wanted = Dtype::f32;  // as it lies, as the loop reads it
    bool linear = true;                             // element i of the value needs element i of this
    RefPtr<LateValue> from;
    RefPtr<Storage> storage;
    int64_t offset = 0;               // in elements
    Dims strides;                     // in the order of `sizes`, where it is not linear
    alignas(16) char bytes[16] = {};  // a number, in `wanted`
  };

  LateValue();
  ~LateValue() override;
  void settle() override;

  const Operator* op = nullptr;
  int which = -1;  // the input whose gradient it is; -1: the operator itself
  Compute compute = Compute::f32;
  Loop loop = nullptr;  // null: the input in another dtype, or `rows`, or `placed`
  RefPtr<RowWork> rows;
  RefPtr<PlacedWork> placed;
  SideValue* sides[RowWork::kMostSides] = {};  // those that somebody can see
  ScalarAttribute attributes[kMaxPointwiseInputs] = {};
  int count = 0;
  Input inputs[kMaxOperands];
  Device device;
  Dims sizes;  // in the order of memory
  int64_t numel = 0;
  Dtype dtype = Dtype::f32, made = Dtype::f32;   // as it is kept, as the loop writes it
  int64_t images = 0, channels = 0, points = 0;  // of images in private layout; 0: it is plain
  RefPtr<Storage> kept;                          // once done: the memory, for values that still read it
  bool deferred = false;  // it waits until somebody asks for it: Note [Forgetting] in late_forget.cpp
  // The function of it whose derivative backward will want, and that derivative once it is made: Note [Slopes] in
  // late_slopes.cpp.
  const Operator* sloped = nullptr;
  RefPtr<LateValue> slope;
  enum State : uint8_t { waiting, running, done };
  std::atomic<State> state = waiting;
  const void* owner = nullptr;  // of whose thread

  uint64_t sequence = 0;
  LateValue *before = nullptr, *after = nullptr;  // all that wait, in the order of the calls
  uint64_t visited = 0;
};

// The value waits from now on; gives how many do that are not deferred.
int enlist(LateValue& v);
// A call asks for the tensor, which is to hold the value, and may save it. See Note [Forgetting].
void consider_forgetting(const Tensor& t, const LateValue& v);
void forget_candidates(bool last);  // frees what nobody but recorded graphs refers to
// A call of one function, `v`, is taken up for `x`: whether its derivative is made along with it. See Note [Slopes].
void consider_slope(const LateValue& v, const TensorImpl& x);
// The derivative by the operand, to be made with the function `v` of it; null: it is not worth it.
RefPtr<LateValue> slope_with(const LateValue& v);
// The derivative that was made for backward; undefined: there is none.
Tensor made_slope(const Operator& op, int which, std::span<const Tensor> saved);
// Whether it comes out of an operator on rows that still waits.
bool has_rows(const LateValue& v);

// A value of a group, and where to write it; null: nowhere.
struct TileResult {
  LateValue* value;
  char* memory;
  char* sides[RowWork::kMostSides] = {};
};
// Where the elements of an input lie; null where it is a number or is made in the group.
char* memory_of(const LateValue::Input& in);
// How a device computes a group: the values, in the order of the calls, all of the same number of elements. Null: the
// device computes everything at once.
using GroupRunner = void (*)(std::span<const TileResult> results, Device device);
extern GroupRunner group_runners[kDeviceTypes];

// Who takes the elements of a value as they are made: `unit` of them at a time, the last time perhaps fewer, in any
// order and from several threads.
struct Taker {
  int64_t unit;
  void (*take)(void* self, const char* elements, int64_t begin, int64_t n);
  void* self;
  bool images = false;  // they come as those of images in private layout lie, otherwise in the plain order
  bool again = false;   // `t` is read after that, too: they are written in any case
};
// Computes what `t` waits for and hands its elements over; they are written only where somebody else can see them.
// False: t does not wait, or not as a whole, and nothing was done.
bool take_late(const Tensor& t, const Taker& taker);
// Set by the bindings: nobody refers to the tensor but the call that it is an argument of.
extern bool (*is_temporary)(const TensorImpl& t);

// Reductions that take elements as they are made; false: they have to run on memory.
using LateReduction = bool (*)(Call& c);
bool add_late_reduction(Run run, LateReduction reduction);
bool reduce_late(Call& c);

// A pointwise call: gives a result whose values are to come. False: it has to run now.
bool compute_late(Call& c);
// The same for the gradient of one input; undefined: it has to run now.
Tensor backward_late(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                     const ScalarAttribute* attributes);
// The same elements in another dtype, in the strides that a conversion gives; undefined: it has to run now.
Tensor cast_late(const Tensor& t, Dtype dtype);
// An operator on rows: its inputs lie one after the other, or will, and all have the result's elements. `sides` are
// given tensors. Undefined: it has to run now.
Tensor rows_late(const Operator& op, std::span<const Tensor> inputs, const TensorInfo& result, RefPtr<RowWork> work,
                 std::span<const TensorInfo> side_infos, std::span<Tensor> sides);
// An operator on images in private layout, on the CPU: its inputs lie so, or will, and all have the result's sizes.
Tensor placed_late(const Operator& op, std::span<const Tensor> inputs, const TensorInfo& result,
                   RefPtr<PlacedWork> work);
// Whether the call's tensors are ordinary ones of the CPU, as the forms below want them. What they wait for is
// computed.
bool has_plain_tensors(const Call& c);
// Operators that are no formulas and can be computed late on a device: `take` gives the results, or says false.
void let_compute_late(const char* name, DeviceType device, bool (*take)(Call& c));
bool compute_rows_late(Call& c);
// What a call that runs now reads is computed before. `c` is no view.
void settle_arguments(const Call& c);
// All that waits in this thread.
void settle_all(const char* reason);

// What was computed late since the start of the process, and, while somebody listens, each group.
struct LateGroup {
  std::string reason;
  std::vector<std::string> calls;
  std::vector<std::vector<int>> reads;  // of each call: which calls of the group it reads
  std::vector<bool> is_kept;            // of each call: whether its result was written
  int64_t elements = 0, read = 0, written = 0, kept = 0;
};
struct LateStatistics {
  int64_t groups = 0, calls = 0, kept = 0, read = 0, written = 0;  // read and written: elements
  int64_t forgotten = 0;                                           // storages: Note [Forgetting]
};
extern LateStatistics late_statistics;
extern thread_local std::vector<LateGroup>* late_listener;
extern constinit thread_local const char* settle_reason;  // why the next group runs

}  // namespace cresset
