// Bad indices that a kernel meets. A kernel cannot raise: it writes what it met into memory that the host sees, goes on
// with a safe index, and the host raises an IndexError when it next waits for the device. The process and the device
// stay usable.
#pragma once
#include <cstdint>

#include "cuda/driver.h"

namespace cresset::cuda {

// The same as in cresset/cuda/kernels/fault.cuh.
struct Fault {
  int32_t state = 0;      // 0: nothing; 1: being written; 2: there
  int32_t operation = 0;  // a number of `operation_number`
  int64_t value = 0, position = 0, bound = 0;
};

// Where kernels of the device report to, as an address of the device.
Address fault_place(int device);
// A number for the operator's name, to be given to the kernel.
int operation_number(const char* name);
// Raises and forgets the fault that was reported, if one was. The device has nothing to do at this moment.
void raise_faults(int device);

}  // namespace cresset::cuda
