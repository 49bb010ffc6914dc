// Tiles: a group of late values as a list of loops over blocks that stay in the first-level cache.
#pragma once
#include "dispatch/late.h"
#include "dispatch/printed_groups.h"

namespace cresset {

// The values, in the order of the calls, all of the same number of elements.
class Tiles {
 public:
  // `taker` gets the elements of the last value, which are not streamed.
  explicit Tiles(std::span<const TileResult> results, const Taker* taker = nullptr);
  void run();

 private:
  struct Place {  // where a step finds or leaves the elements of a block
    enum Kind : uint8_t { none, block, memory, row, constant, taken } kind = none;
    int32_t index = 0;     // of the block or constant
    char* base = nullptr;  // of the memory, or of the row that is read again and again
    int64_t width = 0;
    bool operator==(const Place&) const = default;
  };
  struct Step {
    enum Kind : uint8_t { loop, placed, gather, convert, stream, printed } kind = loop;
    Place out, in[kMaxOperands];
    int count = 0;
    Loop function = nullptr;
    const ScalarAttribute* attributes = nullptr;
    const PlacedWork* work = nullptr;
    Dtype from = Dtype::f32, to = Dtype::f32;
    DimsView sizes, strides;
  };
  struct Constant {
    char bytes[16];
    int64_t width;
  };

  bool describe(std::span<const TileResult> results);
  void add_loops(std::span<const TileResult> results);
  void add_printed(std::span<const TileResult> results, Loop function);
  Place result_place(const TileResult& result);
  void add_stream(const Place& from, char* memory);
  void run_blocks();
  bool is_row(const LateValue& value, const LateValue::Input& input);
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
  int64_t elements_ = 0, calls_ = 0, slots_ = 0, width_ = 1;
  int64_t row_ = 0;  // elements: where a row is read again and again, no block goes beyond its end; 0: there is none
  bool large_ = false, streams_ = false;  // more than the cache holds; some result is written past it
  const Taker* taker_;
  TileResult last_;                // the value that is taken
  PrintedGroup* group_ = nullptr;  // where it can be printed
  bool printed_ = false;           // and is
  std::vector<Place> operands_;    // of the printed function
  std::vector<ScalarAttribute> attributes_;
};

}  // namespace cresset
