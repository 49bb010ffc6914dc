// Runs the blocks of a grid, one after another, and the threads of a block as fibers that change places where they wait
// for each other.
#pragma once
#include "device/interface.h"
#include "emulator.h"

namespace emulator {

struct Grid {
  const EmulatedModule* module;
  const EmulatedKernel* kernel;
  EmulatedIndex size, block_size;
  unsigned shared_bytes;        // dynamic
  EmulatedRange static_shared;  // the kernel's __shared__ variables
  EmulatedRange image;          // the rest of its own data
  void** parameters;
  Device* device;
};
// Says on stderr what went wrong, if it gives an error. The caller holds the lock.
Status run_grid(const Grid& grid);

// What running kernels call, for EmulatedModule::host.
EmulatedHost host_functions();

}  // namespace emulator
