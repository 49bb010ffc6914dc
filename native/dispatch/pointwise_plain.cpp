// The plain loop: floating-point tensors of one dtype and shape, all contiguous, perhaps with a number. Most calls are
// that, and small ones are mostly this file.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "dispatch/pointwise_call.h"

namespace cresset {
namespace {

bool is_plain_number(const Scalar& s) { return s.kind != Scalar::Kind::complex && s.kind != Scalar::Kind::boolean; }

// Whether the loops of its device read a tensor as it lies: those of the CPU read float and double.
bool is_readable(const TensorImpl& t) {
  if (!is_floating(t.dtype) || !t.contiguous || t.wrapped_number) return false;
  const Device device = t.storage->device;
  return device.is_cpu() ? t.dtype == Dtype::f32 || t.dtype == Dtype::f64 : !device.is_meta();
}

// Whether memory is read that will be written, as another tensor.
bool meets_inputs(const Call& c, const PointwiseDefinition& def, const TensorImpl* written, const Storage& storage) {
  for (int i = 0; i < def.input_count; ++i)
    if (c.args[i].kind == Kind::tensor && c.args[i].tensor_ != written && c.args[i].tensor_->storage->meets(storage))
      return true;
  return false;
}

// c.outputs[0] is the result. False: it cannot be written plainly.
bool make_result(Call& c, const PointwiseDefinition& def, const TensorImpl* first, Dtype dtype) {
  if (c.op.inplace) {
    if (dtype != first->dtype || c.args[0].tensor_ != first || meets_inputs(c, def, first, *first->storage))
      return false;
    c.outputs.clear();
    c.give(c.tensor(0));
  } else if (c.given_out) {
    const Tensor& o = c.outputs[0];
    if (o.dtype() != dtype || !o.is_contiguous() || !(o.sizes() == first->sizes) ||
        !(o.device() == first->storage->device) || meets_inputs(c, def, nullptr, *o.storage()))
      return false;
  } else {
    c.give(empty(first->sizes, dtype, first->storage->device));
  }
  return true;
}

}  // namespace

bool run_plain(Call& c) {
  const PointwiseDefinition& def = *c.op.pointwise;
  for (int i = 0; i < def.scalar_count; ++i)
    if (!is_plain_number(c.args[def.input_count + i].scalar_)) return false;
  const TensorImpl* first = nullptr;
  DenseLaunch launch{c.op, -1, Compute::f32, 0, 1 + def.input_count, 0, {}, {}, nullptr, {}};
  int missing = 0;
  for (int i = 0; i < def.input_count; ++i) {
    const Value& v = c.args[i];
    if (def.inputs[i] == 'b') return false;
    if (v.kind != Kind::tensor) {
      if (v.kind == Kind::none ? ++missing == 2 : !is_plain_number(v.scalar_)) return false;
      launch.on_host |= 2u << i;
      continue;
    }
    const TensorImpl* t = v.tensor_;
    if (!first) {
      if (!is_readable(*t)) return false;
      first = t;
    } else if (t != first && (t->dtype != first->dtype || !t->contiguous || t->wrapped_number ||
                              !(t->storage->device == first->storage->device) || !(t->sizes == first->sizes))) {
      return false;
    }
    launch.data[1 + i] = t->data();
    launch.dtypes[1 + i] = first->dtype;
  }
  if (!first || (launch.on_host && (first->numel == 0 || counts_beside_numbers(*first, def)))) return false;
  const Dtype dtype = first->dtype, result = def.promotion == Promotion::to_bool ? Dtype::b8 : dtype;
  launch.compute = dtype == Dtype::f32 ? Compute::f32 : compute_of(dtype);
  if (!c.op.loops->forward[static_cast<int>(launch.compute)] || !make_result(c, def, first, result)) return false;
  launch.elements = first->numel;
  launch.data[0] = c.outputs[0].bytes();
  launch.dtypes[0] = result;
  launch.device = first->storage->device;
  alignas(8) char numbers[kMaxPointwiseInputs][8];
  for (int i = 0; launch.on_host >> (1 + i); ++i) {
    if (!(launch.on_host >> (1 + i) & 1)) continue;
    double number = c.args[i].is_none() ? missing_bound(def.inputs[i]).real : c.args[i].scalar_.real;
    if (is_rounded(def, i, dtype)) number = rounded(Scalar(number), dtype).real;
    if (launch.compute == Compute::f64)
      std::memcpy(numbers[i], &number, sizeof number);
    else
      *reinterpret_cast<float*>(numbers[i]) = static_cast<float>(number);
    launch.data[1 + i] = numbers[i];
    launch.dtypes[1 + i] = launch.compute == Compute::f64 ? Dtype::f64 : Dtype::f32;
  }
  ScalarAttribute attributes[kMaxArguments];
  if (def.scalar_count) read_attributes(c, dtype, attributes);
  launch.attributes = attributes;
  backend_of(launch.device).run(launch);
  return true;
}

namespace {

// Numbers stand in a block of equal elements, which the loop reads again and again.
struct Repeated {
  char* p[kMaxOperands];
  alignas(64) char numbers[kMaxPointwiseInputs][kBlock * 8];
  explicit Repeated(const DenseLaunch& l) {
    const int64_t n = std::min(l.elements, kBlock);
    for (int i = 0; i < l.count; ++i) {
      p[i] = const_cast<char*>(l.data[i]);
      if (!(l.on_host >> i & 1)) continue;
      p[i] = numbers[i - 1];
      if (l.compute == Compute::f32)
        repeat<float>(p[i], l.data[i], n);
      else
        repeat<double>(p[i], l.data[i], n);
    }
  }
  template <class T>
  static void repeat(char* to, const char* number, int64_t n) {
    T v;
    std::memcpy(&v, number, sizeof v);
    T* const all = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) all[i] = v;
  }
};

[[gnu::noinline]] void run_small(const DenseLaunch& l, Loop loop) {
  const Repeated r(l);
  loop(r.p, l.attributes, l.elements);
}

// Elements [begin, end), whose result is written past the cache. What differs from block to block is kept at hand: a
// division for each took a fifth of the time of a sum of 4 M floats on two threads.
void run_streamed(const DenseLaunch& l, Loop loop, char* const* p, int64_t begin, int64_t end) {
  alignas(64) char buffer[kStreamedBlock * 8];
  const int count = l.count;
  int64_t width[kMaxOperands];  // of an element; 0 where all are the same number
  char* q[kMaxOperands];
  for (int i = 0; i < count; ++i) {
    width[i] = l.on_host >> i & 1 ? 0 : size_of(l.dtypes[i]);
    q[i] = p[i] + begin * width[i];
  }
  char* to = std::exchange(q[0], buffer);
  int64_t m = until_line(to, width[0]);
  m = std::min(m > 0 ? m : kStreamedBlock, end - begin);
  for (int64_t left = end - begin; left > 0; m = std::min(kStreamedBlock, left)) {
    for (int i = 1; i < count; ++i) read_ahead(q[i], m * width[i]);
    loop(q, l.attributes, m);
    stream(to, buffer, m * width[0]);
    to += m * width[0], left -= m;
    for (int i = 1; i < count; ++i) q[i] += m * width[i];
  }
  end_stream();
}

// By blocks; a large result is written past the cache.
[[gnu::noinline]] void run_large(const DenseLaunch& l, Loop loop, bool repeats) {
  const int64_t n = l.elements;
  std::optional<Repeated> repeated;
  if (repeats) repeated.emplace(l);
  char* const* const p = repeats ? repeated->p : const_cast<char* const*>(l.data);
  const bool in_place = std::find(l.data + 1, l.data + l.count, l.data[0]) != l.data + l.count;
  LongWork work(n);
  int64_t width = 0;
  for (int i = 0; i < l.count; ++i)
    if (!(l.on_host >> i & 1)) width += size_of(l.dtypes[i]);
  const bool streams = !in_place && exceeds_cache(n * width);
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    if (streams) return run_streamed(l, loop, p, begin, end);
    char* q[kMaxOperands];
    const int64_t block = repeats ? kBlock : end - begin;
    for (int64_t at = begin, m; at < end; at += m) {
      m = std::min(block, end - at);
      for (int i = 0; i < l.count; ++i) q[i] = p[i] + (l.on_host >> i & 1 ? 0 : at * size_of(l.dtypes[i]));
      loop(q, l.attributes, m);
    }
  });
}

}  // namespace

void run_dense_on_cpu(const DenseLaunch& l) {
  const PointwiseLoops& loops = *l.op.loops;
  const int compute = static_cast<int>(l.compute);
  Loop loop = l.which < 0 ? loops.forward[compute] : loops.backward[l.which][compute];
  bool repeats = l.on_host != 0;
  // All inputs but the first are numbers (bit 0 is the result's, bit 1 the first input's): they stay in registers.
  if (repeats && l.which < 0 && l.on_host == (1u << l.count) - 4 && loops.numbers[compute])
    loop = loops.numbers[compute], repeats = false;
  if (!repeats && l.elements < 2 * kParallelGrain)
    return loop(const_cast<char* const*>(l.data), l.attributes, l.elements);
  repeats&& l.elements <= kBlock ? run_small(l, loop) : run_large(l, loop, repeats);
}

}  // namespace cresset
