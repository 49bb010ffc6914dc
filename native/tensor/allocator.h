// Host memory: blocks are kept by size class and given again, since fresh pages cost more than most kernels.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cresset {

// 64-byte aligned; raises an out-of-memory Error (RuntimeError in Python) when the system refuses.
void* allocate_host(size_t bytes);
void free_host(void* p, size_t bytes);
void empty_host_cache();
// Whether the system would give this many bytes.
bool has_room(size_t bytes);

struct HostMemoryStatistics {
  int64_t in_use, peak, cached;
};
HostMemoryStatistics host_memory_statistics();
void reset_peak_host_memory();

// Fixed-size cells for the objects every operation makes (tensors, storages, nodes): a free list per size.
void* allocate_cell(size_t bytes);
void free_cell(void* p, size_t bytes);

}  // namespace cresset
