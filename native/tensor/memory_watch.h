// Who is told of the memory of tensors: a profiler.
#pragma once
#include <cstdint>

#include "base/device.h"

namespace cresset {

using MemoryWatcher = void (*)(const void* data, int64_t bytes, Device device);
// Called after memory was allocated and before it is freed, on every device; null: nobody is told.
void watch_memory(MemoryWatcher allocated, MemoryWatcher freed);

}  // namespace cresset
