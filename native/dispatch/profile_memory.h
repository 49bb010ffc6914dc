// What a profiler is told of memory: who allocated what, when, and what it served for.
#pragma once
#include <atomic>
#include <vector>

#include "dispatch/profile.h"

namespace cresset {

// What memory was seen to serve for, as bits: one piece can serve for several.
enum class MemoryUse : uint8_t {
  parameter = 1,        // a leaf that a gradient reached
  gradient = 2,         // the gradient of such a leaf
  input = 4,            // read beside what needs a gradient, and needs none itself
  activation = 8,       // made by a call that a backward pass goes through, or kept for one
  optimizer_state = 16  // the program says so
};

struct ProfileAllocation {
  uint64_t address = 0;
  int64_t bytes = 0;
  Device device;
  int64_t start = -1, end = -1;  // nanoseconds; start -1: it was there before, end -1: it is there still
  ProfilePlace place;            // of the allocation
  uint8_t uses = 0;
};

// Memory of one stack, on the host and on devices.
struct ProfileHolder {
  struct Side {
    int64_t allocations = 0, allocated = 0, held = 0, at_peak = 0, most = 0;
  };
  int32_t stack = -1;
  Side sides[2];
};
struct ProfileHolders {
  std::vector<ProfileHolder> holders;
  int64_t peaks[2] = {};
};

extern std::atomic<bool> profiling_memory;

// Whether memory is counted, every allocation is listed (`keep`) and added up by stack (`sum`), from now on.
void watch_profile_memory(bool on, bool keep, bool sum);
std::vector<ProfileAllocation> profile_allocations();  // so far
ProfileHolders profile_holders();

// What this thread allocated so far, less what it freed.
struct ProfileBytes {
  int64_t host = 0, device = 0;
};
ProfileBytes profile_bytes();

void note_memory_use(const Tensor& t, MemoryUse use);
// Of a call that is recorded for a backward pass.
void note_recorded(const Call& c);

}  // namespace cresset
