// The driver's start, its devices, contexts and error texts.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator.h"

namespace emulator {
namespace {

thread_local Device* the_current = nullptr;
bool started = false;

size_t number_from_environment(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

// CUdevice_attribute and what an emulated GPU answers; others are 0.
int attribute_of(int ordinal, int attribute) {
  switch (attribute) {
    case 1: return 1024;  // threads of a block
    case 2:
    case 3: return 1024;        // block x, y
    case 4: return 64;          // block z
    case 5: return 2147483647;  // grid x
    case 6:
    case 7: return 65535;        // grid y, z
    case 8: return 48 << 10;     // shared memory of a block
    case 9: return 64 << 10;     // constant memory
    case 10: return 32;          // warp
    case 11: return 2147483647;  // pitch
    case 12: return 65536;       // registers of a block
    case 13: return 1000000;     // clock, kHz
    case 14:
    case 30: return 512;  // alignment of textures and surfaces
    case 15:
    case 31:
    case 19:
    case 41: return 1;            // overlap, concurrent kernels, mapped host memory, unified addresses
    case 16: return 4;            // multiprocessors
    case 33: return ordinal + 1;  // PCI bus
    case 36: return 1000000;      // memory clock, kHz
    case 37: return 256;          // bus width
    case 38: return 4 << 20;      // L2 cache
    case 39: return 2048;         // threads of a multiprocessor
    case 40: return 1;            // copy engines
    case 75: return 9;            // compute capability
    case 76: return 0;
    case 78:
    case 79:
    case 80: return 1;          // stream priorities, L1 caches
    case 81: return 228 << 10;  // shared memory of a multiprocessor
    case 82: return 65536;      // registers of a multiprocessor
    case 87: return 2;          // float to double speed
    case 91: return 1;          // registered memory keeps its address
    case 97: return 227 << 10;  // shared memory of a block that asks for more
    case 99: return 1;          // host memory can be registered
    case 106: return 32;        // blocks of a multiprocessor
    case 111: return 1 << 10;   // shared memory kept back
    default: return 0;
  }
}

}  // namespace

void complain(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("emulated CUDA: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::fflush(stderr);
  va_end(arguments);
}

std::mutex& lock() {
  static auto* the = new std::mutex;
  return *the;
}
bool is_started() { return started; }
std::vector<Device>& devices() {
  static auto* the = new std::vector<Device>;
  return *the;
}
Device* current() { return the_current; }

namespace {

Device* device_of(int ordinal) {
  return ordinal >= 0 && ordinal < int(devices().size()) ? &devices()[size_t(ordinal)] : nullptr;
}
// A context's handle is the address of its device: there are primary contexts only.
Device* device_of_context(void* context) {
  for (Device& device : devices())
    if (&device == context) return &device;
  return nullptr;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

EMULATOR_API Status cuInit(unsigned flags) {
  std::lock_guard guard(lock());
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!started) {
    devices().resize(number_from_environment("CRESSET_EMULATOR_DEVICES", 1));
    for (size_t i = 0; i < devices().size(); ++i) {
      Device& device = devices()[i];
      device.ordinal = int(i);
      device.total = number_from_environment("CRESSET_EMULATOR_MEMORY", size_t(1) << 30);
      device.legacy.device = &device, device.legacy.is_legacy = true;
    }
    started = true;
  }
  return devices().empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EMULATOR_API Status cuDriverGetVersion(int* version) {
  return version ? (*version = 13000, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

EMULATOR_API Status cuDeviceGetCount(int* count) {
  EMULATOR_ENTER();
  *count = int(devices().size());
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceGet(int* device, int ordinal) {
  EMULATOR_ENTER();
  if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceGetName(char* name, int length, int ordinal) {
  EMULATOR_ENTER();
  if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  if (length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, size_t(length), "Emulated GPU");
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceGetAttribute(int* value, int attribute, int ordinal) {
  EMULATOR_ENTER();
  if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < 1) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute_of(ordinal, attribute);
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceTotalMem_v2(size_t* bytes, int ordinal) {
  EMULATOR_ENTER();
  if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = device_of(ordinal)->total;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceGetUuid_v2(unsigned char* uuid, int ordinal) {
  EMULATOR_ENTER();
  if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid, "emulated GPU", 12);
  for (int i = 0; i < 4; ++i) uuid[12 + i] = static_cast<unsigned char>(ordinal >> (8 * (3 - i)));
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceGetUuid(unsigned char* uuid, int ordinal) { return cuDeviceGetUuid_v2(uuid, ordinal); }

EMULATOR_API Status cuDevicePrimaryCtxRetain(void** context, int ordinal) {
  EMULATOR_ENTER();
  Device* device = device_of(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  ++device->retained;
  *context = device;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDevicePrimaryCtxRelease_v2(int ordinal) {
  EMULATOR_ENTER();
  Device* device = device_of(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (device->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --device->retained;  // what it holds stays: the process ends soon after
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuCtxSetCurrent(void* context) {
  EMULATOR_ENTER();
  if (context && !device_of_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  the_current = device_of_context(context);
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuCtxGetCurrent(void** context) {
  EMULATOR_ENTER();
  *context = the_current;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuCtxGetDevice(int* ordinal) {
  EMULATOR_ENTER_CONTEXT();
  *ordinal = the_current->ordinal;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  EMULATOR_ENTER_CONTEXT();
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  EMULATOR_ENTER();
  if (!device_of(ordinal) || !device_of(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = ordinal != peer;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuCtxEnablePeerAccess(void* context, unsigned flags) {
  EMULATOR_ENTER_CONTEXT();
  Device* peer = device_of_context(context);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags || peer == the_current) return CUDA_ERROR_INVALID_VALUE;
  return the_current->peers.insert(peer->ordinal).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

namespace {
struct ErrorText {
  Status status;
  const char *name, *text;
};
constexpr ErrorText error_texts[] = {
#define EMULATOR_TEXT(name, number, text) {CUDA_##name, "CUDA_" #name, text},
    EMULATOR_ERRORS(EMULATOR_TEXT)
#undef EMULATOR_TEXT
};
}  // namespace

EMULATOR_API Status cuGetErrorName(int status, const char** text) {
  *text = nullptr;
  for (const ErrorText& e : error_texts)
    if (e.status == status) *text = e.name;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EMULATOR_API Status cuGetErrorString(int status, const char** text) {
  *text = nullptr;
  for (const ErrorText& e : error_texts)
    if (e.status == status) *text = e.text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
