// Many tensors in one launch: the table of cresset/cuda/kernels/many_table.cuh, which travels in the kernel's
// parameters.
#pragma once
#include <string>
#include <vector>

#include "cuda/launch.h"

namespace cresset::cuda {

inline constexpr int kMostLists = 6, kMostRowNumbers = 16, kMostSingles = 3;

// One target: a tensor of each list, all of `count` elements.
struct ManyTarget {
  const void* tensors[kMostLists] = {};
  const void* singles[kMostSingles] = {};
  int64_t count = 0;
  const double* numbers = nullptr;
};

// A program for many tensors. Kernels are known by `key`, which says all that the text and the options depend on.
struct ManyProgram {
  int lists = 0, numbers = 0, singles = 0;  // singles: those on the device
  int vector = 4;                           // elements of one access
  const void* scale = nullptr;
  const void* found = nullptr;
  int64_t scale_step = 0,
          found_step =
              0;  // bytes by which they move on with each target and each block, when there is more than one table
  int after_threads = 1;  // threads a target of the kernel that follows
  std::string key;
  std::string (*text)(const void* context) = nullptr;  // what stands before `file`
  const void* context = nullptr;
  const char* file = "many.cuh";
  std::vector<std::string> options;
};

// The blocks of all targets together.
int64_t count_blocks(const ManyProgram& program, const Place& place, const std::vector<ManyTarget>& targets);
// Launches `entry` for all targets, as few times as the tables allow; `after`, if it is not null, follows each time
// with threads for each target.
void launch_many(const ManyProgram& program, const Place& place, const std::vector<ManyTarget>& targets,
                 const char* entry, const char* after = nullptr);

}  // namespace cresset::cuda
