// The devices of this process: their properties, contexts, and which device and stream a thread works on.
#pragma once
#include <string>

#include "base/device.h"
#include "cuda/driver.h"

namespace cresset::cuda {

struct Properties {
  std::string name, uuid;
  int major = 0, minor = 0, multiprocessors = 0, warp_size = 32, threads_per_multiprocessor = 0,
      registers_per_multiprocessor = 0, clock_rate = 0, memory_clock_rate = 0, bus_width = 0;
  int pci_bus = 0, pci_device = 0, pci_domain = 0;
  int64_t memory = 0, l2 = 0, shared_per_block = 0, shared_per_block_optin = 0, shared_per_multiprocessor = 0;
  bool integrated = false, multi_gpu_board = false;
};

inline constexpr int kMaxDevices = 16;
inline Device device_at(int index) { return {DeviceType::cuda, static_cast<int8_t>(index)}; }
inline bool is_cuda(Device d) { return d.type == DeviceType::cuda; }

int device_count();             // 0 without a driver
void check_device(int device);  // raises when there is no such device
const Properties& properties(int device);
ContextHandle context(int device);  // of the device; started when it is first asked for
bool is_started();                  // whether any device was used

// What this thread works on.
int current_device();
void set_device(int device);
StreamHandle current_stream(int device);  // null: the default stream
void set_stream(int device, StreamHandle stream);

// Makes the device's context the thread's; gives the stream for its work.
StreamHandle enter(int device);

// Graphs are captured through these.
void begin_capture(StreamHandle stream, int mode);
GraphHandle end_capture(StreamHandle stream);  // null: the capture was not valid
bool is_capturing(StreamHandle stream);
bool is_any_captured();  // of all streams

// Waits for all work of the device, then raises what went wrong on it meanwhile.
void synchronize(int device);
void synchronize_stream(int device, StreamHandle stream);

}  // namespace cresset::cuda
