// What the generated steps of the optimizers look like to the rest of the core: see cresset/ops/pointwise/update.py.
#pragma once
#include <cstdint>

namespace cresset {

// Reads and writes `count` elements of each tensor in place. `numbers` has the group's numbers, then the singles as
// they were.
using UpdateLoop = void (*)(char* const* tensors, const double* numbers, int64_t count);

inline constexpr int kMaxUpdateTensors = 5, kMaxUpdateNumbers = 10, kMaxUpdateSingles = 3;

struct UpdateVariant {
  const char* name;  // "adam"
  int flags;         // which variant of it
  int tensor_count, number_count, single_count;
  const char* tensors[kMaxUpdateTensors];  // param, grad, then what is kept for the parameter
  bool written[kMaxUpdateTensors];
  const char* numbers[kMaxUpdateNumbers];
  const char* singles[kMaxUpdateSingles];
  UpdateLoop loops[2];                                      // in f32 and in f64
  void (*advance)(const double* numbers, double* singles);  // sets the singles that change
};

// Generated: for each instruction-set level the same list.
extern const UpdateVariant kUpdates_baseline[];
extern const UpdateVariant kUpdates_avx2[];
extern const UpdateVariant kUpdates_avx512[];
extern const int kUpdateCount;

}  // namespace cresset
