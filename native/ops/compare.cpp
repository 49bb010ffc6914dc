// Distinct elements (unique and its variants) and places in a sorted sequence (searchsorted, bucketize).
#include <algorithm>
#include <numeric>

#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/compare.h"
#include "ops/ordered_items.h"

namespace cresset {

bool searches_right(const Call& c) { return c.boolean(3) || (c.has(4) && c.text(4) == "right"); }
Dtype search_dtype(const char* who, const Tensor& sequence, const Tensor& input) {
  ResultType common;
  for (const Tensor& t : {sequence, input}) {
    check_implemented(!is_complex(t.dtype()), '"', who, "\" not implemented for '", name_of(t.dtype()), "'");
    common.add(*t);
  }
  check_implemented(common.result() != Dtype::b8, '"', who, "\" not implemented for 'bool'");
  return common.result();
}

namespace {

// ---------------------------------------------------------------- unique

Tensor no_numbers() { return empty({{0}}, Dtype::i64); }

// What remains when elements are grouped: which of them stand first in their group, the group of each, and the size of
// each group. The groups are walked one after the other.
struct Groups {
  int64_t count = 0;
  Tensor firsts, starts;  // of each group: the position of its first element, and where in the walk it begins
  Tensor inverse;

  Groups(bool inverse_wanted, bool counts_wanted, DimsView shape) {
    const int64_t n = checked_numel(shape);
    if (counts_wanted) starts = empty({{n + 1}}, Dtype::i64);
    if (inverse_wanted) inverse = empty(shape, Dtype::i64);
  }
  // begins(i): does the i-th element of the walk begin a new group? position(i): where it stands in the input.
  template <class Begins, class Position>
  void walk(int64_t n, Begins begins, Position position) {
    firsts = empty({{n + 1}}, Dtype::i64);
    int64_t* const first = firsts.data<int64_t>();
    walk(n, begins, position, [=](int64_t found, int64_t i) { first[found] = position(i); });
  }
  // keep(group, i) is called with the first element of a group last of all, and before with others of the one before
  // it.
  template <class Begins, class Position, class Keep>
  void walk(int64_t n, Begins begins, Position position, Keep keep) {
    int64_t* start = starts.defined() ? starts.data<int64_t>() : nullptr;
    int64_t* group = inverse.defined() ? inverse.data<int64_t>() : nullptr;
    int64_t found = 0;  // in a register: from memory each step would wait for the one before
    for (int64_t i = 0; i < n; ++i) {
      // Written in any case, and kept if the group begins here: there is no telling beforehand.
      keep(found, i);
      if (start) start[found] = i;
      found += begins(i) ? 1 : 0;
      if (group) group[position(i)] = found - 1;
    }
    count = found;
    if (start) start[count] = n;
  }
  void give(Call& c, const Tensor& values) const {
    c.give(values);
    c.give(inverse.defined() ? inverse : no_numbers());
    const Tensor counts = starts.defined() ? empty({{count}}, Dtype::i64) : no_numbers();
    for (int64_t i = 0; i < counts.numel(); ++i)
      counts.data<int64_t>()[i] = starts.data<int64_t>()[i + 1] - starts.data<int64_t>()[i];
    c.give(counts);
  }
};

// The slices that stand first in their groups.
Tensor take_firsts(const Tensor& from, const Groups& groups) {
  Dims sizes = from.sizes();
  const int64_t width = (sizes[0] ? from.numel() / sizes[0] : 0) * size_of(from.dtype());
  sizes[0] = groups.count;
  const Tensor out = empty(sizes, from.dtype());
  const int64_t* first = groups.firsts.data<int64_t>();
  if (from.dim() == 1) {
    visit_width(size_of(from.dtype()), [&]<class T>() {
      for (int64_t i = 0; i < groups.count; ++i) out.data<T>()[i] = from.data<T>()[first[i]];
    });
  } else {
    for (int64_t i = 0; i < groups.count; ++i)
      std::copy_n(from.bytes() + first[i] * width, width, out.bytes() + i * width);
  }
  return out;
}

void check_has_data(const char* who, const Tensor& t) {
  check_implemented(!t.is_meta(), who,
                    ": the shape of the result depends on the elements, which a meta tensor does not have");
}

void give_distinct(Call& c, const Groups& groups, const Tensor& input) {
  groups.give(c, take_firsts(view_of(input, {{input.numel()}}, {{1}}, input.offset()), groups));
}

void run_unique(Call& c) {
  const Tensor input = contiguous(c.tensor(0));
  check_has_data("unique", input);
  const int64_t n = input.numel();
  Groups groups(c.boolean(2), c.boolean(3), input.sizes());
  LongWork work(n);
  visit_items(input.dtype(), n, [&]<class Item>() {
    const ItemBuffer<Item> buffer(n), scratch(n);
    Item* items = buffer.data();
    item_maker<Item>(input.dtype(), "unique")(input.bytes(), 1, n, false, 0, items);
    sort_items(items, scratch.data(), n);
    const bool nan = is_floating(input.dtype());
    groups.walk(
        n,
        [&](int64_t i) {  // without branches, which could only be guessed
          return int{i == 0} | int{items[i].key() != items[i - (i > 0)].key()} | int{nan && is_nan(items[i])};
        },
        [&](int64_t i) { return items[i].position(); });
  });
  give_distinct(c, groups, input);
}

void run_unique_consecutive(Call& c) {
  const Tensor input = contiguous(c.tensor(0));
  check_has_data("unique_consecutive", input);
  Groups groups(c.boolean(1), c.boolean(2), input.sizes());
  LongWork work(input.numel());
  const Tensor values = empty({{input.numel() + 1}}, input.dtype());
  visit_real(input.dtype(), "unique_consecutive", [&]<class T>() {
    const T* v = input.data<T>();
    T* const kept = values.data<T>();
    const auto differ = [](T a, T b) {
      if constexpr (requires { a.bits; })
        return static_cast<float>(a) != static_cast<float>(b);
      else
        return a != b;
    };
    groups.walk(
        input.numel(), [&](int64_t i) { return int{i == 0} | int{differ(v[i], v[i - (i > 0)])}; },
        [](int64_t i) { return i; }, [=](int64_t found, int64_t i) { kept[found] = v[i]; });
  });
  groups.give(c, clone(view_of(values, {{groups.count}}, {{1}}, 0), MemoryFormat::contiguous));
}

// Slices along a dimension are compared element by element. The keys of all elements stand in for them.
template <bool sorts>
void run_unique_dim(Call& c) {
  Tensor input = c.tensor(0);
  const char* who = sorts ? "unique" : "unique_consecutive";
  check_has_data(who, input);
  check_index(input.dim() > 0, who, ": Dimension specified as ", c.integer(1), " but tensor has no dimensions");
  const int64_t dim = wrap_dim(c.integer(1), input.dim()), n = input.size(dim), first = sorts ? 3 : 2;
  const int64_t zeros = std::count(input.sizes().begin(), input.sizes().end(), 0);
  check(zeros == 0 || n == 0, who,
        ": There are 0 sized dimensions, and they aren't selected, so unique cannot be applied; the shape is ",
        list(input.sizes()));
  check(zeros <= 1, who,
        ": Number of zero sized dimensions is more than one, so unique cannot be applied; the shape is ",
        list(input.sizes()));
  // The dimension comes first, and at last goes back.
  const auto moved = [](const Tensor& t, int64_t from, int64_t to) {
    Dims sizes = t.sizes(), strides = t.strides();
    const int64_t size = sizes[from], stride = strides[from];
    sizes.erase(from);
    strides.erase(from);
    sizes.insert(to, size);
    strides.insert(to, stride);
    return view_of(t, sizes, strides, t.offset());
  };
  input = contiguous(moved(input, dim, 0));
  const int64_t length = n ? input.numel() / n : 0;
  Groups groups(c.boolean(first), c.boolean(first + 1), Dims{n});
  LongWork work(input.numel());
  visit_items(input.dtype(), input.numel(), [&]<class Item>() {
    const ItemBuffer<Item> items(input.numel());
    item_maker<Item>(input.dtype(), who)(input.bytes(), 1, input.numel(), false, 0, items.data());
    const auto slice = [&](int64_t i) { return items.data() + i * length; };
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    if (sorts)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(slice(a), slice(a) + length, slice(b), slice(b) + length, by_key);
      });
    const bool nan = is_floating(input.dtype());
    const auto same = [nan](Item a, Item b) { return a.key() == b.key() && !(nan && is_nan(a)); };
    groups.walk(
        n,
        [&](int64_t i) {
          return i == 0 || !std::equal(slice(order[i]), slice(order[i]) + length, slice(order[i - 1]), same);
        },
        [&](int64_t i) { return order[i]; });
  });
  groups.give(c, contiguous(moved(take_firsts(input, groups), 0, dim)));
}

// ---------------------------------------------------------------- searchsorted

// The number of elements that are below v, or not above it if `right`. Said with `not`, so that nan comes after
// everything.
template <bool right, class At, class T>
int64_t bisect(At at, int64_t n, T v) {
  if (n == 0) return 0;
  const auto passes = [&](int64_t i) { return right ? !(at(i) > v) : !(at(i) >= v); };
  // Without branches, which could only be guessed: the place is among the `n` from `low` on.
  int64_t low = 0;
  while (n > 1) {
    const int64_t half = n / 2;
    low += passes(low + half - 1) ? half : 0;
    n -= half;
  }
  return low + passes(low);
}

void search(const char* who, const Tensor& sequence_given, const Tensor& input_given, bool right,
            const Tensor& sorter_given, const Tensor& out) {
  Dtype dtype = search_dtype(who, sequence_given, input_given);
  if (is_floating(dtype) && size_of(dtype) < 4) dtype = Dtype::f32;
  const Tensor sequence = contiguous(convert(sequence_given, dtype)), input = contiguous(convert(input_given, dtype));
  const Tensor sorter = sorter_given.defined() ? contiguous(sorter_given) : sorter_given;
  const int64_t n = sequence.size(-1), per_row = input.dim() ? input.size(-1) : 1;
  const bool rows = sequence.dim() > 1;
  visit_real(dtype, who, [&]<class T>() {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16> && !std::is_same_v<T, bool>) {
      parallel_for(input.numel(), kParallelGrain / 16, [&](int64_t begin, int64_t end) {
        const auto find = [&]<bool to_right>() {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t start = rows ? i / per_row * n : 0;
            const T *values = sequence.data<T>() + start, v = input.data<T>()[i];
            const int64_t* places = sorter.defined() ? sorter.data<int64_t>() + start : nullptr;
            const int64_t place = places ? bisect<to_right>([=](int64_t k) { return values[places[k]]; }, n, v)
                                         : bisect<to_right>([=](int64_t k) { return values[k]; }, n, v);
            if (out.dtype() == Dtype::i32)
              out.data<int32_t>()[i] = static_cast<int32_t>(place);
            else
              out.data<int64_t>()[i] = place;
          }
        };
        if (right)
          find.template operator()<true>();
        else
          find.template operator()<false>();
      });
    }
  });
}

// Arguments: sorted_sequence, input, out_int32, right, side, sorter.
void check_searchsorted(Call& c, const Tensor& input) {
  const Tensor sequence = c.tensor(0);
  const bool scalar = !input.defined() || input.dim() == 0;
  check(sequence.dim() > 0, "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  if (c.has(4)) {
    const std::string_view side = c.text(4);
    check(side == "left" || side == "right", "searchsorted(): side can only be 'left' or 'right' but got ", side);
    check(!(side == "left" && c.boolean(3)),
          "searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  }
  check(!scalar || sequence.dim() == 1,
        "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
        "tensor dim(",
        sequence.dim(), ") and input value's dim(0) numel(1)");
  if (sequence.dim() > 1) {
    bool match = sequence.dim() == input.dim();
    for (int64_t d = 0; match && d < sequence.dim() - 1; ++d) match = sequence.size(d) == input.size(d);
    check(match,
          "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
          "and input value tensor must match, but we got "
          "boundaries tensor ",
          list(sequence.sizes()), " and input value tensor ", list(input.sizes()));
  }
  if (c.has(5)) {
    const Tensor sorter = c.tensor(5);
    check(sorter.sizes() == sequence.sizes(),
          "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
          list(sequence.sizes()), " and got sorter tensor ", list(sorter.sizes()));
    check(sorter.dtype() == Dtype::i64, "searchsorted(): sorter must be a tensor of long dtype but got dtype ",
          name_of(sorter.dtype()));
  }
  const Dtype result = c.boolean(2) ? Dtype::i32 : Dtype::i64;
  c.promise(input.defined() ? DimsView(input.sizes()) : DimsView(), result, sequence.device());
}
void check_sorter(const Tensor& sorter) {
  if (!sorter.defined()) return;
  const Tensor places = contiguous(sorter);
  for (int64_t i = 0; i < places.numel(); ++i) {
    const int64_t at = places.data<int64_t>()[i];
    check(at >= 0 && at < places.size(-1), "searchsorted(): sorter index out of range: ", at);
  }
}

void infer_searchsorted(Call& c) { check_searchsorted(c, c.tensor(1)); }
void run_searchsorted(Call& c) {
  const Tensor sorter = c.has(5) ? c.tensor(5) : Tensor();
  check_sorter(sorter);
  search("searchsorted_out_cpu", c.tensor(0), c.tensor(1), searches_right(c), sorter, c.out());
}
void infer_searchsorted_scalar(Call& c) { check_searchsorted(c, {}); }
void run_searchsorted_scalar(Call& c) {
  const Tensor sorter = c.has(5) ? c.tensor(5) : Tensor();
  check_sorter(sorter);
  search("searchsorted_out_cpu", c.tensor(0), wrapped_number(c.scalar(1)), searches_right(c), sorter, c.out());
}

void check_bucketize(Call& c, DimsView sizes) {
  const Tensor boundaries = c.tensor(1);
  check(boundaries.dim() == 1, "bucketize: boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  c.promise(sizes, c.boolean(2) ? Dtype::i32 : Dtype::i64, boundaries.device());
}
void infer_bucketize(Call& c) { check_bucketize(c, c.tensor(0).sizes()); }
void run_bucketize(Call& c) { search("searchsorted_out_cpu", c.tensor(1), c.tensor(0), c.boolean(3), {}, c.out()); }
void infer_bucketize_scalar(Call& c) { check_bucketize(c, {}); }
void run_bucketize_scalar(Call& c) {
  search("searchsorted_out_cpu", c.tensor(1), wrapped_number(c.scalar(0)), c.boolean(3), {}, c.out());
}

}  // namespace

REGISTER(compare) {
  constexpr uint32_t flags = kNotDifferentiable | kFunctionOnly;
  constexpr uint32_t distinct = kFunctionOnly | kMethodOnly;  // no derivative, which backward says
  r.add(
      "_unique2(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
      "Tensor, Tensor)",
      nullptr, run_unique, kFunctionOnly);
  r.add(
      "_unique_dim(Tensor input, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
      "(Tensor, Tensor, Tensor)",
      nullptr, run_unique_dim<true>, distinct);
  r.add(
      "_unique_consecutive(Tensor input, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
      "Tensor)",
      nullptr, run_unique_consecutive, distinct);
  r.add(
      "_unique_consecutive_dim(Tensor input, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
      "Tensor, Tensor)",
      nullptr, run_unique_dim<false>, distinct);
  r.add(
      "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str? side=None, "
      "Tensor? sorter=None) -> Tensor",
      infer_searchsorted, run_searchsorted, flags);
  r.add(
      "searchsorted.Scalar(Tensor sorted_sequence, Scalar input, *, bool out_int32=False, bool right=False, str? "
      "side=None, Tensor? sorter=None) -> Tensor",
      infer_searchsorted_scalar, run_searchsorted_scalar, flags);
  r.add("bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        infer_bucketize, run_bucketize, flags);
  r.add("bucketize.Scalar(Scalar input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        infer_bucketize_scalar, run_bucketize_scalar, flags);
}

}  // namespace cresset
