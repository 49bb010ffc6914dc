// Writing through indices and masks: x[i] = v, scatter, index_add and variants, masked_fill, masked_scatter, put.
//
// Every operator here changes part of its first argument. `name_` does so in place, `name` in a copy; both are made
// from one Write. Where an index occurs twice, the writes happen in the order of the index, whatever the number of
// threads.
#include <limits>
#include <string>

#include "dispatch/overlap.h"
#include "dispatch/registration.h"
#include "ops/indexed_walk.h"
#include "ops/scatter.h"
#include "tensor/blocks.h"

namespace cresset {

bool is_expanded(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1 && t.stride(d) == 0) return true;
  return false;
}
void check_target(const std::string& who, const Tensor& target) {
  if (!is_expanded(target)) return;
  if (who != "masked_fill_" && who != "index_fill_" && who != "index_put_")
    return check_no_internal_overlap(who.c_str(), target);
  if (warn)
    warn(join("Use of ", who,
              " on expanded tensors is deprecated. Please clone() the tensor before performing this operation."));
}

Combine combine_of(std::string_view reduce) {
  return reduce == "prod"   ? Combine::multiply
         : reduce == "amax" ? Combine::maximum
         : reduce == "amin" ? Combine::minimum
                            : Combine::add;
}
Scalar identity(Combine how, Dtype dtype) {
  if (how == Combine::add) return Scalar(0);
  if (how == Combine::multiply) return Scalar(1);
  const bool highest = how == Combine::minimum;
  if (is_floating(dtype)) return Scalar(highest ? INFINITY : -INFINITY);
  if (dtype == Dtype::b8) return Scalar(highest);
  if (!facts(dtype).is_signed) return Scalar(highest ? int64_t{-1} : int64_t{0});
  const int64_t top = std::numeric_limits<int64_t>::max() >> (64 - 8 * size_of(dtype));
  return Scalar(highest ? top : -top - 1);
}
std::string_view reduce_of_scatter(const Call& c) {
  const std::string_view name = c.text(4);
  check(name == "add" || name == "multiply", "scatter: reduce argument must be either add or multiply, got ", name);
  return name == "add" ? "sum" : "prod";
}

namespace {

// `name` and `name_`; an overload's name follows a dot. What `name_` reads must lie apart, unless `flags` say
// otherwise.
template <Write write>
void add_writer(Registry& r, const std::string& name, const std::string& parameters, Infer infer,
                uint32_t flags = kMethodOnly | kWritesApart, const char* node_name = nullptr) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string in_place = name.substr(0, dot) + "_" + name.substr(dot);
  r.add((name + parameters + " -> Tensor").c_str(), infer, run_in_copy<write>, kWritesWhole, node_name);
  r.add((in_place + parameters + " -> Tensor").c_str(), infer, run_in_place<write>, kMutates | flags, node_name);
}

// ---------------------------------------------------------------- combining

// Whole numbers wrap round.
struct Add {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return static_cast<T>(a + b);
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return static_cast<T>(a * b);
  }
};
// A nan wins. Two choices of one condition each: of both at once the compiler may make a branch, which can only be
// guessed and takes four times as long.
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    const T winner = b > a ? b : a;
    return b != b ? b : winner;
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    const T winner = b < a ? b : a;
    return b != b ? b : winner;
  }
};

template <class T, class Op>
void combine_row(const IndexedWalk& w, const IndexedRow& r) {
  const T* __restrict from = reinterpret_cast<const T*>(w.plain) + r.plain;
  T* __restrict to = reinterpret_cast<T*>(w.indexed) + r.indexed;
  const int64_t* index = w.index + r.index;
  if (walk_plain_row(w, r, [=](int64_t i, int64_t place) { to[place] = Op::apply(to[place], from[i]); })) return;
  if (r.index_step != 0) {
    for (int64_t i = 0; i < r.n; ++i) {
      T& t = to[i * r.indexed_step + w.offset(index[i * r.index_step])];
      t = Op::apply(t, from[i * r.plain_step]);
    }
    return;
  }
  to += w.offset(*index);
  if (r.plain_step == 1 && r.indexed_step == 1)
    for (int64_t i = 0; i < r.n; ++i) to[i] = Op::apply(to[i], from[i]);
  else
    for (int64_t i = 0; i < r.n; ++i)
      to[i * r.indexed_step] = Op::apply(to[i * r.indexed_step], from[i * r.plain_step]);
}

void combine(const IndexedWalk& w, Dtype dtype, Combine how) {
  const auto real = [&]<class Op>(Op) {
    visit_real(dtype, w.who, [&]<class T>() {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        invariant(false, "halves are combined in float");
      else
        walk_writing(w, combine_row<T, Op>);
    });
  };
  const auto any = [&]<class Op>(Op op) {
    if (dtype == Dtype::c64) return walk_writing(w, combine_row<complex64, Op>);
    if (dtype == Dtype::c128) return walk_writing(w, combine_row<complex128, Op>);
    real(op);
  };
  switch (how) {
    case Combine::assign: return write_indexed(w, size_of(dtype));
    case Combine::add: return any(Add{});
    case Combine::multiply: return any(Multiply{});
    case Combine::maximum: return real(Maximum{});
    case Combine::minimum: return real(Minimum{});
  }
}

// Either of the two walks: `index` names elements (walk_along) or slices (walk_slices).
using MakeWalk = IndexedWalk (*)(const char* who, const Tensor& indexed, int64_t dim, const Tensor& index,
                                 const Tensor& plain);

struct DivideContext {
  int64_t self;  // 1 if the element that stood there before counts too
};
template <class T>
void divide_loop(char* const* p, const void* context, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  const T* sum = reinterpret_cast<const T*>(p[1]);
  const auto* count = reinterpret_cast<const int64_t*>(p[2]);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = std::max<int64_t>(1, count[i] + *static_cast<const int64_t*>(context));
    if constexpr (std::is_same_v<T, bool>) {
      out[i] = sum[i] && c == 1;
    } else if constexpr (std::is_integral_v<T>) {
      const T d = static_cast<T>(c), q = static_cast<T>(sum[i] / d);
      out[i] = static_cast<T>(q - (sum[i] % d != 0 && (sum[i] < 0) != (d < 0)));
    } else {
      using R = decltype(std::abs(T()));
      out[i] = static_cast<T>(sum[i] / static_cast<R>(c));
    }
  }
}

// target = reduction of the source elements that land on each of its elements, and of what stood there if include_self.
void reduce_into(MakeWalk make, const char* who, const Tensor& target, int64_t dim, const Tensor& index,
                 const Tensor& source, std::string_view reduce, bool include_self, ErrorKind error,
                 const char* phrase) {
  if (index.numel() == 0) return;
  if (const Dtype sums = combined_in(target.dtype()); sums != target.dtype()) {
    const Tensor wide = convert(target, sums);
    reduce_into(make, who, wide, dim, index, convert(source, sums), reduce, include_self, error, phrase);
    return copy_into(target, wide);
  }
  const Combine how = combine_of(reduce);
  const auto walk = [&](const Tensor& to, const Tensor& from) {
    IndexedWalk w = make(who, to, dim, index, from);
    w.error = error;
    w.phrase = phrase;
    return w;
  };
  if (!include_self)
    combine(walk(target, scalar_tensor(identity(how, target.dtype()), target.dtype())), target.dtype(),
            Combine::assign);
  combine(walk(target, source), target.dtype(), how);
  if (reduce != "mean") return;
  const Tensor counts = full(target.sizes(), Scalar(0), Dtype::i64);
  combine(walk(counts, scalar_tensor(Scalar(1), Dtype::i64)), Dtype::i64, Combine::add);
  Operand operands[3] = {{target.bytes(), target.dtype(), target.dtype(), target.strides()},
                         {target.bytes(), target.dtype(), target.dtype(), target.strides()},
                         {counts.bytes(), Dtype::i64, Dtype::i64, counts.strides()}};
  const int64_t self = include_self;
  visit_all(target.dtype(), who, [&]<class T>() {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
      run_blocks(target.sizes(), operands, 3, divide_loop<T>, &self);
  });
}

// ---------------------------------------------------------------- scatter

void check_scatter(Call& c, const Tensor& src) {
  const Tensor input = c.tensor(0), index = c.tensor(2);
  const std::string& who = c.op.name();
  const int64_t dim = wrap_dim(c.integer(1), input.dim());
  c.promise_like(input);
  check(!src.defined() || src.dtype() == input.dtype(), who, "(): Expected self.dtype to be equal to src.dtype, got ",
        name_of(input.dtype()), " and ", src.defined() ? name_of(src.dtype()) : "");
  if (index.numel() == 0) return;
  check(is_index(index.dtype()), who, "(): Expected dtype int32/int64 for index, got ", name_of(index.dtype()));
  const auto rank = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  check(rank(index) == rank(input), who,
        ": Index tensor must have the same number of dimensions as self tensor; they have ", index.dim(), " and ",
        input.dim());
  check(!src.defined() || rank(index) == rank(src), who,
        ": Index tensor must have the same number of dimensions as src tensor; they have ", index.dim(), " and ",
        src.defined() ? src.dim() : 0);
  const auto size = [](const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.size(d); };
  for (int64_t d = 0; d < rank(index); ++d) {
    const bool fits =
        (d == dim || size(index, d) <= size(input, d)) && (!src.defined() || size(index, d) <= size(src, d));
    check(fits, who, ": Expected index ", list(index.sizes()), " to be no larger than self ", list(input.sizes()),
          " apart from dimension ", dim,
          src.defined() ? join(" and to be no larger size than src ", list(src.sizes())) : "");
  }
}
void infer_scatter_src(Call& c) { check_scatter(c, c.tensor(3)); }
void infer_scatter_value(Call& c) {
  check_scatter(c, {});
  if (c.tensor(2).numel()) check_fits(c.scalar(3), c.tensor(0).dtype());  // a number that is written nowhere may be any
}

void scatter_with(const Call& c, const Tensor& target, const Tensor& src, std::string_view reduce) {
  const char* who = c.op.name().c_str();
  const Tensor index = convert(c.tensor(2), Dtype::i64);
  if (index.numel() == 0) return;
  const int64_t dim = wrap_dim(c.integer(1), target.dim());
  if (reduce.empty()) return write_indexed(walk_along(who, target, dim, index, src), size_of(target.dtype()));
  reduce_into(walk_along, who, target, dim, index, src, reduce, true, ErrorKind::runtime, "");
}
void write_scatter_src(const Call& c, const Tensor& target) { scatter_with(c, target, c.tensor(3), ""); }
void write_scatter_value(const Call& c, const Tensor& target) {
  if (c.tensor(2).numel()) scatter_with(c, target, scalar_tensor(c.scalar(3), target.dtype()), "");
}

void write_scatter_reduce_src(const Call& c, const Tensor& target) {
  scatter_with(c, target, c.tensor(3), reduce_of_scatter(c));
}
void write_scatter_reduce_value(const Call& c, const Tensor& target) {
  const auto reduce = reduce_of_scatter(c);
  if (c.tensor(2).numel()) scatter_with(c, target, scalar_tensor(c.scalar(3), target.dtype()), reduce);
}
void write_scatter_add(const Call& c, const Tensor& target) { scatter_with(c, target, c.tensor(3), "sum"); }

void infer_scatter_reduce(Call& c) {
  const std::string_view r = c.text(4);
  check(r == "sum" || r == "prod" || r == "mean" || r == "amax" || r == "amin",
        "scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got ", r);
  infer_scatter_src(c);
}
void write_scatter_reduce_two(const Call& c, const Tensor& target) {
  const char* who = c.op.name().c_str();
  const Tensor index = convert(c.tensor(2), Dtype::i64), src = c.tensor(3);
  reduce_into(walk_along, who, target, wrap_dim(c.integer(1), target.dim()), index, src, c.text(4), c.boolean(5),
              ErrorKind::runtime, "");
}

// ---------------------------------------------------------------- whole slices

// `source` has as many slices along `dim` as the vector `index` has elements; otherwise its shape is the target's.
void check_slices(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(2), source = c.tensor(3);
  const std::string& who = c.op.name();
  const int64_t dim = wrap_dim(c.integer(1), input.dim());
  c.promise_like(input);
  check_index(index.dim() <= 1, who, "(): Index is supposed to be a vector, but got dim: ", index.dim(),
              " with type: ", name_of(index.dtype()), " and size: ", list(index.sizes()));
  check(is_index(index.dtype()), who, "(): Expected dtype int32/int64 for index but got: ", name_of(index.dtype()));
  check(source.dtype() == input.dtype(), who, "(): self (", name_of(input.dtype()), ") and source (",
        name_of(source.dtype()), ") must have the same scalar type");
  check_index(source.dim() == 0 || dim < source.dim(), who, "(): Indexing dim ", dim,
              " is out of bounds of the source tensor, which has ", source.dim(), " dimensions");
  const int64_t slices = source.dim() == 0 ? 1 : source.size(dim);
  check(index.numel() == slices, who, "(): Number of indices (", index.numel(),
        ") should be equal to source.size(dim): (", slices, "), for dim: ", dim);
  bool fits = source.dim() == input.dim();
  for (int64_t d = 0; fits && d < input.dim(); ++d) fits = d == dim || source.size(d) == input.size(d);
  // One element passes for a slice of a 0-d tensor.
  fits |= input.dim() <= 1 && source.dim() <= 1 && slices == 1 && source.dtype() == input.dtype();
  check(fits, who,
        "(): source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
        list(input.sizes()), " source.shape = ", list(source.sizes()));
}

struct Slices {
  int64_t dim;
  Tensor index, source;
};
Slices slices_of(const Call& c, const Tensor& target) {
  return {wrap_dim(c.integer(1), target.dim()), convert(c.tensor(2), Dtype::i64), c.tensor(3)};
}

void infer_index_add(Call& c) {
  check_slices(c);
  const Dtype d = c.tensor(0).dtype();
  check(c.scalar(4).kind != Scalar::Kind::complex || is_complex(d),
        "index_add: a complex alpha needs a complex tensor, got ", name_of(d));
}
Tensor scaled(const Tensor& t, const Scalar& alpha) {
  if (alpha.real == 1 && alpha.imag == 0) return t;
  const Tensor out = t.dtype() == Dtype::c32 ? contiguous(convert(t, Dtype::c64)) : clone(t, MemoryFormat::contiguous);
  visit_all(out.dtype(), "index_add", [&]<class T>() {
    T* p = out.data<T>();
    const auto factor = alpha.to<opmath<T>>();
    for (int64_t i = 0; i < out.numel(); ++i) p[i] = static_cast<T>(static_cast<opmath<T>>(p[i]) * factor);
  });
  return out;
}
void write_index_add(const Call& c, const Tensor& target) {
  const Slices s = slices_of(c, target);
  reduce_into(walk_slices, c.op.name().c_str(), target, s.dim, s.index, scaled(s.source, c.scalar(4)), "sum", true,
              ErrorKind::runtime, "");
}

void infer_index_reduce(Call& c) {
  const std::string_view r = c.text(4);
  check(r == "prod" || r == "mean" || r == "amax" || r == "amin",
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", r, ".");
  check_slices(c);
}
void write_index_reduce(const Call& c, const Tensor& target) {
  const Slices s = slices_of(c, target);
  reduce_into(walk_slices, c.op.name().c_str(), target, s.dim, s.index, s.source, c.text(4), c.boolean(5),
              ErrorKind::index, "index out of range in self; ");
}

void infer_index_copy(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(2), source = c.tensor(3);
  const int64_t dim = wrap_dim(c.integer(1), input.dim());
  if (c.op.mutates) check_no_internal_overlap("index_copy_", input);  // before the sizes, as in PyTorch
  c.promise_like(input);
  check_index(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  check(index.dtype() == Dtype::i64, "index_copy_(): Expected a long tensor for index, but got ",
        name_of(index.dtype()));
  check(input.dtype() == source.dtype(),
        "index_copy_(): self and source expected to have the same dtype, but got (self) ", name_of(input.dtype()),
        " and (source) ", name_of(source.dtype()));
  check_index(source.dim() > 0 || index.numel() == 1,
              "index_copy_(): When source is scalar, index should have one element (got ", index.numel(), ")");
  check_index(source.dim() == input.dim() || source.dim() == 0 || input.dim() == 0,
              "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
              "dimensionality (",
              source.dim(), "), destination dimensionality (", input.dim(), ")");
  Dims to = input.sizes(), from = source.sizes();
  if (!to.empty()) to.erase(dim);
  if (!from.empty()) from.erase(dim);
  check(to == from,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ", list(to),
        " at dimension ", dim, " and source slice shape: ", list(from), " at dimension 0.");
  check_index(source.dim() == 0 || index.numel() == source.size(dim), "index_copy_(): Number of indices (",
              index.numel(), ") should be equal to source.size(dim) (", source.dim() ? source.size(dim) : 1, ")");
}
void write_index_copy(const Call& c, const Tensor& target) {
  const Slices s = slices_of(c, target);
  write_indexed(walk_slices("index_copy_()", target, s.dim, s.index, s.source), size_of(target.dtype()));
}

void check_index_fill(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(2);
  wrap_dim(c.integer(1), input.dim());
  check_index(index.dtype() == Dtype::i64, "index_fill_(): Expected dtype int64 for index, got ",
              name_of(index.dtype()));
  check(index.dim() <= 1, "index_fill_(): Index has to be a vector/scalar, got shape ", list(index.sizes()));
  c.promise({input.sizes(), dense_strides_like(input.sizes(), input.strides()), input.dtype(), input.device()});
}
void infer_index_fill(Call& c) {
  check_index_fill(c);
  check(c.scalar(3).kind != Scalar::Kind::complex || is_complex(c.tensor(0).dtype()),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  check_fits(c.scalar(3), c.tensor(0).dtype());
}
void check_one_value(const char* who, const Tensor& value) {
  check(value.dim() == 0, who, " only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
        " dimension(s).");
}
// The one number in `value`, as this dtype holds it.
Tensor one_value(const Tensor& value, Dtype dtype) {
  check_fits(item(value), dtype);
  return convert(clone(value), dtype);
}
void infer_index_fill_tensor(Call& c) {
  check_index_fill(c);
  check_one_value("index_fill_", c.tensor(3));
  check(!is_complex(c.tensor(3).dtype()) || is_complex(c.tensor(0).dtype()),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}
void index_fill(const Call& c, const Tensor& target, const Tensor& value) {
  IndexedWalk w = walk_slices("index_fill_", target, wrap_dim(c.integer(1), target.dim()), c.tensor(2), value);
  w.wrap = w.bound;
  write_indexed(w, size_of(target.dtype()));
}
void write_index_fill(const Call& c, const Tensor& target) {
  index_fill(c, target, scalar_tensor(c.scalar(3), target.dtype()));
}
void write_index_fill_tensor(const Call& c, const Tensor& target) {
  index_fill(c, target, one_value(c.tensor(3), target.dtype()));
}

// ---------------------------------------------------------------- masks

template <class T>
void choose_loop(char* const* p, const void* value, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  const T* in = reinterpret_cast<const T*>(p[1]);
  const auto* on = reinterpret_cast<const uint8_t*>(p[2]);
  const T v = *static_cast<const T*>(value);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = on[i] ? v : in[i];
}

// out = value where the mask holds, else input. The mask's strides and the input's are for out's sizes.
void fill_where(const Tensor& out, const Tensor& input, DimsView input_strides, const Tensor& mask,
                DimsView mask_strides, const Tensor& value) {
  Operand operands[3] = {{out.bytes(), out.dtype(), out.dtype(), out.strides()},
                         {input.bytes(), out.dtype(), out.dtype(), Dims(input_strides)},
                         {mask.bytes(), Dtype::b8, Dtype::b8, Dims(mask_strides)}};
  visit_width(size_of(out.dtype()),
              [&]<class T>() { run_blocks(out.sizes(), operands, 3, choose_loop<T>, value.bytes()); });
}

void check_masked_fill(Call& c) {
  const Tensor input = c.tensor(0), mask = c.tensor(1);
  check(mask.dtype() == Dtype::b8, "masked_fill_ only supports boolean masks, but got mask with dtype ",
        name_of(mask.dtype()));
  const Dims sizes = broadcast(c.op.name().c_str(), input.sizes(), mask.sizes());
  check(!c.op.mutates || sizes == input.sizes(), "masked_fill_: output with shape ", list(input.sizes()),
        " doesn't match the broadcast shape ", list(sizes));
  if (c.op.mutates) check_aliasing("masked_fill_", input, mask, Aliasing::whole);
  c.promise(sizes, input.dtype(), input.device());
}
void infer_masked_fill(Call& c) {
  check_masked_fill(c);
  check_fits(c.scalar(2), c.tensor(0).dtype());
}
void infer_masked_fill_tensor(Call& c) {
  check_masked_fill(c);
  check_one_value("masked_fill_", c.tensor(2));
}
void masked_fill(const Call& c, const Tensor& out, const Tensor& value) {
  const Tensor input = c.tensor(0), mask = c.tensor(1);
  const Dims mask_strides = expanded_strides("masked_fill", mask, out.sizes());
  if (is_expanded(out)) {
    // Only what the mask covers may be written: an element can be covered in one place and not in another.
    const Tensor indices[1] = {view_of(mask, out.sizes(), mask_strides, mask.offset())};
    const AdvancedIndex a = resolve_index("masked_fill_", out, indices);
    return write_indexed(walk_through(a, out, value), size_of(out.dtype()));
  }
  fill_where(out, input, expanded_strides("masked_fill", input, out.sizes()), mask, mask_strides, value);
}
void run_masked_fill(Call& c) { masked_fill(c, c.out(), scalar_tensor(c.scalar(2), c.tensor(0).dtype())); }
void run_masked_fill_tensor(Call& c) { masked_fill(c, c.out(), one_value(c.tensor(2), c.tensor(0).dtype())); }
void write_masked_fill(Call& c) {
  check_target("masked_fill_", c.tensor(0));
  masked_fill(c, c.tensor(0), scalar_tensor(c.scalar(2), c.tensor(0).dtype()));
}
void write_masked_fill_tensor(Call& c) {
  check_target("masked_fill_", c.tensor(0));
  masked_fill(c, c.tensor(0), one_value(c.tensor(2), c.tensor(0).dtype()));
}

void infer_masked_scatter(Call& c) {
  const Tensor input = c.tensor(0), mask = c.tensor(1), source = c.tensor(2);
  check(mask.dtype() == Dtype::b8, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        name_of(mask.dtype()));
  check(input.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got ",
        name_of(input.dtype()), " and ", name_of(source.dtype()));
  const Dims sizes = broadcast("masked_scatter", input.sizes(), mask.sizes());
  check(!c.op.mutates || sizes == input.sizes(), "masked_scatter_: output with shape ", list(input.sizes()),
        " doesn't match the broadcast shape ", list(sizes));
  c.promise(sizes, input.dtype(), input.device());
}
void write_masked_scatter(const Call& c, const Tensor& target) {
  const Tensor mask = c.tensor(1), source = contiguous(c.tensor(2));
  const Tensor indices[1] = {
      view_of(mask, target.sizes(), expanded_strides("masked_scatter_", mask, target.sizes()), mask.offset())};
  const AdvancedIndex a = resolve_index("masked_scatter_", target, indices);
  const int64_t n = a.index.numel();
  check(n <= source.numel(), "masked_scatter: Number of elements of source < number of ones in mask: ", source.numel(),
        " < ", n);
  if (n)
    write_indexed(walk_through(a, target, view_of(source, {{n}}, {{1}}, source.offset())), size_of(target.dtype()));
}

// ---------------------------------------------------------------- in the flattened tensor

void infer_put(Call& c) {
  const Tensor input = c.tensor(0), index = c.tensor(1), source = c.tensor(2);
  c.promise_like(input);
  check(index.dtype() == Dtype::i64, "put_(): Expected a long tensor for index, but got ", name_of(index.dtype()));
  check(input.dtype() == source.dtype(),
        "put_(): self and source expected to have the same dtype, but got self.dtype = ", name_of(input.dtype()),
        " and source.dtype = ", name_of(source.dtype()));
  check_index(index.numel() == source.numel(),
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  check_index(input.numel() > 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
}
void write_put(const Call& c, const Tensor& target) {
  const char* who = c.op.name().c_str();
  if (c.tensor(1).numel() == 0) return;
  Tensor whole = contiguous(target);
  if (c.boolean(3)) whole = convert(whole, combined_in(target.dtype()));
  const Tensor index = contiguous(c.tensor(1)), source = contiguous(convert(c.tensor(2), whole.dtype()));
  IndexedWalk w = walk_slices(who, flattened(whole), 0, flattened(index), flattened(source));
  w.wrap = w.bound;
  w.phrase = "out of range: ";
  combine(w, whole.dtype(), c.boolean(3) ? Combine::add : Combine::assign);
  if (whole.get() != target.get()) copy_into(target, whole);
}

// ---------------------------------------------------------------- x[i] = v

void infer_index_put(Call& c) {
  const Tensor input = c.tensor(0), values = c.tensor(2);
  check(input.dtype() == values.dtype(), "index_put_: Index put requires the source and destination dtypes match, got ",
        name_of(input.dtype()), " for the destination and ", name_of(values.dtype()), " for the source.");
  c.promise({input.sizes(), dense_strides_like(input.sizes(), input.strides()), input.dtype(), input.device()});
  // One value under one mask is read before it is written, wherever it lies; other values must lie apart.
  int64_t defined = 0, masks = 0;
  for (const Tensor& t : c.tensors(1)) defined += t.defined(), masks += t.defined() && t.dtype() == Dtype::b8;
  if (!c.op.mutates || values.numel() == 0 || (values.numel() == 1 && !c.boolean(3) && defined == 1 && masks == 1))
    return;
  check_aliasing("index_put_", input, values, Aliasing::apart);
  for (const Tensor& t : c.tensors(1))
    if (t.defined()) check_aliasing("index_put_", input, t, Aliasing::apart);
}

// x[mask] = one value needs no list of places: a fill under the mask, broadcast over the dimensions it does not cover.
bool fill_under_mask(const Tensor& target, std::span<const Tensor> indices, const Tensor& value) {
  int64_t before = 0, rank = target.dim();
  const Tensor* mask = nullptr;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      before += mask ? 0 : 1;
    } else if (mask || t.dtype() != Dtype::b8) {
      return false;
    } else {
      mask = &t;
    }
  }
  if (!mask || before + mask->dim() > rank || is_expanded(target)) return false;
  Dims strides(rank, 0);
  for (int64_t d = 0; d < mask->dim(); ++d) {
    if (mask->size(d) != target.size(before + d)) return false;  // resolve_index says what is wrong
    strides[before + d] = mask->stride(d);
  }
  fill_where(target, target, target.strides(), *mask, strides, value);
  return true;
}

void write_index_put(const Call& c, const Tensor& target) {
  const bool accumulate = c.boolean(3);
  Tensor values = c.tensor(2);
  const std::span<const Tensor> list_of_indices = c.tensors(1);
  if (values.numel() == 1 && !accumulate && fill_under_mask(target, list_of_indices, values)) return;
  const AdvancedIndex a = resolve_index("index_put_", target, list_of_indices);
  const int64_t n = checked_numel(a.result);
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
  if (n == 0) return;
  if (values.numel() != 1) {
    // Leading dimensions of size one are allowed to be too many.
    const int64_t extra = std::max<int64_t>(0, values.dim() - a.result.size());
    values = view_of(values, DimsView(values.sizes()).subspan(extra), DimsView(values.strides()).subspan(extra),
                     values.offset());
    if (!values.is_contiguous() || values.sizes() != a.result) {
      const Tensor whole = empty(a.result, values.dtype());
      copy_into(whole, values);
      values = whole;
    }
  }
  if (const Dtype sums = combined_in(target.dtype()); accumulate && sums != target.dtype()) {
    const Tensor wide = convert(target, sums);
    // The places are offsets into the target's memory: they hold for its copy if that has the same strides.
    const AdvancedIndex same =
        wide.strides() == target.strides() ? a : resolve_index("index_put_", wide, list_of_indices);
    combine(walk_through(same, wide, convert(values, sums)), sums, Combine::add);
    return copy_into(target, wide);
  }
  combine(walk_through(a, target, values), target.dtype(), accumulate ? Combine::add : Combine::assign);
}

}  // namespace

REGISTER(scatter) {
  add_writer<write_scatter_src>(r, "scatter", "(Tensor input, int dim, Tensor index, Tensor src)", infer_scatter_src);
  add_writer<write_scatter_value>(r, "scatter.value", "(Tensor input, int dim, Tensor index, Scalar value)",
                                  infer_scatter_value, kMethodOnly | kWritesApart, "ScatterBackward1");
  add_writer<write_scatter_reduce_src>(
      r, "scatter.reduce", "(Tensor input, int dim, Tensor index, Tensor src, *, str reduce)", infer_scatter_src);
  add_writer<write_scatter_reduce_value>(r, "scatter.value_reduce",
                                         "(Tensor input, int dim, Tensor index, Scalar value, *, str reduce)",
                                         infer_scatter_value);
  add_writer<write_scatter_add>(r, "scatter_add", "(Tensor input, int dim, Tensor index, Tensor src)",
                                infer_scatter_src);
  add_writer<write_scatter_reduce_two>(
      r, "scatter_reduce", "(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)",
      infer_scatter_reduce);
  add_writer<write_index_add>(r, "index_add", "(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1)",
                              infer_index_add);
  add_writer<write_index_copy>(r, "index_copy", "(Tensor input, int dim, Tensor index, Tensor source)",
                               infer_index_copy);
  add_writer<write_index_fill_tensor>(r, "index_fill.Tensor", "(Tensor input, int dim, Tensor index, Tensor value)",
                                      infer_index_fill_tensor, kMethodOnly, "IndexFillBackward1");
  add_writer<write_index_fill>(r, "index_fill", "(Tensor input, int dim, Tensor index, Scalar value)",
                               infer_index_fill);
  add_writer<write_index_reduce>(
      r, "index_reduce", "(Tensor input, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)",
      infer_index_reduce);
  add_writer<write_index_put>(r, "index_put", "(Tensor input, Tensor?[] indices, Tensor values, bool accumulate=False)",
                              infer_index_put, 0);
  add_writer<write_masked_scatter>(r, "masked_scatter", "(Tensor input, Tensor mask, Tensor source)",
                                   infer_masked_scatter, kMethodOnly);
  add_writer<write_put>(r, "put", "(Tensor input, Tensor index, Tensor source, bool accumulate=False)", infer_put);
  // These fill while they copy.
  r.add("masked_fill.Tensor(Tensor input, Tensor mask, Tensor value) -> Tensor", infer_masked_fill_tensor,
        run_masked_fill_tensor, 0, "MaskedFillBackward1");
  r.add("masked_fill(Tensor input, Tensor mask, Scalar value) -> Tensor", infer_masked_fill, run_masked_fill);
  r.add("masked_fill_.Tensor(Tensor input, Tensor mask, Tensor value) -> Tensor", infer_masked_fill_tensor,
        write_masked_fill_tensor, kMutates | kMethodOnly, "MaskedFillBackward1");
  r.add("masked_fill_(Tensor input, Tensor mask, Scalar value) -> Tensor", infer_masked_fill, write_masked_fill,
        kMutates | kMethodOnly);
}

}  // namespace cresset
