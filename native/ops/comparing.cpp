// Distinct elements (unique and its kind) and places in a sorted sequence (searchsorted, bucketize).
#include <algorithm>
#include <numeric>

#include "base/parallel.h"
#include "ops/ordered_items.h"
#include "ops/register.h"

namespace cresset {
namespace {

// ---------------------------------------------------------------- unique

Tensor no_numbers() { return empty({{0}}, Dtype::i64); }

// What remains when elements are grouped: which of them stand first in their group, the group of each, and the size of
// each group.
struct Groups {
  std::vector<int64_t> firsts, counts;
  Tensor inverse;
  bool wants_counts;

  Groups(bool inverse_wanted, bool counts_wanted, DimsView shape) : wants_counts(counts_wanted) {
    if (inverse_wanted) inverse = empty(shape, Dtype::i64);
  }
  // The next element of the walk over the groups: does it begin a new one?
  void add(int64_t position, bool begins) {
    if (begins) {
      firsts.push_back(position);
      counts.push_back(0);
    }
    ++counts.back();
    if (inverse.defined()) inverse.data<int64_t>()[position] = static_cast<int64_t>(firsts.size()) - 1;
  }
  void give(Call& c, const Tensor& values) const {
    c.give(values);
    c.give(inverse.defined() ? inverse : no_numbers());
    Tensor numbers = no_numbers();
    if (wants_counts) {
      numbers = empty({{static_cast<int64_t>(counts.size())}}, Dtype::i64);
      std::copy(counts.begin(), counts.end(), numbers.data<int64_t>());
    }
    c.give(numbers);
  }
};

// The slices (of `width` bytes each) that stand first in their groups.
Tensor take_slices(const Tensor& from, const std::vector<int64_t>& firsts, int64_t width) {
  Dims sizes = from.sizes();
  sizes[0] = static_cast<int64_t>(firsts.size());
  const Tensor out = empty(sizes, from.dtype());
  for (size_t i = 0; i < firsts.size(); ++i)
    std::copy_n(from.bytes() + firsts[i] * width, width, out.bytes() + static_cast<int64_t>(i) * width);
  return out;
}

void check_has_data(const char* who, const Tensor& t) {
  check_implemented(!t.is_meta(), who,
                    ": the shape of the result depends on the elements, which a meta tensor does not have");
}

template <bool sorts>
void run_unique(Call& c) {
  const Tensor input = contiguous(c.tensor(0));
  const char* who = sorts ? "unique" : "unique_consecutive";
  check_has_data(who, input);
  const int64_t n = input.numel(), first = sorts ? 2 : 1;  // arguments after input (and sorted)
  Groups groups(c.boolean(first), c.boolean(first + 1), input.sizes());
  LongWork work(n);
  visit_items(input.dtype(), n, [&]<class Item>() {
    const ItemBuffer<Item> items(n), scratch(sorts ? n : 0);
    item_maker<Item>(input.dtype(), who)(input.bytes(), 1, n, false, 0, items.data());
    if (sorts) sort_items(items.data(), scratch.data(), n);
    const bool nan = is_floating(input.dtype());
    for (int64_t i = 0; i < n; ++i) {
      const Item item = items.data()[i];
      groups.add(item.position(), i == 0 || item.key() != items.data()[i - 1].key() || (nan && is_nan(item)));
    }
  });
  groups.give(c, take_slices(view_of(input, {{n}}, {{1}}, input.offset()), groups.firsts, size_of(input.dtype())));
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
    for (size_t i = 0; i < order.size(); ++i)
      groups.add(order[i], i == 0 || !std::equal(slice(order[i]), slice(order[i]) + length, slice(order[i - 1]), same));
  });
  groups.give(c, contiguous(moved(take_slices(input, groups.firsts, length * size_of(input.dtype())), 0, dim)));
}

// ---------------------------------------------------------------- searchsorted

// The common dtype of the sequence and the elements. Bool and complex have no place in a sequence.
Dtype search_dtype(const char* who, const Tensor& sequence, const Tensor& input) {
  ResultType common;
  for (const Tensor& t : {sequence, input}) {
    check_implemented(t.dtype() != Dtype::b8 && !is_complex(t.dtype()), '"', who, "\" not implemented for '",
                      name_of(t.dtype()), "'");
    common.add(*t);
  }
  return common.result();
}

// The first place whose element is not below v, or above v if `right`. Said with `not`, so that nan goes to the end.
template <class T>
int64_t bisect(const T* sequence, const int64_t* sorter, int64_t n, T v, bool right) {
  int64_t low = 0;
  while (n > 0) {
    const int64_t half = n / 2, middle = low + half;
    const T at = sequence[sorter ? sorter[middle] : middle];
    const bool beyond = right ? !(at > v) : !(at >= v);
    low = beyond ? middle + 1 : low;
    n = beyond ? n - half - 1 : half;
  }
  return low;
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
        for (int64_t i = begin; i < end; ++i) {
          const int64_t start = rows ? i / per_row * n : 0;
          const int64_t place =
              bisect(sequence.data<T>() + start, sorter.defined() ? sorter.data<int64_t>() + start : nullptr, n,
                     input.data<T>()[i], right);
          if (out.dtype() == Dtype::i32)
            out.data<int32_t>()[i] = static_cast<int32_t>(place);
          else
            out.data<int64_t>()[i] = place;
        }
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
bool searches_right(const Call& c) { return c.boolean(3) || (c.has(4) && c.text(4) == "right"); }
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

void register_comparing(Registry& r) {
  constexpr uint32_t flags = kNotDifferentiable | kFunctionOnly, internal = flags | kMethodOnly;
  r.add(
      "_unique2(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
      "Tensor, Tensor)",
      nullptr, run_unique<true>, flags);
  r.add(
      "_unique_dim(Tensor input, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
      "(Tensor, Tensor, Tensor)",
      nullptr, run_unique_dim<true>, internal);
  r.add(
      "_unique_consecutive(Tensor input, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
      "Tensor)",
      nullptr, run_unique<false>, internal);
  r.add(
      "_unique_consecutive_dim(Tensor input, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
      "Tensor, Tensor)",
      nullptr, run_unique_dim<false>, internal);
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
