// What the emulated cuBLAS and cuSOLVER share: handles with a stream, and work on memory that is checked before it is
// touched.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>

#include "dense.h"
#include "emulator.h"

namespace emulator {

struct Handle {
  Device* device;
  void* stream = nullptr;
};

// Memory that a routine reads or writes.
struct Range {
  const char* what;
  const void* data;
  uint64_t bytes;
  static Range matrix(const char* what, int type, const void* data, int64_t rows, int64_t columns, int64_t leading) {
    return {what, data, rows && columns ? uint64_t((columns - 1) * leading + rows) * bytes_of(type) : 0};
  }
};

// Submits the work to the handle's stream; false if it cannot be.
inline bool work_on(const char* who, Handle* handle, std::vector<Range> ranges, std::function<void()> work) {
  std::lock_guard guard(lock());
  Stream* stream = find_stream(handle->stream);
  if (!stream || stream->device != handle->device)
    return complain("%s: the stream is not one of the handle's device", who), false;
  const Status status =
      submit(stream, who, [who, device = handle->device, ranges = std::move(ranges), work = std::move(work)] {
        for (const Range& r : ranges)
          if (r.bytes && !device_may_use(who, r.what, device, reinterpret_cast<Address>(r.data), r.bytes))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        work();
        return CUDA_SUCCESS;
      });
  return status == CUDA_SUCCESS;
}

// The pointers of a batch lie on the device: they are known when the work is done, and then checked.
inline bool may_use_all(const char* who, Device* device, void* const* pointers, int count, uint64_t bytes) {
  for (int i = 0; i < count; ++i)
    if (!device_may_use(who, "a matrix of the batch", device, reinterpret_cast<Address>(pointers[i]), bytes))
      return false;
  return true;
}

}  // namespace emulator
