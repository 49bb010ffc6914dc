// Copies and conversions as operators: clone, contiguous, to, copy_, and the methods named after dtypes.
#include "dispatch/late.h"
#include "dispatch/registration.h"
#include "ops/creation.h"
#include "ops/memory_format.h"
#include "tensor/private_layout.h"
#include "tensor/requires_grad.h"

namespace cresset {
namespace {

MemoryFormat format_or(const Call& c, int i, MemoryFormat otherwise) {
  return c.has(i) ? c.args[i].memory_format_ : otherwise;
}

void check_rank_of(MemoryFormat format, size_t rank) {
  check(format != MemoryFormat::channels_last || rank == 4, "required rank 4 tensor to use channels_last format");
  check(format != MemoryFormat::channels_last_3d || rank == 5, "required rank 5 tensor to use channels_last_3d format");
}

Dims strides_for(const Tensor& t, MemoryFormat format) {
  if (format == MemoryFormat::contiguous) return contiguous_strides(t.sizes());
  if (format == MemoryFormat::preserve) return dense_strides_like(t.sizes(), t.strides());
  check_rank_of(format, t.sizes().size());
  return channels_last_strides(t.sizes());
}

void infer_clone(Call& c) {
  const Tensor t = c.tensor(0);
  c.promise({t.sizes(), strides_for(t, format_or(c, 1, MemoryFormat::preserve)), t.dtype(), t.device()});
}
void run_copy_to_output(Call& c) { copy_into(c.out(), c.tensor(0)); }

void run_contiguous(Call& c) {
  const Tensor t = c.tensor(0);
  const MemoryFormat format = format_or(c, 1, MemoryFormat::contiguous);
  const bool preserves = format == MemoryFormat::preserve;
  if (is_contiguous(t, preserves ? MemoryFormat::contiguous : format)) return c.give(t);
  check(!preserves, "preserve memory format is unsupported by the contiguous operator");
  Tensor out = empty({t.sizes(), strides_for(t, format), t.dtype(), t.device()});
  copy_into(out, t);
  c.give(out);
}

// The tensor itself when nothing changes (and no copy is asked for).
void convert_to(Call& c, Dtype dtype, Device device, bool copy, MemoryFormat format, bool non_blocking = false) {
  const Tensor t = c.tensor(0);
  // Who asks for the plain format gets rid of channels_last, not of gaps and transpositions.
  const bool same_layout = format == MemoryFormat::preserve || format == suggested_format(t);
  if (!copy && t.dtype() == dtype && t.device() == device && same_layout) return c.give(t);
  check_implemented(!(t.is_meta() && !device.is_meta()), "Cannot copy out of meta tensor; no data!");
  if (format == MemoryFormat::preserve && device == t.device())
    if (Tensor later = cast_late(t, dtype); later.defined()) return c.give(later);
  if (const Tensor lies = format == MemoryFormat::preserve ? physical(t) : Tensor();
      lies.defined() && device == t.device()) {
    Tensor out = empty({t.sizes(), lies.strides(), dtype, device});
    copy_into(out, lies);
    keep_private(out);
    return c.give(out);
  }
  Tensor out = empty({t.sizes(), strides_for(t, format), dtype, device});
  copy_into(out, t, non_blocking);
  c.give(out);
}

void run_to_device(Call& c) {
  const Tensor t = c.tensor(0);
  convert_to(c, c.dtype_or(2, t.dtype()), c.device_or(1, t.device()), c.boolean(4),
             format_or(c, 5, MemoryFormat::preserve), c.boolean(3));
}
void run_to_dtype(Call& c) {
  convert_to(c, c.args[1].dtype_, c.tensor(0).device(), c.boolean(3), format_or(c, 4, MemoryFormat::preserve));
}
// `other` only says dtype and device: whether it requires grad must not matter, so the call goes on without it.
void run_to_other(Call& c) {
  const Tensor other = c.tensor(1);
  Call inner(*Registry::instance().find("to"));
  inner.args[0] = c.args[0];
  inner.args[1] = other.device();
  inner.args[2] = other.dtype();
  for (int i = 2; i < 5; ++i) inner.args[i + 1] = c.args[i];
  call(inner);
  c.outputs = inner.outputs;
}
void run_plain_to_dtype(Call& c) {
  convert_to(c, c.args[1].dtype_, c.tensor(0).device(), false, MemoryFormat::preserve);
}

struct NamedDtype {
  const char *name, *signature;
  Dtype dtype;
};
#define NAMED(name, dtype) {name, name "(Tensor input, *, MemoryFormat? memory_format=None) -> Tensor", Dtype::dtype}
constexpr NamedDtype kNamed[] = {
    NAMED("float", f32),  NAMED("double", f64),   NAMED("half", f16), NAMED("bfloat16", bf16), NAMED("long", i64),
    NAMED("int", i32),    NAMED("short", i16),    NAMED("char", i8),  NAMED("byte", u8),       NAMED("bool", b8),
    NAMED("cfloat", c64), NAMED("cdouble", c128), NAMED("chalf", c32)};

void run_named(Call& c) {
  for (const NamedDtype& n : kNamed)
    if (c.op.name() == n.name)
      return convert_to(c, n.dtype, c.tensor(0).device(), false, format_or(c, 1, MemoryFormat::preserve));
}

void run_cpu(Call& c) { convert_to(c, c.tensor(0).dtype(), Device{}, false, format_or(c, 1, MemoryFormat::preserve)); }

void run_copy_(Call& c) {
  const Tensor to = c.tensor(0), from = c.tensor(1);
  if (overlap_of(to, from) == Overlap::whole && to.dtype() == from.dtype()) return;
  check_no_internal_overlap("copy_", to);
  copy_into(to, from, c.boolean(2));
}
void run_copy_number(Call& c) {
  const Tensor to = c.tensor(0);
  check(c.scalar(1).kind != Scalar::Kind::complex || is_complex(to.dtype()),
        "copy_: value cannot be converted to type ", name_of(to.dtype()), " without overflow: it is complex");
  check_no_internal_overlap("copy_", to);
  fill(to, c.scalar(1));
}
// All of the storage, as PyTorch does it: what lies between the elements of the tensor comes along.
void run_lazy_clone(Call& c) {
  const Tensor t = c.tensor(0);
  Tensor out(RefPtr<TensorImpl>(new TensorImpl));
  out->storage = Storage::lazy_clone(t.storage());
  out->sizes = t.sizes();
  out->strides = t.strides();
  out->offset = t.offset();
  out->dtype = t.dtype();
  out->update_numel_and_contiguity();
  c.give(out);
}
// A copy of a result that others have led to in a way that has no derivative: backward says so, with the name.
void infer_without_derivative(Call& c) { c.promise_like(c.tensor(0)); }

void infer_copy_(Call& c) {
  check_implemented(c.tensor(0).is_meta() || !c.tensor(1).is_meta(), "copy_: Cannot copy out of meta tensor; no data!");
  expanded_strides("copy_", c.tensor(1), c.tensor(0).sizes());
}

void run_resize_(Call& c) {
  const Tensor t = c.tensor(0);
  check(modes.inference || !requires_grad(t), "cannot resize variables that require grad");
  check(!t->has_tangent, "resize_: cannot resize variables that has a forward grad");
  const MemoryFormat format = format_or(c, 2, MemoryFormat::contiguous);
  check(format != MemoryFormat::preserve, "resize_: Unsupported memory format Preserve");
  check_rank_of(format, c.integers(1).size());
  if (t.sizes() == Dims(c.integers(1))) {
    --t->storage->version;  // nothing is written; the call path counts one
    if (!c.has(2)) return;
  }
  const int64_t needed = bytes_needed(c.integers(1), t.offset(), t.dtype());
  if (needed > t.storage()->bytes && checked_numel(c.integers(1)) > 0) {
    if (t.dtype() == Dtype::b8) t->storage->note_foreign_bools();
    const int64_t before = t.storage()->bytes / size_of(t.dtype());
    t->storage->resize(needed);
    const Dims added{needed / size_of(t.dtype()) - before}, steps{1};
    if (!t.is_meta()) fill_uninitialized(view_of(t, added, steps, before));
  }
  t->sizes = Dims(c.integers(1));
  t->strides = strides_for(t, format);
  t->update_numel_and_contiguity();
}

void run_set_(Call& c) {
  const Tensor t = c.tensor(0), source = c.tensor(1);
  check_implemented(
      !t->has_tangent && !source->has_tangent,
      "Trying to use forward AD with set_ that does not support it because it has not been implemented yet");
  check(t.dtype() == source.dtype(), "set_: could not set tensor of type ", name_of(source.dtype()),
        " to a tensor of type ", name_of(t.dtype()));
  t->storage = source.storage();
  t->sizes = source.sizes();
  t->strides = source.strides();
  t->offset = source.offset();
  t->update_numel_and_contiguity();
}

}  // namespace

REGISTER(copy) {
  r.add("clone(Tensor input, *, MemoryFormat? memory_format=None) -> Tensor", infer_clone, run_copy_to_output,
        kAnyDevice);
  r.add("contiguous(Tensor input, MemoryFormat memory_format=contiguous_format) -> Tensor", nullptr, run_contiguous,
        kAnyDevice | kMethodOnly | kGivesLayout, "CloneBackward0");
  r.add(
      "to.dtype(Tensor input, ScalarType dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? "
      "memory_format=None) -> Tensor",
      nullptr, run_to_dtype, kAnyDevice | kMethodOnly, "ToCopyBackward0");
  r.add(
      "to.other(Tensor input, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? "
      "memory_format=None) -> Tensor",
      nullptr, run_to_other, kMethodOnly | kComposite);
  r.add(
      "to(Tensor input, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool copy=False, *, "
      "MemoryFormat? memory_format=None) -> Tensor",
      nullptr, run_to_device, kAnyDevice | kMethodOnly, "ToCopyBackward0");
  r.add("to_dtype(Tensor input, ScalarType dtype) -> Tensor", nullptr, run_plain_to_dtype, kAnyDevice | kFunctionOnly,
        "ToCopyBackward0");
  for (const NamedDtype& n : kNamed)
    r.add(n.signature, nullptr, run_named, kAnyDevice | kMethodOnly, "ToCopyBackward0");
  r.add("cpu(Tensor input, *, MemoryFormat? memory_format=None) -> Tensor", nullptr, run_cpu, kAnyDevice | kMethodOnly,
        "ToCopyBackward0");
  r.add("copy_(Tensor input, Tensor src, bool non_blocking=False) -> Tensor", infer_copy_, run_copy_,
        kWritesWhole | kAnyDevice | kMutates | kMethodOnly, "torch::autograd::CopyBackwards");
  r.add("copy_.number(Tensor input, Scalar src, bool non_blocking=False) -> Tensor", nullptr, run_copy_number,
        kAnyDevice | kMutates | kMethodOnly, "torch::autograd::CopyBackwards");
  r.add("_lazy_clone(Tensor input) -> Tensor", nullptr, run_lazy_clone, kAnyDevice);
  r.add("_without_derivative(Tensor input, Tensor[] others, str name) -> Tensor", infer_without_derivative,
        run_copy_to_output, kAnyDevice | kFunctionOnly | kMethodOnly);
  r.add("resize_(Tensor input, int[...] size, *, MemoryFormat? memory_format=None) -> Tensor", nullptr, run_resize_,
        kReadsNothing | kAnyDevice | kMutates | kMethodOnly | kNotDifferentiable);
  r.add("set_(Tensor input, Tensor source) -> Tensor", nullptr, run_set_,
        kReadsNothing | kAnyDevice | kMutates | kMethodOnly | kNotDifferentiable);
}

}  // namespace cresset
