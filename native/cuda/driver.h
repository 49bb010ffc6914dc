// NVIDIA's driver, libcuda: the functions that we call, looked up when they are first needed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cresset::cuda {

using Status = int;  // CUresult
using Address = uint64_t;
using ContextHandle = void*;
using StreamHandle = void*;
using EventHandle = void*;
using ModuleHandle = void*;
using FunctionHandle = void*;
using GraphHandle = void*;
using GraphExecHandle = void*;
struct Uuid {
  unsigned char bytes[16];
};

// Numbers of CUDA's interface.
inline constexpr Status kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kClockRate = 13,
  kMultiprocessors = 16,
  kIntegrated = 18,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kMemoryClockRate = 36,
  kBusWidth = 37,
  kL2Size = 38,
  kThreadsPerMultiprocessor = 39,
  kPciDomainId = 50,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kMultiGpuBoard = 84,
  kSharedPerBlock = 8,
  kSharedPerBlockOptIn = 97,
};
inline constexpr int kFunctionSharedLimit = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr unsigned kEventDefault = 0, kEventBlockingSync = 1, kEventNoTiming = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kHostPortable = 1, kHostMapped = 2;
inline constexpr int kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2;

// CUlaunchConfig, with one CUlaunchAttribute.
struct LaunchAttribute {
  alignas(8) int id;
  alignas(8) int value;
  char more[60];
};
struct LaunchSettings {
  unsigned grid[3], block[3], shared;
  StreamHandle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
inline constexpr int kAttributeEarly = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

// name, parameters
#define CRESSET_DRIVER_FUNCTIONS(X)                                                                               \
  X(cuInit, (unsigned flags))                                                                                     \
  X(cuDriverGetVersion, (int* version))                                                                           \
  X(cuGetErrorName, (Status, const char** text))                                                                  \
  X(cuGetErrorString, (Status, const char** text))                                                                \
  X(cuDeviceGetCount, (int* count))                                                                               \
  X(cuDeviceGet, (int* device, int ordinal))                                                                      \
  X(cuDeviceGetName, (char* name, int length, int device))                                                        \
  X(cuDeviceGetAttribute, (int* value, int attribute, int device))                                                \
  X(cuDeviceTotalMem_v2, (size_t* bytes, int device))                                                             \
  X(cuDeviceGetUuid_v2, (Uuid * uuid, int device))                                                                \
  X(cuDeviceCanAccessPeer, (int* can, int device, int peer))                                                      \
  X(cuDevicePrimaryCtxRetain, (ContextHandle * context, int device))                                              \
  X(cuCtxSetCurrent, (ContextHandle context))                                                                     \
  X(cuCtxSynchronize, ())                                                                                         \
  X(cuCtxGetStreamPriorityRange, (int* least, int* greatest))                                                     \
  X(cuMemGetInfo_v2, (size_t* free, size_t* total))                                                               \
  X(cuMemAlloc_v2, (Address * address, size_t bytes))                                                             \
  X(cuMemFree_v2, (Address address))                                                                              \
  X(cuMemHostAlloc, (void** p, size_t bytes, unsigned flags))                                                     \
  X(cuMemFreeHost, (void* p))                                                                                     \
  X(cuMemHostGetDevicePointer_v2, (Address * address, void* p, unsigned flags))                                   \
  X(cuMemcpyHtoDAsync_v2, (Address to, const void* from, size_t bytes, StreamHandle stream))                      \
  X(cuMemcpyDtoHAsync_v2, (void* to, Address from, size_t bytes, StreamHandle stream))                            \
  X(cuMemcpyDtoDAsync_v2, (Address to, Address from, size_t bytes, StreamHandle stream))                          \
  X(cuMemcpyPeerAsync,                                                                                            \
    (Address to, ContextHandle to_context, Address from, ContextHandle from_context, size_t bytes, StreamHandle)) \
  X(cuMemsetD8Async, (Address to, unsigned char value, size_t count, StreamHandle stream))                        \
  X(cuMemsetD16Async, (Address to, unsigned short value, size_t count, StreamHandle stream))                      \
  X(cuMemsetD32Async, (Address to, unsigned value, size_t count, StreamHandle stream))                            \
  X(cuModuleLoadData, (ModuleHandle * module, const void* image))                                                 \
  X(cuModuleGetFunction, (FunctionHandle * function, ModuleHandle module, const char* name))                      \
  X(cuFuncSetAttribute, (FunctionHandle function, int attribute, int value))                                      \
  X(cuLaunchKernel, (FunctionHandle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
                     unsigned bz, unsigned shared, StreamHandle stream, void** parameters, void** extra))         \
  X(cuLaunchKernelEx, (const LaunchSettings* settings, FunctionHandle function, void** parameters, void** extra)) \
  X(cuStreamCreateWithPriority, (StreamHandle * stream, unsigned flags, int priority))                            \
  X(cuStreamDestroy_v2, (StreamHandle stream))                                                                    \
  X(cuStreamSynchronize, (StreamHandle stream))                                                                   \
  X(cuStreamQuery, (StreamHandle stream))                                                                         \
  X(cuStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))                                  \
  X(cuStreamGetPriority, (StreamHandle stream, int* priority))                                                    \
  X(cuEventCreate, (EventHandle * event, unsigned flags))                                                         \
  X(cuEventDestroy_v2, (EventHandle event))                                                                       \
  X(cuEventRecord, (EventHandle event, StreamHandle stream))                                                      \
  X(cuEventQuery, (EventHandle event))                                                                            \
  X(cuEventSynchronize, (EventHandle event))                                                                      \
  X(cuEventElapsedTime, (float* milliseconds, EventHandle start, EventHandle end))                                \
  X(cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                                                     \
  X(cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph))                                               \
  X(cuStreamIsCapturing, (StreamHandle stream, int* state))                                                       \
  X(cuThreadExchangeStreamCaptureMode, (int* mode))                                                               \
  X(cuGraphInstantiateWithFlags, (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))           \
  X(cuGraphLaunch, (GraphExecHandle exec, StreamHandle stream))                                                   \
  X(cuGraphExecDestroy, (GraphExecHandle exec))                                                                   \
  X(cuGraphDestroy, (GraphHandle graph))                                                                          \
  X(cuGraphDebugDotPrint, (GraphHandle graph, const char* path, unsigned flags))

// Note [Launching on another thread] (queue.h): bytes of work, counted from the beginning.
extern std::atomic<uint64_t> launches_written, launches_made;
void wait_for_launches();
// Afterwards the driver has been told all that was launched before.
inline void finish_launches() {
  if (launches_written.load(std::memory_order_relaxed) != launches_made.load(std::memory_order_acquire))
    wait_for_launches();
}
extern std::atomic<Status> failed_launch;
[[gnu::cold]] void raise_launch_failure();
inline void raise_failed_launch() {
  if (failed_launch.load(std::memory_order_relaxed) != kSuccess) [[unlikely]]
    raise_launch_failure();
}

// A function of the driver. Called, it does not overtake what was launched (also by whoever computed its arguments);
// `now` is for those who carry that out.
template <class>
struct DriverFunction;
template <class... Arguments>
struct DriverFunction<Status(Arguments...)> {
  Status (*now)(Arguments...) = nullptr;
  Status operator()(Arguments... arguments) const {
    finish_launches();
    return now(arguments...);
  }
};

struct Driver {
#define CRESSET_MEMBER(name, parameters) DriverFunction<Status parameters> name;
  CRESSET_DRIVER_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
};

extern const Driver* started_driver;  // null before the first use
const Driver& start_driver();
// The driver, started. Raises when there is none.
inline const Driver& driver() { return started_driver ? *started_driver : start_driver(); }
// Why there is no driver; empty when there is one. Starts it.
const std::string& driver_problem();

[[gnu::cold]] void raise_status(Status status, const char* what);
inline void check_status(Status status, const char* what) {
  raise_failed_launch();
  if (status != kSuccess) [[unlikely]]
    raise_status(status, what);
}
// CRESSET_DRIVER(cuMemFree_v2(address)): calls it and raises what it reports.
#define CRESSET_DRIVER(call) ::cresset::cuda::check_status(::cresset::cuda::driver().call, #call)

}  // namespace cresset::cuda
