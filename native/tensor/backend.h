// Backend: all that is true of one kind of device. The CPU is one (ops/cpu.cpp), CUDA another (cuda/backend.cpp). The
// floors above memory hold a Backend& and name no device; a device's kernels stand in Operator::run, beside the CPU's.
#pragma once
#include <memory>

#include "base/generator.h"
#include "tensor/tensor.h"

namespace cresset {

// Work, as the floors above describe it.
struct PointwiseLaunch;  // dispatch/call.h: a formula over operands of any strides
struct DenseLaunch;      // dispatch/call.h: a formula over operands that lie alike
struct UpdateLaunch;     // ops/update.h: a step of an optimizer
struct IndexItem;        // ops/indexed_walk.h: one index of x[i, :, j]

class Backend {
 public:
  explicit Backend(DeviceType type);  // takes its place in the table; lives as long as the process
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  const DeviceType type;

  // ---- devices
  virtual int resolve(int index) = 0;   // -1: the current device; raises when there is no such device
  virtual int dlpack_type() const = 0;  // its number in the DLPack protocol
  virtual std::unique_ptr<Generator> make_generator(int index) = 0;

  // ---- memory
  virtual Memory allocate(int64_t bytes, int device) = 0;
  virtual void free(Memory memory, int64_t bytes, int device) = 0;
  virtual void copy(const Tensor& to, const Tensor& from,
                    bool non_blocking) = 0;  // any dtypes and strides of one shape; one of the two is here
  virtual void copy_bytes(char* to, const char* from, int64_t bytes, int device) = 0;  // within the device
  virtual void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns,
                                  int64_t width, int device) = 0;
  virtual void fill(const Tensor& t, const Scalar& value) = 0;
  virtual Scalar item(const Tensor& t) = 0;  // waits for the device
  virtual void settle() {}                   // all that was asked for is on its way to the device

  // ---- page-locked host memory, from which the device copies without the processor's help
  virtual bool can_pin() { return false; }
  virtual RefPtr<Storage> allocate_pinned(int64_t bytes);
  virtual bool is_pinned(const void*) { return false; }  // memory that somebody else made and had locked

  // ---- work
  virtual bool finds_zero_divisors() const {
    return false;
  }  // an integer divisor that is zero raises, and what was to be written in place stays as it was
  virtual void run(const PointwiseLaunch& work) = 0;
  virtual void run(const DenseLaunch& work) = 0;
  virtual void run(const UpdateLaunch& work) = 0;
  virtual Tensor places_of_mask(const Tensor& mask, DimsView strides) = 0;  // see ops/indexed_walk.h
  virtual Tensor join_indices(const char* who, std::span<const IndexItem> items,
                              DimsView shape) = 0;  // all indices as one list
};

extern Backend* backends[kDeviceTypes];  // null: this device has none

// The device as a tensor on it names it: with its number. Raises when there is no such device.
Device resolve(Device device);
inline Backend* find_backend(Device d) { return backends[static_cast<int>(d.type)]; }
inline Backend& backend_of(Device d) { return *find_backend(d); }
// Memory of its own, which the processor cannot read.
inline bool is_accelerator(Device d) { return !d.is_cpu() && !d.is_meta(); }

// As the index of the CPU in a TensorInfo: the memory is to be page-locked. The tensor's own device is the plain CPU.
inline constexpr int8_t kPinned = -2;
Backend* pinning_backend();  // null: there is no device that locks pages

// The address of a tensor's first element, for a program that will talk to the device by itself; null when the tensor
// has no memory.
char* address_for_others(const Tensor& t);

}  // namespace cresset
