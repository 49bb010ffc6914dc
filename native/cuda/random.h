// Where kernels get their random words from, and graphs that draw.
#pragma once
#include "base/generator.h"
#include "dispatch/call.h"

namespace cresset::cuda {

// The next `words` words of the generator at argument `at`, or of the device's own when there is none (or `at` is -1).
Philox::Start take_words(const Call& c, int at, Device device, int64_t words);

// Graphs: between begin and end the device's own generator counts for the graph, from a start that is written to
// `place`, 16 bytes on the device, before each replay.
void begin_random_capture(int device, uint64_t place);
uint64_t end_random_capture(int device);
void start_random_replay(int device, uint64_t place, uint64_t words);

}  // namespace cresset::cuda
