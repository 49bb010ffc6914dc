// Late values that wait, and how a group of them is run.
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "dispatch/late.h"
#include "dispatch/pointwise_call.h"
#include "dispatch/tiles.h"
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
int deferred_waiting = 0;

void unlink(LateValue& v) {
  if (!v.before && !v.after && first_waiting != &v) return;
  (v.before ? v.before->after : first_waiting) = v.after;
  (v.after ? v.after->before : last_waiting) = v.before;
  v.before = v.after = nullptr;
  deferred_waiting -= v.deferred;
  pending_count.fetch_sub(1, std::memory_order_relaxed);
}

// ---------------------------------------------------------------- waiting for another thread

struct Arrivals {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> waiting = 0;  // threads; who changes a state looks here after, who waits counts itself before
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
    ++arrivals().waiting;
    arrivals().changed.wait(guard, [&] { return v.state.load() != LateValue::running; });
    --arrivals().waiting;
  }
  if (state) enter_interpreter(state);
}

void set_state(std::span<const RefPtr<LateValue>> values, LateValue::State state) {
  for (const auto& v : values) v->state = state;
  if (!arrivals().waiting) return;
  {
    const std::lock_guard guard(arrivals().mutex);
  }  // whoever has seen the old state sleeps by now
  arrivals().changed.notify_all();
}

// ---------------------------------------------------------------- running a group

// Most groups are short, and a vector that allocates costs as much as a call: they keep their values inside.
using Group = SmallVector<RefPtr<LateValue>, 8>;

// Whether a value that somebody can see, but that nobody has asked for, is left as it is, though what is computed from
// it is computed now: the single-precision result of a normalization that is cast at once, as under autocast. A
// program's frame still refers to it, and mostly nobody else ever will; if somebody does, it is computed again.
// So is one whose slope the group makes: what backward wants is that.
bool is_left(const LateValue& v, const Group& group, std::span<const RefPtr<LateValue>> roots) {
  if (v.slope && v.slope->state != LateValue::done) return true;
  if (!v.rows || !v.seen ||
      std::find(roots.begin(), roots.end(), RefPtr<LateValue>(const_cast<LateValue*>(&v))) != roots.end())
    return false;
  for (int i = 0; i < v.count; ++i)
    if (const LateValue* from = v.inputs[i].from.get(); from && from->state != LateValue::done && !from->seen)
      return false;
  bool is_cast = false;
  for (const auto& other : group)
    for (int i = 0; i < other->count; ++i)
      if (other->inputs[i].from.get() == &v) {
        if (other->loop || other->rows || other->placed) return false;
        is_cast = true;
      }
  return is_cast;
}

// Memory for what somebody can still see.
class Results {
 public:
  // `taken`: who else sees its elements, if nobody keeps them; null: no such value.
  Results(const Group& group, std::span<const RefPtr<LateValue>> roots, const LateValue* taken) {
    for (const auto& v : group) {
      left.push_back(is_left(*v, group, roots));
      uint32_t inside = 1 + (v->seen ? 1 : 0);  // the group, and the storage's layout
      for (const SideValue* side : v->sides) inside += side != nullptr;
      for (const auto& other : group)
        for (int i = 0; i < other->count; ++i) inside += other->inputs[i].from.get() == v.get();
      const bool read_later = v->use_count() > inside;
      if (v.get() != taken && (v->seen || read_later) && !left.back()) {
        outputs_.push_back({v.get(), allocate_memory(v->numel * size_of(v->dtype), v->device)});
        tiles.push_back({v.get(), outputs_.back().memory.data, {}});
        ++kept;
      } else {
        tiles.push_back({v.get(), nullptr, {}});
      }
      for (int i = 0; i < RowWork::kMostSides; ++i)
        if (v->sides[i] && v->sides[i]->seen) {
          const Storage& seen = *v->sides[i]->seen;
          sides_.push_back({v->sides[i], allocate_memory(seen.bytes, seen.device), seen.bytes, seen.device});
          tiles.back().sides[i] = sides_.back().memory.data;
        }
    }
  }
  bool is_needed() const { return kept || !sides_.empty(); }
  ~Results() {
    for (const Side& s : sides_)
      if (s.memory.data) free_memory(s.memory, s.bytes, s.device);
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
    for (Side& s : sides_) {
      const RefPtr<SideValue> side(s.value);
      const RefPtr<Storage> storage(side->seen);
      end_pending(*storage, std::exchange(s.memory, {}), nullptr);
      side->seen = nullptr;
    }
  }

  SmallVector<TileResult, 8> tiles;
  SmallVector<bool, 8> left;
  int64_t kept = 0;

 private:
  struct Output {
    LateValue* value;
    Memory memory;
  };
  SmallVector<Output, 4> outputs_;
  struct Side {
    SideValue* value;
    Memory memory;
    int64_t bytes;
    Device device;
  };
  std::vector<Side> sides_;

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
  if (v.rows || v.placed) return v.op->name();
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
      for (int64_t k = 0; k < group.size(); ++k)
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
  for (const auto& v : group) {
    for (int i = 0; i < v->count; ++i) v->inputs[i].from.reset(), v->inputs[i].storage.reset();
    v->rows.reset();
    v->placed.reset();
  }
}

// The derivatives that a group makes along with its functions (Note [Slopes] in late_slopes.cpp), which stand before
// them.
class Slopes {
 public:
  Slopes(Group& group, std::span<const RefPtr<LateValue>> roots) {
    if (!group[0]->device.is_cpu()) return;
    Group all;
    for (const auto& v : group) {
      LateValue* const x = v->loop && v->which < 0 && v->count == 1 ? v->inputs[0].from.get() : nullptr;
      if (x && x->sloped == v->op && !x->slope && x->state == LateValue::waiting && x->seen &&
          std::find(roots.begin(), roots.end(), RefPtr<LateValue>(x)) == roots.end())
        if (RefPtr<LateValue> slope = slope_with(*v)) {
          all.push_back(slope);
          x->slope = std::move(slope);
          deferred_waiting += !std::exchange(x->deferred, true);
          values_.push_back(RefPtr<LateValue>(x));
        }
      all.push_back(v);
    }
    if (!values_.empty()) group = std::move(all);
  }
  ~Slopes() {
    for (const auto& x : values_)
      if (x->slope->state != LateValue::done) x->slope.reset();  // something failed
  }
  Slopes(const Slopes&) = delete;

 private:
  Group values_;
};

// With a `taker` the elements of the last value are taken as they are made. If nobody `keeps` them, it and what is not
// written behind it go on waiting: the tensor is about to go, and whoever should ask after all has them computed anew.
void run_group(Group& group, std::span<const RefPtr<LateValue>> roots, const Taker* taker = nullptr,
               bool keeps = true) {
  const Slopes slopes(group, roots);
  Results results(group, roots, keeps ? nullptr : group.back().get());
  if (results.is_needed() || taker) {
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
  Group over, rest;
  for (int64_t k = 0; k < group.size(); ++k)
    ((keeps ? !results.left[k] : results.tiles[k].memory != nullptr) ? over : rest).push_back(group[k]);
  finish(over);
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
  const Group held(roots.begin(), roots.end());
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
    return run_group(group, held);
  }
}

}  // namespace

// Whether the value comes out of an operator on rows that still waits.
bool has_rows(const LateValue& v) {
  if (v.state == LateValue::done) return false;
  if (v.rows) return true;
  for (int i = 0; i < v.count; ++i)
    if (v.inputs[i].from && has_rows(*v.inputs[i].from)) return true;
  return false;
}

char* memory_of(const LateValue::Input& in) {
  if (in.kind == LateValue::Input::memory) return in.storage->data + in.offset * size_of(in.dtype);
  return in.kind == LateValue::Input::value && in.from->state == LateValue::done ? in.from->kept->data : nullptr;
}

LateValue::LateValue() = default;
LateValue::~LateValue() { unlink(*this); }

void LateValue::settle() {
  const RefPtr<LateValue> hold(this);
  LateValue* const self = this;
  settle_group({&self, 1});
}

bool take_late(const Tensor& t, const Taker& taker) {
  const RefPtr<Pending> holder = pending_of(*t.storage());
  LateValue* const v = dynamic_cast<LateValue*>(holder.get());
  if (!v || t->level || v->state != LateValue::waiting || !v->device.is_cpu() || !t.is_contiguous() ||
      t.offset() != 0 || t.numel() != v->numel || t.dtype() != v->dtype)
    return false;
  if (taker.images ? t.dim() < 3 || v->images != t.size(0) || v->channels != t.size(1) : v->images) return false;
  Group group;
  collect(*v, group, next_visit++);
  if (find_running(group)) return false;
  sort(group);
  const bool temporary = !taker.again && t.storage()->use_count() == 1 && is_temporary && is_temporary(*t);
  run_group(group, {}, &taker, !temporary);
  return true;
}

SideValue::SideValue(RefPtr<LateValue> of, int index) : of_(std::move(of)), index_(index) { of_->sides[index] = this; }
SideValue::~SideValue() { of_->sides[index_] = nullptr; }
void SideValue::settle() { of_->settle(); }

int enlist(LateValue& v) {
  v.sequence = next_sequence++;
  v.owner = &computes_late;
  v.before = last_waiting;
  (last_waiting ? last_waiting->after : first_waiting) = &v;
  last_waiting = &v;
  deferred_waiting += v.deferred;
  return 1 + pending_count.fetch_add(1, std::memory_order_relaxed) - deferred_waiting;
}

void settle_arguments(const Call& c) {
  if (!pending_count.load(std::memory_order_relaxed)) return;
  const char* const before = std::exchange(settle_reason, c.op.name().c_str());
  const bool may_save = computes_late && c.op.differentiable && !c.op.pointwise && !c.op.view;
  const auto settle = [&](const Tensor& t) {
    if (!t.defined()) return;
    const RefPtr<Pending> p = pending_of(*t.storage());
    if (!p) return;
    if (may_save && !dynamic_cast<SideValue*>(p.get())) consider_forgetting(t, static_cast<const LateValue&>(*p));
    p->settle();
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
  for (bool last = false; true;) {
    // One group for all of the same length: they may read the same memory.
    std::vector<LateValue*> roots;
    int64_t numel = -1;
    Device device;
    bool rows = false;  // one operator on rows in a group
    for (LateValue* v = first_waiting; v; v = v->after) {
      const bool is_seen = v->seen || std::any_of(v->sides, v->sides + RowWork::kMostSides, [](auto* s) { return s; });
      if (!is_seen || v->deferred || v->owner != &computes_late || (v->sloped && !last) ||
          (numel >= 0 && (v->numel != numel || !(v->device == device))))
        continue;
      if (has_rows(*v) && std::exchange(rows, true)) continue;
      numel = v->numel, device = v->device;
      roots.push_back(v);
    }
    // What a function reads whose derivative is made along with it comes with the function, or last.
    if (roots.empty() && std::exchange(last, true)) break;
    settle_group(roots);
  }
  settle_reason = before;
  forget_candidates(!computes_late);
}

namespace {

// What waits and reads this memory is computed before somebody writes there.
void settle_readers_of(const Storage& what) {
  const auto reads = [&](const Storage* s) { return s && s->data && what.data && s->meets(what); };
  std::vector<LateValue*> roots;
  for (LateValue* v = first_waiting; v; v = v->after) {
    bool found = false;
    for (int i = 0; i < v->count; ++i) {
      const LateValue::Input& in = v->inputs[i];
      found |= reads(in.storage.get()) || (in.from && in.from->state == LateValue::done && reads(in.from->kept.get()));
    }
    if (v->rows)
      for (const RefPtr<Storage>& s : v->rows->reads) found |= reads(s.get());
    if (v->placed)
      for (const RefPtr<Storage>& s : v->placed->reads) found |= reads(s.get());
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
