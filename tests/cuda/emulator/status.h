// The error numbers of CUDA's driver interface, as far as the emulator gives them.
#pragma once

namespace emulator {

// name in CUDA, number, what it says
#define EMULATOR_ERRORS(X)                                                                                    \
  X(SUCCESS, 0, "no error")                                                                                   \
  X(ERROR_INVALID_VALUE, 1, "invalid argument")                                                               \
  X(ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                                  \
  X(ERROR_NOT_INITIALIZED, 3, "initialization error")                                                         \
  X(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                               \
  X(ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                                      \
  X(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                               \
  X(ERROR_INVALID_CONTEXT, 201, "invalid device context")                                                     \
  X(ERROR_SHARED_OBJECT_INIT_FAILED, 303, "shared object initialization failed")                              \
  X(ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")                      \
  X(ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                                     \
  X(ERROR_NOT_FOUND, 500, "named symbol not found")                                                           \
  X(ERROR_NOT_READY, 600, "device not ready")                                                                 \
  X(ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                   \
  X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                            \
  X(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")                                 \
  X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the requested memory range is already mapped") \
  X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "pointer does not correspond to a registered memory region")       \
  X(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                                      \
  X(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                                   \
  X(ERROR_NOT_SUPPORTED, 801, "operation not supported")                                                      \
  X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")                \
  X(ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")         \
  X(ERROR_STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences")       \
  X(ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")              \
  X(ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                                 \
  X(ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")           \
  X(ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                                                       \
    "operation would make the legacy stream depend on a capturing blocking stream")                           \
  X(ERROR_CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")     \
  X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "attempt to terminate a thread-local capture sequence from another thread")

enum Status : int {
#define EMULATOR_NUMBER(name, number, text) CUDA_##name = number,
  EMULATOR_ERRORS(EMULATOR_NUMBER)
#undef EMULATOR_NUMBER
};

}  // namespace emulator
