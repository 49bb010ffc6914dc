// Sums, products, extremes and where they are, logic, moments and norms on the device: how each is launched.
#include "cuda/reduction.h"

#include <cmath>

#include "cuda/backend.h"
#include "cuda/walk.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

constexpr int kBlock = 256, kUnroll = 4, kColumnUnroll = 8;  // as in reduction.cuh

// As in reduction.cuh.
struct Plan {
  const void *input, *other, *constants;
  void *partial, *first, *second;
  int64_t count, length, chunk;
  int64_t columns, column_stride;
  int64_t constant_period;
  double parameter, root;
  int32_t lanes, splits;
  Walk kept, folded;
};

const std::initializer_list<const char*> kMacros = {"OPERATION", "ELEMENT",    "COMPUTED", "RESULT",
                                                    "VECTOR",    "CONTIGUOUS", "BIG",      "KERNEL"};
const KernelFamily kRows("reduction.cuh", "reduce_rows", kMacros, {"--fmad=true"});
const KernelFamily kColumns("reduction.cuh", "reduce_columns", kMacros, {"--fmad=true"});
const KernelFamily kPartial("reduction.cuh", "reduce_partial", kMacros, {"--fmad=true"});

bool is_place(Operation o) { return o >= Operation::arg_largest && o <= Operation::smallest_place; }

int64_t accumulator_bytes(const Reduction& r) {
  if (r.operation >= Operation::variance && r.operation <= Operation::moments) return 24;
  if (is_place(r.operation) || r.operation == Operation::log_sum_exp || r.operation == Operation::gradient_sums ||
      r.operation == Operation::extremes || is_complex(r.computed))
    return 16;
  return 8;
}

// Whether joining what two threads have is much work, so that a thread should have much to join.
bool has_costly_merge(Operation o) { return is_place(o) || (o >= Operation::log_sum_exp && o <= Operation::moments); }

int64_t power_above(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

}  // namespace

Dtype computed_in(Dtype d) {
  switch (d) {
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32: return Dtype::f32;
    case Dtype::f64: return Dtype::f64;
    case Dtype::c64: return Dtype::c64;
    case Dtype::c128: return Dtype::c128;
    default: return is_integral(d) || d == Dtype::b8 ? Dtype::i64 : Dtype::count;
  }
}
bool has_elements(Dtype d) { return computed_in(d) != Dtype::count; }

void reduce(const Tensor& t, uint64_t reduced, const Reduction& r) {
  Space kept, folded;
  Dims order;  // of the reduced dimensions: by stride where the places of the elements do not matter
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (!(reduced >> d & 1)) {
      kept.add(t.size(d), t.stride(d));
      continue;
    }
    order.push_back(d);
    for (int64_t i = order.size() - 1; !is_place(r.operation) && i > 0 && t.stride(order[i - 1]) < t.stride(order[i]);
         --i)
      std::swap(order[i - 1], order[i]);
  }
  for (const int64_t d : order) folded.add(t.size(d), t.stride(d));
  if (kept.count == 0) return;
  if (!kept.fits() || !folded.fits()) {  // more dimensions than a kernel walks: behind one another there are fewer
    Dims sizes, strides;
    for (const int side : {0, 1})
      for (int64_t d = 0; d < t.dim(); ++d)
        if (static_cast<int>(reduced >> d & 1) == side) sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
    const Tensor moved = contiguous_on_device(view_of(t, sizes, strides, t.offset()));
    uint64_t bits = 0;
    for (int64_t d = t.dim() - order.size(); d < t.dim(); ++d) bits |= uint64_t{1} << d;
    invariant(!r.other, "a reduction of two tensors with many dimensions");
    return reduce(moved, bits, r);
  }

  const Place place(t.device());
  const int64_t width = size_of(t.dtype()), wanted = 4 * properties(place.device).multiprocessors;
  const bool big = kept.count >= int64_t{1} << 31 || folded.count >= int64_t{1} << 31;
  const int most = static_cast<int>(std::max<int64_t>(
      1, std::min<int64_t>(16 / width, r.operation <= Operation::smallest ||
                                               (r.operation >= Operation::norm_1 && r.operation <= Operation::norm_2)
                                           ? 8
                                           : 4)));
  Plan plan{t.bytes(),    r.other, r.constants, nullptr,           r.first,     r.second, kept.count, folded.count,
            folded.count, 1,       0,           r.constant_period, r.parameter, r.root,   1,          1,
            {},           {}};
  // Columns of few elements have a thread each, side by side in whole blocks.
  const bool few = folded.count < 16;
  const bool by_columns = kept.rank() > 0 && folded.rank() > 0 && kept.inner_stride() < folded.inner_stride() &&
                          (!few || (kept.inner_stride() == 1 && kept.inner_size() >= 512));
  int vector = 1;
  int64_t blocks, splits = 1;
  bool contiguous = false;
  if (by_columns) {
    plan.columns = kept.inner_size();
    plan.column_stride = kept.inner_stride();
    if (kept.inner_stride() == 1 && plan.columns % 2 == 0) {
      vector = common_vector(most, width, t.bytes(), {&folded, &kept}, true);
      while (plan.columns % vector) vector /= 2;
    }
    kept.sizes.resize(kept.rank() - 1);
    kept.strides.resize(kept.strides.size() - 1);
    kept.count /= plan.columns;
    const int64_t across = std::min<int64_t>(few ? kBlock : 32, power_above(divide_up(plan.columns, vector))),
                  down = kBlock / across;
    plan.lanes = static_cast<int32_t>(across);
    blocks = kept.count * divide_up(plan.columns, across * vector);
    const int64_t enough = wanted / 2, step = down * kColumnUnroll;  // what a block reads at a time
    if (blocks < enough && folded.count >= 2 * step) {
      splits = std::min(divide_up(enough, blocks), divide_up(folded.count, step));
      plan.chunk = divide_up(folded.count, splits * step) * step;
    }
  } else {
    contiguous = folded.rank() == 0 || (folded.rank() == 1 && folded.inner_stride() == 1);
    if (folded.inner_stride() == 1) {
      vector = common_vector(most, width, t.bytes(), {&kept, &folded}, true);
      while (vector > 1 && (vector > folded.inner_size() || (folded.rank() > 1 && folded.inner_size() % vector)))
        vector /= 2;
    }
    const int64_t vectors = divide_up(folded.count, vector);
    const int64_t each = has_costly_merge(r.operation) ? 8 * kUnroll : kUnroll;
    int64_t lanes = std::min<int64_t>(kBlock, power_above(divide_up(vectors, each)));
    const bool side_by_side =
        kept.rank() > 0 && kept.inner_stride() < folded.inner_stride();  // few rows of many columns: a thread each
    if (side_by_side)
      lanes = 1;
    else
      while (lanes < kBlock && lanes < vectors && kept.count * lanes < wanted * kBlock) lanes *= 2;
    plan.lanes = static_cast<int32_t>(lanes);
    blocks = divide_up(kept.count, kBlock / lanes);
    if (blocks < wanted && vectors >= lanes * 32) {
      splits = std::min(divide_up(wanted, blocks), divide_up(vectors, lanes * kUnroll * 2));
      plan.chunk = divide_up(vectors, splits) * vector;
    }
  }
  while (r.other && reinterpret_cast<uintptr_t>(r.other) % static_cast<uintptr_t>(vector * width)) vector /= 2;
  if (splits > 1) splits = divide_up(plan.length, plan.chunk);
  plan.splits = static_cast<int32_t>(splits);
  plan.kept = kept.walk();
  plan.folded = folded.walk();
  Tensor scratch;
  if (splits > 1) {
    const int64_t bytes[] = {splits * plan.count * accumulator_bytes(r)};
    scratch = empty(bytes, Dtype::u8, t.device());
    plan.partial = scratch.bytes();
  }
  const int operation = static_cast<int>(r.operation);
  (by_columns ? kColumns : kRows)
      .launch(place,
              {operation, t.dtype(), r.computed, r.result, vector, contiguous, big, static_cast<int>(by_columns)},
              {blocks, splits}, kBlock, 0, plan);
  if (splits == 1) return;
  plan.lanes = static_cast<int32_t>(std::min<int64_t>(32, power_above(plan.count)));
  kPartial.launch(place, {operation, t.dtype(), r.computed, r.result, 1, false, false, 2},
                  divide_up(plan.count, plan.lanes), kBlock, 0, plan);
}

namespace {

// ---------------------------------------------------------------- sum, mean, prod

// The three forms of argument lists: (input, dtype), (input, dims, keepdim, dtype), (input, dim, keepdim, dtype).
enum class Form { all, dims, dim };
template <Form kForm>
uint64_t reduced_by(const Call& c, const Tensor& t) {
  return kForm == Form::all ? all_dims(t) : kForm == Form::dims ? dims_at(c, 1, t) : dim_at(c, 1, t);
}

// Elements converted to what the result's dtype is computed in.
void reduce_into(Call& c, const Tensor& t, uint64_t reduced, Operation operation) {
  const Dtype computed = computed_in(c.out().dtype());
  if (computed == Dtype::count || !has_elements(t.dtype())) return execute_on_host(c, c.tensor(0).device());
  reduce(t, reduced, {operation, computed, c.out().dtype(), c.out().bytes()});
}

template <Form kForm, Operation kOperation>
void run_sum(Call& c) {
  const Tensor t = c.tensor(0);
  reduce_into(c, c.out().dtype() == Dtype::b8 ? convert(t, Dtype::b8) : t, reduced_by<kForm>(c, t), kOperation);
}
// The kernel drops nan before a conversion to an integer dtype could hide it.
void run_nansum(Call& c) {
  const Tensor t = c.tensor(0);
  if (c.out().dtype() == Dtype::b8) return execute_on_host(c, t.device());
  reduce_into(c, t, dims_at(c, 1, t), Operation::nansum);
}
template <Form kForm>
void run_product(Call& c) {
  const Tensor t = c.tensor(0);
  reduce_into(c, c.out().dtype() == Dtype::b8 ? convert(t, Dtype::b8) : t, reduced_by<kForm>(c, t), Operation::product);
}

// ---------------------------------------------------------------- extremes

bool is_ordered(Dtype d) { return has_elements(d) && !is_complex(d) && d != Dtype::u64; }

void extreme_into(const Tensor& t, uint64_t reduced, Operation operation, const Tensor& first,
                  const Tensor& second = {}) {
  reduce(t, reduced,
         {operation, computed_in(t.dtype()), t.dtype(), first.bytes(), second.defined() ? second.bytes() : nullptr});
}
template <bool kLargest>
void run_amax(Call& c) {
  const Tensor t = c.tensor(0);
  if (!is_ordered(t.dtype())) return execute_on_host(c, t.device());
  extreme_into(t, dims_at(c, 1, t), kLargest ? Operation::largest : Operation::smallest, c.out());
}
template <bool kLargest>
void run_max(Call& c) {
  const Tensor t = c.tensor(0);
  if (!is_ordered(t.dtype())) return execute_on_host(c, t.device());
  extreme_into(t, all_dims(t), kLargest ? Operation::largest : Operation::smallest, c.out());
}
void run_aminmax(Call& c) {
  const Tensor t = c.tensor(0);
  if (!is_ordered(t.dtype())) return execute_on_host(c, t.device());
  extreme_into(t, dim_at(c, 1, t), Operation::extremes, c.out(0), c.out(1));
}
template <bool kLargest>
void run_max_dim(Call& c) {
  const Tensor t = c.tensor(0);
  if (!is_ordered(t.dtype())) return execute_on_host(c, t.device());
  extreme_into(t, dim_at(c, 1, t), kLargest ? Operation::largest_place : Operation::smallest_place, c.out(0), c.out(1));
}
template <bool kLargest>
void run_argmax(Call& c) {
  const Tensor t = c.tensor(0);
  if (!is_ordered(t.dtype())) return execute_on_host(c, t.device());
  extreme_into(t, dim_at(c, 1, t), kLargest ? Operation::arg_largest : Operation::arg_smallest, c.out());
}

// ---------------------------------------------------------------- any, all, count_nonzero

void truth_into(Call& c, const Tensor& t, uint64_t reduced, Operation operation) {
  if (!has_elements(t.dtype())) return execute_on_host(c, t.device());
  reduce(t, reduced, {operation, Dtype::b8, c.out().dtype(), c.out().bytes()});
}
template <Operation kOperation>
void run_any(Call& c) {
  const Tensor t = c.tensor(0);
  truth_into(c, t, all_dims(t), kOperation);
}
template <Operation kOperation>
void run_any_dims(Call& c) {
  const Tensor t = c.tensor(0);
  truth_into(c, t, c.has(1) && c.integers(1).empty() ? 0 : dims_at(c, 1, t),
             kOperation);  // here an empty list means no dims
}
void run_count_nonzero(Call& c) {
  const Tensor t = c.tensor(0);
  truth_into(c, t, dims_at(c, 1, t), Operation::count);
}

// ---------------------------------------------------------------- moments and norms

void run_logsumexp(Call& c) {
  const Tensor t = c.tensor(0);
  if (is_complex(c.out().dtype())) return execute_on_host(c, t.device());
  reduce_into(c, t, dims_at(c, 1, t), Operation::log_sum_exp);
}

// Three argument lists: (input, dims, *, correction, keepdim), (input, dims, unbiased, keepdim), (input, unbiased).
enum class SpreadForm { correction, unbiased_dims, unbiased };
template <SpreadForm kForm, bool kMean, bool kRoot>
void run_spread(Call& c) {
  const Tensor t = c.tensor(0);
  const Dtype computed = computed_in(t.dtype());
  if (computed != Dtype::f32 && computed != Dtype::f64) return execute_on_host(c, t.device());
  if (t.numel() == 0) {  // nothing has no spread, whatever the correction
    for (int i = 0; i < (kMean ? 2 : 1); ++i) fill(c.out(i), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  const uint64_t reduced = kForm == SpreadForm::unbiased ? all_dims(t) : dims_at(c, 1, t);
  const double correction = kForm == SpreadForm::correction                    ? (c.has(2) ? c.real(2) : 1.0)
                            : c.boolean(kForm == SpreadForm::unbiased ? 1 : 2) ? 1.0
                                                                               : 0.0;
  reduce(t, reduced,
         {kMean ? Operation::variance_mean : Operation::variance, computed, t.dtype(), c.out(0).bytes(),
          kMean ? c.out(1).bytes() : nullptr, correction, kRoot ? 1.0 : 0.0});
}
template <bool kMean, bool kRoot>
void set_spread(Registry& r, const std::string& name) {
  r.set_kernel(name.c_str(), DeviceType::cuda, run_spread<SpreadForm::correction, kMean, kRoot>);
  r.set_kernel((name + ".dim").c_str(), DeviceType::cuda, run_spread<SpreadForm::unbiased_dims, kMean, kRoot>);
  r.set_kernel((name + ".unbiased").c_str(), DeviceType::cuda, run_spread<SpreadForm::unbiased, kMean, kRoot>);
}

void run_norm(Call& c) {
  Tensor t = c.tensor(0);
  uint64_t reduced = dims_at(c, 2, t);
  const double order = order_of_norm(c.real(1), t, reduced);
  if (order == 0) return truth_into(c, t, reduced, Operation::count);
  Dtype dtype = c.dtype_or(4, t.dtype());
  if (!has_elements(t.dtype()) || !has_elements(dtype)) return execute_on_host(c, t.device());
  if (is_complex(dtype)) {
    t = convert(t, dtype);
    dtype = to_real(dtype);
    if (order == 2) reduced |= uint64_t{1} << t.dim();
    t = order == 2 ? as_pairs(t) : absolute(t);
  }
  const Operation operation = order == 1          ? Operation::norm_1
                              : order == 2        ? Operation::norm_2
                              : std::isinf(order) ? (order > 0 ? Operation::norm_largest : Operation::norm_smallest)
                                                  : Operation::norm_power;
  reduce(t, reduced, {operation, computed_in(dtype), c.out().dtype(), c.out().bytes(), nullptr, order, 1 / order});
}

}  // namespace

REGISTER_KERNELS(reduction) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("sum.all", run_sum<Form::all, Operation::sum>);
  set("sum", run_sum<Form::dims, Operation::sum>);
  set("nansum", run_nansum);
  set("mean.all", run_sum<Form::all, Operation::mean>);
  set("mean", run_sum<Form::dims, Operation::mean>);
  set("prod", run_product<Form::all>);
  set("prod.dim", run_product<Form::dim>);
  set("amax", run_amax<true>);
  set("amin", run_amax<false>);
  set("aminmax", run_aminmax);
  set("max", run_max<true>);
  set("min", run_max<false>);
  set("max.dim", run_max_dim<true>);
  set("min.dim", run_max_dim<false>);
  set("argmax", run_argmax<true>);
  set("argmin", run_argmax<false>);
  set("any", run_any<Operation::any>);
  set("any.dim", run_any_dims<Operation::any>);
  set("all", run_any<Operation::all>);
  set("all.dim", run_any_dims<Operation::all>);
  set("count_nonzero", run_count_nonzero);
  set("logsumexp", run_logsumexp);
  set_spread<false, false>(r, "var");
  set_spread<false, true>(r, "std");
  set_spread<true, false>(r, "var_mean");
  set_spread<true, true>(r, "std_mean");
  set("linalg_vector_norm", run_norm);
}

}  // namespace cresset::cuda
