#include "ops/indexed_walk.h"

#include <cstring>
#include <limits>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "tensor/backend.h"
#include "tensor/blocks.h"

namespace cresset {
namespace {

// The walk as three nested loops: over `sizes` (any rank), along the indexed dimension, and over an inner row in which
// only the other dimensions move. Where the indexed dimension is itself the innermost in memory, the inner row has one
// element.
struct Nest {
  Dims sizes, plain, indexed, index;
  int64_t outer = 1, along, plain_along, index_along;
  int64_t inner = 1, plain_inner = 0, indexed_inner = 0, index_inner = 0;

  explicit Nest(const IndexedWalk& w) {
    along = w.sizes.empty() ? 1 : w.sizes[w.along];
    plain_along = w.sizes.empty() ? 0 : w.plain_strides[w.along];
    index_along = w.sizes.empty() ? 0 : w.index_strides[w.along];
    for (int64_t d = 0; d < w.sizes.size(); ++d) {
      if (d == w.along) continue;
      sizes.push_back(w.sizes[d]);
      plain.push_back(w.plain_strides[d]);
      indexed.push_back(w.indexed_strides[d]);
      index.push_back(w.index_strides[d]);
    }
    Dims* strides[3] = {&plain, &indexed, &index};
    coalesce(sizes, strides, 3);
    const int64_t last = sizes.size() - 1;
    if (last >= 0 && (along == 1 || lies_inside(w, last))) {
      inner = sizes[last];
      plain_inner = plain[last];
      indexed_inner = indexed[last];
      index_inner = index[last];
      sizes.pop_back();
      plain.pop_back();
      indexed.pop_back();
      index.pop_back();
    }
    for (int64_t s : sizes) outer *= s;
  }
  // Does the last of the other dimensions lie inside the indexed one? One element for all has no strides; then the
  // order of the sizes decides.
  bool lies_inside(const IndexedWalk& w, int64_t last) const {
    if (plain[last] != 0 || plain_along != 0) return plain[last] < plain_along;
    for (int64_t d = w.along + 1; d < w.sizes.size(); ++d)
      if (w.sizes[d] > 1) return true;
    return false;
  }

  IndexedRow start_of(int64_t o) const {
    IndexedRow row{};
    for (int64_t d = sizes.size() - 1; d >= 0; --d) {
      const int64_t i = o % sizes[d];
      o /= sizes[d];
      row.plain += i * plain[d];
      row.indexed += i * indexed[d];
      row.index += i * index[d];
    }
    return row;
  }
};

// Positions [begin, end) along the indexed dimension and [left, right) of the inner row, in the outer position o.
void run_rows(const IndexedWalk& w, const Nest& n, RowLoop loop, int64_t o, int64_t begin, int64_t end, int64_t left,
              int64_t right) {
  IndexedRow row = n.start_of(o);
  row.plain += begin * n.plain_along;
  row.index += begin * n.index_along;
  if (n.inner == 1) {
    row.n = end - begin;
    row.plain_step = n.plain_along;
    row.index_step = n.index_along;
    return loop(w, row);
  }
  row.plain += left * n.plain_inner;
  row.indexed += left * n.indexed_inner;
  row.index += left * n.index_inner;
  row.n = right - left;
  row.plain_step = n.plain_inner;
  row.indexed_step = n.indexed_inner;
  row.index_step = n.index_inner;
  for (int64_t i = begin; i < end; ++i) {
    loop(w, row);
    row.plain += n.plain_along;
    row.index += n.index_along;
  }
}

bool is_empty(const IndexedWalk& w) { return std::find(w.sizes.begin(), w.sizes.end(), 0) != w.sizes.end(); }

template <class T>
void read_row(const IndexedWalk& w, const IndexedRow& r) {
  T* to = reinterpret_cast<T*>(w.plain) + r.plain;
  const T* from = reinterpret_cast<const T*>(w.indexed) + r.indexed;
  const int64_t* index = w.index + r.index;
  if (r.index_step == 0) {
    from += w.offset(*index);
    if (r.plain_step == 1 && r.indexed_step == 1)
      std::memcpy(to, from, static_cast<size_t>(r.n) * sizeof(T));
    else
      for (int64_t i = 0; i < r.n; ++i) to[i * r.plain_step] = from[i * r.indexed_step];
  } else if (!walk_plain_row(w, r, [=](int64_t i, int64_t place) { to[i] = from[place]; })) {
    for (int64_t i = 0; i < r.n; ++i)
      to[i * r.plain_step] = from[i * r.indexed_step + w.offset(index[i * r.index_step])];
  }
}

template <class T>
void write_row(const IndexedWalk& w, const IndexedRow& r) {
  const T* from = reinterpret_cast<const T*>(w.plain) + r.plain;
  T* to = reinterpret_cast<T*>(w.indexed) + r.indexed;
  const int64_t* index = w.index + r.index;
  if (r.index_step == 0) {
    to += w.offset(*index);
    if (r.plain_step == 1 && r.indexed_step == 1)
      std::memcpy(to, from, static_cast<size_t>(r.n) * sizeof(T));
    else
      for (int64_t i = 0; i < r.n; ++i) to[i * r.indexed_step] = from[i * r.plain_step];
  } else if (!walk_plain_row(w, r, [=](int64_t i, int64_t place) { to[place] = from[i]; })) {
    for (int64_t i = 0; i < r.n; ++i)
      to[i * r.indexed_step + w.offset(index[i * r.index_step])] = from[i * r.plain_step];
  }
}

// Whole rows, one for each index (embedding, x[i], index_select): they lie anywhere, so the lines of the next ones are
// asked for early. 100,000 rows of 256 bytes from 13 MB take half the time.
void read_rows(const IndexedWalk& w, const Nest& n, int64_t width) {
  constexpr int64_t kAhead = 8, kLine = 64, kAsked = 4 * kLine;  // of a long row the processor finds the rest itself
  constexpr int64_t kNear = int64_t{256} << 10;                  // bytes that are in the cache after a few indices
  const bool far = w.bound > kNear / std::max<int64_t>(1, w.scale * width);  // the bound may be that of all integers
  const int64_t bytes = n.inner * width, asked = far ? std::min(bytes, kAsked) : 0;
  const bool streams = streams_rows(w.plain, n.outer * n.along, n.inner, width, 1) && bytes % kLine == 0 &&
                       n.plain_along == n.inner && reinterpret_cast<uintptr_t>(w.plain) % kLine == 0;
  parallel_for(n.outer * n.along, std::max<int64_t>(1, kParallelGrain / n.inner), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t o = begin / n.along, first = begin % n.along, count = std::min(n.along - first, end - begin);
      const IndexedRow row = n.start_of(o);
      const char* from = w.indexed + row.indexed * width;
      const int64_t* index = w.index + row.index + first * n.index_along;
      char* to = w.plain + (row.plain + first * n.plain_along) * width;
      for (int64_t i = 0; i < count; ++i, to += n.plain_along * width) {
        if (asked && i + kAhead < count) {
          const int64_t place = w.place(index[(i + kAhead) * n.index_along]);
          if (w.has(place))
            for (int64_t at = 0; at < asked; at += kLine) __builtin_prefetch(from + place * w.scale * width + at);
        }
        const char* source = from + w.offset(index[i * n.index_along]) * width;
        if (streams)
          stream(to, source, bytes);
        else
          std::memcpy(to, source, static_cast<size_t>(bytes));
      }
      begin += count;
    }
    if (streams) end_stream();
  });
}

// Whether any index is out of bounds.
struct FindsWrong {
  template <class Fma>
  CRESSET_INLINE void run(const int64_t* index, int64_t n, int64_t wrap, uint64_t bound, bool* wrong) {
    uint64_t any = 0;
    for (int64_t i = 0; i < n; ++i) any |= static_cast<uint64_t>(index[i] + (index[i] >> 63 & wrap)) >= bound;
    *wrong = any != 0;
  }
};

void check_row(const IndexedWalk& w, const IndexedRow& r) {
  const int64_t* index = w.index + r.index;
  if (r.index_step == 1) {  // without branches first: almost always all is well
    bool wrong = false;
    run_vectorized<FindsWrong>(index, r.n, w.wrap, static_cast<uint64_t>(w.bound), &wrong);
    if (!wrong) return;
  }
  for (int64_t i = 0; i < (r.index_step == 0 ? 1 : r.n); ++i) w.offset(index[i * r.index_step]);
}

// Every index once, before anything is written: a bad one leaves the tensor as it was.
void check_indices(const IndexedWalk& w, const Nest& n) {
  bool moves = false;
  for (int64_t d = 0; d < n.index.size(); ++d) moves |= n.index[d] != 0;
  const int64_t inner = n.index_inner == 0 ? 1 : n.inner;
  parallel_for(moves ? n.outer : 1, std::max<int64_t>(1, kParallelGrain / (n.along * inner)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t o = begin; o < end; ++o) run_rows(w, n, check_row, o, 0, n.along, 0, inner);
               });
}

}  // namespace

void walk_reading(const IndexedWalk& w, RowLoop loop) {
  if (is_empty(w)) return;
  const Nest n(w);
  parallel_for(n.outer * n.along, std::max<int64_t>(1, kParallelGrain / n.inner), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t o = begin / n.along, first = begin % n.along, last = std::min(n.along, first + end - begin);
      run_rows(w, n, loop, o, first, last, 0, n.inner);
      begin += last - first;
    }
  });
}

void walk_writing(const IndexedWalk& w, RowLoop loop) {
  if (is_empty(w)) return;
  const Nest n(w);
  check_indices(w, n);
  constexpr int64_t kPiece = 64;  // inner elements that stay together: a few cache lines
  const int64_t pieces = (n.inner + kPiece - 1) / kPiece;
  parallel_for(n.outer * pieces, std::max<int64_t>(1, kParallelGrain / (n.along * std::min(n.inner, kPiece))),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t o = begin / pieces, first = begin % pieces,
                                 last = std::min(pieces, first + end - begin);
                   run_rows(w, n, loop, o, 0, n.along, first * kPiece, std::min(n.inner, last * kPiece));
                   begin += last - first;
                 }
               });
}

void read_indexed(const IndexedWalk& w, int64_t width) {
  if (is_empty(w)) return;
  const Nest n(w);
  if (n.inner * width >= 16 && n.inner > 1 && n.plain_inner == 1 && n.indexed_inner == 1 && n.index_inner == 0)
    return read_rows(w, n, width);
  visit_width(width, [&]<class T>() { walk_reading(w, read_row<T>); });
}
void write_indexed(const IndexedWalk& w, int64_t width) {
  visit_width(width, [&]<class T>() { walk_writing(w, write_row<T>); });
}

IndexedWalk walk_along(const char* who, const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& plain) {
  IndexedWalk w;
  w.who = who;
  w.sizes = index.sizes();
  w.along = w.dim = dim;
  w.plain = plain.bytes();
  w.indexed = indexed.bytes();
  w.index = index.data<int64_t>();
  // A 0-d tensor stands for one with a single element along every dimension.
  const auto strides = [&](const Tensor& t) {
    return t.dim() == w.sizes.size() ? t.strides() : Dims(w.sizes.size(), 0);
  };
  w.plain_strides = strides(plain);
  w.indexed_strides = strides(indexed);
  w.index_strides = strides(index);
  w.scale = indexed.dim() == 0 ? 0 : indexed.stride(dim);
  w.bound = indexed.dim() == 0 ? 1 : indexed.size(dim);
  if (!w.indexed_strides.empty()) w.indexed_strides[dim] = 0;
  w.error = ErrorKind::runtime;
  return w;
}

IndexedWalk walk_slices(const char* who, const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& plain) {
  IndexedWalk w;
  w.who = who;
  w.sizes = indexed.dim() == 0 ? Dims{1} : indexed.sizes();
  w.along = w.dim = dim;
  w.sizes[dim] = index.numel();
  w.plain = plain.bytes();
  w.indexed = indexed.bytes();
  w.index = index.data<int64_t>();
  w.plain_strides = plain.dim() == w.sizes.size() ? plain.strides() : Dims(w.sizes.size(), 0);
  w.indexed_strides = indexed.dim() == 0 ? Dims{0} : indexed.strides();
  w.index_strides = Dims(w.sizes.size(), 0);
  w.index_strides[dim] = index.dim() == 0 ? 0 : index.stride(0);
  w.scale = w.indexed_strides[dim];
  w.bound = indexed.dim() == 0 ? 1 : indexed.size(dim);
  w.indexed_strides[dim] = 0;
  return w;
}

// ---------------------------------------------------------------- x[i, :, j]

Tensor places_of_mask(const Tensor& mask, DimsView strides) {
  return backend_of(mask.device()).places_of_mask(mask, strides);
}

Tensor places_of_mask_on_cpu(const Tensor& mask, DimsView strides) {
  const Tensor bytes = contiguous(mask);
  const auto* on = bytes.data<uint8_t>();
  Dims sizes = bytes.sizes(), steps(strides), order = bytes.strides();
  Dims* both[2] = {&order, &steps};
  coalesce(sizes, both, 2);
  if (sizes.empty()) sizes = {1}, steps = {0};
  const int64_t n = bytes.numel(), row = sizes.back(), step = steps.back();
  // Count chunk by chunk, so that every chunk knows where its places go.
  constexpr int64_t kChunk = 16384;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  SmallVector<int64_t, 8> start(chunks + 1, 0);
  parallel_for(chunks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      int64_t count = 0;
      for (int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) count += on[i] != 0;
      start[c + 1] = count;
    }
  });
  for (int64_t c = 0; c < chunks; ++c) start[c + 1] += start[c];
  const Tensor places = empty({{start[chunks]}}, Dtype::i64);
  parallel_for(chunks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      int64_t* out = places.data<int64_t>() + start[c];
      for (int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk);) {
        int64_t base = 0, rest = i / row;
        for (int64_t d = sizes.size() - 2; d >= 0; --d) {
          base += rest % sizes[d] * steps[d];
          rest /= sizes[d];
        }
        int64_t j = i % row;
        const int64_t stop = std::min(row, j + std::min(n, (c + 1) * kChunk) - i);
        for (; j < stop; ++j, ++i)
          if (on[i]) *out++ = base + j * step;
      }
    }
  });
  return places;
}

namespace {

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

Dims shape_together(const char* who, const SmallVector<IndexItem, 3>& items) {
  Dims shape;
  for (const IndexItem& item : items) {
    const Dims& s = item.index.sizes();
    for (int64_t d = 1; d <= s.size(); ++d) {
      if (d > shape.size()) {
        shape.insert(0, s[s.size() - d]);
        continue;
      }
      int64_t& have = shape[shape.size() - d];
      const int64_t more = s[s.size() - d];
      if (have != more && have != 1 && more != 1) {
        std::string shapes;
        for (const IndexItem& i : items) shapes += join(shapes.empty() ? "" : ", ", list(i.index.sizes()));
        fail(ErrorKind::index, who, ": shape mismatch: indexing tensors could not be broadcast together with shapes ",
             shapes);
      }
      if (have == 1) have = more;
    }
  }
  return shape;
}

}  // namespace

// All indices as one list of offsets.
Tensor join_indices_on_cpu(const char* who, std::span<const IndexItem> items, DimsView sizes) {
  const Dims shape(sizes);
  const Tensor offsets = empty(shape, Dtype::i64);
  SmallVector<Dims, 3> strides;
  for (const IndexItem& item : items) strides.push_back(expanded_strides(who, item.index, shape));
  int64_t* out = offsets.data<int64_t>();
  parallel_for(offsets.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 512;
    int64_t buffer[kChunk];
    for (int64_t at = begin; at < end; at += kChunk) {
      const int64_t n = std::min(kChunk, end - at);
      for (size_t k = 0; k < items.size(); ++k) {
        const Tensor& index = items[k].index;
        const IndexRule rule = items[k].rule;
        const int64_t* values = buffer;
        if (index.is_contiguous() && index.sizes() == shape) {
          values = index.data<int64_t>() + at;
        } else {
          gather(reinterpret_cast<char*>(buffer), index.bytes(), shape, strides[static_cast<int64_t>(k)], at, n,
                 sizeof(int64_t));
        }
        if (k == 0)
          for (int64_t i = 0; i < n; ++i) out[at + i] = rule.offset(values[i]);
        else
          for (int64_t i = 0; i < n; ++i) out[at + i] += rule.offset(values[i]);
      }
    }
  });
  return offsets;
}

namespace {

bool is_mask(const Tensor& index) {
  return index.defined() && (index.dtype() == Dtype::b8 || index.dtype() == Dtype::u8);
}
// A mask has the sizes of the dimensions from `d` on.
void check_mask(const char* who, const Tensor& input, const Tensor& mask, int64_t d) {
  for (int64_t k = 0; k < mask.dim(); ++k)
    check_index(mask.size(k) == input.size(d + k), who, ": The shape of the mask ", list(mask.sizes()), " at index ", k,
                " does not match the shape of the indexed tensor ", list(input.sizes()), " at index ", d + k);
}

}  // namespace

void check_masks(const char* who, const Tensor& input, std::span<const Tensor> indices) {
  int64_t d = 0;
  for (const Tensor& index : indices) {
    const int64_t covers = is_mask(index) ? index.dim() : 1;
    if (d + covers > input.dim()) return;  // too many indices, which resolve_index tells of
    if (is_mask(index)) check_mask(who, input, index, d);
    d += covers;
  }
}

AdvancedIndex resolve_index(const char* who, const Tensor& input, std::span<const Tensor> indices) {
  AdvancedIndex a;
  SmallVector<IndexItem, 3> items;
  const int64_t rank = input.dim();
  int64_t d = 0, first = -1, last = -1;  // the indexed dimensions lie in [first, last)
  bool adjacent = true;
  const auto keep = [&](int64_t dim) {
    a.sizes.push_back(input.size(dim));
    a.strides.push_back(input.stride(dim));
  };
  for (const Tensor& index : indices) {
    const bool mask = is_mask(index);
    const int64_t covers = mask ? index.dim() : 1;
    check_index(d + covers <= rank, who, ": too many indices for tensor of dimension ", rank, " (got ", indices.size(),
                ")");
    if (!index.defined()) {
      keep(d++);
      continue;
    }
    check_index(mask || index.dtype() == Dtype::i64 || index.dtype() == Dtype::i32, who,
                ": tensors used as indices must be long, int, byte or bool tensors, got ", name_of(index.dtype()));
    if (first < 0) {
      first = d;
      a.position = a.sizes.size();
    } else if (last != d) {
      adjacent = false;
    }
    last = d + covers;
    if (mask) {
      if (index.dtype() == Dtype::u8 && warn)
        warn(join("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead: ", who));
      check_mask(who, input, index, d);
      check_implemented(
          !input.is_meta() && !index.is_meta(), who,
          ": the shape of the result depends on the elements of the mask, which a meta tensor does not have");
      const DimsView strides(input.strides().data() + d, static_cast<size_t>(covers));
      items.push_back({places_of_mask(index, strides), {1, kUnbounded, 0, who, d}});
    } else {
      items.push_back({convert(index, Dtype::i64), {input.stride(d), input.size(d), input.size(d), who, d}});
    }
    d += covers;
  }
  while (d < rank) keep(d++);
  if (!adjacent) a.position = 0;
  if (items.empty())  // reading and writing differ in the class, as in PyTorch
    fail(std::string_view(who) == "index" ? ErrorKind::index : ErrorKind::runtime, who,
         ": at least one index must be provided");
  const Dims shape = shape_together(who, items);
  if (std::find(shape.begin(), shape.end(), 0) == shape.end())
    for (const IndexItem& item : items)
      check_index(item.rule.bound != 0, who, ": index is out of bounds for dimension with size 0, dimension ",
                  item.rule.dim);
  a.result = Dims(a.sizes.begin(), a.sizes.begin() + a.position);
  a.result.append(shape.begin(), shape.end());
  a.result.append(a.sizes.begin() + a.position, a.sizes.end());
  if (input.is_meta() || (items.size() && items[0].index.is_meta())) return a;
  if (items.size() == 1) {
    a.index = contiguous(items[0].index);
    a.rule = items[0].rule;
  } else {
    a.index = backend_of(input.device()).join_indices(who, {items.data(), static_cast<size_t>(items.size())}, shape);
    a.rule = {1, kUnbounded, 0, who};
  }
  return a;
}

IndexedWalk walk_through(const AdvancedIndex& a, const Tensor& input, const Tensor& plain) {
  IndexedWalk w;
  static_cast<IndexRule&>(w) = a.rule;
  w.sizes = a.sizes;
  w.sizes.insert(a.position, a.index.numel());
  w.along = a.position;
  w.plain = plain.bytes();
  w.indexed = input.bytes();
  w.index = a.index.data<int64_t>();
  w.plain_strides = plain.numel() == 1 ? Dims(w.sizes.size(), 0) : contiguous_strides(w.sizes);
  w.indexed_strides = a.strides;
  w.indexed_strides.insert(a.position, 0);
  w.index_strides = Dims(w.sizes.size(), 0);
  w.index_strides[a.position] = 1;
  return w;
}

}  // namespace cresset
