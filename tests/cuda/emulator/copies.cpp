// Copies and fills.
#include <cstring>

#include "emulator.h"

namespace emulator {
namespace {

void* at(Address address) { return reinterpret_cast<void*>(address); }

enum class Side { device, host, either };

// Whose memory the two ends are is asked when the copy is asked for and, for a captured one, each time it is done.
Status copy(const char* who, void* stream_handle, Address to, Side to_side, Address from, Side from_side, size_t bytes,
            Device* to_device = nullptr, Device* from_device = nullptr) {
  Stream* stream = find_stream(stream_handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  const auto may_use = [who, bytes](const char* what, Address address, Side side, Device* device) {
    if (side == Side::either) {
      const Allocation* a = find_allocation(address);
      side = a && a->kind == Kind::device ? Side::device : Side::host;
    }
    return side == Side::device ? device_may_use(who, what, device, address, bytes)
                                : host_may_use(who, what, at(address), bytes);
  };
  const auto may_copy = [=] {
    return may_use("the destination", to, to_side, to_device) && may_use("the source", from, from_side, from_device);
  };
  if (!may_copy()) return CUDA_ERROR_INVALID_VALUE;
  const auto do_copy = [=] {
    if (!may_copy()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memmove(at(to), at(from), bytes);
    return CUDA_SUCCESS;
  };
  if (stream->capture || bytes == 0) return submit(stream, who, do_copy);
  // The driver goes through memory of its own with what the host has not pinned: it has read the source, or written the
  // destination, when the call returns.
  if (!find_allocation(from)) {
    auto read = std::make_shared<std::vector<char>>(static_cast<char*>(at(from)), static_cast<char*>(at(from)) + bytes);
    return submit(stream, who, [=] {
      if (!may_use("the destination", to, to_side, to_device)) return CUDA_ERROR_ILLEGAL_ADDRESS;
      std::memcpy(at(to), read->data(), bytes);
      return CUDA_SUCCESS;
    });
  }
  const Status status = submit(stream, who, do_copy);
  return status == CUDA_SUCCESS && !find_allocation(to) ? finish(stream) : status;
}

template <class T>
Status fill(const char* who, void* stream_handle, Address to, T value, size_t count) {
  if (to % sizeof(T)) {
    complain("%s: 0x%llx is not a multiple of %zu", who, static_cast<unsigned long long>(to), sizeof(T));
    return CUDA_ERROR_INVALID_VALUE;
  }
  Stream* stream = find_stream(stream_handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  const auto may_fill = [=] { return device_may_use(who, "the destination", stream->device, to, count * sizeof(T)); };
  if (!may_fill()) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, who, [=] {
    if (!may_fill()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (size_t i = 0; i < count; ++i) static_cast<T*>(at(to))[i] = value;
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace emulator

using namespace emulator;

EMULATOR_API Status cuMemcpyAsync(Address to, Address from, size_t bytes, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return copy("cuMemcpyAsync", stream, to, Side::either, from, Side::either, bytes);
}
EMULATOR_API Status cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return copy("cuMemcpyHtoDAsync", stream, to, Side::device, reinterpret_cast<Address>(from), Side::host, bytes);
}
EMULATOR_API Status cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return copy("cuMemcpyDtoHAsync", stream, reinterpret_cast<Address>(to), Side::host, from, Side::device, bytes);
}
EMULATOR_API Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return copy("cuMemcpyDtoDAsync", stream, to, Side::device, from, Side::device, bytes);
}
EMULATOR_API Status cuMemcpyPeerAsync(Address to, void* to_context, Address from, void* from_context, size_t bytes,
                                      void* stream) {
  EMULATOR_ENTER_CONTEXT();
  if (!to_context || !from_context) return CUDA_ERROR_INVALID_CONTEXT;
  return copy("cuMemcpyPeerAsync", stream, to, Side::device, from, Side::device, bytes,
              static_cast<Device*>(to_context), static_cast<Device*>(from_context));
}

EMULATOR_API Status cuMemsetD8Async(Address to, unsigned char value, size_t count, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return fill("cuMemsetD8Async", stream, to, value, count);
}
EMULATOR_API Status cuMemsetD16Async(Address to, unsigned short value, size_t count, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return fill("cuMemsetD16Async", stream, to, value, count);
}
EMULATOR_API Status cuMemsetD32Async(Address to, unsigned value, size_t count, void* stream) {
  EMULATOR_ENTER_CONTEXT();
  return fill("cuMemsetD32Async", stream, to, value, count);
}
