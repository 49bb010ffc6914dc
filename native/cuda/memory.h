// Device memory: a caching allocator in stream order, and pinned host memory.
//
// Memory comes from the driver in segments and is handed out as blocks, which split and merge. A block that is freed
// may be given again at once to the stream it was made for, since that stream does its work in order; another stream
// that used it is waited for with an event. Blocks of up to 1 MiB live in segments of 2 MiB, larger ones in segments of
// their own. The blocks freed last wait whole for another of their size, which is what a training step asks for next.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/driver.h"
#include "tensor/storage.h"

namespace cresset::cuda {

// There is not enough memory on the device: torch.OutOfMemoryError.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(std::string message) : Error(ErrorKind::out_of_memory, std::move(message)) {}
};

Memory allocate(int device, int64_t bytes);  // for the thread's current stream; raises OutOfMemory
void free(int device, void* block);
void* find_block(int device, const char* data);  // null: not ours
void record_stream(
    int device, void* block,
    StreamHandle stream);      // the stream works on the block too: it is not given again before that is done
void empty_cache(int device);  // gives what nobody uses back to the driver
// From here on the addresses that are given depend on what is in use alone, not on what was freed last. It counts.
void order_free_blocks(int device, bool on);
void set_memory_fraction(int device, double fraction);
double memory_fraction(int device);

// Allocations of a stream that is being captured come from a pool of their own and stay there as long as the graph
// lives.
uint64_t new_pool();
void begin_pool(int device, uint64_t pool);
void end_pool(int device, uint64_t pool);
void release_pool(int device, uint64_t pool);

struct Figure {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void add(int64_t amount) {
    current += amount;
    if (current > peak) peak = current;
    (amount > 0 ? allocated : freed) += amount > 0 ? amount : -amount;
  }
};
// Of all blocks, of small ones, of large ones.
using Figures = std::array<Figure, 3>;
struct MemoryStatistics {
  Figures allocation, segment, active, inactive_split, allocated_bytes, reserved_bytes, active_bytes,
      inactive_split_bytes, requested_bytes;
  int64_t retries = 0, failures = 0, device_allocations = 0, device_frees = 0;
};
MemoryStatistics memory_statistics(int device);
void reset_peak_statistics(int device);
void reset_accumulated_statistics(int device);

// What is where, for the snapshot.
struct BlockFacts {
  uint64_t address;
  int64_t bytes, requested;
  enum State { allocated, waiting, free } state;
  std::string site;  // "file.py(12): function" of the allocation; empty when not known
};
struct SegmentFacts {
  uint64_t address;
  int64_t bytes;
  StreamHandle stream;
  bool large;
  uint64_t pool;
  std::vector<BlockFacts> blocks;
};
std::vector<SegmentFacts> memory_snapshot(int device);

// The history of allocations, when it is recorded.
struct MemoryEvent {
  enum Kind { alloc, free, segment_alloc, segment_free, out_of_memory } kind;
  uint64_t address;
  int64_t bytes, time;  // nanoseconds since 1970
  StreamHandle stream;
  std::string site;
};
void record_memory_history(int device, int64_t most_events);  // 0: stop and forget
std::vector<MemoryEvent> memory_history(int device);

// Where in the user's program an allocation happens, and in which module; the bindings plug in how. Asked for large
// blocks, and for all while history is recorded.
extern std::string (*allocation_site)();

// ---- pinned host memory; freed blocks are kept, and given again when the copies that use them are done
void* allocate_pinned(int64_t bytes);
void free_pinned(void* p);
bool is_pinned(const void* p);
RefPtr<Storage> pinned_storage(int64_t bytes);
void note_pinned_use(const void* p, int device, StreamHandle stream);  // an asynchronous copy reads or writes it
void empty_pinned_cache();
// Memory that somebody else made and the driver has locked (cudaHostRegister).
void note_registered(void* p, int64_t bytes);
void forget_registered(void* p);
bool is_registered(const void* p);
struct PinnedStatistics {
  Figure allocation, allocated_bytes, segment, reserved_bytes;  // blocks and bytes in use, and with those that are kept
};
PinnedStatistics pinned_statistics();
void reset_pinned_peaks();
void reset_pinned_sums();

}  // namespace cresset::cuda
