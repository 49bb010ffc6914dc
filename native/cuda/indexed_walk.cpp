#include "cuda/indexed_walk.h"

#include <algorithm>
#include <limits>

#include "cuda/divider.h"
#include "cuda/fault.h"
#include "cuda/radix_sort.h"
#include "tensor/blocks.h"

namespace cresset::cuda {
namespace {

constexpr int kMostDims = 8, kBlock = 256, kWindow = 32, kLanes = 128, kFewSlices = 1024,
              kFewLanes = 256;                                            // as in indexed_walk.cuh
bool is_reduced(Dtype d) { return d == Dtype::f16 || d == Dtype::bf16; }  // summed in float

constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();  // no index is this one

const KernelFamily kMove("indexed_walk.cuh", "indexed_move", {"WORD", "RANK", "BIG", "INDEX", "WRITE", "NEIGHBORS"},
                         {"-DMOVE"});
const KernelFamily kSerial("indexed_walk.cuh", "combine_serial", {"T", "HOW", "RANK", "BIG", "INDEX"}, {"-DSERIAL"});
const KernelFamily kStaged("indexed_walk.cuh", "combine_staged",
                           {"T", "HOW", "RANK", "BIG", "INDEX", "WARPS", "COLUMNS"}, {"-DSTAGED"});
const KernelFamily kKeys("indexed_walk.cuh", "index_keys", {"KEY", "WHOLE", "RANK", "INDEX"}, {"-DKEYS"});
const KernelFamily kSorted("indexed_walk.cuh", "combine_sorted", {"T", "HOW", "RANK", "KEY"},
                           {"-DSORTED", "-DINDEX=int64_t"});
const KernelFamily kSlices("indexed_walk.cuh", "combine_slices", {"T", "HOW", "RANK", "BIG", "VECTOR", "FRESH"},
                           {"-DSLICES", "-DINDEX=int64_t"});
const KernelFamily kCrossing("indexed_walk.cuh", "combine_crossing", {"T", "HOW", "RANK", "BIG", "VECTOR", "FRESH"},
                             {"-DCROSSING", "-DINDEX=int64_t"});

const KernelFamily kFew("indexed_walk.cuh", "combine_few", {"T", "HOW", "RANK", "BIG", "VECTOR", "INDEX"},
                        {"-DFEW", "-DFRESH=0"});
const KernelFamily kRuns("indexed_walk.cuh", "key_runs", {}, {"-DRUNS", "-DRANK=1", "-DINDEX=int64_t"});
const KernelFamily kGather("indexed_walk.cuh", "gather_runs", {"T", "HOW", "RANK", "BIG"},
                           {"-DGATHER", "-DINDEX=int64_t"});
const KernelFamily kExtremes("indexed_walk_extremes.cuh", "extremes", {"T", "HOW", "STEP", "RANK", "BIG", "INDEX"});
const KernelFamily kWholeNumbers("indexed_walk_sums.cuh", "whole_numbers", {"STEP", "RANK", "BIG", "INDEX", "ITEMS"});

// As in indexed_walk.cuh.
struct Walk {
  int64_t count = 1;
  char *plain, *indexed;
  const char* index;
  int64_t scale, bound, wrap;
  Address fault;
  int64_t operation;
  Divider sizes[kMostDims];
  int64_t plain_strides[kMostDims] = {}, indexed_strides[kMostDims] = {}, index_strides[kMostDims] = {};
};
struct Slices {
  int64_t lanes, lane_blocks, n;
  char *target, *source, *keys, *positions, *counts, *partial;
  int64_t target_step, source_step, none;
  Divider sizes[kMostDims];
  int64_t target_strides[kMostDims] = {}, source_strides[kMostDims] = {};
};

struct Strided {
  Dims sizes, plain, indexed, index;
  void coalesce() {
    Dims* strides[3] = {&plain, &indexed, &index};
    cresset::coalesce(sizes, strides, 3);
  }
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
};

// Few ranks are compiled; the dimensions in front have size one.
int compiled_rank(int64_t rank, const char* who) {
  check_implemented(rank <= kMostDims, who, ": more than ", kMostDims, " dimensions that cannot be merged, on 'cuda'");
  return rank <= 4 ? static_cast<int>(std::max<int64_t>(rank, 1)) : kMostDims;
}

int put(Walk& to, const Strided& s, const IndexedWalk& w, const IndexedOn& on) {
  check_index(w.bound > 0, w.who, ": index is out of bounds for dimension with size 0, dimension ", w.dim);
  to.count = s.count();
  to.plain = w.plain;
  to.indexed = w.indexed;
  to.index = reinterpret_cast<const char*>(w.index);
  to.scale = w.scale;
  to.bound = w.bound;
  to.wrap = w.wrap;
  to.fault = fault_place(on.place.device);
  to.operation = on.operation;
  const int rank = compiled_rank(s.sizes.size(), w.who);
  const int64_t lead = rank - s.sizes.size();
  for (int64_t d = 0; d < s.sizes.size(); ++d) {
    to.sizes[lead + d] = Divider(s.sizes[d]);
    to.plain_strides[lead + d] = s.plain[d];
    to.indexed_strides[lead + d] = s.indexed[d];
    to.index_strides[lead + d] = s.index[d];
  }
  return rank;
}

bool is_big(int64_t count) { return count >= std::numeric_limits<int32_t>::max() - 2048; }

// Rows that lie together move in words as wide as their ends and pitches allow.
int64_t widen(Strided& s, IndexedWalk& w, int64_t width) {
  const int64_t last = s.sizes.size() - 1;
  if (last < 0 || s.plain[last] != 1 || s.indexed[last] != 1 || s.index[last] != 0) return width;
  int64_t word = 16;
  const auto fits = [&](int64_t elements) {
    while (elements * width % word) word /= 2;
  };
  fits(s.sizes[last]);
  fits(w.scale);
  for (int64_t d = 0; d < last; ++d) fits(s.plain[d]), fits(s.indexed[d]);
  while ((reinterpret_cast<uintptr_t>(w.plain) | reinterpret_cast<uintptr_t>(w.indexed)) % static_cast<uintptr_t>(word))
    word /= 2;
  if (word <= width) return width;
  const int64_t elements = word / width;
  s.sizes[last] /= elements;
  w.scale /= elements;
  for (int64_t d = 0; d < last; ++d) s.plain[d] /= elements, s.indexed[d] /= elements;
  return word;
}

// Whether indices lie side by side in fours, and what they are for on the plain side; and whether what they stand for
// lies along one line, and so close enough together that reading it is not what takes the time.
bool has_neighbors(const Strided& s, const IndexedWalk& w, int64_t word, Dtype index) {
  const int64_t last = s.sizes.size() - 1;
  if (last < 0 || word > 8 || s.plain[last] != 1 || s.index[last] != 1 || s.sizes[last] % 4) return false;
  if (s.indexed[last] != 0 || w.bound * w.scale > 65536) return false;
  for (int64_t d = 0; d < last; ++d)
    if (s.plain[d] % 4 || s.index[d] % 4) return false;
  const auto bytes = [](int64_t of_four) { return static_cast<uintptr_t>(std::min<int64_t>(of_four, 16)); };
  return reinterpret_cast<uintptr_t>(w.plain) % bytes(4 * word) == 0 &&
         reinterpret_cast<uintptr_t>(w.index) % bytes(4 * size_of(index)) == 0;
}

void move(const IndexedWalk& given, int64_t width, const IndexedOn& on, bool write) {
  IndexedWalk w = given;
  Strided s{w.sizes, w.plain_strides, w.indexed_strides, w.index_strides};
  if (s.count() == 0) return;
  s.coalesce();
  const int64_t word = widen(s, w, width);
  Walk walk;
  const int rank = put(walk, s, w, on);
  kMove.launch(on.place,
               {static_cast<int>(word), rank, is_big(walk.count), on.index, write,
                !write && has_neighbors(s, w, word, on.index)},
               divide_up(walk.count, kBlock * (word >= 16 ? 2 : 4)), kBlock, 0, walk);
}

// The dimensions of a walk but for the indexed one.
struct Lanes {
  Strided s;
  int64_t along = 1, plain_along = 0, index_along = 0;
  bool alike = true;  // the index is the same for all lanes
  explicit Lanes(const IndexedWalk& w) {
    for (int64_t d = 0; d < w.sizes.size(); ++d) {
      if (d == w.along) {
        along = w.sizes[d];
        plain_along = w.plain_strides[d];
        index_along = w.index_strides[d];
        continue;
      }
      s.sizes.push_back(w.sizes[d]);
      s.plain.push_back(w.plain_strides[d]);
      s.indexed.push_back(w.indexed_strides[d]);
      s.index.push_back(w.index_strides[d]);
      alike = alike && (w.index_strides[d] == 0 || w.sizes[d] == 1);
    }
  }
};

Strided list_of(const Lanes& l) { return {{l.along}, {l.plain_along}, {0}, {l.index_along}}; }

// Neighboring elements of a slice that a thread takes at once.
int64_t vector_of(const Strided& s, const Lanes& l, const IndexedWalk& w, int64_t width) {
  const int64_t last = s.sizes.size() - 1;
  if (last < 0 || s.plain[last] != 1 || s.indexed[last] != 1) return 1;
  int64_t vector = 16 / width;
  const auto fits = [&](int64_t elements) {
    while (elements % vector) vector /= 2;
  };
  if (vector < 1) return 1;
  fits(s.sizes[last]);
  fits(w.scale);
  fits(l.plain_along);
  for (int64_t d = 0; d < last; ++d) fits(s.plain[d]), fits(s.indexed[d]);
  while ((reinterpret_cast<uintptr_t>(w.plain) | reinterpret_cast<uintptr_t>(w.indexed)) %
         static_cast<uintptr_t>(vector * width))
    vector /= 2;
  return std::max<int64_t>(vector, 1);
}

// How the lanes of a list of slices are walked; what is sorted is left out.
int put(Slices& to, const Strided& s, const Lanes& l, const IndexedWalk& w, int64_t lane_width, int64_t block_lanes) {
  to.lanes = s.count() / lane_width;
  to.lane_blocks = divide_up(to.lanes, block_lanes);
  to.n = l.along;
  to.target = w.indexed;
  to.source = w.plain;
  to.keys = to.positions = to.counts = to.partial = nullptr;
  to.target_step = w.scale;
  to.source_step = l.plain_along;
  to.none = w.bound;
  const int rank = compiled_rank(s.sizes.size(), w.who);
  const int64_t lead = rank - s.sizes.size(), last = s.sizes.size() - 1;
  for (int64_t d = 0; d <= last; ++d) {
    const int64_t step = d == last ? lane_width : 1;
    to.sizes[lead + d] = Divider(s.sizes[d] / step);
    to.target_strides[lead + d] = s.indexed[d] * step;
    to.source_strides[lead + d] = s.plain[d] * step;
  }
  return rank;
}

void combine_list(const IndexedWalk& w, const Lanes& l, Dtype dtype, Combine how, bool fresh, int64_t left_out,
                  bool by_count, const IndexedOn& on) {
  const int64_t n = l.along;
  Strided s = l.s;
  s.coalesce();
  const int64_t slice = s.count(), lane_width = vector_of(s, l, w, size_of(dtype));
  // Neighboring places are neighbors in memory.
  const bool has_columns = w.scale < (s.sizes.empty() ? 1 : s.indexed.back());
  Slices slices;
  if (n <= kFewSlices && !fresh && !by_count && !has_columns) {
    const int rank = put(slices, s, l, w, lane_width, kFewLanes);
    Walk list;
    put(list, list_of(l), w, on);
    if (const int64_t blocks = n * slices.lane_blocks; blocks < std::numeric_limits<int32_t>::max())
      return kFew.launch(
          on.place, {dtype, static_cast<int>(how), rank, is_big(slices.lanes), static_cast<int>(lane_width), on.index},
          blocks, kFewLanes, 0, list, slices, l.index_along);
  }
  const Tensor keys = empty({{n}}, Dtype::i32, on.device);
  Tensor counts;
  if (by_count) counts = full({{w.bound}}, Scalar(0), Dtype::i32, on.device);
  Walk list;
  const int list_rank = put(list, list_of(l), w, on);
  const auto none = static_cast<uint64_t>(w.bound);
  kKeys.launch(on.place, {Dtype::u32, false, list_rank, on.index}, divide_up(n, kBlock), kBlock, 0, list, keys.bytes(),
               none, left_out, by_count ? counts.bytes() : nullptr);
  const SortedKeys sorted = sort_keys(on.place, keys, n, bits_for(w.bound));
  // Threads side by side have neighboring places, not neighbors of a slice.
  if (!fresh && !by_count && has_columns && slice >= 64 && w.bound * slice < std::numeric_limits<int32_t>::max()) {
    const Tensor runs = full({{2 * w.bound}}, Scalar(0), Dtype::i32, on.device);
    kRuns.launch(on.place, {}, divide_up(n, kBlock), kBlock, 0, sorted.keys.bytes(), runs.bytes(), n, w.bound);
    Walk walk;
    const int walk_rank = put(walk, s, w, on);
    walk.count = w.bound * slice;
    return kGather.launch(on.place, {dtype, static_cast<int>(how), walk_rank, is_big(walk.count)},
                          divide_up(walk.count, kBlock), kBlock, 0, walk, runs.bytes(), sorted.positions.bytes(),
                          w.bound, l.plain_along);
  }
  const int rank = put(slices, s, l, w, lane_width, kLanes);
  slices.keys = sorted.keys.bytes();
  slices.positions = sorted.positions.bytes();
  slices.counts = by_count ? counts.bytes() : nullptr;
  const int64_t windows = divide_up(n, kWindow), blocks = windows * slices.lane_blocks;
  const Dtype sum = is_reduced(dtype) ? Dtype::f32 : dtype;
  const Tensor partial = empty({{n > kWindow ? windows * 2 * s.count() : 1}}, sum, on.device);
  slices.partial = partial.bytes();
  const bool big = is_big(slices.lanes);
  check_implemented(blocks < std::numeric_limits<int32_t>::max(), w.who, ": ", n, " slices of ", s.count(),
                    " elements on 'cuda'");
  kSlices.launch(on.place, {dtype, static_cast<int>(how), rank, big, static_cast<int>(lane_width), fresh}, blocks,
                 kLanes, 0, slices);
  if (windows > 1)
    kCrossing.launch(on.place, {dtype, static_cast<int>(how), rank, big, static_cast<int>(lane_width), fresh}, blocks,
                     kLanes, 0, slices);
}

// Lanes that are combined in shared memory, a warp each. False where the places of a lane do not fit there, or where
// there are too few lanes, or too few elements in them, for that to pay.
bool combine_staged(const IndexedWalk& w, const Lanes& l, Dtype dtype, Combine how, const IndexedOn& on) {
  constexpr int64_t kMostBytes = 200 << 10, kGoodBytes = 16 << 10;
  const int64_t lanes = l.s.count();
  if (l.along <= 32 || lanes * 32 < l.along || w.bound > 4 * l.along || w.bound > kMostBytes) return false;
  Strided s = l.s;
  s.coalesce();
  const int64_t row =
      (w.bound + 32) * size_of(combined_in(dtype));  // a lane's places, and what its warp reads at a time
  const bool columns = w.scale != 1 && !s.sizes.empty() && s.indexed.back() == 1;
  if (!columns && w.scale != 1) return false;
  int64_t warps = 8;
  while (warps > 1 && warps * row > (columns ? kMostBytes : kGoodBytes)) warps /= 2;
  if (warps * row > kMostBytes || (columns && warps < 4)) return false;
  Walk walk;
  const int rank = put(walk, s, w, on);
  kStaged.launch(on.place,
                 {dtype, static_cast<int>(how), rank, is_big(walk.count), on.index, static_cast<int>(warps), columns},
                 divide_up(lanes, warps), 32 * warps, warps * row, walk, l.along, l.plain_along, l.index_along);
  return true;
}

// How far the elements that a walk may reach lie apart, the last one included.
int64_t span_of(const IndexedWalk& w) {
  int64_t last = (w.bound - 1) * w.scale;
  for (int64_t d = 0; d < w.sizes.size(); ++d) last += (w.sizes[d] - 1) * w.indexed_strides[d];
  return last + 1;
}

// The largest or smallest of floats by atomics on keys that keep their order. False where so much of the target is left
// alone that the keys would take more time than they save.
bool find_extremes(const IndexedWalk& w, int64_t count, Dtype dtype, Combine how, const IndexedOn& on) {
  constexpr int64_t kFewKeys = 8192, kBlocks = 6;  // the first as in indexed_walk_extremes.cuh; blocks a multiprocessor
  const int64_t span = span_of(w);
  if (span > 4 * count) return false;
  for (const int64_t stride : w.indexed_strides)
    if (stride < 0) return false;
  Strided s{w.sizes, w.plain_strides, w.indexed_strides, w.index_strides};
  s.coalesce();
  Walk walk;
  const int rank = put(walk, s, w, on);
  const Tensor keys = full({{span}}, Scalar(0), Dtype::i32, on.device);
  const int64_t all = divide_up(count, kBlock * 4), most = kBlocks * properties(on.place.device).multiprocessors;
  kExtremes.launch(on.place, {dtype, static_cast<int>(how), 0, rank, is_big(walk.count), on.index},
                   span <= kFewKeys ? std::min(all, most) : all, kBlock, 0, walk, keys.bytes(), span);
  kExtremes.launch(on.place, {dtype, static_cast<int>(how), 1, 1, false, Dtype::i64}, divide_up(span, kBlock), kBlock,
                   0, w.indexed, keys.bytes(), span);
  return true;
}

// Sums of float32 by atomics, whose order does not matter: see Note [Sums of whole numbers] in indexed_walk_sums.cuh.
// False where the target is so large, or so much of it is left alone, that the sums would take more time than they
// save.
bool add_whole_numbers(const IndexedWalk& w, int64_t count, const IndexedOn& on) {
  constexpr int64_t kParts = 32, kMostSpan = int64_t{1} << 18, kMany = 16;
  constexpr int64_t kThreads = 1024, kMostBuckets = 4096;  // as in indexed_walk_sums.cuh
  constexpr int kLeast = 8, kMost = 14;  // the binary logarithm of a bucket's elements, 12 bytes each in shared memory
  constexpr int64_t kFewSummands = 32768, kFewSums = 8192;
  const int64_t span = span_of(w);
  const bool few = span <= kFewSums && count <= kFewSummands,
             by_parts = !few && span <= kMostSpan && count >= kMany * span;
  if (!few && !by_parts && (span > 4 * count || span > kMostBuckets << kMost)) return false;
  for (const int64_t stride : w.indexed_strides)
    if (stride < 0) return false;
  Strided s{w.sizes, w.plain_strides, w.indexed_strides, w.index_strides};
  s.coalesce();
  Walk walk;
  const int rank = put(walk, s, w, on);
  const bool big = is_big(walk.count);
  const auto room = static_cast<int32_t>(std::min(38, 62 - 24 - bits_for(count)));
  if (few) {
    kWholeNumbers.launch(on.place, {6, rank, big, on.index, 1}, 1, kThreads, 12 * span, walk, w.indexed,
                         static_cast<int32_t>(span), room);
    return true;
  }
  if (by_parts) {
    const Tensor sums = full({{kParts * span}}, Scalar(0), Dtype::i64, on.device),
                 notes = full({{span}}, Scalar(0), Dtype::i32, on.device);
    kWholeNumbers.launch(on.place, {0, rank, big, on.index, 1}, divide_up(walk.count, kBlock * 4), kBlock, 0, walk,
                         sums.bytes(), notes.bytes(), span);
    kWholeNumbers.launch(on.place, {1, 1, false, Dtype::i64, 1}, divide_up(span, kBlock), kBlock, 0, w.indexed,
                         sums.bytes(), notes.bytes(), span);
    return true;
  }
  // Buckets as small as a quarter of the most allows, so that several blocks share a multiprocessor.
  int32_t shift = kLeast;
  while (shift < kMost && span > kMostBuckets / 4 << shift) ++shift;
  const auto buckets = static_cast<int32_t>(divide_up(span, int64_t{1} << shift));
  // Tiles large enough for what goes to a bucket to be a few sectors, where there are enough of them.
  const int items = count >= int64_t{1} << 22 ? 16 : 4;
  const int64_t tile = kThreads * items;
  const Tensor counts = full({{buckets}}, Scalar(0), Dtype::i32, on.device),
               starts = empty({{buckets + 1}}, Dtype::i32, on.device), next = empty({{buckets}}, Dtype::i32, on.device),
               filled = empty({{count}}, Dtype::i64, on.device);
  const int64_t resident = 2 * properties(on.place.device).multiprocessors;
  kWholeNumbers.launch(on.place, {2, rank, big, on.index, 1}, std::min(divide_up(count, kThreads * 4), resident),
                       kThreads, buckets * 4, walk, counts.bytes(), shift, buckets);
  kWholeNumbers.launch(on.place, {3, 1, false, Dtype::i64, 1}, 1, kThreads, kThreads / 32 * 4, counts.bytes(),
                       starts.bytes(), next.bytes(), buckets);
  kWholeNumbers.launch(on.place, {4, rank, big, on.index, items}, divide_up(count, tile), kThreads,
                       tile * 8 + buckets * 8 + kThreads / 32 * 4, walk, next.bytes(), filled.bytes(), shift, buckets);
  kWholeNumbers.launch(on.place, {5, 1, false, Dtype::i64, 1}, buckets, shift < 12 ? 256 : kThreads,
                       int64_t{12} << shift, w.indexed, starts.bytes(), filled.bytes(), span, shift, room);
  return true;
}

}  // namespace

void read_indexed(const IndexedWalk& w, int64_t width, const IndexedOn& on) { move(w, width, on, false); }
void write_indexed(const IndexedWalk& w, int64_t width, const IndexedOn& on) { move(w, width, on, true); }

void sum_slices(const IndexedWalk& w, Dtype dtype, int64_t left_out, bool by_count, const IndexedOn& on) {
  const Lanes l(w);
  if (l.along * l.s.count() == 0) return;
  combine_list(w, l, dtype, Combine::add, true, left_out, by_count, on);
}

void combine_indexed(const IndexedWalk& w, Dtype dtype, Combine how, const IndexedOn& on) {
  Lanes l(w);
  const int64_t lanes = l.s.count(), count = lanes * l.along;
  if (count == 0) return;
  const bool narrow = count < std::numeric_limits<int32_t>::max() - 4096;
  // One thread a lane is quick where there are many lanes, or little to do in each; where neither is so, sorting what
  // goes where pays.
  const bool many = lanes > 1024 || l.along <= 128, is_list = l.alike && lanes >= 8;
  if (!is_list && combine_staged(w, l, dtype, how, on)) return;
  if ((how == Combine::maximum || how == Combine::minimum) && (dtype == Dtype::f32 || is_reduced(dtype)) &&
      l.along > 32 && !is_list && find_extremes(w, count, dtype, how, on))
    return;
  if (dtype == Dtype::f32 && how == Combine::add && narrow && l.along > 32 && !is_list &&
      add_whole_numbers(w, count, on))
    return;
  if (l.along > 1 && l.alike && l.along < std::numeric_limits<int32_t>::max() - 4096 &&
      w.bound < std::numeric_limits<int32_t>::max() && (l.along > 16 || is_reduced(dtype)))
    return combine_list(w, l, dtype, how, false, kNothing, false, on);
  if (many && (l.along == 1 || !is_reduced(dtype))) {
    l.s.coalesce();
    Walk walk;
    const int rank = put(walk, l.s, w, on);
    return kSerial.launch(on.place, {dtype, static_cast<int>(how), rank, is_big(walk.count), on.index},
                          divide_up(walk.count, kBlock), kBlock, 0, walk, l.along, l.plain_along, l.index_along);
  }
  check_implemented(narrow, w.who, ": ", count, " elements through an index on 'cuda'");
  Strided s{w.sizes, w.plain_strides, w.indexed_strides, w.index_strides};
  s.coalesce();
  Walk walk;
  const int rank = put(walk, s, w, on);
  // Offsets up to the last element's; the key after it is for bad indices.
  const auto none = static_cast<uint64_t>(span_of(w));
  const bool wide = none > std::numeric_limits<uint32_t>::max();
  const Tensor keys = empty({{count}}, wide ? Dtype::i64 : Dtype::i32, on.device);
  const Dtype key = wide ? Dtype::u64 : Dtype::u32;
  kKeys.launch(on.place, {key, true, rank, on.index}, divide_up(count, kBlock), kBlock, 0, walk, keys.bytes(), none,
               kNothing, static_cast<char*>(nullptr));
  const SortedKeys sorted = sort_keys(on.place, keys, count, bits_for(static_cast<int64_t>(none)));
  if (wide)
    kSorted.launch(on.place, {dtype, static_cast<int>(how), rank, key}, divide_up(count, kBlock), kBlock, 0, walk,
                   sorted.keys.bytes(), sorted.positions.bytes(), none);
  else
    kSorted.launch(on.place, {dtype, static_cast<int>(how), rank, key}, divide_up(count, kBlock), kBlock, 0, walk,
                   sorted.keys.bytes(), sorted.positions.bytes(), static_cast<uint32_t>(none));
}

}  // namespace cresset::cuda
