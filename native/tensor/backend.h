// Backend: what a device other than the CPU does with memory. Its kernels stand beside the CPU's, in Operator::run.
#pragma once
#include "tensor/tensor.h"

namespace cresset {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual int resolve(int index) = 0;                                          // -1: the current device; raises when there is no such device
  virtual Memory allocate(int64_t bytes, int device) = 0;
  virtual void free(Memory memory, int device) = 0;
  virtual void copy(const Tensor& to, const Tensor& from, bool non_blocking) = 0;  // any dtypes and strides of one shape; one of the two is here
  virtual void copy_bytes(char* to, const char* from, int64_t bytes, int device) = 0;  // within the device
  virtual void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width, int device) = 0;
  virtual void fill(const Tensor& t, const Scalar& value) = 0;
  virtual Scalar item(const Tensor& t) = 0;                                    // waits for the device
  virtual void settle() = 0;                                                   // all that was asked for is on its way to the device
};

extern Backend* backends[kDeviceTypes];  // null: this device has none

// The device as a tensor on it names it: with its number. Raises when there is no such device.
Device resolve(Device device);
inline bool has_backend(Device d) { return !d.is_cpu() && !d.is_meta(); }
inline Backend& backend_of(Device d) { return *backends[static_cast<int>(d.type)]; }

// The address of a tensor's first element, for a program that will talk to the device by itself; null when the tensor has no memory.
char* address_for_others(const Tensor& t);

}  // namespace cresset
