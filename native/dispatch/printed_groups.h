// Printed groups: a group of late values as one function, printed as C++ and compiled by the system's compiler while
// the program runs.
//
// Note [Printed groups]
// A list of loops over blocks (dispatch/tiles.h) loads and stores every value between two calls. A group that a program
// computes again and again is therefore printed as one function, whose values stay in registers
// (cresset/compiler/printing.py), and compiled in the background. The formulas and the flags are those of eager's
// loops, and nothing is contracted or reordered, so the bits are eager's. Until the function is there, where there is
// no compiler, and where the function turns out to be no faster, the group runs as a list of loops.
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include "dispatch/pointwise.h"

namespace cresset {

// What is known about all groups of one kind: the same calls, which read each other, memory and numbers in the same
// way.
class PrintedGroup {
 public:
  explicit PrintedGroup(std::string key) : key_(std::move(key)) {}
  // The function, where this run should call it. Its pointers: results that are kept, memory, numbers; its attributes:
  // kMaxPointwiseInputs of each call.
  Loop function() {
    if (state_ != State::ready) return nullptr;
    // A busy machine can make the first runs slow: the function is tried again now and then.
    return trials_ < kTrials || printed_ < listed_ || ++passed_over_ % kRetrial == 0 ? function_ : nullptr;
  }
  // A run is over. `printed`: by the function.
  void note(int64_t nanoseconds, int64_t elements, bool printed);
  void install(Loop function);  // null: it will not come

 private:
  enum class State : uint8_t { counting, asked, ready, refused };
  static constexpr int64_t kWorthwhile = 60'000'000;  // nanoseconds that its runs have taken before it is printed
  static constexpr int kTrials = 8;                   // runs of the function before it is compared
  static constexpr int kRetrial = 16;

  std::string key_;
  State state_ = State::counting;
  Loop function_ = nullptr;
  int64_t spent_ = 0;
  int trials_ = 0, passed_over_ = 0;
  double listed_ = std::numeric_limits<double>::infinity(), printed_ = listed_;  // the best run, nanoseconds an element
};

PrintedGroup& printed_group(const std::string& key);

// Set by the bindings: prints and compiles what `key` describes, in the background. Null: nobody does.
extern void (*print_group)(const std::string& key);

struct PrintedStatistics {
  int64_t asked = 0, ready = 0, refused = 0, runs = 0;
};
extern PrintedStatistics printed_statistics;

}  // namespace cresset
