// Items to sort and select by: an unsigned key that keeps the order of the elements, and the position of the element.
//
// All nan have the highest key, -0 and 0 the same, so that comparing keys is PyTorch's order: nan after everything
// else. Elements of up to four bytes make an item of one 64-bit word, which sorts by key and then by position: a plain
// sort of it is a stable sort. What works on items is compiled for the two kinds of item, not for every dtype.
#pragma once
#include "base/dtype.h"
#include "tensor/allocator.h"

namespace cresset {

struct NarrowItem {
  uint64_t word;
  using Key = uint32_t;
  static NarrowItem make(Key key, int64_t position) { return {uint64_t(key) << 32 | static_cast<uint64_t>(position)}; }
  Key key() const { return static_cast<Key>(word >> 32); }
  int64_t position() const { return static_cast<int64_t>(word & 0xffffffffu); }
  bool operator<(NarrowItem o) const { return word < o.word; }
};
struct WideItem {
  uint64_t word;
  int64_t at;
  using Key = uint64_t;
  static WideItem make(Key key, int64_t position) { return {key, position}; }
  Key key() const { return word; }
  int64_t position() const { return at; }
  bool operator<(WideItem o) const { return word != o.word ? word < o.word : at < o.at; }
};

inline constexpr auto by_key = [](const auto& a, const auto& b) { return a.key() < b.key(); };

// Calls f with the kind of item that fits slices of n elements of the dtype.
template <class F>
void visit_items(Dtype dtype, int64_t n, F&& f) {
  if (size_of(dtype) <= 4 && n <= int64_t(1) << 32)
    f.template operator()<NarrowItem>();
  else
    f.template operator()<WideItem>();
}

// Room for n items.
template <class Item>
class ItemBuffer {
 public:
  explicit ItemBuffer(int64_t n)
      : bytes_(static_cast<size_t>(n) * sizeof(Item)), items_(static_cast<Item*>(allocate_host(bytes_))) {}
  ~ItemBuffer() { free_host(items_, bytes_); }
  ItemBuffer(const ItemBuffer&) = delete;
  Item* data() const { return items_; }

 private:
  size_t bytes_;
  Item* items_;
};

// The items of n elements that lie `step` apart, with positions from `first` on; the largest come first if
// `descending`. True: the elements can be had back from the keys. (A -0 cannot, nor can the bits of a nan.)
template <class Item>
using MakeItems = bool (*)(const char* from, int64_t step, int64_t n, bool descending, int64_t first, Item* to);
template <class Item>
MakeItems<Item> item_maker(Dtype dtype, const char* who);

// Whether any of n neighboring elements comes before `bound`: a third of the time that it takes to make their items.
template <class Item>
using AnyBefore = bool (*)(const char* from, int64_t n, bool descending, typename Item::Key bound);
template <class Item>
AnyBefore<Item> before_finder(Dtype dtype, const char* who);

// The way back, where it is possible: the elements of n items.
template <class Item>
using RestoreElements = void (*)(const Item* items, int64_t n, bool descending, char* to, int64_t step);
template <class Item>
RestoreElements<Item> element_restorer(Dtype dtype, const char* who);

// The highest key, before `descending` turned it round, is a nan's if the dtype has nan.
template <class Item>
bool is_nan(Item item) {
  return item.key() == static_cast<typename Item::Key>(~typename Item::Key(0));
}

// Sorts by key, keeping the order of equal keys. The positions must increase; `scratch` has room for n.
void sort_items(NarrowItem* items, NarrowItem* scratch, int64_t n);
void sort_items(WideItem* items, WideItem* scratch, int64_t n);

// The item that sorting would put at place k; the items change places.
NarrowItem nth_item(NarrowItem* items, int64_t n, int64_t k);
WideItem nth_item(WideItem* items, int64_t n, int64_t k);

// out[i] = in[position of items[i]], for elements of `width` bytes.
template <class Item>
void take_items(const Item* items, int64_t n, const char* in, int64_t in_step, char* out, int64_t out_step,
                int64_t width);
template <class Item>
void take_positions(const Item* items, int64_t n, int64_t* out, int64_t step) {
  for (int64_t i = 0; i < n; ++i) out[i * step] = items[i].position();
}

}  // namespace cresset
