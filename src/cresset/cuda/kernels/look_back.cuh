// What stands before a tile of a row whose other tiles are made by other blocks at the same time.
#pragma once
#include "block.cuh"

namespace cresset {

// Note [Looking back]
// A scan in one pass: each block reads a tile, tells the others what it comes to, and waits for what comes before it.
// Blocks take their tiles by a ticket, in order, so that whoever waits does so for blocks that run. The usual way adds
// up whatever is known at that moment, and sums of floats then depend on the moment. Here the shape is fixed: 32 tiles
// are a group and 32 groups a span. What stands before a tile is joined from what stands before its span, from the
// groups of the span before it and from the tiles of the group before it. The last tile of a group tells what the group
// comes to, that of a span what stands before the next; a lane waits for a tile and a group each, and only spans wait
// for one another.
//
// Slots of a row of n tiles: n tiles, the groups, the spans. `ready` (zeros at first) says which values are there.
struct LookBack {
  uint32_t* ready;
  uint64_t* values;
  int64_t tiles, groups;  // of a row

  template <class V>
  CRESSET_INLINE void tell(int64_t slot, const V& value) const {
    using Parts = Vector<uint64_t, sizeof(V) / 8>;
    const Parts parts = __builtin_bit_cast(Parts, value);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(V) / 8); ++i)
      const_cast<volatile uint64_t*>(values)[slot * (sizeof(V) / 8) + i] = parts[i];
    __threadfence();
    const_cast<volatile uint32_t*>(ready)[slot] = 1;
  }
  template <class V>
  CRESSET_INLINE V told(int64_t slot) const {
    while (const_cast<volatile uint32_t*>(ready)[slot] == 0) {
    }
    __threadfence();
    Vector<uint64_t, sizeof(V) / 8> parts;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(V) / 8); ++i)
      parts[i] = const_cast<volatile uint64_t*>(values)[slot * (sizeof(V) / 8) + i];
    return __builtin_bit_cast(V, parts);
  }

  // By one warp; `own` is what the tile comes to. Whole and lawful for every V of whole words with a function `joined`.
  template <class V>
  CRESSET_INLINE V before(int64_t row, int64_t tile, const V& own, const V& nothing) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t group = tile / 32, span = group / 32, first = row * (tiles + groups + groups / 32 + 1),
                  first_group = first + tiles, first_span = first_group + groups;
    if (lane == 0) tell(first + tile, own);
    const V near = in_order(lane < tile % 32 ? told<V>(first + group * 32 + lane) : nothing);
    if (lane == 0 && tile % 32 == 31) tell(first_group + group, joined(near, own));
    const V far = in_order(lane < group % 32 ? told<V>(first_group + span * 32 + lane) : nothing);
    V all = far;
    if (span > 0) all = joined(shuffle_from(lane == 0 ? told<V>(first_span + span) : nothing, 0), far);
    all = joined(all, near);
    if (lane == 0 && tile % 1024 == 1023) tell(first_span + span + 1, joined(all, own));
    return all;
  }

 private:
  // The values of all lanes, joined from the first to the last.
  template <class V>
  static CRESSET_INLINE V in_order(V value) {
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
      const V other = shuffle_up(value, by);
      if (static_cast<int>(threadIdx.x) % 32 >= by) value = joined(other, value);
    }
    return shuffle_from(value, 31);
  }
};

}  // namespace cresset
