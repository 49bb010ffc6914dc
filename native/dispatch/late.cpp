#include "dispatch/late.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "dispatch/pointwise_call.h"
#include "dispatch/tiles.h"
#include "tensor/convert.h"
#include "tensor/private_layout.h"

namespace cresset {

constinit thread_local bool computes_late = false;
int64_t late_elements = 32768, late_elements_on_device = 1024;
GroupRunner group_runners[kDeviceTypes] = {};
LateStatistics late_statistics;
thread_local std::vector<LateGroup>* late_listener = nullptr;
constinit thread_local const char* settle_reason = nullptr;
bool (*is_temporary)(const TensorImpl& t) = nullptr;

namespace {

// All values that wait, of all threads, in the order of the calls.
LateValue *first_waiting = nullptr, *last_waiting = nullptr;
uint64_t next_sequence = 1, next_visit = 1;

void unlink(LateValue& v) {
  if (!v.before && !v.after && first_waiting != &v) return;
  (v.before ? v.before->after : first_waiting) = v.after;
  (v.after ? v.after->before : last_waiting) = v.before;
  v.before = v.after = nullptr;
  pending_count.fetch_sub(1, std::memory_order_relaxed);
}

// ---------------------------------------------------------------- waiting for another thread

struct Arrivals {
  std::mutex mutex;
  std::condition_variable changed;
};
Arrivals& arrivals() {
  static auto* the = new Arrivals;
  return *the;
}

// Another thread computes it, without the interpreter's lock.
void wait_for(const LateValue& v) {
  void* const state = leave_interpreter ? leave_interpreter() : nullptr;
  {
    std::unique_lock guard(arrivals().mutex);
    arrivals().changed.wait(guard, [&] { return v.state.load() != LateValue::running; });
  }
  if (state) enter_interpreter(state);
}

void set_state(std::span<const RefPtr<LateValue>> values, LateValue::State state) {
  {
    const std::lock_guard guard(arrivals().mutex);
    for (const auto& v : values) v->state = state;
  }
  arrivals().changed.notify_all();
}

// ---------------------------------------------------------------- running a group

using Group = std::vector<RefPtr<LateValue>>;

// Memory for what somebody can still see.
class Results {
 public:
  // `taken`: who else sees its elements, if nobody keeps them; null: no such value.
  explicit Results(const Group& group, const LateValue* taken = nullptr) {
    for (const auto& v : group) {
      uint32_t inside = 1 + (v->seen ? 1 : 0);  // the group, and the storage's layout
      for (const auto& other : group)
        for (int i = 0; i < other->count; ++i) inside += other->inputs[i].from.get() == v.get();
      const bool read_later = v->use_count() > inside;
      if (v.get() != taken && (v->seen || read_later)) {
        outputs_.push_back({v.get(), allocate_memory(v->numel * size_of(v->dtype), v->device)});
        tiles.push_back({v.get(), outputs_.back().memory.data});
        ++kept;
      } else {
        tiles.push_back({v.get(), nullptr});
      }
    }
  }
  ~Results() {
    for (const Output& o : outputs_)
      if (o.memory.data) free_memory(o.memory, o.value->numel * size_of(o.value->dtype), o.value->device);
  }
  Results(const Results&) = delete;

  void publish() {
    for (Output& o : outputs_) {
      LateValue& v = *o.value;
      const Memory memory = std::exchange(o.memory, {});
      RefPtr<Storage> storage(v.seen);
      if (storage) {
        PrivateLayout* layout = nullptr;
        if (v.images) layout = new PrivateLayout{v.images, v.channels, v.points, size_of(v.dtype)};
        end_pending(*storage, memory, layout);
        v.seen = nullptr;
      } else {
        storage = RefPtr<Storage>(new Storage);
        storage->data = memory.data;
        storage->block = memory.block;
        storage->bytes = v.numel * size_of(v.dtype);
        storage->device = v.device;
      }
      v.kept = v.images && storage->layout ? physical_storage(v, storage) : storage;
    }
  }

  std::vector<TileResult> tiles;
  int64_t kept = 0;

 private:
  struct Output {
    LateValue* value;
    Memory memory;
  };
  std::vector<Output> outputs_;

  // The memory as it lies, which stays when somebody asks for the plain one.
  static RefPtr<Storage> physical_storage(const LateValue& v, const RefPtr<Storage>& storage) {
    Tensor t(RefPtr<TensorImpl>(new TensorImpl));
    t->storage = storage;
    t->sizes = {v.images, v.channels, v.points};
    t->strides = contiguous_strides(t->sizes);
    t->dtype = v.dtype;
    t->update_numel_and_contiguity();
    return physical(t).storage();
  }
};

std::string name_of_call(const LateValue& v) {
  if (!v.loop) return std::string("to ") + name_of(v.dtype);
  return v.which < 0 ? v.op->name() : v.op->name() + " backward of input " + std::to_string(v.which);
}

// Elements of memory that a group reads, each once.
int64_t elements_read(const Group& group) {
  SmallVector<const char*, 8> seen;
  int64_t read = 0;
  for (const auto& v : group)
    for (int i = 0; i < v->count; ++i) {
      const char* base = memory_of(v->inputs[i]);
      if (!base || std::find(seen.begin(), seen.end(), base) != seen.end()) continue;
      seen.push_back(base);
      int64_t own = 1;  // without those that are repeated
      for (int64_t d = 0; d < v->sizes.size(); ++d)
        if (v->inputs[i].linear || v->inputs[i].strides[d] != 0) own *= v->sizes[d];
      read += own;
    }
  return read;
}

// A value that nothing is computed together with: as eager computes it.
void run_alone(LateValue& v, char* memory) {
  bool dense = v.made == v.dtype && (v.compute == Compute::f32 || v.compute == Compute::f64);
  for (int i = 0; i < v.count; ++i)
    dense = dense && (v.inputs[i].kind == LateValue::Input::number
                          ? v.inputs[i].wanted == dtype_of_compute(v.compute)
                          : v.inputs[i].linear && v.inputs[i].dtype == v.inputs[i].wanted);
  if (dense) {
    DenseLaunch launch{*v.op, v.which, v.compute, v.numel, 1 + v.count, 0, {}, {}, v.attributes, {}};
    launch.data[0] = memory;
    launch.dtypes[0] = v.dtype;
    for (int i = 0; i < v.count; ++i) {
      const LateValue::Input& in = v.inputs[i];
      const bool number = in.kind == LateValue::Input::number;
      if (number) launch.on_host |= 2u << i;
      launch.data[1 + i] = number ? in.bytes : memory_of(in);
      launch.dtypes[1 + i] = in.wanted;
    }
    return run_dense_on_cpu(launch);
  }
  Operand operands[kMaxOperands];
  const Dims linear = contiguous_strides(v.sizes);
  operands[0] = {memory, v.dtype, v.made, linear};
  for (int i = 0; i < v.count; ++i) {
    LateValue::Input& in = v.inputs[i];
    if (in.kind == LateValue::Input::number)
      operands[1 + i] = {in.bytes, in.wanted, in.wanted, Dims(v.sizes.size(), 0)};
    else
      operands[1 + i] = {memory_of(in), in.dtype, in.wanted, in.linear ? linear : in.strides};
  }
  run_walk_on_cpu(PointwiseLaunch{*v.op, v.which, v.compute, v.sizes, operands, 1 + v.count, 0, v.attributes, {}});
}

void note_group(const Group& group, std::span<const TileResult> results, int64_t kept) {
  const int64_t read = elements_read(group), written = kept * group[0]->numel;
  ++late_statistics.groups;
  late_statistics.calls += static_cast<int64_t>(group.size());
  late_statistics.kept += kept;
  late_statistics.read += read;
  late_statistics.written += written;
  if (!late_listener) return;
  LateGroup& g = late_listener->emplace_back();
  g.reason = settle_reason ? settle_reason : "its memory is needed";
  for (const TileResult& r : results) {
    g.calls.push_back(name_of_call(*r.value));
    g.is_kept.push_back(r.memory != nullptr);
    std::vector<int>& reads = g.reads.emplace_back();
    for (int i = 0; i < r.value->count; ++i)
      for (size_t k = 0; k < group.size(); ++k)
        if (r.value->inputs[i].from == group[k]) reads.push_back(static_cast<int>(k));
  }
  g.elements = group[0]->numel;
  g.read = read;
  g.written = written;
  g.kept = kept;
}

void finish(const Group& group) {
  for (const auto& v : group) unlink(*v);
  set_state(group, LateValue::done);
  for (const auto& v : group)
    for (int i = 0; i < v->count; ++i) v->inputs[i].from.reset(), v->inputs[i].storage.reset();
}

// With a `taker` the elements of the last value are taken as they are made. If nobody `keeps` them, it and what is not
// written behind it go on waiting: the tensor is about to go, and whoever should ask after all has them computed anew.
void run_group(Group& group, const Taker* taker = nullptr, bool keeps = true) {
  Results results(group, keeps ? nullptr : group.back().get());
  if (results.kept || taker) {
    note_group(group, results.tiles, results.kept);
    set_state(group, LateValue::running);
    try {
      if (const GroupRunner runner = group_runners[static_cast<int>(group[0]->device.type)])
        runner(results.tiles, group[0]->device);
      else if (group.size() == 1 && group[0]->loop && !taker)
        run_alone(*group[0], results.tiles[0].memory);
      else
        Tiles(results.tiles, taker).run();
    } catch (...) {
      set_state(group, LateValue::waiting);
      throw;
    }
  }
  results.publish();
  if (keeps) return finish(group);
  Group written, rest;
  for (const TileResult& r : results.tiles) (r.memory ? written : rest).push_back(RefPtr<LateValue>(r.value));
  finish(written);
  set_state(rest, LateValue::waiting);
}

// What waits behind `v`, and `v` itself. A value that another thread computes is waited for.
void collect(LateValue& v, Group& group, uint64_t visit) {
  if (v.visited == visit || v.state == LateValue::done) return;
  v.visited = visit;
  for (int i = 0; i < v.count; ++i)
    if (LateValue* from = v.inputs[i].from.get()) collect(*from, group, visit);
  group.push_back(RefPtr<LateValue>(&v));
}

void sort(Group& group) {
  std::sort(group.begin(), group.end(), [](const auto& a, const auto& b) { return a->sequence < b->sequence; });
}

LateValue* find_running(const Group& group) {
  for (const auto& v : group)
    if (v->state == LateValue::running) return v.get();
  return nullptr;
}

void settle_group(std::span<LateValue* const> roots) {
  std::vector<RefPtr<LateValue>> held(roots.begin(), roots.end());
  while (true) {
    Group group;
    const uint64_t visit = next_visit++;
    for (const auto& root : held) collect(*root, group, visit);
    if (group.empty()) return;
    if (LateValue* other = find_running(group)) {
      const RefPtr<LateValue> hold(other);
      group.clear();
      wait_for(*other);
      continue;
    }
    sort(group);
    return run_group(group);
  }
}

// ---------------------------------------------------------------- taking up a call

using Input = LateValue::Input;

LateValue* late_value_of(const TensorImpl& t, RefPtr<Pending>& holder) {
  holder = pending_of(*t.storage);
  return static_cast<LateValue*>(holder.get());
}

// The order of a dense result's dimensions in memory.
Dims order_in_memory(DimsView sizes, DimsView strides) {
  Dims order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(static_cast<int64_t>(d));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  return order;
}

Dims permuted(DimsView all, const Dims& order) {
  Dims out;
  for (const int64_t d : order) out.push_back(all[static_cast<size_t>(d)]);
  return out;
}

// Every element is the same one, which can be read now.
bool is_repeated(const Tensor& t, DimsView strides) {
  if (!t.device().is_cpu()) return false;
  return t.numel() == 1 || std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
}

// Memory that only calls of operators write to: what others may write at any time has to be read now.
bool is_ours(const Storage& s) { return s.is_resizable() && !s.shared && !s.layout.load(std::memory_order_acquire); }

// Builds the value of one call, input by input; false where the call has to run now.
class Builder {
 public:
  Builder(const Operator& op, int which, const TensorInfo& result) : value_(new LateValue), result_(result) {
    value_->op = &op;
    value_->which = which;
    value_->device = result.device;
    order_ = order_in_memory(result.sizes, result.strides.empty() ? contiguous_strides(result.sizes) : result.strides);
    value_->sizes = permuted(result.sizes, order_);
    value_->numel = 1;
    for (const int64_t s : value_->sizes) value_->numel *= s;
  }
  LateValue& value() { return *value_; }

  void add_number(const Scalar& number, Dtype wanted, Compute compute) {
    Input& in = next(wanted);
    in.dtype = wanted;
    store_number(number, compute, in.bytes);
  }

  bool add_tensor(const Tensor& t, Dtype wanted, DimsView strides) {
    if (t->level || is_complex(t.dtype())) return false;
    if (is_repeated(t, strides) && !pending_of(*t.storage())) {
      Input& in = next(wanted);
      in.dtype = wanted;
      converter(t.dtype(), wanted)(t.bytes(), in.bytes, 1);
      return true;
    }
    if (!(t.device() == value_->device)) return false;
    RefPtr<Pending> holder;
    LateValue* from = late_value_of(*t, holder);
    if (is_image(t, from)) return add_image(t, from, wanted);
    if (value_->images) return false;
    const Dims own = permuted(strides, order_);
    const bool linear = is_contiguous(value_->sizes, own);
    if (from && (!linear || t.offset() != 0 || t.dtype() != from->dtype || from->numel != value_->numel ||
                 from->images || from->state != LateValue::waiting)) {
      from->settle();
      from = nullptr;
    }
    if (!from && !is_ours(*t.storage())) return false;
    plain_ = true;
    Input& in = next(wanted);
    in.dtype = t.dtype();
    in.linear = linear;
    if (from) {
      in.kind = Input::value;
      in.from = RefPtr<LateValue>(from);
    } else {
      in.kind = Input::memory;
      in.storage = t.storage();
      in.offset = t.offset();
      if (!linear) in.strides = own;
    }
    return true;
  }

  // The tensor of the result.
  Tensor finish() {
    LateValue& v = *value_;
    v.dtype = result_.dtype;
    v.sequence = next_sequence++;
    v.owner = &computes_late;
    v.before = last_waiting;
    (last_waiting ? last_waiting->after : first_waiting) = &v;
    last_waiting = &v;
    const int waiting = 1 + pending_count.fetch_add(1, std::memory_order_relaxed);
    RefPtr<Storage> storage(new Storage);
    storage->bytes = v.numel * size_of(v.dtype);
    storage->device = v.device;
    make_pending(*storage, value_);
    Tensor out(RefPtr<TensorImpl>(new TensorImpl));
    out->storage = std::move(storage);
    out->sizes = result_.sizes;
    out->strides = result_.strides.empty() || v.images ? contiguous_strides(result_.sizes) : result_.strides;
    out->dtype = result_.dtype;
    out->update_numel_and_contiguity();
    value_.reset();
    if (waiting >= kMostWaiting) settle_all("many values wait");
    return out;
  }

 private:
  RefPtr<LateValue> value_;
  const TensorInfo& result_;
  Dims order_;
  bool plain_ = false;  // an input lies in the plain order

  Input& next(Dtype wanted) {
    Input& in = value_->inputs[value_->count++];
    in.wanted = wanted;
    return in;
  }

  // Whether the tensor is all of a storage in private layout, or will be.
  static bool is_image(const Tensor& t, const LateValue* from) {
    if (!from) return is_private(*t);
    return from->images && t.is_contiguous() && t.offset() == 0 && t.dim() >= 3 && t.size(0) == from->images &&
           t.size(1) == from->channels && t.numel() == from->numel && t.dtype() == from->dtype;
  }

  // Images in private layout go together in the order in which they lie.
  bool add_image(const Tensor& t, LateValue* from, Dtype wanted) {
    LateValue& v = *value_;
    if (plain_ || !(t.sizes() == result_.sizes)) return false;
    if (from && from->state != LateValue::waiting) {
      from->settle();
      from = nullptr;
    }
    Tensor lying;
    if (!from) {
      lying = physical(t);
      if (!lying.defined()) return false;
    }
    v.images = t.size(0);
    v.channels = t.size(1);
    v.points = t.numel() / std::max<int64_t>(v.images * v.channels, 1);
    v.sizes = {v.numel};
    Input& in = next(wanted);
    in.dtype = t.dtype();
    if (from) {
      in.kind = Input::value;
      in.from = RefPtr<LateValue>(from);
    } else {
      in.kind = Input::memory;
      in.storage = lying.storage();
    }
    return true;
  }
};

// Where eager would take the plain loop (pointwise_plain.cpp): the first tensor, which the result is like. Null: it
// would not.
const TensorImpl* plain_call(const Call& c, const PointwiseDefinition& def) {
  const TensorImpl* first = nullptr;
  int missing = 0;
  for (int i = 0; i < def.input_count + def.scalar_count; ++i) {
    const Value& v = c.args[i];
    if (i < def.input_count && def.inputs[i] == 'b') return nullptr;
    if (v.kind != Kind::tensor) {
      if (i < def.input_count && v.is_none() && ++missing == 2) return nullptr;
      if (v.kind == Kind::scalar &&
          (v.scalar_.kind == Scalar::Kind::complex || v.scalar_.kind == Scalar::Kind::boolean))
        return nullptr;
      continue;
    }
    const TensorImpl& t = *v.tensor_;
    if (!first) first = &t;
    if ((t.dtype != Dtype::f32 && t.dtype != Dtype::f64) || t.dtype != first->dtype || !t.contiguous ||
        t.wrapped_number || !(t.sizes == first->sizes))
      return nullptr;
  }
  return first && c.op.loops->forward[static_cast<int>(compute_of(first->dtype))] ? first : nullptr;
}

// Where late values are computed, and from how many elements on.
bool is_late_place(Device d, int64_t elements) {
  return d.is_cpu() ? elements >= late_elements
                    : group_runners[static_cast<int>(d.type)] && elements >= late_elements_on_device;
}
bool is_late_compute(Compute c) { return c == Compute::f32 || c == Compute::f64 || c == Compute::b8; }

// Integers are rounded to half precision before they are computed with; that is left to the general walk.
bool is_late_input(Dtype input, Dtype common) {
  return !is_complex(input) && !(is_integral(input) && (common == Dtype::f16 || common == Dtype::bf16));
}

}  // namespace

char* memory_of(const LateValue::Input& in) {
  if (in.kind == Input::memory) return in.storage->data + in.offset * size_of(in.dtype);
  return in.kind == Input::value && in.from->state == LateValue::done ? in.from->kept->data : nullptr;
}

LateValue::LateValue() = default;
LateValue::~LateValue() { unlink(*this); }

void LateValue::settle() {
  const RefPtr<LateValue> hold(this);
  LateValue* const self = this;
  settle_group({&self, 1});
}

bool take_late(const Tensor& t, const Taker& taker) {
  RefPtr<Pending> holder;
  LateValue* const v = late_value_of(*t, holder);
  if (!v || t->level || v->state != LateValue::waiting || !v->device.is_cpu() || v->images || !t.is_contiguous() ||
      t.offset() != 0 || t.numel() != v->numel || t.dtype() != v->dtype)
    return false;
  Group group;
  collect(*v, group, next_visit++);
  if (find_running(group)) return false;
  sort(group);
  run_group(group, &taker, !(t.storage()->use_count() == 1 && is_temporary && is_temporary(*t)));
  return true;
}

bool compute_late(Call& c) {
  const PointwiseDefinition& def = *c.op.pointwise;
  if (c.given_out || c.op.inplace) return false;
  int64_t most = 0;
  for (int i = 0; i < def.input_count; ++i)
    if (c.args[i].kind == Kind::tensor) most = std::max(most, c.args[i].tensor_->numel);
  if (most < std::min(late_elements, late_elements_on_device)) return false;
  Device device;
  for (int i = 0; i < def.input_count; ++i) {
    if (c.args[i].kind != Kind::tensor) continue;
    const TensorImpl& t = *c.args[i].tensor_;
    if (t.level || is_complex(t.dtype) || t.storage->was_cut()) return false;
    if (device.is_cpu()) device = t.storage->device;
  }
  if (!is_late_place(device, most)) return false;
  PointwisePlan plan;
  if (const TensorImpl* first = plain_call(c, def)) {
    plan.result = {first->sizes, contiguous_strides(first->sizes),
                   def.promotion == Promotion::to_bool ? Dtype::b8 : first->dtype, first->storage->device};
    plan.common = first->dtype;
    plan.compute = compute_of(first->dtype);
    for (int i = 0; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::tensor) plan.strides[i] = plan.result.strides;
  } else {
    plan_pointwise(c, plan);
  }
  if (!is_late_compute(plan.compute) || !(plan.result.device == device)) return false;
  const Dtype loop_dtype = dtype_of_compute(plan.compute);
  Builder builder(c.op, -1, plan.result);
  LateValue& v = builder.value();
  if (v.numel == 0) return false;
  v.compute = plan.compute;
  v.loop = c.op.loops->forward[static_cast<int>(plan.compute)];
  v.made = loop_output(def.promotion, plan.compute);
  for (int i = 0; i < def.input_count; ++i) {
    const Value& given = c.args[i];
    const Dtype wanted = def.inputs[i] == 'b' ? Dtype::b8 : loop_dtype;
    const bool rounds = wanted == loop_dtype && is_rounded(def, i, plan.common);
    if (given.kind == Kind::tensor) {
      const Tensor t(given.tensor_);
      if (!is_late_input(t.dtype(), plan.common)) return false;
      if (rounds && t.dim() == 0 && t.dtype() != plan.common && !t.device().is_cpu()) return false;
      if (rounds && t.dim() == 0 && t.dtype() != plan.common)
        builder.add_number(rounded(item(t), plan.common), wanted, compute_of(wanted));
      else if (!builder.add_tensor(t, wanted, plan.strides[i]))
        return false;
    } else {
      Scalar number = given.is_none() ? missing_bound(def.inputs[i]) : given.scalar_;
      if (rounds) number = rounded(number, plan.common);
      builder.add_number(number, wanted, compute_of(wanted));
    }
  }
  if (def.scalar_count > kMaxPointwiseInputs) return false;
  read_attributes(c, plan.common, v.attributes);
  c.give(builder.finish());
  return true;
}

Tensor backward_late(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                     const ScalarAttribute* attributes) {
  const PointwiseDefinition& def = *op.pointwise;
  const char* who = op.node_name.c_str();
  int64_t most = grad.numel();
  for (const Tensor& t : saved) most = std::max(most, t.numel());
  if (!is_late_place(grad.device(), most) || def.scalar_count > kMaxPointwiseInputs) return {};
  ResultType type;
  type.add(*grad);
  TensorInfo info{grad.sizes(), {}, Dtype::f32, grad.device()};
  for (const Tensor& t : saved) {
    info.sizes = broadcast(who, info.sizes, t.sizes());
    if (t.dtype() != Dtype::b8) type.add(*t);
    if (!(t.device() == grad.device())) return {};
  }
  info.dtype = type.result();
  Compute compute;
  const Loop loop = pick_loop(op, op.loops->backward[which], info.dtype, compute);
  if (!is_late_compute(compute)) return {};
  const Dtype loop_dtype = dtype_of_compute(compute), output_dtype = loop_output(def.promotion, compute);
  Dims strides[kMaxOperands];
  strides[0] = expanded_strides(who, grad, info.sizes);
  for (size_t i = 0; i < saved.size(); ++i) strides[1 + i] = expanded_strides(who, saved[i], info.sizes);
  info.strides = result_strides(info.sizes, {strides, 1 + saved.size()});
  Builder builder(op, which, info);
  LateValue& v = builder.value();
  if (v.numel == 0) return {};
  v.compute = compute;
  v.loop = loop;
  v.made = loop_dtype;
  if (!builder.add_tensor(grad, output_dtype, strides[0])) return {};
  int input = 0;
  for (size_t i = 0; i < saved.size(); ++i, ++input) {
    while (input < def.input_count && !(def.uses[which] & (1 << input))) ++input;
    const Dtype wanted = input == def.input_count ? output_dtype : def.inputs[input] == 'b' ? Dtype::b8 : loop_dtype;
    if (!builder.add_tensor(saved[i], wanted, strides[1 + i])) return {};
  }
  std::copy(attributes, attributes + def.scalar_count, v.attributes);
  return builder.finish();
}

Tensor cast_late(const Tensor& t, Dtype dtype) {
  if (!computes_late || !is_late_place(t.device(), t.numel()) || t.dtype() == dtype || is_complex(dtype) ||
      is_complex(t.dtype()))
    return {};
  static const Operator& op = *Registry::instance().find("to_dtype");
  const TensorInfo info{t.sizes(), dense_strides_like(t.sizes(), t.strides()), dtype, t.device()};
  Builder builder(op, -1, info);
  builder.value().made = dtype;
  if (!builder.add_tensor(t, t.dtype(), t.strides())) return {};
  if (builder.value().inputs[0].kind == Input::number) return {};
  return builder.finish();
}

void settle_arguments(const Call& c) {
  if (!pending_count.load(std::memory_order_relaxed)) return;
  const char* const before = std::exchange(settle_reason, c.op.name().c_str());
  const auto settle = [](const Tensor& t) {
    if (!t.defined()) return;
    if (RefPtr<Pending> p = pending_of(*t.storage())) p->settle();
  };
  for (size_t i = 0; i < c.op.signature.parameters.size(); ++i) {
    if (c.args[i].kind == Kind::tensor) settle(Tensor(c.args[i].tensor_));
    if (c.args[i].kind == Kind::tensors)
      for (const Tensor& t : c.tensors(static_cast<int>(i))) settle(t);
  }
  for (const Tensor& t : c.outputs) settle(t);
  settle_reason = before;
}

void settle_all(const char* reason) {
  const char* const before = std::exchange(settle_reason, reason);
  while (true) {
    // One group for all of the same length: they may read the same memory.
    std::vector<LateValue*> roots;
    int64_t numel = -1;
    Device device;
    for (LateValue* v = first_waiting; v; v = v->after) {
      if (!v->seen || v->owner != &computes_late || (numel >= 0 && (v->numel != numel || !(v->device == device))))
        continue;
      numel = v->numel, device = v->device;
      roots.push_back(v);
    }
    if (roots.empty()) break;
    settle_group(roots);
  }
  settle_reason = before;
}

namespace {

// What waits and reads this memory is computed before somebody writes there.
void settle_readers_of(const Storage& what) {
  const auto reads = [&](const Storage* s) { return s && s->data && what.data && s->meets(what); };
  std::vector<LateValue*> roots;
  for (LateValue* v = first_waiting; v; v = v->after) {
    bool found = false;
    for (int i = 0; i < v->count; ++i) {
      const Input& in = v->inputs[i];
      found |= reads(in.storage.get()) || (in.from && in.from->state == LateValue::done && reads(in.from->kept.get()));
    }
    if (found) roots.push_back(v);
  }
  if (roots.empty()) return;
  std::vector<RefPtr<LateValue>> hold(roots.begin(), roots.end());
  const char* const before = std::exchange(settle_reason, "what it reads is written to");
  for (const auto& v : hold) v->settle();
  settle_reason = before;
}

[[maybe_unused]] const bool installed = (settle_readers = settle_readers_of, true);

}  // namespace
}  // namespace cresset
