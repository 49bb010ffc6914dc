// Sorting and selecting along a dimension: sort, topk, kthvalue, median, mode.
//
// Each slice becomes a list of items (ordered_items.h); the rest works on keys, whatever the dtype. Which of several
// equal elements is chosen is the choice PyTorch's algorithms make: selection is by the standard library's nth_element,
// partial sort and sort.
#include <algorithm>
#include <limits>

#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/ordered_items.h"

namespace cresset {
namespace {

// The slices of a tensor along one dimension. A 0-d tensor is one slice of one element.
struct Slices {
  Dims sizes;  // of the other dimensions
  int64_t count = 1, length = 1;

  Slices(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (d == dim) {
        length = t.size(d);
        continue;
      }
      sizes.push_back(t.size(d));
      count *= t.size(d);
    }
  }
};
// Where a slice begins in one of the tensors that are cut alike.
struct Place {
  Dims strides;
  int64_t step = 0;
  Place(const Tensor& t, int64_t dim, bool has_dim = true) {
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (has_dim && d == dim)
        step = t.stride(d);
      else
        strides.push_back(t.stride(d));
    }
  }
  int64_t of(int64_t slice, const Dims& sizes) const {
    int64_t offset = 0;
    for (int64_t d = sizes.size() - 1; d >= 0; --d) {
      offset += slice % sizes[d] * strides[d];
      slice /= sizes[d];
    }
    return offset;
  }
};

template <class F>
void for_each_slice(const Slices& s, F&& f) {
  parallel_for(s.count, std::max<int64_t>(1, kParallelGrain / 8 / std::max<int64_t>(s.length, 1)), f);
}

// ---------------------------------------------------------------- sort

void infer_sort(Call& c) {
  const Tensor t = c.tensor(0);
  wrap_dim(c.integer(1), t.dim());
  check(!is_complex(t.dtype()), "sort: Sort does not support complex dtypes on CPU, got ", name_of(t.dtype()));
  const Dims strides = dense_strides_like(t.sizes(), t.strides());
  c.promise({t.sizes(), strides, t.dtype(), t.device()});
  c.promise({t.sizes(), strides, Dtype::i64, t.device()});
}
// Where `stable` is not asked for, slices up to this length are left to the standard library's sort: equal elements
// then come in the same order as in PyTorch. Beyond, sorting by digits, which is stable anyway, is several times as
// fast.
constexpr int64_t kPlainSort = 16384;

void run_sort(Call& c) {
  const Tensor t = c.tensor(0), values = c.out(0), indices = c.out(1);
  const int64_t dim = wrap_dim(c.integer(1), t.dim());
  const bool descending = c.boolean(2);
  const Slices s(t, dim);
  const Place from(t, dim), to(values, dim), index_to(indices, dim);
  if (t.numel() == 0) return;
  const int64_t width = size_of(t.dtype());
  const bool stable = c.has(3) && c.boolean(3), plain = !stable && s.length <= kPlainSort;
  visit_items(t.dtype(), s.length, [&]<class Item>() {
    const MakeItems<Item> make = item_maker<Item>(t.dtype(), "sort");
    const RestoreElements<Item> restore = element_restorer<Item>(t.dtype(), "sort");
    for_each_slice(s, [&](int64_t begin, int64_t end) {
      const ItemBuffer<Item> items(s.length), scratch(s.length);
      for (int64_t i = begin; i < end; ++i) {
        const char* in = t.bytes() + from.of(i, s.sizes) * width;
        const bool whole = make(in, from.step, s.length, descending, 0, items.data());
        if (plain)
          std::sort(items.data(), items.data() + s.length, by_key);
        else
          sort_items(items.data(), scratch.data(), s.length);
        char* out = values.bytes() + to.of(i, s.sizes) * width;
        if (whole)
          restore(items.data(), s.length, descending, out, to.step);
        else
          take_items(items.data(), s.length, in, from.step, out, to.step, width);
        take_positions(items.data(), s.length, indices.data<int64_t>() + index_to.of(i, s.sizes), index_to.step);
      }
    });
  });
}

// ---------------------------------------------------------------- topk

void infer_topk(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t k = c.integer(1), dim = wrap_dim(c.integer(2), t.dim()), length = t.dim() ? t.size(dim) : 1;
  check(k >= 0 && k <= length, "topk: selected index k out of range: k is ", k, " and dimension ", dim, " has size ",
        length);
  check(!is_complex(t.dtype()), "topk: topk does not support complex dtypes on CPU, got ", name_of(t.dtype()));
  check(t.dtype() != Dtype::b8, "topk: topk does not support bool dtypes on CPU");
  Dims sizes = t.sizes();
  if (t.dim()) sizes[dim] = k;
  c.promise(sizes, t.dtype(), t.device());
  c.promise(sizes, Dtype::i64, t.device());
}

// The first k of n elements, as the first k items. A heap of the best so far meets each further element once, block by
// block; of a long row most blocks have none for it.
template <class Item>
void select_few(MakeItems<Item> make, AnyBefore<Item> any_before, const char* in, int64_t step, int64_t width,
                int64_t n, int64_t k, bool largest, Item* heap) {
  constexpr int64_t kBlock = 64;
  Item block[kBlock];
  make(in, step, k, largest, 0, heap);
  std::make_heap(heap, heap + k, by_key);
  auto last = heap[0].key();
  for (int64_t at = k; at < n; at += kBlock) {
    const int64_t m = std::min(kBlock, n - at);
    const char* from = in + at * step * width;
    if (step == 1 && !any_before(from, m, largest, last)) continue;
    make(from, step, m, largest, at, block);
    for (int64_t i = 0; i < m; ++i) {
      if (block[i].key() >= last) continue;
      heap[k] = block[i];
      std::pop_heap(heap, heap + k + 1, by_key);
      last = heap[0].key();
    }
  }
  std::sort_heap(heap, heap + k, by_key);
}
template <class Item>
void select_many(Item* items, int64_t n, int64_t k, bool sorted) {
  std::nth_element(items, items + k - 1, items + n, by_key);
  if (sorted) std::sort(items, items + k - 1, by_key);
}

void run_topk(Call& c) {
  const Tensor t = c.tensor(0), values = c.out(0), indices = c.out(1);
  // A single number is its own first k, also for k = 0.
  const int64_t k = t.dim() ? c.integer(1) : 1, dim = wrap_dim(c.integer(2), t.dim()), width = size_of(t.dtype());
  const bool largest = c.boolean(3), sorted = c.boolean(4);
  const Slices s(t, dim);
  const Place from(t, dim), to(values, dim), index_to(indices, dim);
  if (values.numel() == 0) return;
  visit_items(t.dtype(), s.length, [&]<class Item>() {
    const MakeItems<Item> make = item_maker<Item>(t.dtype(), "topk");
    const AnyBefore<Item> any_before = before_finder<Item>(t.dtype(), "topk");
    const bool few = k * 64 <= s.length;
    for_each_slice(s, [&](int64_t begin, int64_t end) {
      const ItemBuffer<Item> items(few ? k + 1 : s.length);
      for (int64_t i = begin; i < end; ++i) {
        const char* in = t.bytes() + from.of(i, s.sizes) * width;
        if (few) {
          select_few(make, any_before, in, from.step, width, s.length, k, largest, items.data());
        } else {
          make(in, from.step, s.length, largest, 0, items.data());
          select_many(items.data(), s.length, k, sorted);
        }
        take_items(items.data(), k, in, from.step, values.bytes() + to.of(i, s.sizes) * width, to.step, width);
        take_positions(items.data(), k, indices.data<int64_t>() + index_to.of(i, s.sizes), index_to.step);
      }
    });
  });
}

// ---------------------------------------------------------------- one element of each slice

void promise_reduced(Call& c, const Tensor& t, int64_t dim, bool keepdim) {
  Dims sizes = t.sizes();
  if (t.dim()) {
    if (keepdim)
      sizes[dim] = 1;
    else
      sizes.erase(dim);
  }
  c.promise(sizes, t.dtype(), t.device());
  c.promise(sizes, Dtype::i64, t.device());
}
void check_not_empty(const char* who, const Tensor& t, int64_t dim) {
  check_index(t.dim() == 0 || t.size(dim) > 0, who, "(): Expected reduction dim ", dim, " to have non-zero size.");
}

// choose(items, n, whether there may be nan) gives the item of the element that each slice is reduced to.
template <class Choose>
void reduce_by_choice(Call& c, const char* who, int64_t dim, bool keepdim, Choose choose) {
  const Tensor t = c.tensor(0), values = c.out(0), indices = c.out(1);
  const Slices s(t, dim);
  const bool keeps = keepdim && t.dim();
  const Place from(t, dim), to(values, dim, keeps), index_to(indices, dim, keeps);
  const int64_t width = size_of(t.dtype());
  const bool nan = is_floating(t.dtype());
  visit_items(t.dtype(), s.length, [&]<class Item>() {
    const MakeItems<Item> make = item_maker<Item>(t.dtype(), who);
    for_each_slice(s, [&](int64_t begin, int64_t end) {
      const ItemBuffer<Item> items(s.length);
      for (int64_t i = begin; i < end; ++i) {
        const char* in = t.bytes() + from.of(i, s.sizes) * width;
        make(in, from.step, s.length, false, 0, items.data());
        const Item chosen = choose(items.data(), s.length, nan);
        take_items(&chosen, 1, in, from.step, values.bytes() + to.of(i, s.sizes) * width, 1, width);
        indices.data<int64_t>()[index_to.of(i, s.sizes)] = chosen.position();
      }
    });
  });
}
void check_not_bool(const char* who, const Tensor& t) {
  check_implemented(t.dtype() != Dtype::b8, '"', who, "\" not implemented for 'bool'");
}

// The k-th smallest by partition around the median of the first, middle and last element.
template <class Item>
Item quick_select(Item* a, int64_t n, int64_t k) {
  const auto order = [&](int64_t low, int64_t high) {
    if (a[low].key() > a[high].key()) std::swap(a[low], a[high]);
  };
  int64_t left = 0, right = n - 1;
  while (right > left + 1) {
    // The pivot comes to stand at `left`, with one element on either side that stops the scans.
    std::swap(a[left + (right - left) / 2], a[left + 1]);
    order(left + 1, right);
    order(left, right);
    order(left + 1, left);
    const auto pivot = a[left].key();
    int64_t up = left + 1, down = right;
    while (true) {
      while (a[++up].key() < pivot) {
      }
      while (a[--down].key() > pivot) {
      }
      if (down < up) break;
      std::swap(a[up], a[down]);
    }
    std::swap(a[left], a[down]);
    if (down <= k) left = up;
    if (down >= k) right = down - 1;
  }
  if (right == left + 1) order(left, right);
  return a[k];
}

void infer_kthvalue(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t k = c.integer(1), dim = wrap_dim(c.integer(2), t.dim()), length = t.dim() ? t.size(dim) : 1;
  check_not_empty("kthvalue", t, dim);
  check(k >= 1 && k <= length, "kthvalue(): selected number k out of range for dimension ", dim, "; k is ", k,
        " and the size is ", length);
  promise_reduced(c, t, dim, c.boolean(3));
}
void run_kthvalue(Call& c) {
  const int64_t k = c.integer(1) - 1;
  check_not_bool("kthvalue_cpu", c.tensor(0));
  reduce_by_choice(c, "kthvalue_cpu", wrap_dim(c.integer(2), c.tensor(0).dim()), c.boolean(3),
                   [k](auto* items, int64_t n, bool) { return quick_select(items, n, k); });
}

// The lower of the two middle elements, of equal ones the first. A nan is the median of a slice that has one, unless
// nan are passed over.
template <class Item>
Item median_item(Item* items, int64_t n, bool nan, bool skip_nan) {
  const int64_t nans = nan ? std::count_if(items, items + n, is_nan<Item>) : 0;
  if (nans && !skip_nan) return *std::find_if(items, items + n, is_nan<Item>);
  if (nans == n) return items[0];
  const int64_t middle = (n - nans - 1) / 2;
  return nth_item(items, n, middle);
}

template <bool skip_nan>
void infer_median_dim(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t dim = wrap_dim(c.integer(1), t.dim());
  check_not_empty(skip_nan ? "nanmedian" : "median", t, dim);
  promise_reduced(c, t, dim, c.boolean(2));
}
template <bool skip_nan>
void run_median_dim(Call& c) {
  check_not_bool("median_cpu", c.tensor(0));
  reduce_by_choice(c, "median_cpu", wrap_dim(c.integer(1), c.tensor(0).dim()), c.boolean(2),
                   [](auto* items, int64_t n, bool nan) { return median_item(items, n, nan, skip_nan); });
}

void infer_median(Call& c) { c.promise({}, c.tensor(0).dtype(), c.tensor(0).device()); }
template <bool skip_nan>
void run_median(Call& c) {
  const Tensor t = contiguous(c.tensor(0)), out = c.out();
  const int64_t n = t.numel();
  check_not_bool("median_cpu", t);
  // Nothing has no median: nan, or the lowest integer in its stead.
  if (n == 0)
    return fill(out, is_differentiable(t.dtype()) ? Scalar(NAN)
                     : facts(t.dtype()).is_signed
                         ? Scalar(std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(t.dtype())))
                         : Scalar(0));
  visit_items(t.dtype(), n, [&]<class Item>() {
    const ItemBuffer<Item> items(n);
    item_maker<Item>(t.dtype(), "median_cpu")(t.bytes(), 1, n, false, 0, items.data());
    const Item middle = median_item(items.data(), n, is_floating(t.dtype()), skip_nan);
    take_items(&middle, 1, t.bytes(), 1, out.bytes(), 1, size_of(t.dtype()));
  });
}

void infer_mode(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t dim = wrap_dim(c.integer(1), t.dim());
  check_not_empty("mode", t, dim);
  promise_reduced(c, t, dim, c.boolean(2));
}
// The most frequent element, the smallest if there are several; nan are all different.
void run_mode(Call& c) {
  reduce_by_choice(c, "mode_cpu", wrap_dim(c.integer(1), c.tensor(0).dim()), c.boolean(2),
                   [](auto* items, int64_t n, bool nan) {
                     std::sort(items, items + n, by_key);
                     int64_t most = 0, run = 0, last = 0;
                     for (int64_t i = 0; i < n; ++i) {
                       ++run;
                       if (i + 1 < n && items[i].key() == items[i + 1].key() && !(nan && is_nan(items[i]))) continue;
                       if (run > most) {
                         most = run;
                         last = i;
                       }
                       run = 0;
                     }
                     return items[last];
                   });
}

}  // namespace

REGISTER(sorting) {
  r.add(
       "sort(Tensor input, int dim=-1, bool descending=False, *, bool? stable=None) -> (Tensor values, Tensor indices)",
       infer_sort, run_sort, kWritesWhole)
      .node_name_of = [](const Call& c) { return c.has(3) ? "SortBackward1" : "SortBackward0"; };
  r.add(
      "topk(Tensor input, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
      "indices)",
      infer_topk, run_topk, kWritesApart);
  r.add("kthvalue(Tensor input, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        infer_kthvalue, run_kthvalue, kWritesApart);
  r.add("median(Tensor input) -> Tensor", infer_median, run_median<false>);
  r.add("median.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        infer_median_dim<false>, run_median_dim<false>, 0, "MedianBackward1");
  r.add("nanmedian(Tensor input) -> Tensor", infer_median, run_median<true>);
  r.add("nanmedian.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        infer_median_dim<true>, run_median_dim<true>, 0, "NanmedianBackward1");
  r.add("mode(Tensor input, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", infer_mode, run_mode,
        kWritesApart);
}

}  // namespace cresset
