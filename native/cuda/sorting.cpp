// Sorting and selecting along a dimension: sort, topk, kthvalue, median, mode; and distinct elements. The rules of
// shape are the CPU's. Sorts are stable, and of equal elements the first are chosen.
#include <algorithm>
#include <bit>
#include <limits>

#include "cuda/backend.h"
#include "cuda/compact.h"
#include "cuda/extremes.h"
#include "cuda/indexed_walk.h"
#include "cuda/radix_sort.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int64_t kLongestRow = kBlock * 16;  // that one block sorts

const KernelFamily kRows("sorting.cuh", "sort_rows", {"T", "ITEMS", "CHOSEN"}, {"-DROWS"});
const KernelFamily kKeys("sorting.cuh", "make_keys", {"T"}, {"-DKEYS"});
const KernelFamily kTake("sorting.cuh", "take_sorted", {"T"}, {"-DTAKE"});
const KernelFamily kSelect("sorting.cuh", "select_rows", {"T"}, {"-DSELECT"});
const KernelFamily kPick("sorting.cuh", "pick_from_sorted", {"T"}, {"-DMIDDLE"});
const KernelFamily kPickOne("sorting.cuh", "pick_from_rows", {"T", "ITEMS"}, {"-DONE"});
const KernelFamily kMode("sorting.cuh", "mode_of_sorted", {"T"}, {"-DMODE"});
const KernelFamily kStarts("sorting.cuh", "group_starts", {"T", "PLAIN"}, {"-DSTARTS"});
const KernelFamily kColumn("sorting.cuh", "column_keys", {"T"}, {"-DCOLUMN"});
const KernelFamily kSliceStarts("sorting.cuh", "slice_starts", {"T"}, {"-DSLICE_STARTS"});
const KernelFamily kGroups("sorting.cuh", "group_facts", {"T"}, {"-DGROUPS"});

bool is_sortable(Dtype d) { return !is_complex(d) && (!is_floating(d) || size_of(d) > 1); }

// The view in which dimension `dim` is the last; of a 0-d tensor one row of one element.
Tensor with_last(const Tensor& t, int64_t dim) {
  Dims sizes = t.sizes(), strides = t.strides();
  if (sizes.empty()) return view_of(t, {{1}}, {{1}}, t.offset());
  const int64_t size = sizes[dim], stride = strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  sizes.push_back(size);
  strides.push_back(stride);
  return view_of(t, sizes, strides, t.offset());
}

// Rows that lie one after the other.
struct Rows {
  Tensor x;
  int64_t count, length;
  Rows(const Tensor& t, int64_t dim) : x(contiguous_on_device(with_last(t, dim))), length(x.size(-1)) {
    count = length ? x.numel() / length : 0;
  }
  int64_t n() const { return x.numel(); }
};
bool fits(const Rows& r) { return is_sortable(r.x.dtype()) && r.n() < std::numeric_limits<int32_t>::max() - 4096; }

// Few long rows leave most of the device idle when a block looks after each.
bool is_for_blocks(const Rows& r) { return r.count >= 32 || r.length <= 16384; }

int items_for(int64_t length) {
  return length <= kBlock ? 1 : length <= kBlock * 4 ? 4 : length <= kBlock * 8 ? 8 : 16;
}

// Keys from `base` on, of which so many bits differ.
struct KeyRange {
  uint64_t base;
  int bits;
};
SortedKeys sort_all(const Place& place, const Rows& r, bool descending, int64_t row_length, KeyRange range) {
  const Dtype d = r.x.dtype();
  const bool wide = size_of(d) == 8;
  const Tensor keys = empty({{r.n()}}, wide ? Dtype::i64 : Dtype::i32, r.x.device());
  // Few integers so wide use all their digits.
  const bool leaves_out = d == Dtype::i64 || d == Dtype::u64;
  const Tensor differing = leaves_out ? full({{2}}, Scalar(0), Dtype::i32, r.x.device()) : Tensor();
  const auto turned = static_cast<int32_t>(descending);
  const auto launch = [&](auto base) {
    kKeys.launch(place, {d}, divide_up(r.n(), 4 * kBlock), kBlock, 0, r.x.bytes(), keys.bytes(),
                 leaves_out ? differing.bytes() : nullptr, r.n(), turned, base);
  };
  wide ? launch(range.base) : launch(static_cast<uint32_t>(range.base));
  return sort_keys(place, keys, r.n(), range.bits, row_length, differing);
}
KeyRange all_keys(Dtype d) { return {0, static_cast<int>(8 * size_of(d))}; }

// Few long rows are cut into pieces, of which each gives as many candidates as are wanted in all.
constexpr int64_t kPiece = 16384;
bool is_for_pieces(const Rows& r, int64_t count) {
  return r.length >= 4 * kPiece && count <= kPiece / 16 && r.count <= 1024;
}
void sort_into(const Rows& r, int64_t count, bool descending, const Tensor& values, const Tensor& indices);
void choose_from_pieces(const Rows& r, int64_t count, bool descending, const Tensor& values, const Tensor& indices) {
  static const Operator* const gather = Registry::instance().find("gather");
  const GradModeGuard unrecorded(false);
  const Device device = r.x.device();
  const auto pieces = static_cast<int32_t>(std::min<int64_t>(divide_up(r.length, kPiece), 4096)),
             size = static_cast<int32_t>(divide_up(r.length, pieces)), length = static_cast<int32_t>(r.length),
             wanted = static_cast<int32_t>(count), turned = static_cast<int32_t>(descending);
  const Tensor chosen = empty({{r.count, pieces * count}}, Dtype::i32, device);
  kSelect.launch(Place(device), {r.x.dtype()}, r.count * pieces, kBlock, 0, r.x.bytes(), chosen.bytes(), length, pieces,
                 size, wanted, turned);
  const Tensor at = convert(chosen, Dtype::i64),
               found = call_operator(*gather, view_of(r.x, {{r.count, r.length}}, {{r.length, 1}}, r.x.offset()),
                                     int64_t{1}, at);
  const Tensor among = empty({{r.count, count}}, Dtype::i64, device);
  sort_into(Rows(found, 1), count, descending, values, among);
  copy_into(view_of(indices, {{r.count, count}}, {{count, 1}}, indices.offset()),
            call_operator(*gather, at, int64_t{1}, among));
}

// The first `count` elements of each row in order, and where they stood, row by row.
void sort_into(const Rows& r, int64_t count, bool descending, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const Place place(r.x.device());
  const Dtype d = r.x.dtype();
  const auto turned = static_cast<int32_t>(descending), wanted = static_cast<int32_t>(count);
  if (count == r.length && r.length <= kLongestRow) {
    char* none = nullptr;
    return kRows.launch(place, {d, items_for(r.length), false}, r.count, kBlock, 0, r.x.bytes(), none, values.bytes(),
                        indices.bytes(), r.length, wanted, turned);
  }
  if (is_for_pieces(r, count)) return choose_from_pieces(r, count, descending, values, indices);
  if (count <= kLongestRow && is_for_blocks(r)) {
    const Tensor chosen = empty({{r.count * count}}, Dtype::i32, r.x.device());
    const auto length = static_cast<int32_t>(r.length);
    kSelect.launch(place, {d}, r.count, kBlock, 0, r.x.bytes(), chosen.bytes(), length, int32_t{1}, length, wanted,
                   turned);
    return kRows.launch(place, {d, items_for(count), true}, r.count, kBlock, 0, r.x.bytes(), chosen.bytes(),
                        values.bytes(), indices.bytes(), r.length, wanted, turned);
  }
  const SortedKeys sorted = sort_all(place, r, descending, r.length, all_keys(d));
  const int64_t n = r.count * count;
  kTake.launch(place, {d}, divide_up(n, kBlock), kBlock, 0, r.x.bytes(), sorted.keys.bytes(), sorted.positions.bytes(),
               values.bytes(), indices.bytes(), n, r.length, count, turned);
}

// The same into results of any layout.
void sort_along(Call& c, const Rows& r, int64_t dim, int64_t count, bool descending) {
  const Tensor values = with_last(c.out(0), dim), indices = with_last(c.out(1), dim);
  if (values.is_contiguous() && indices.is_contiguous()) return sort_into(r, count, descending, values, indices);
  const Tensor dense_values = empty(values.sizes(), values.dtype(), values.device()),
               dense_indices = empty(values.sizes(), Dtype::i64, values.device());
  sort_into(r, count, descending, dense_values, dense_indices);
  copy_into(values, dense_values);
  copy_into(indices, dense_indices);
}

void run_sort(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t dim = wrap_dim(c.integer(1), t.dim());
  if (t.numel() == 0) return;
  const Rows r(t, dim);
  if (!fits(r)) return execute_on_host(c, t.device());
  sort_along(c, r, dim, r.length, c.boolean(2));
}

void run_topk(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t k = c.integer(1), dim = wrap_dim(c.integer(2), t.dim());
  if (c.out().numel() == 0) return;
  const Rows r(t, dim);
  if (!fits(r)) return execute_on_host(c, t.device());
  sort_along(c, r, dim, k, c.boolean(3));
}

// ---------------------------------------------------------------- one element of each row

struct Sorted {
  Tensor values, indices;
};
Sorted sorted_rows(const Rows& r, int64_t count) {
  const Tensor values = empty({{r.count, count}}, r.x.dtype(), r.x.device()),
               indices = empty({{r.count, count}}, Dtype::i64, r.x.device());
  sort_into(r, count, false, values, indices);
  return {values, indices};
}

// place: k, or -1 for the median.
void pick(const Rows& r, int64_t place, bool skip_nan, const Tensor& value, const Tensor& index) {
  const auto skip = static_cast<int32_t>(skip_nan);
  if (is_for_blocks(r)) {
    const auto length = static_cast<int32_t>(r.length);
    const int items = length <= kBlock * 4 ? 4 : length <= kBlock * 16 ? 16 : 0;
    return kPickOne.launch(Place(r.x.device()), {r.x.dtype(), items}, r.count, kBlock, 0, r.x.bytes(), value.bytes(),
                           index.defined() ? index.bytes() : nullptr, length, place, skip);
  }
  const int64_t count = place < 0 ? r.length : place + 1;
  const Sorted s = sorted_rows(r, count);
  kPick.launch(Place(r.x.device()), {r.x.dtype()}, divide_up(r.count, kBlock), kBlock, 0, s.values.bytes(),
               s.indices.bytes(), value.bytes(), index.defined() ? index.bytes() : nullptr, r.count, count, place,
               skip);
}

void check_not_bool(const char* who, const Tensor& t) {
  check_implemented(t.dtype() != Dtype::b8, '"', who, "\" not implemented for 'bool'");
}

void run_kthvalue(Call& c) {
  const Tensor t = c.tensor(0);
  check_not_bool("kthvalue_cuda", t);
  if (c.out().numel() == 0) return;
  const Rows r(t, wrap_dim(c.integer(2), t.dim()));
  if (!fits(r)) return execute_on_host(c, t.device());
  pick(r, c.integer(1) - 1, false, c.out(0), c.out(1));
}
template <bool skip_nan>
void run_median_dim(Call& c) {
  const Tensor t = c.tensor(0);
  check_not_bool("median_cuda", t);
  if (c.out().numel() == 0) return;
  const Rows r(t, wrap_dim(c.integer(1), t.dim()));
  if (!fits(r)) return execute_on_host(c, t.device());
  pick(r, -1, skip_nan, c.out(0), c.out(1));
}
template <bool skip_nan>
void run_median(Call& c) {
  const Tensor t = contiguous_on_device(c.tensor(0));
  check_not_bool("median_cuda", t);
  const Rows r(view_of(t, {{t.numel()}}, {{1}}, t.offset()), 0);
  if (r.n() == 0 || !fits(r)) return execute_on_host(c, t.device());
  pick(r, -1, skip_nan, c.out(), {});
}
void run_mode(Call& c) {
  const Tensor t = c.tensor(0);
  if (c.out().numel() == 0) return;
  const Rows r(t, wrap_dim(c.integer(1), t.dim()));
  if (!fits(r)) return execute_on_host(c, t.device());
  const Sorted s = sorted_rows(r, r.length);
  kMode.launch(Place(t.device()), {t.dtype()}, r.count, kBlock, 0, s.values.bytes(), s.indices.bytes(),
               c.out(0).bytes(), c.out(1).bytes(), r.length);
}

// ---------------------------------------------------------------- distinct elements

// Elements, or with a matrix its rows, that are grouped: the first of each group, the group of each, and the sizes of
// the groups; the latter two empty where they are not asked for.
struct Grouped {
  Tensor firsts, inverse, counts;
};
Grouped group(const Tensor& x, const Tensor& positions, const Tensor& starts, bool wants_inverse, bool wants_counts,
              DimsView shape) {
  const Device device = x.device();
  const int64_t n = x.size(0), one = 1;
  const CountedFlags flags(starts);
  const Tensor begins = flags.places({&n, 1}, {&one, 1});  // where each group begins, in the order of the groups
  const int64_t groups = begins.numel();
  Dims sizes = x.sizes();
  sizes[0] = groups;
  const Tensor firsts = empty(sizes, x.dtype(), device),
               inverse = empty(wants_inverse ? Dims(shape) : Dims{0}, Dtype::i64, device),
               counts = empty({{wants_counts ? groups : 0}}, Dtype::i64, device);
  const Place place(device);
  Tensor where = begins;
  if (positions.defined() && groups) {  // in the order of the input
    where = empty({{groups}}, Dtype::i32, device);
    read_indexed(walk_slices("unique", positions, 0, begins, where), 4, {place, device, Dtype::i64, 0});
  }
  if (groups)
    read_indexed(walk_slices("unique", x, 0, where, firsts), size_of(x.dtype()), {place, device, where.dtype(), 0});
  if (n && (wants_inverse || wants_counts)) {
    const Tensor ranks = wants_inverse ? flags.ranks(true) : Tensor();
    kGroups.launch(place, {x.dtype()}, divide_up(n, kBlock), kBlock, 0, wants_inverse ? ranks.bytes() : nullptr,
                   positions.defined() ? positions.bytes() : nullptr, begins.bytes(),
                   wants_inverse ? inverse.bytes() : nullptr, wants_counts ? counts.bytes() : nullptr, n, groups);
  }
  return {firsts, inverse, counts};
}
void give_groups(Call& c, const Grouped& g) {
  c.give(g.firsts);
  c.give(g.inverse);
  c.give(g.counts);
}

void run_unique(Call& c) {
  const Tensor t = c.tensor(0), input = contiguous_on_device(t);
  const Rows r(view_of(input, {{input.numel()}}, {{1}}, input.offset()), 0);
  if (!fits(r)) return execute_on_host(c, t.device());
  const Place place(t.device());
  const Tensor starts = empty({{r.n()}}, Dtype::u8, t.device());
  Tensor positions;
  if (r.n()) {
    // Whole numbers often lie in a small range. The device is waited for in any case.
    KeyRange range = all_keys(t.dtype());
    if (is_integral(t.dtype()) && size_of(t.dtype()) > 1) {
      const Extremes e = extremes_of(r.x);
      range = {e.low, std::max(1, 64 - std::countl_zero(e.high - e.low))};
    }
    const SortedKeys sorted = sort_all(place, r, false, 0, range);
    positions = sorted.positions;
    const auto has_nan = static_cast<int32_t>(is_floating(t.dtype()));
    const int64_t n = r.n();
    kStarts.launch(place, {t.dtype(), false}, divide_up(n, kBlock), kBlock, 0, r.x.bytes(), sorted.keys.bytes(),
                   starts.bytes(), n, has_nan);
  }
  give_groups(c, group(r.x, positions, starts, c.boolean(2), c.boolean(3), t.sizes()));
}
void run_unique_consecutive(Call& c) {
  const Tensor t = c.tensor(0), input = contiguous_on_device(t);
  const Rows r(view_of(input, {{input.numel()}}, {{1}}, input.offset()), 0);
  if (!fits(r)) return execute_on_host(c, t.device());
  const Place place(t.device());
  if (!c.boolean(1) && !c.boolean(2))
    return give_groups(
        c, {starts_of_runs(r.x), empty({{0}}, Dtype::i64, t.device()), empty({{0}}, Dtype::i64, t.device())});
  const Tensor starts = empty({{r.n()}}, Dtype::u8, t.device());
  const int64_t n = r.n();
  const int32_t has_nan = 0;
  char* none = nullptr;
  if (n)
    kStarts.launch(place, {t.dtype(), true}, divide_up(n, kBlock), kBlock, 0, r.x.bytes(), none, starts.bytes(), n,
                   has_nan);
  give_groups(c, group(r.x, {}, starts, c.boolean(1), c.boolean(2), t.sizes()));
}

// Slices along a dimension, as rows of a matrix. To sort them like words they are sorted by each column, from the last
// to the first.
template <bool sorts>
void run_unique_dim(Call& c) {
  const Tensor t = c.tensor(0);
  const int first = sorts ? 3 : 2;
  constexpr int64_t kMostColumns = 256;
  const char* who = sorts ? "unique" : "unique_consecutive";
  check_index(t.dim() > 0, who, ": Dimension specified as ", c.integer(1), " but tensor has no dimensions");
  const int64_t dim = wrap_dim(c.integer(1), t.dim()), n = t.size(dim),
                zeros = std::count(t.sizes().begin(), t.sizes().end(), 0);
  check(zeros == 0 || n == 0, who,
        ": There are 0 sized dimensions, and they aren't selected, so unique cannot be applied; the shape is ",
        list(t.sizes()));
  check(zeros <= 1, who,
        ": Number of zero sized dimensions is more than one, so unique cannot be applied; the shape is ",
        list(t.sizes()));
  if (n == 0)
    return give_groups(c, {empty(t.sizes(), t.dtype(), t.device()), empty({{0}}, Dtype::i64, t.device()),
                           empty({{0}}, Dtype::i64, t.device())});
  const int64_t length = t.numel() / n;
  if ((sorts && length > kMostColumns) || !is_sortable(t.dtype()) || n >= std::numeric_limits<int32_t>::max() - 4096)
    return execute_on_host(c, t.device());
  const auto moved = [](const Tensor& x, int64_t from, int64_t to) {
    Dims sizes = x.sizes(), strides = x.strides();
    const int64_t size = sizes[from], stride = strides[from];
    sizes.erase(from);
    strides.erase(from);
    sizes.insert(to, size);
    strides.insert(to, stride);
    return view_of(x, sizes, strides, x.offset());
  };
  const Tensor x = contiguous_on_device(moved(t, dim, 0));
  const Place place(t.device());
  Tensor order;
  for (int64_t column = length - 1; sorts && column >= 0; --column) {
    const Tensor keys = empty({{n}}, size_of(t.dtype()) == 8 ? Dtype::i64 : Dtype::i32, t.device());
    kColumn.launch(place, {t.dtype()}, divide_up(n, kBlock), kBlock, 0, x.bytes(),
                   order.defined() ? order.bytes() : nullptr, keys.bytes(), n, length, column);
    const Tensor positions = sort_keys(place, keys, n, static_cast<int>(8 * size_of(t.dtype()))).positions;
    if (!order.defined()) {
      order = positions;
      continue;
    }
    const Tensor composed = empty({{n}}, Dtype::i32, t.device());
    read_indexed(walk_slices("unique", order, 0, positions, composed), 4, {place, t.device(), Dtype::i32, 0});
    order = composed;
  }
  const Tensor starts = empty({{n}}, Dtype::u8, t.device());
  const auto has_nan = static_cast<int32_t>(is_floating(t.dtype()));
  kSliceStarts.launch(place, {t.dtype()}, divide_up(n, kBlock), kBlock, 0, x.bytes(),
                      order.defined() ? order.bytes() : nullptr, starts.bytes(), n, length, has_nan);
  Grouped g = group(x, order, starts, c.boolean(first), c.boolean(first + 1), {&n, 1});
  g.firsts = contiguous_on_device(moved(g.firsts, 0, dim));
  give_groups(c, g);
}

}  // namespace

REGISTER_KERNELS(sorting) {
  r.set_kernel("sort", DeviceType::cuda, run_sort);
  r.set_kernel("topk", DeviceType::cuda, run_topk);
  r.set_kernel("kthvalue", DeviceType::cuda, run_kthvalue);
  r.set_kernel("median", DeviceType::cuda, run_median<false>);
  r.set_kernel("median.dim", DeviceType::cuda, run_median_dim<false>);
  r.set_kernel("nanmedian", DeviceType::cuda, run_median<true>);
  r.set_kernel("nanmedian.dim", DeviceType::cuda, run_median_dim<true>);
  r.set_kernel("mode", DeviceType::cuda, run_mode);
  r.set_kernel("_unique2", DeviceType::cuda, run_unique);
  r.set_kernel("_unique_consecutive", DeviceType::cuda, run_unique_consecutive);
  r.set_kernel("_unique_dim", DeviceType::cuda, run_unique_dim<true>);
  r.set_kernel("_unique_consecutive_dim", DeviceType::cuda, run_unique_dim<false>);
}

}  // namespace cresset::cuda
