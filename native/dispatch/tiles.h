// Tiles: a group of late values as a list of loops over blocks that stay in the first-level cache.
#pragma once
#include "dispatch/late.h"

namespace cresset {

// The values, in the order of the calls, all of the same number of elements.
class Tiles {
 public:
  explicit Tiles(std::span<const TileResult> results);
  void run() const;

 private:
  struct Place {  // where a step finds or leaves the elements of a block
    enum Kind : uint8_t { none, block, memory, constant } kind = none;
    int32_t index = 0;     // of the block or constant
    char* base = nullptr;  // of the memory
    int64_t width = 0;
  };
  struct Step {
    enum Kind : uint8_t { loop, gather, convert, stream } kind = loop;
    Place out, in[kMaxOperands];
    int count = 0;
    Loop function = nullptr;
    const ScalarAttribute* attributes = nullptr;
    Dtype from = Dtype::f32, to = Dtype::f32;
    DimsView sizes, strides;
  };
  struct Constant {
    char bytes[16];
    int64_t width;
  };

  Place load(const LateValue& value, const LateValue::Input& input, const char* base);
  Place number(const LateValue::Input& input);
  Place new_block(int64_t width);
  void assign_blocks();
  static void read_ahead(std::span<const Place> from, int64_t at, int64_t n);

  std::vector<Step> steps_;
  std::vector<Constant> constants_;
  struct Loaded {
    const char* base;
    const LateValue* value;
    const LateValue::Input* input;
    Place place;
  };
  std::vector<Loaded> loaded_;
  std::vector<int64_t> virtual_;  // of each block before assignment: its width
  int64_t elements_ = 0, slots_ = 0, width_ = 1;
  bool streams_ = false;
};

}  // namespace cresset
