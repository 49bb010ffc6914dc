// What a compiled kernel and the emulated driver know of each other. Included by both, so it names no header.
#pragma once

struct EmulatedIndex {
  unsigned x, y, z;
};

struct EmulatedRange {
  unsigned long begin, bytes;
};

enum EmulatedWarpOperation : int {
  kWarpSync,
  kWarpShuffle,
  kWarpBallot,
  kWarpAll,
  kWarpMatchAny,
  kWarpMatchAll,
  kWarpAddition,
  kWarpMinimum,
  kWarpMaximum,
  kWarpSignedMinimum,
  kWarpSignedMaximum,
  kWarpAnd,
  kWarpOr,
  kWarpXor,
};

// What the driver does for a running thread.
struct EmulatedHost {
  // Waits for all threads of the block; gives how many of them came with a true predicate.
  unsigned (*barrier)(bool predicate, const char* file, int line);
  // Waits for the lanes of `mask`, who all bring a value; gives what the operation makes of the values for this lane.
  unsigned long long (*warp)(EmulatedWarpOperation operation, unsigned mask, unsigned long long value, unsigned source,
                             const char* file, int line);
  void (*trap)(const char* what, const char* file, int line);
  // The memory around these bytes that the kernel may use. Ends the launch if there is none.
  EmulatedRange (*find_range)(unsigned long address, unsigned long bytes, bool writes);
  void (*misaligned)(unsigned long address, unsigned long bytes, bool writes);
};

// One compiled program: the symbol `emulated_module`.
struct EmulatedModule {
  EmulatedHost* host;  // filled in by the driver
  EmulatedIndex *thread, *block, *block_size, *grid_size;
  unsigned char* dynamic_shared;
  unsigned long long dynamic_shared_size;
  EmulatedRange* recent;  // memory that was found good; emptied before each launch
  int recent_count;
  void* (*static_shared)();  // an address in the calling thread's copy of the __shared__ variables
};

// One kernel: the symbol `emulated_kernel_NAME`.
struct EmulatedKernel {
  const char* name;
  void (*run)(void** parameters);  // one thread, the one that EmulatedModule::thread says
  unsigned parameters;
  const unsigned* sizes;
  const bool* is_pointer;
  unsigned max_threads;  // of __launch_bounds__, 0 without
};
