#include "cuda/device.h"

#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cuda/compile.h"
#include "cuda/fault.h"
#include "cuda/wait.h"

namespace cresset::cuda {
namespace {

struct Place {
  Properties properties;
  std::once_flag described, started;
  std::atomic<ContextHandle> context = nullptr;
};

Place* places() {
  static auto* all = new Place[kMaxDevices];
  return all;
}

std::atomic<bool> any_started = false;

struct Thread {
  int device = 0;
  int entered = -1;  // the device whose context is the thread's
  StreamHandle streams[kMaxDevices] = {};
};
thread_local Thread thread;

int attribute(Attribute which, int device) {
  int value = 0;
  driver().cuDeviceGetAttribute(&value, which, device);
  return value;
}

void describe(int device, Properties& p) {
  char name[256] = {};
  CRESSET_DRIVER(cuDeviceGetName(name, sizeof name - 1, device));
  p.name = name;
  size_t bytes = 0;
  CRESSET_DRIVER(cuDeviceTotalMem_v2(&bytes, device));
  p.memory = static_cast<int64_t>(bytes);
  Uuid uuid{};
  driver().cuDeviceGetUuid_v2(&uuid, device);
  constexpr char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) p.uuid += '-';
    p.uuid += digits[uuid.bytes[i] >> 4];
    p.uuid += digits[uuid.bytes[i] & 15];
  }
  p.major = attribute(kCapabilityMajor, device), p.minor = attribute(kCapabilityMinor, device);
  p.multiprocessors = attribute(kMultiprocessors, device), p.warp_size = attribute(kWarpSize, device);
  p.threads_per_multiprocessor = attribute(kThreadsPerMultiprocessor, device);
  p.registers_per_multiprocessor = attribute(kRegistersPerMultiprocessor, device);
  p.clock_rate = attribute(kClockRate, device), p.memory_clock_rate = attribute(kMemoryClockRate, device),
  p.bus_width = attribute(kBusWidth, device);
  p.pci_bus = attribute(kPciBusId, device), p.pci_device = attribute(kPciDeviceId, device),
  p.pci_domain = attribute(kPciDomainId, device);
  p.l2 = attribute(kL2Size, device), p.shared_per_block = attribute(kSharedPerBlock, device);
  p.shared_per_block_optin = attribute(kSharedPerBlockOptIn, device),
  p.shared_per_multiprocessor = attribute(kSharedPerMultiprocessor, device);
  p.integrated = attribute(kIntegrated, device), p.multi_gpu_board = attribute(kMultiGpuBoard, device);
}

}  // namespace

int device_count() {
  static std::atomic<int> known = -1;
  int n = known.load(std::memory_order_relaxed);
  if (n >= 0) [[likely]]
    return n;
  n = 0;
  if (!driver_problem().empty() || driver().cuDeviceGetCount(&n) != kSuccess) n = 0;
  n = std::min(n, kMaxDevices);
  known = n;
  return n;
}

void check_device(int device) {
  const int count = device_count();
  if (device >= 0 && device < count) [[likely]]
    return;
  CRESSET_CHECK_KIND(ErrorKind::assertion, count > 0, "Torch not compiled with CUDA enabled, or no device: ",
                     driver_problem().empty() ? "the NVIDIA driver has no device" : driver_problem());
  fail("CUDA error: invalid device ordinal ", device, ": there ",
       count == 1 ? "is one device, cuda:0" : join("are ", count, " devices, the first is cuda:0"));
}

const Properties& properties(int device) {
  check_device(device);
  Place& place = places()[device];
  std::call_once(place.described, [&] { describe(device, place.properties); });
  return place.properties;
}

ContextHandle context(int device) {
  if (device >= 0 && device < kMaxDevices)
    if (const ContextHandle known = places()[device].context.load(std::memory_order_acquire)) return known;
  check_device(device);
  Place& place = places()[device];
  std::call_once(place.started, [&] {
    ContextHandle c = nullptr;
    std::thread other;
    try {
      other = std::thread([device] { start_compiler(device); });  // which takes as long to begin as a context does
    } catch (const std::system_error&) {                          // no thread to be had: the first kernel waits for it
    }
    const Status status = driver().cuDevicePrimaryCtxRetain(&c, device);
    if (other.joinable()) other.join();
    check_status(status, "cuDevicePrimaryCtxRetain");
    any_started = true;
    place.context.store(c, std::memory_order_release);
  });
  return place.context;
}

bool is_started() { return any_started; }

int current_device() {
  if (!any_started) check_device(thread.device);
  return thread.device;
}

void set_device(int device) {
  if (device == thread.device) return;
  check_device(device);
  thread.device = device;
}

StreamHandle current_stream(int device) { return thread.streams[device]; }
void set_stream(int device, StreamHandle stream) {
  check_device(device);
  thread.streams[device] = stream;
}

StreamHandle enter(int device) {
  if (thread.entered != device) {
    CRESSET_DRIVER(cuCtxSetCurrent(context(device)));
    thread.entered = device;
  }
  return thread.streams[device];
}

static std::atomic<int> captures = 0;  // at this time: mostly none, and then the driver need not be asked

void begin_capture(StreamHandle stream, int mode) {
  CRESSET_DRIVER(cuStreamBeginCapture_v2(stream, mode));
  ++captures;
}
GraphHandle end_capture(StreamHandle stream) {
  --captures;
  GraphHandle graph = nullptr;
  CRESSET_DRIVER(cuStreamEndCapture(stream, &graph));
  return graph;
}
bool is_any_captured() { return captures != 0; }
bool is_capturing(StreamHandle stream) {
  if (captures == 0) [[likely]]
    return false;
  int state = 0;
  CRESSET_DRIVER(cuStreamIsCapturing(stream, &state));
  return state != 0;
}

void synchronize(int device) {
  enter(device);
  CRESSET_DRIVER(cuCtxSynchronize());
  raise_faults(device);
}

void synchronize_stream(int device, StreamHandle stream) {
  note_wait();
  enter(device);
  CRESSET_DRIVER(cuStreamSynchronize(stream));
  raise_faults(device);
}

}  // namespace cresset::cuda
