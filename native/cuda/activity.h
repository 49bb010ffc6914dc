// What the devices do, for a profiler: kernels, copies and fills with their times, and which operator asked for each.
//
// Note [Activities]
// CUPTI, NVIDIA's profiling library, tells of every kernel and copy with the device's own times, and which call of the
// driver began it. Who made that call is told to CUPTI beforehand, as a number, on the thread that makes it: that is
// mostly the thread of Note [Launching on another thread], so the queue keeps the number of whoever wrote a launch
// beside it. Where there is no CUPTI, an event before and one after each launch measure it: names of kernels and times
// of half a microsecond, and only of what goes through the queue.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/queue.h"

namespace cresset::cuda {

struct Activity {
  enum Kind : uint8_t { kernel, copy, fill, call } kind = kernel;  // a call is that of the driver which asked for it
  std::string name;
  int64_t start = 0, end = 0;  // nanoseconds of profile_now()
  int device = -1;
  uint64_t stream = 0, thread = 0;
  uint32_t correlation = 0;  // the same for a call and what it asked for
  uint64_t source = 0;       // a number of `launch_source`
  int64_t bytes = 0;
  unsigned grid[3] = {}, block[3] = {}, shared = 0, registers = 0;
};

// Several may record at once. With `keep` every activity is kept, since the time of profile_now() that stop is given;
// without, the devices' time is added up by its source, however long it takes.
void start_activities(bool keep);
struct Activities {
  std::vector<Activity> kept;
  std::vector<std::pair<uint64_t, int64_t>> sums;  // source, nanoseconds
};
Activities stop_activities(bool keep, int64_t since);
// "CUPTI" or "events", and why it is not CUPTI.
struct ActivitySource {
  std::string name, problem;
};
ActivitySource activity_source();

// The side of the queue. Numbers: 0 nobody, an event's place + 1, or kOfStack + a stack.
inline constexpr uint64_t kOfStack = uint64_t{1} << 40;
struct LaunchWatch {
  uint64_t (*source)();                               // who launches, asked on the thread that writes the work
  void (*before)(const Work& work, uint64_t source);  // on the thread that launches
  void (*after)(const Work& work, uint64_t source);
};
extern std::atomic<const LaunchWatch*> launch_watch;
uint64_t source_of(const Work& work);  // of work in the queue

}  // namespace cresset::cuda
