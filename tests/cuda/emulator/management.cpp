// NVML, the driver's management library: the answers of a GPU at rest. One process uses each GPU: this one.
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotFound = 6, kInsufficientSize = 7;
struct Gpu {
} gpu;
bool started = false;

struct Process {
  unsigned number;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

int give(const Gpu* device, unsigned* to, unsigned value) {
  if (!started || device != &gpu || !to) return kInvalidArgument;
  *to = value;
  return kSuccess;
}

}  // namespace

#define MANAGEMENT_API extern "C" __attribute__((visibility("default")))

MANAGEMENT_API int nvmlInit_v2() { return started = true, kSuccess; }
MANAGEMENT_API int nvmlDeviceGetHandleByUUID(const char* uuid, const Gpu** device) {
  if (!started || std::strncmp(uuid, "GPU-656d756c-6174-6564-2047-5055", 32) != 0) return kNotFound;  // "emulated GPU"
  *device = &gpu;
  return kSuccess;
}
MANAGEMENT_API int nvmlDeviceGetUtilizationRates(const Gpu* device, unsigned* rates) {
  return give(device, rates, 5) | give(device, rates + 1, 3);
}
MANAGEMENT_API int nvmlDeviceGetTemperature(const Gpu* device, int sensor, unsigned* degrees) {
  return sensor ? kInvalidArgument : give(device, degrees, 33);
}
MANAGEMENT_API int nvmlDeviceGetPowerUsage(const Gpu* device, unsigned* milliwatts) {
  return give(device, milliwatts, 75000);
}
MANAGEMENT_API int nvmlDeviceGetClockInfo(const Gpu* device, int kind, unsigned* megahertz) {
  return kind == 1 ? give(device, megahertz, 1980) : kInvalidArgument;
}
MANAGEMENT_API int nvmlDeviceGetMemoryInfo(const Gpu* device, unsigned long long* figures) {
  if (!started || device != &gpu) return kInvalidArgument;
  figures[0] = 1 << 30, figures[1] = (1 << 30) - (1 << 20), figures[2] = 1 << 20;
  return kSuccess;
}
MANAGEMENT_API int nvmlDeviceGetComputeRunningProcesses_v3(const Gpu* device, unsigned* count, Process* processes) {
  if (!started || device != &gpu) return kInvalidArgument;
  const bool fits = *count >= 1;
  *count = 1;
  if (!fits || !processes) return kInsufficientSize;
  processes[0] = {static_cast<unsigned>(getpid()), 1 << 20, ~0u, ~0u};
  return kSuccess;
}
