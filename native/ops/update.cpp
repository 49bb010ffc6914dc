#include "ops/update.h"

#include <algorithm>
#include <cstring>

#include "base/levels.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "tensor/blocks.h"
#include "tensor/convert.h"
#include "tensor/pending.h"

namespace cresset {

const UpdateVariant* find_update(const char* name, int flags) {
  const UpdateVariant* all = BY_LEVEL(kUpdates);
  for (int i = 0; i < kUpdateCount; ++i)
    if (all[i].flags == flags && !std::strcmp(all[i].name, name)) return all + i;
  return nullptr;
}

double read_single(const Tensor& t) {
  if (t.dtype() == Dtype::f32) return *t.data<float>();
  double v;
  converter(t.dtype(), Dtype::f64)(t.bytes(), reinterpret_cast<char*>(&v), 1);
  return v;
}

namespace {

void write_single(const Tensor& t, double v) {
  if (t.dtype() == Dtype::f32)
    *t.data<float>() = static_cast<float>(v);
  else
    converter(Dtype::f64, t.dtype())(reinterpret_cast<const char*>(&v), t.bytes(), 1);
  ++t->storage->version;
}

// Elements [begin, end) of one target.
void run_part(const UpdateVariant& v, const UpdateTarget& target, const double* numbers, int64_t begin, int64_t end) {
  const UpdateLoop loop = v.loops[target.in_double];
  char* p[kMaxUpdateTensors];
  if (!target.converts) {
    const int64_t width = target.in_double ? 8 : 4;
    for (int k = 0; k < v.tensor_count; ++k) p[k] = target.packed[k].bytes() + begin * width;
    return loop(p, numbers, end - begin);
  }
  const Dtype compute = target.in_double ? Dtype::f64 : Dtype::f32;
  alignas(64) char blocks[kMaxUpdateTensors][kBlock * 8];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    char* stored[kMaxUpdateTensors];
    for (int k = 0; k < v.tensor_count; ++k) {
      stored[k] = target.packed[k].bytes() + at * size_of(target.dtype[k]);
      p[k] = target.dtype[k] == compute ? stored[k] : blocks[k];
      if (p[k] != stored[k]) converter(target.dtype[k], compute)(stored[k], p[k], n);
    }
    loop(p, numbers, n);
    for (int k = 0; k < v.tensor_count; ++k)
      if (v.written[k] && p[k] != stored[k]) converter(compute, target.dtype[k])(p[k], stored[k], n);
  }
}

}  // namespace

void prepare_update(const char* who, UpdateGroup& group) {
  const UpdateVariant& v = *group.variant;
  int64_t total = 0;
  for (UpdateTarget& t : group.targets) {
    const Tensor& param = t.tensors[0];
    check(is_differentiable(param.dtype()), who, ": a parameter of dtype ", name_of(param.dtype()),
          " cannot be optimized; floating and complex ones can");
    const bool complex = is_complex(param.dtype());
    t.in_double = to_real(param.dtype()) == Dtype::f64;
    t.count = param.numel() * (complex ? 2 : 1);
    t.begin = total;
    total += t.count;
    // Complex numbers are two real ones; any layout without gaps that all tensors share is as good as a contiguous one.
    const bool dense = param.is_contiguous() || is_dense(param.sizes(), param.strides());
    for (int k = 0; k < v.tensor_count; ++k) {
      const Tensor& s = t.tensors[k];
      before_write(*s.storage());  // which is computed here, not in the threads
      check(s.sizes() == param.sizes(), who, ": ", v.tensors[k], " has shape ", list(s.sizes()),
            ", but its parameter has shape ", list(param.sizes()));
      check(is_differentiable(s.dtype()) && is_complex(s.dtype()) == complex, who, ": ", v.tensors[k], " has dtype ",
            name_of(s.dtype()), ", but its parameter has dtype ", name_of(param.dtype()));
      if (v.written[k]) {
        check_no_internal_overlap(who, s);
        check(!s.storage()->read_only || s.numel() == 0, who, ": the memory of ", v.tensors[k],
              " is read-only; clone it first");
        check(!s->inference || modes.inference,
              "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
              "normal tensor before doing inplace update.");
      }
      t.dtype[k] = to_real(s.dtype());
      t.converts |= t.dtype[k] != (t.in_double ? Dtype::f64 : Dtype::f32);
      t.packed[k] = dense && s.strides() == param.strides()      ? s
                    : s.is_contiguous() && param.is_contiguous() ? s
                                                                 : Tensor();
    }
    if (std::any_of(t.packed, t.packed + v.tensor_count, [](const Tensor& s) { return !s.defined(); }))
      for (int k = 0; k < v.tensor_count; ++k) t.packed[k] = contiguous(t.tensors[k]);
    for (int k = 0; k < v.single_count; ++k)
      check(t.singles[k].numel() == 1 && is_floating(t.singles[k].dtype()), who, ": ", v.singles[k],
            " must be one floating-point number, it has shape ", list(t.singles[k].sizes()), " and dtype ",
            name_of(t.singles[k].dtype()));
  }
}

void run_update(UpdateGroup& group) {
  const UpdateVariant& v = *group.variant;
  if (group.targets.empty()) return;
  const int64_t total = group.targets.back().begin + group.targets.back().count;
  {
    LongWork work(total);
    parallel_for(total, kParallelGrain, [&](int64_t begin, int64_t end) {
      double numbers[kMaxUpdateNumbers + kMaxUpdateSingles];
      std::copy(group.numbers, group.numbers + v.number_count, numbers);
      auto target = std::upper_bound(group.targets.begin(), group.targets.end(), begin,
                                     [](int64_t at, const UpdateTarget& t) { return at < t.begin + t.count; });
      for (; target != group.targets.end() && target->begin < end; ++target) {
        for (int k = 0; k < v.single_count; ++k) numbers[v.number_count + k] = read_single(target->singles[k]);
        const int64_t from = std::max(begin, target->begin), to = std::min(end, target->begin + target->count);
        if (from < to) run_part(v, *target, numbers, from - target->begin, to - target->begin);
      }
    });
  }
  finish_update(group);
}

void finish_update(UpdateGroup& group) {
  const UpdateVariant& v = *group.variant;
  for (UpdateTarget& t : group.targets) {
    if (!t.singles_on_device) {
      double numbers[kMaxUpdateNumbers + kMaxUpdateSingles], singles[kMaxUpdateSingles];
      std::copy(group.numbers, group.numbers + v.number_count, numbers);
      for (int k = 0; k < v.single_count; ++k) singles[k] = numbers[v.number_count + k] = read_single(t.singles[k]);
      v.advance(numbers, singles);
      for (int k = 0; k < v.single_count; ++k) write_single(t.singles[k], singles[k]);
    }
    for (int k = 0; k < v.tensor_count; ++k) {
      if (!v.written[k]) continue;
      if (t.packed[k].get() != t.tensors[k].get()) copy_into(t.tensors[k], t.packed[k]);
      ++t.tensors[k]->storage->version;
    }
  }
}

}  // namespace cresset
