#include "cuda/compact.h"

#include <algorithm>
#include <limits>

#include "cuda/backend.h"
#include "cuda/divider.h"
#include "cuda/fault.h"
#include "tensor/blocks.h"

namespace cresset::cuda {
namespace {

constexpr int kBlock = 256, kMostDims = 8;
constexpr int64_t kTile = kBlock * 16;  // as in compact.cuh

const KernelFamily kCount("compact.cuh", "count_flags", {}, {"-DCOUNT"});
const KernelFamily kSum("compact.cuh", "sum_flags", {}, {"-DSUM"});
const KernelFamily kPlaces("compact.cuh", "flag_places", {"RANK", "BIG"}, {"-DPLACES"});
const KernelFamily kTake("compact.cuh", "flagged_elements", {"WORD"}, {"-DTAKE"});
const KernelFamily kPut("compact.cuh", "put_elements", {"WORD"}, {"-DPUT"});
const KernelFamily kRanks("compact.cuh", "flag_ranks", {"INCLUDING"}, {"-DRANKS"});
const KernelFamily kCoordinates("compact.cuh", "place_coordinates", {}, {"-DCOORDINATES"});

const KernelFamily kTakeRuns("compact.cuh", "take_runs", {"T"}, {"-DTAKE_RUNS"});

struct Shape {
  Divider sizes[kMostDims];
  int64_t strides[kMostDims] = {};
};

int64_t element(const Tensor& t, int64_t place) { return item(view_of(t, {}, {}, place)).integer; }

}  // namespace

CountedFlags::CountedFlags(const Tensor& mask) : flags(contiguous_on_device(mask)), n(mask.numel()) {
  const Place place(mask.device());
  const int64_t tiles = divide_up(n, kTile);
  counts = empty({{tiles + 1}}, Dtype::i64, mask.device());  // of each tile; then of those before it, and of all
  if (tiles) kCount.launch(place, {}, tiles, kBlock, 0, flags.bytes(), n, counts.bytes());
  kSum.launch(place, {}, 1, kBlock, 0, counts.bytes(), tiles);
}

int64_t CountedFlags::total() const { return n == 0 ? 0 : element(counts, counts.numel() - 1); }

Tensor starts_of_runs(const Tensor& x) {
  const Place place(x.device());
  const int64_t n = x.numel(), tiles = divide_up(n, kTile), lefts = tiles + divide_up(tiles, kBlock);
  const Tensor out = empty({{n}}, x.dtype(), x.device());
  if (n == 0) return out;
  const Tensor left = empty({{lefts + 1, 2}}, Dtype::i64, x.device());  // at the end the ticket, and how many there are
  fill(left, 0);
  char* const end = left.bytes() + lefts * 16;
  kTakeRuns.launch(place, {x.dtype()}, tiles, kBlock, 0, x.bytes(), n, left.bytes(), end, out.bytes(), end + 8,
                   static_cast<int32_t>(tiles));
  const int64_t count = element(left, lefts * 2 + 1);
  const Tensor taken = view_of(out, {{count}}, {{1}}, 0);
  return count < n / 2 ? clone(taken, MemoryFormat::contiguous) : taken;  // few do not hold the room of all
}

Tensor CountedFlags::places(DimsView given_sizes, DimsView given_strides) const {
  const Tensor out = empty({{total()}}, Dtype::i64, flags.device());
  if (out.numel() == 0) return out;
  Dims sizes(given_sizes), strides(given_strides), order = contiguous_strides(given_sizes);
  Dims* both[2] = {&order, &strides};
  coalesce(sizes, both, 2);
  check_implemented(sizes.size() <= kMostDims, "a mask of more than ", kMostDims,
                    " dimensions that cannot be merged, on 'cuda'");
  const int64_t rank = sizes.size() <= 1 ? 1 : sizes.size() <= 3 ? sizes.size() : kMostDims, lead = rank - sizes.size();
  Shape shape;
  for (int64_t d = 0; d < sizes.size(); ++d) {
    shape.sizes[lead + d] = Divider(sizes[d]);
    shape.strides[lead + d] = strides[d];
  }
  const bool big = n > std::numeric_limits<int32_t>::max();
  kPlaces.launch(Place(flags.device()), {static_cast<int>(rank), big}, divide_up(n, kTile), kBlock, 0, flags.bytes(), n,
                 counts.bytes(), out.bytes(), shape);
  return out;
}

Tensor CountedFlags::elements(const Tensor& dense) const {
  const Tensor out = empty({{total()}}, dense.dtype(), dense.device());
  if (out.numel())
    kTake.launch(Place(dense.device()), {static_cast<int>(size_of(dense.dtype()))}, divide_up(n, kTile), kBlock, 0,
                 flags.bytes(), n, counts.bytes(), dense.bytes(), out.bytes());
  return out;
}

void CountedFlags::put(const Tensor& source, const Tensor& dense, int operation) const {
  const Place place(dense.device());
  const auto number = static_cast<int32_t>(operation);
  if (n)
    kPut.launch(place, {static_cast<int>(size_of(dense.dtype()))}, divide_up(n, kTile), kBlock, 0, flags.bytes(), n,
                counts.bytes(), source.bytes(), source.numel(), dense.bytes(), fault_place(place.device), number);
}

Tensor CountedFlags::ranks(bool including) const {
  const Tensor out = empty({{n}}, Dtype::i64, flags.device());
  if (n)
    kRanks.launch(Place(flags.device()), {including}, divide_up(n, kTile), kBlock, 0, flags.bytes(), n, counts.bytes(),
                  out.bytes());
  return out;
}

Tensor coordinates(const Tensor& places, DimsView sizes, bool by_dim) {
  const int64_t n = places.numel();
  const auto rank = static_cast<int32_t>(sizes.size());
  const Tensor out =
      by_dim ? empty({{rank, n}}, Dtype::i64, places.device()) : empty({{n, rank}}, Dtype::i64, places.device());
  if (out.numel() == 0) return out;
  check_implemented(rank <= kMostDims, "nonzero: more than ", kMostDims, " dimensions on 'cuda'");
  Shape shape;
  for (int32_t d = 0; d < rank; ++d) shape.strides[d] = sizes[static_cast<size_t>(d)];
  const int64_t of_place = by_dim ? 1 : rank, of_dim = by_dim ? n : 1;
  kCoordinates.launch(Place(places.device()), {}, divide_up(n, 256), 256, 0, places.bytes(), n, out.bytes(), of_place,
                      of_dim, rank, shape);
  return out;
}

}  // namespace cresset::cuda
