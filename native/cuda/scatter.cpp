// Writing through indices and masks: x[i] = v, scatter, index_add and variants, masked_fill, masked_scatter, put. As
// on the CPU, `name_` writes in place and `name` in a copy, both by one Write; the rules of shape and the checks of
// arguments are the CPU's.
#include <cmath>
#include <limits>

#include "cuda/backend.h"
#include "cuda/compact.h"
#include "cuda/fault.h"
#include "cuda/indexed_walk.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

const KernelFamily kMean("scatter.cuh", "mean_of_counts", {"T"});

// One number on the device.
Tensor number(const Scalar& value, Dtype dtype, Device device) { return full({}, value, dtype, device); }

IndexedOn on(const Tensor& target, Dtype index, int operation) {
  return {Place(target.device()), target.device(), index, operation};
}

// ---------------------------------------------------------------- combining

using MakeWalk = IndexedWalk (*)(const char* who, const Tensor& indexed, int64_t dim, const Tensor& index,
                                 const Tensor& plain);

// target = reduction of the source elements that land on each of its elements, and of what stood there if include_self.
void reduce_into(MakeWalk make, const char* who, const Tensor& target, int64_t dim, const Tensor& index,
                 const Tensor& source, std::string_view reduce, bool include_self) {
  if (index.numel() == 0 || target.numel() == 0) return;
  const int64_t along = make == walk_along && index.dim() ? index.size(dim) : 1;
  // Half precision is combined in float and rounded once. Lists of slices, and a single write to each element, do so by
  // themselves.
  const Dtype computed = combined_in(target.dtype());
  if (computed != target.dtype() && (reduce == "mean" || !include_self || (make == walk_along && along > 1))) {
    const Tensor wide = convert(target, computed);
    reduce_into(make, who, wide, dim, index, convert(source, computed), reduce, include_self);
    return copy_into(target, wide);
  }
  const Combine how = combine_of(reduce);
  check_implemented(!is_complex(target.dtype()) || how == Combine::add || how == Combine::multiply, '"', who,
                    "\" not implemented for '", name_of(target.dtype()), "'");
  const IndexedOn there = on(target, index.dtype(), operation_number(who));
  const int64_t width = size_of(target.dtype());
  if (!include_self)
    write_indexed(make(who, target, dim, index, number(identity(how, target.dtype()), target.dtype(), target.device())),
                  width, there);
  combine_indexed(make(who, target, dim, index, source), target.dtype(), how, there);
  if (reduce != "mean") return;
  const Tensor counts = full(target.sizes(), Scalar(0), Dtype::i64, target.device());
  combine_indexed(make(who, counts, dim, index, number(Scalar(1), Dtype::i64, target.device())), Dtype::i64,
                  Combine::add, there);
  const Tensor sums = contiguous_on_device(target);
  const int64_t self = include_self, n = sums.numel();
  kMean.launch(there.place, {sums.dtype()}, divide_up(n, 256), 256, 0, sums.bytes(), counts.bytes(), self, n);
  if (sums.get() != target.get()) copy_into(target, sums);
}

// ---------------------------------------------------------------- scatter

void scatter_with(const Call& c, const Tensor& target, const Tensor& src, std::string_view reduce) {
  const char* who = c.op.name().c_str();
  const Tensor index = c.tensor(2);
  if (index.numel() == 0) return;
  const int64_t dim = wrap_dim(c.integer(1), target.dim());
  if (reduce.empty())
    return write_indexed(walk_along(who, target, dim, index, src), size_of(target.dtype()),
                         on(target, index.dtype(), operation_number(who)));
  reduce_into(walk_along, who, target, dim, index, src, reduce, true);
}
Tensor source_of(const Call& c) { return c.tensor(3); }
Tensor value_of(const Call& c, const Tensor& target) { return number(c.scalar(3), target.dtype(), target.device()); }
void write_scatter_src(const Call& c, const Tensor& target) { scatter_with(c, target, source_of(c), ""); }
void write_scatter_value(const Call& c, const Tensor& target) { scatter_with(c, target, value_of(c, target), ""); }
void write_scatter_reduce_src(const Call& c, const Tensor& target) {
  scatter_with(c, target, source_of(c), reduce_of_scatter(c));
}
void write_scatter_reduce_value(const Call& c, const Tensor& target) {
  scatter_with(c, target, value_of(c, target), reduce_of_scatter(c));
}
void write_scatter_add(const Call& c, const Tensor& target) { scatter_with(c, target, source_of(c), "sum"); }
void write_scatter_reduce_two(const Call& c, const Tensor& target) {
  const char* who = c.op.name().c_str();
  reduce_into(walk_along, who, target, wrap_dim(c.integer(1), target.dim()), c.tensor(2), source_of(c), c.text(4),
              c.boolean(5));
}

// ---------------------------------------------------------------- whole slices

void write_index_add(const Call& c, const Tensor& target) {
  static const Operator* multiply = Registry::instance().find("mul");
  const char* who = c.op.name().c_str();
  Tensor source = source_of(c);
  const Scalar alpha = c.scalar(4);
  if (alpha.real != 1 || alpha.imag != 0) {
    const GradModeGuard unrecorded(false);
    source = call_operator(*multiply, source, alpha);
    if (source.dtype() != target.dtype()) source = convert(source, target.dtype());
  }
  reduce_into(walk_slices, who, target, wrap_dim(c.integer(1), target.dim()), c.tensor(2), source, "sum", true);
}
void write_index_reduce(const Call& c, const Tensor& target) {
  const char* who = c.op.name().c_str();
  reduce_into(walk_slices, who, target, wrap_dim(c.integer(1), target.dim()), c.tensor(2), source_of(c), c.text(4),
              c.boolean(5));
}
void write_index_copy(const Call& c, const Tensor& target) {
  static const int operation = operation_number("index_copy_");
  const Tensor index = c.tensor(2);
  write_indexed(walk_slices("index_copy_", target, wrap_dim(c.integer(1), target.dim()), index, source_of(c)),
                size_of(target.dtype()), on(target, index.dtype(), operation));
}
void index_fill(const Call& c, const Tensor& target, const Tensor& value) {
  static const int operation = operation_number("index_fill_");
  const Tensor index = c.tensor(2);
  IndexedWalk w = walk_slices("index_fill_", target, wrap_dim(c.integer(1), target.dim()), index, value);
  w.wrap = w.bound;
  write_indexed(w, size_of(target.dtype()), on(target, index.dtype(), operation));
}
void write_index_fill(const Call& c, const Tensor& target) { index_fill(c, target, value_of(c, target)); }
void write_index_fill_tensor(const Call& c, const Tensor& target) {
  index_fill(c, target, convert(clone(c.tensor(3)), target.dtype()));
}

// ---------------------------------------------------------------- masks

// out = value where the mask holds, else input: the pointwise `where`, with the value as a number or a 0-d tensor.
void fill_where(const Tensor& out, const Tensor& input, const Tensor& mask, const Value& value) {
  static const Operator* where = Registry::instance().find("where");
  const GradModeGuard unrecorded(false);
  Call inner(*where);
  inner.args[0] = Value(mask);
  inner.args[1] = value;
  inner.args[2] = Value(input);
  for (size_t k = 3; k < where->signature.parameters.size(); ++k)
    inner.args[k] = where->signature.parameters[k].default_value;
  inner.given_out = true;
  inner.give(out);
  execute(inner);
}

void write_masked_scatter(const Call& c, const Tensor& target) {
  static const int operation = operation_number("masked_scatter");
  const Tensor mask = c.tensor(1), source = contiguous_on_device(c.tensor(2));
  if (target.numel() == 0) return;
  const CountedFlags flags(
      view_of(mask, target.sizes(), expanded_strides("masked_scatter_", mask, target.sizes()), mask.offset()));
  const Tensor whole = contiguous_on_device(target);
  flags.put(source, whole, operation);
  if (whole.get() != target.get()) copy_into(target, whole);
}

// ---------------------------------------------------------------- in the flattened tensor

void write_put(const Call& c, const Tensor& target) {
  static const int operation = operation_number("put_");
  if (c.tensor(1).numel() == 0) return;
  const Tensor whole = contiguous_on_device(target), index = contiguous_on_device(c.tensor(1)),
               source = contiguous_on_device(c.tensor(2));
  IndexedWalk w = walk_slices("put_", flattened(whole), 0, flattened(index), flattened(source));
  w.wrap = w.bound;
  const IndexedOn there = on(target, index.dtype(), operation);
  c.boolean(3) ? combine_indexed(w, whole.dtype(), Combine::add, there)
               : write_indexed(w, size_of(whole.dtype()), there);
  if (whole.get() != target.get()) copy_into(target, whole);
}

// ---------------------------------------------------------------- x[i] = v

// x[mask] = one value needs no list of places: a fill under the mask, broadcast over the dimensions it does not cover.
bool fill_under_mask(const Tensor& target, std::span<const Tensor> indices, const Tensor& value) {
  int64_t before = 0;
  const Tensor* mask = nullptr;
  for (const Tensor& t : indices) {
    if (!t.defined())
      before += mask ? 0 : 1;
    else if (mask || t.dtype() != Dtype::b8)
      return false;
    else
      mask = &t;
  }
  if (!mask || mask->device() != target.device() || before + mask->dim() > target.dim() || is_expanded(target))
    return false;
  Dims strides(target.dim(), 0);
  for (int64_t d = 0; d < mask->dim(); ++d) {
    if (mask->size(d) != target.size(before + d)) return false;  // resolve_index says what is wrong
    strides[before + d] = mask->stride(d);
  }
  if (target.numel() == 0) return true;
  const Tensor one = view_of(value, {}, {}, value.offset());
  fill_where(target, target, view_of(*mask, target.sizes(), strides, mask->offset()), Value(one));
  return true;
}

void write_index_put(const Call& c, const Tensor& target) {
  static const int operation = operation_number("index_put_");
  const bool accumulate = c.boolean(3);
  Tensor values = c.tensor(2);
  const std::span<const Tensor> list_of_indices = c.tensors(1);
  if (values.numel() == 1 && !accumulate && fill_under_mask(target, list_of_indices, values)) return;
  const AdvancedIndex a = resolve_index("index_put_", target, list_of_indices);
  const auto fits = [&] {
    const int64_t lead = a.result.size() - values.dim();
    for (int64_t d = 0; d < values.dim(); ++d) {
      const int64_t have = values.size(d);
      if (have != 1 && (d + lead < 0 || have != a.result[d + lead])) return false;
    }
    return true;
  };
  check(fits(), "index_put_: shape mismatch: value tensor of shape ", list(values.sizes()),
        " cannot be broadcast to indexing result of shape ", list(a.result));
  if (checked_numel(a.result) == 0) return;
  if (values.numel() != 1) {
    // Leading dimensions of size one are allowed to be too many.
    const int64_t extra = std::max<int64_t>(0, values.dim() - a.result.size());
    values = view_of(values, DimsView(values.sizes()).subspan(static_cast<size_t>(extra)),
                     DimsView(values.strides()).subspan(static_cast<size_t>(extra)), values.offset());
    if (!values.is_contiguous() || values.sizes() != a.result) {
      const Tensor whole = empty(a.result, values.dtype(), values.device());
      copy_into(whole, values);
      values = whole;
    }
  }
  const IndexedOn there = on(target, Dtype::i64, operation);
  IndexedWalk w = walk_through(a, target, values);
  if (!accumulate) return write_indexed(w, size_of(target.dtype()), there);
  if (w.bound == std::numeric_limits<int64_t>::max()) {
    // Offsets into the target's memory: none is larger than that of its last element.
    w.bound = 1;
    for (int64_t d = 0; d < target.dim(); ++d) w.bound += (target.size(d) - 1) * target.stride(d);
  }
  combine_indexed(w, target.dtype(), Combine::add, there);
}

// ---------------------------------------------------------------- masked_fill

void masked_fill(Call& c, const Tensor& out, const Value& value) {
  const Tensor input = c.tensor(0), mask = c.tensor(1);
  if (out.numel() == 0) return;
  if (is_expanded(out)) {
    check_target("masked_fill_", out);
    // Only what the mask covers may be written: an element can be covered in one place and not in another.
    const Tensor indices[1] = {
        view_of(mask, out.sizes(), expanded_strides("masked_fill", mask, out.sizes()), mask.offset())};
    const AdvancedIndex a = resolve_index("masked_fill_", out, indices);
    Tensor one = value.is_tensor() ? convert(Tensor(value.tensor_), out.dtype())
                                   : number(value.scalar_, out.dtype(), out.device());
    if (one.device().is_cpu()) {  // a number that was left in host memory for `where`
      const Tensor there = empty({}, one.dtype(), out.device());
      copy_into(there, one);
      one = there;
    }
    return write_indexed(walk_through(a, out, one), size_of(out.dtype()), on(out, Dtype::i64, 0));
  }
  fill_where(out, input, mask, value);
}
// A number enters as a 0-d tensor of the input's dtype, so that the result keeps that dtype; it stays in host memory,
// where `where` may read it.
void run_masked_fill(Call& c) {
  const Tensor one = scalar_tensor(c.scalar(2), c.tensor(0).dtype());
  masked_fill(c, c.op.mutates ? c.tensor(0) : c.out(), Value(one));
}
void run_masked_fill_tensor(Call& c) {
  const Tensor one = convert(c.tensor(2), c.tensor(0).dtype());
  masked_fill(c, c.op.mutates ? c.tensor(0) : c.out(), Value(one));
}

template <Write write>
void set_writer(Registry& r, const char* name, const char* in_place) {
  r.set_kernel(name, DeviceType::cuda, run_in_copy<write>);
  r.set_kernel(in_place, DeviceType::cuda, run_in_place<write>);
}

}  // namespace

REGISTER_KERNELS(scatter) {
  set_writer<write_scatter_src>(r, "scatter", "scatter_");
  set_writer<write_scatter_value>(r, "scatter.value", "scatter_.value");
  set_writer<write_scatter_reduce_src>(r, "scatter.reduce", "scatter_.reduce");
  set_writer<write_scatter_reduce_value>(r, "scatter.value_reduce", "scatter_.value_reduce");
  set_writer<write_scatter_add>(r, "scatter_add", "scatter_add_");
  set_writer<write_scatter_reduce_two>(r, "scatter_reduce", "scatter_reduce_");
  set_writer<write_index_add>(r, "index_add", "index_add_");
  set_writer<write_index_copy>(r, "index_copy", "index_copy_");
  set_writer<write_index_fill_tensor>(r, "index_fill.Tensor", "index_fill_.Tensor");
  set_writer<write_index_fill>(r, "index_fill", "index_fill_");
  set_writer<write_index_reduce>(r, "index_reduce", "index_reduce_");
  set_writer<write_index_put>(r, "index_put", "index_put_");
  set_writer<write_masked_scatter>(r, "masked_scatter", "masked_scatter_");
  set_writer<write_put>(r, "put", "put_");
  for (const char* name : {"masked_fill", "masked_fill_"}) r.set_kernel(name, DeviceType::cuda, run_masked_fill);
  for (const char* name : {"masked_fill.Tensor", "masked_fill_.Tensor"})
    r.set_kernel(name, DeviceType::cuda, run_masked_fill_tensor);
}

}  // namespace cresset::cuda
